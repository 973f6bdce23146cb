// SPDX-License-Identifier: PostgreSQL
//! What a key does, and the page that says so.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Open or shut the row under the cursor.
    Toggle,
    /// Open or shut all.
    ToggleAll,
    /// The next order of rows, or the one before.
    Sort(isize),
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
    /// This page.
    Help,
}

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
        KeyCode::Enter | KeyCode::Right | KeyCode::Left => Action::Toggle,
        KeyCode::Char('e') => Action::ToggleAll,
        KeyCode::Char('<') => Action::Sort(-1),
        KeyCode::Char('>') | KeyCode::Char('s') | KeyCode::F(6) => Action::Sort(1),
        KeyCode::Char('r') => Action::Reverse,
        KeyCode::Char('/') | KeyCode::F(4) => Action::Filter,
        KeyCode::Esc => Action::Clear,
        KeyCode::Char('d') => Action::Interval,
        KeyCode::Char('i') => Action::Idle,
        KeyCode::Char('p') | KeyCode::Char(' ') => Action::Pause,
        KeyCode::Char('?') | KeyCode::Char('h') | KeyCode::F(1) => Action::Help,
        _ => return None,
    })
}

/// The page of help.
pub const HELP: &str = "\
Tab 1 to 9    pane: ledger, waits, commands, sessions, lightweight locks,
              other locks, functions, statements, storage (io)
Up Down j k   move the cursor; PgUp PgDn Home End
Enter         open a row into its phases or contexts, or the page of a
              statement, which Esc leaves; e opens or shuts all
< > s F6      order: time, calls, mean, max, name; of statements also p99,
              rows, cpu, io, lock, lwlock, client, ipc; r turns it round
/ F4          filter: rows that contain a text; Esc takes it off
i             show or hide what is idle, and nested statements
p Space       stand still, go on
d             another interval, in seconds
? h F1        this page
q F10 Ctrl-C  leave

%TIME   share of the time that sessions were not idle
S/S     seconds per second: how many do this on average
US/CMD  microseconds per handled command
Rates are per second of the time in which the level was on; of locks, was locks.
A stretch that is still running counts up to this instant, and as the longest.

Idle is: waiting for the client between commands, the main loops of background
processes, and uninstrumented time. It is folded away unless i shows it.

unexplained: share of busy time in which a process was blocked where no probe
looks, by samples and by the kernel's own accounts.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_help_page_does_something() {
        let plain = |code| action(KeyEvent::new(code, KeyModifiers::NONE));
        for c in "123456789jkes<>r/ipd?hq gG".chars() {
            assert!(plain(KeyCode::Char(c)).is_some(), "{c}");
        }
        for n in [1, 4, 6, 10] {
            assert!(plain(KeyCode::F(n)).is_some(), "F{n}");
        }
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(action(control_c), Some(Action::Quit));
        assert_eq!(plain(KeyCode::Char('x')), None);
    }
}
