// SPDX-License-Identifier: PostgreSQL
//! What keys act on, and what a screen wants of its owner.

use live::backend::{SessionAction, SessionId};
use terminal::Form;

/// What the server is to do, and to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What.
    pub deed: SessionAction,
    /// The session.
    pub session: SessionId,
    /// "session 4711 (shop, alice@orders)".
    pub name: String,
}

impl Request {
    /// The question before it.
    pub fn question(&self) -> String {
        match self.deed {
            SessionAction::Cancel => format!("Cancel the statement of {}? y/n", self.name),
            SessionAction::Terminate => format!("Terminate {}? y/n", self.name),
        }
    }

    /// What the server is asked for.
    pub fn asked(&self) -> String {
        match self.deed {
            SessionAction::Cancel => {
                format!("asking the server to cancel the statement of {}", self.name)
            }
            SessionAction::Terminate => format!("asking the server to terminate {}", self.name),
        }
    }

    /// What was done.
    pub fn done(&self) -> String {
        match self.deed {
            SessionAction::Cancel => format!("the server cancels the statement of {}", self.name),
            SessionAction::Terminate => format!("the server terminates {}", self.name),
        }
    }

    /// What was not done, and why.
    pub fn failed(&self, why: &str) -> String {
        match self.deed {
            SessionAction::Cancel => {
                format!("the statement of {} is not cancelled: {why}", self.name)
            }
            SessionAction::Terminate => format!("{} is not terminated: {why}", self.name),
        }
    }
}

/// What keys act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// The panes.
    Normal,
    /// A filter being typed.
    Filter(String),
    /// An interval being typed.
    Interval(String),
    /// A time being typed.
    Time(String),
    /// The help page, and its first visible line.
    Help(usize),
    /// A question: y does it.
    Question(Request),
}

/// What only the owner of the screen can do.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// Quit.
    Quit,
    /// Write the interval to a file.
    Export(Form),
    /// Save the view.
    Save,
    /// Turn the mouse on or off.
    Mouse,
    /// Have the server cancel a statement or end a session.
    Session(Request),
    /// Trace a session for a few seconds.
    Trace {
        /// Its process.
        pid: i32,
        /// What to call it.
        name: String,
    },
    /// Show an interval beyond the kept ones, by this number of intervals.
    Further(i64),
    /// Show a time beyond the kept intervals, seconds since 1970.
    Seek(f64),
}
