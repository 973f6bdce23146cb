// SPDX-License-Identifier: PostgreSQL
//! What a key does.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use view::Sort;

/// What the user wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Leave.
    Quit,
    /// Show this pane, counted from 0.
    Pane(usize),
    /// Show the next pane, or the one before.
    NextPane(isize),
    /// Move the cursor by so many rows.
    Move(isize),
    /// Move the cursor by so many pages.
    Page(isize),
    /// Put the cursor on this row; where it is already, open or shut the row.
    Point(usize),
    /// Open or shut the row under the cursor.
    Toggle,
    /// Open or shut all.
    ToggleAll,
    /// The next order of rows, or the one before.
    Sort(isize),
    /// This order; where it is already, the other way round.
    Order(Sort),
    /// The other way round.
    Reverse,
    /// Type a filter.
    Filter,
    /// Take the filter off.
    Clear,
    /// Type another interval.
    Interval,
    /// Show or hide what is idle.
    Idle,
    /// Stand still, or go on.
    Pause,
    /// Look at an earlier or later interval, by so many.
    Step(i64),
    /// Type a time to look at.
    Jump,
    /// Look at the newest again.
    Live,
    /// Twice or half as fast through a recording.
    Speed(i32),
    /// Write what is shown into a file.
    Export(Form),
    /// Begin like this the next time.
    Save,
    /// Listen to the mouse, or leave it to the terminal.
    Mouse,
    /// The page of help.
    Help,
}

/// What is written of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// What is seen, with all rows.
    Text,
    /// The interval, as `--json` prints it.
    Json,
}

/// So many intervals go by with a larger step.
const STRIDE: i64 = 10;

/// The action of a key, if it has one.
pub fn action(key: KeyEvent) -> Option<Action> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Action::Quit),
            KeyCode::Char('f') => Some(Action::Page(1)),
            KeyCode::Char('b') => Some(Action::Page(-1)),
            _ => None,
        };
    }
    let far = key.modifiers.contains(KeyModifiers::SHIFT);
    let stride = if far { STRIDE } else { 1 };
    Some(match key.code {
        KeyCode::Char('q') | KeyCode::F(10) => Action::Quit,
        KeyCode::Char(digit @ '1'..='9') => Action::Pane(digit as usize - '1' as usize),
        KeyCode::Tab => Action::NextPane(1),
        KeyCode::BackTab => Action::NextPane(-1),
        KeyCode::Up | KeyCode::Char('k') => Action::Move(-1),
        KeyCode::Down | KeyCode::Char('j') => Action::Move(1),
        KeyCode::Home | KeyCode::Char('g') => Action::Move(isize::MIN),
        KeyCode::End | KeyCode::Char('G') => Action::Move(isize::MAX),
        KeyCode::PageUp => Action::Page(-1),
        KeyCode::PageDown => Action::Page(1),
        KeyCode::Enter => Action::Toggle,
        KeyCode::Char('e') => Action::ToggleAll,
        KeyCode::Char('<') => Action::Sort(-1),
        KeyCode::Char('>') | KeyCode::Char('s') | KeyCode::F(6) => Action::Sort(1),
        KeyCode::Char('r') => Action::Reverse,
        KeyCode::Char('/') | KeyCode::F(4) => Action::Filter,
        KeyCode::Esc => Action::Clear,
        KeyCode::Char('d') => Action::Interval,
        KeyCode::Char('i') => Action::Idle,
        KeyCode::Char('p') | KeyCode::Char(' ') => Action::Pause,
        KeyCode::Left => Action::Step(-stride),
        KeyCode::Right => Action::Step(stride),
        KeyCode::Char(',') => Action::Step(-1),
        KeyCode::Char('.') => Action::Step(1),
        KeyCode::Char('[') => Action::Step(-STRIDE),
        KeyCode::Char(']') => Action::Step(STRIDE),
        KeyCode::Char('t') => Action::Jump,
        KeyCode::Char('l') => Action::Live,
        KeyCode::Char('+') | KeyCode::Char('=') => Action::Speed(1),
        KeyCode::Char('-') => Action::Speed(-1),
        KeyCode::Char('x') => Action::Export(Form::Text),
        KeyCode::Char('X') => Action::Export(Form::Json),
        KeyCode::Char('W') => Action::Save,
        KeyCode::Char('m') => Action::Mouse,
        KeyCode::Char('?') | KeyCode::Char('h') | KeyCode::F(1) => Action::Help,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_help_page_does_something() {
        let plain = |code| action(KeyEvent::new(code, KeyModifiers::NONE));
        for c in "123456789jkes<>r/ipd?hq gG,.[]tl+-xXWm".chars() {
            assert!(plain(KeyCode::Char(c)).is_some(), "{c}");
        }
        for n in [1, 4, 6, 10] {
            assert!(plain(KeyCode::F(n)).is_some(), "F{n}");
        }
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(action(control_c), Some(Action::Quit));
        assert_eq!(plain(KeyCode::Char('z')), None);
    }

    #[test]
    fn shift_makes_a_step_larger() {
        let left = |modifiers| action(KeyEvent::new(KeyCode::Left, modifiers));
        assert_eq!(left(KeyModifiers::NONE), Some(Action::Step(-1)));
        assert_eq!(left(KeyModifiers::SHIFT), Some(Action::Step(-10)));
    }
}
