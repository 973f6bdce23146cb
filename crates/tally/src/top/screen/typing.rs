// SPDX-License-Identifier: PostgreSQL
//! A line that is being typed.

use ratatui::crossterm::event::{KeyCode, KeyEvent};

use crate::top::keys::{action, Action};

/// What a key made of it.
pub enum Edit {
    /// It goes on.
    Going(String),
    /// It is meant.
    Done(String),
    /// It is not.
    Dropped,
}

/// What this key makes of what has been typed.
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
