// SPDX-License-Identifier: PostgreSQL
//! A line that is being typed.

use crossterm::event::{KeyCode, KeyEvent};

use crate::keys::{action, Action};

/// The effect of a key.
pub enum Edit {
    /// Typing continues.
    Going(String),
    /// Enter: the line is complete.
    Done(String),
    /// Escape: the line is discarded.
    Dropped,
}

/// Applies a key to the typed text.
pub fn edit(mut typed: String, key: KeyEvent) -> Edit {
    match key.code {
        KeyCode::Enter => return Edit::Done(typed),
        KeyCode::Esc => return Edit::Dropped,
        KeyCode::Backspace => drop(typed.pop()),
        KeyCode::Char(_) if action(key) == Some(Action::Quit) && !key.modifiers.is_empty() => {
            return Edit::Dropped
        }
        KeyCode::Char(c) if !c.is_control() => typed.push(c),
        _ => {}
    }
    Edit::Going(typed)
}
