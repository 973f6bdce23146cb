// SPDX-License-Identifier: PostgreSQL
//! The keys and their actions.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use live::backend::SessionAction;
use view::Sort;

/// An action of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Quit.
    Quit,
    /// Cancel or end the session under the cursor.
    Session(SessionAction),
    /// Show this pane, counted from 0.
    Pane(usize),
    /// Show the next or the previous pane.
    NextPane(isize),
    /// Trace the session for a few seconds.
    Trace,
    /// Move the cursor by a number of rows.
    Move(isize),
    /// Move the cursor by a number of pages.
    Page(isize),
    /// Put the cursor on this row; if it is already there, open or close the row.
    Point(usize),
    /// Open or close the row under the cursor.
    Toggle,
    /// Open or close all rows.
    ToggleAll,
    /// Select the next or the previous sort order.
    Sort(isize),
    /// Select this sort order; if it is already selected, reverse it.
    Order(Sort),
    /// Reverse the sort order.
    Reverse,
    /// Type a filter.
    Filter,
    /// Remove the filter.
    Clear,
    /// Type another interval.
    Interval,
    /// Show or hide idle accounts.
    Idle,
    /// Pause or resume.
    Pause,
    /// Go to an earlier or later interval, by a number of intervals.
    Step(i64),
    /// Type a time to go to.
    Jump,
    /// Return to the newest interval.
    Live,
    /// Double or halve the speed of the replay.
    Speed(i32),
    /// Write the interval to a file.
    Export(Form),
    /// Save the view for the next start.
    Save,
    /// Turn the mouse on or off.
    Mouse,
    /// Show the help page.
    Help,
}

/// The format of a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Text: what the screen shows, with all rows.
    Text,
    /// JSON: the interval as `--json` prints it.
    Json,
}

/// How many intervals a larger step moves.
const STRIDE: i64 = 10;

/// The action of a key, if any.
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
        KeyCode::Char(digit @ '0'..='9') => Action::Pane(digit as usize - '0' as usize),
        KeyCode::Char('c') => Action::Session(SessionAction::Cancel),
        KeyCode::Char('k') => Action::Session(SessionAction::Terminate),
        KeyCode::Char('T') => Action::Trace,
        KeyCode::Tab => Action::NextPane(1),
        KeyCode::BackTab => Action::NextPane(-1),
        KeyCode::Up => Action::Move(-1),
        KeyCode::Down => Action::Move(1),
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
        for c in "0123456789ckTes<>r/ipd?hq gG,.[]tl+-xXWm".chars() {
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
    fn shift_makes_a_larger_step() {
        let left = |modifiers| action(KeyEvent::new(KeyCode::Left, modifiers));
        assert_eq!(left(KeyModifiers::NONE), Some(Action::Step(-1)));
        assert_eq!(left(KeyModifiers::SHIFT), Some(Action::Step(-10)));
    }
}
