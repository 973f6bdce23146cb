// SPDX-License-Identifier: PostgreSQL
//! What keys act on, and what a screen requests from its owner.

use live::backend::{SessionAction, SessionId};
use terminal::Form;

/// A request to the server about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub deed: SessionAction,
    /// The session.
    pub session: SessionId,
    /// For example "session 4711 (shop, alice@orders)".
    pub name: String,
}

impl Request {
    /// The question to ask before it is sent.
    pub fn question(&self) -> String {
        match self.deed {
            SessionAction::Cancel => format!("Cancel the statement of {}? y/n", self.name),
            SessionAction::Terminate => format!("Terminate {}? y/n", self.name),
        }
    }

    /// The notice after it was sent.
    pub fn asked(&self) -> String {
        match self.deed {
            SessionAction::Cancel => {
                format!("asking the server to cancel the statement of {}", self.name)
            }
            SessionAction::Terminate => format!("asking the server to terminate {}", self.name),
        }
    }

    /// The notice after it was done.
    pub fn done(&self) -> String {
        match self.deed {
            SessionAction::Cancel => format!("sent a cancel request to {}", self.name),
            SessionAction::Terminate => format!("sent a terminate request to {}", self.name),
        }
    }

    /// The notice after it failed, with the reason.
    pub fn failed(&self, why: &str) -> String {
        match self.deed {
            SessionAction::Cancel => {
                format!("did not cancel the statement of {}: {why}", self.name)
            }
            SessionAction::Terminate => format!("did not terminate {}: {why}", self.name),
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
    /// A question; y confirms it.
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
    /// Have the server cancel a statement or terminate a session.
    Session(Request),
    /// Trace a session for a few seconds.
    Trace {
        /// Its process.
        pid: i32,
        /// Its name in notices.
        name: String,
    },
    /// Show an interval beyond the stored ones, by this number of intervals.
    Further(i64),
    /// Show a time beyond the stored intervals, seconds since 1970.
    Seek(f64),
}
