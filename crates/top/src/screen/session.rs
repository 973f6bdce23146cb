// SPDX-License-Identifier: PostgreSQL
//! The session under the cursor, and the question before it is cancelled or terminated.

use live::backend::{SessionAction, SessionId};
use segment::interval::SessionRow;
use view::blocking::session_name;

use super::Request;
use super::{Ask, Mode, Screen};
use crate::View;

impl Screen {
    /// Shows the page of the session under the cursor, if there is one.
    pub(super) fn open_session(&mut self) -> bool {
        let Ok(row) = self.under_cursor() else { return false };
        self.session = Some(SessionId::from_row(row));
        (self.cursor, self.top) = (0, 0);
        true
    }

    /// Goes back to the table, with the cursor on the session if it is still there.
    pub(super) fn leave_session(&mut self) {
        let Some(id) = self.session.take() else { return };
        let keys = [id.to_string(), id.pid.to_string()];
        let rows = self.table().map(|table| table.rows).unwrap_or_default();
        self.cursor = rows.iter().position(|row| keys.contains(&row.key)).unwrap_or(0);
        self.top = 0;
    }

    /// The session that can be cancelled or terminated, or why there is none.
    fn session(&self) -> Result<&SessionRow, &'static str> {
        if self.play.is_some() {
            return Err("this is a recording, whose sessions no longer exist");
        }
        match self.session {
            Some(id) => {
                let sessions = self.reading().map_or(&[][..], |reading| &reading.interval.sessions);
                id.row_of(sessions).ok_or("this session has ended")
            }
            None => self.under_cursor(),
        }
    }

    /// The session under the cursor, or why there is none.
    fn under_cursor(&self) -> Result<&SessionRow, &'static str> {
        const WHERE: &str = "select a session in pane Sessions, or in the tree of pane Locks";
        let reading = self.reading().ok_or(WHERE)?;
        let key = self.table().and_then(|table| Some(table.rows.get(self.cursor)?.key.clone()));
        let key = key.ok_or(WHERE)?;
        let mut sessions = reading.interval.sessions.iter();
        match self.view() {
            View::Sessions => {
                let id = key.parse::<SessionId>().map_err(|_| WHERE)?;
                id.row_of(&reading.interval.sessions).ok_or(WHERE)
            }
            View::Locks if key == "0" => {
                Err("a prepared transaction has no session; use ROLLBACK PREPARED to end it")
            }
            View::Locks if reading.blocking.is_some() => sessions
                .find(|row| row.pid.to_string() == key && row.state != "dead")
                .ok_or("this session is not measured; cancel or terminate it with SQL"),
            _ => Err(WHERE),
        }
    }

    /// Asks for confirmation before the session under the cursor is cancelled or terminated.
    pub(super) fn ask(&mut self, deed: SessionAction) {
        let request = self.session().and_then(|row| match deed {
            SessionAction::Cancel if row.state.starts_with("idle") => {
                Err("this session is not executing a statement; k terminates it")
            }
            _ => Ok(Request { deed, session: SessionId::from_row(row), name: session_name(row) }),
        });
        match request {
            Ok(request) => self.mode = Mode::Question(request),
            Err(why) => self.notice = Some(why.to_string()),
        }
    }

    /// Requests a trace of the session under the cursor, or of the session whose page is shown.
    pub(super) fn ask_for_trace(&mut self) -> Option<Ask> {
        match self.session() {
            Ok(row) => Some(Ask::Trace { pid: row.pid, name: session_name(row) }),
            Err(why) => {
                self.notice = Some(why.to_string());
                None
            }
        }
    }

    /// Shows a trace instead of the pane.
    pub fn show_trace(&mut self, lines: Vec<String>) {
        self.trace = Some(lines);
        self.cursor = 0;
    }

    /// Goes back to what was shown before.
    pub(super) fn leave_trace(&mut self) {
        self.trace = None;
        self.cursor = 0;
    }

    /// Handles the answer to the question.
    pub(super) fn answered(&mut self, request: Request, yes: bool) -> Option<Ask> {
        if !yes {
            self.notice = Some(request.failed("not confirmed"));
        }
        yes.then_some(Ask::Session(request))
    }
}
