// SPDX-License-Identifier: PostgreSQL
//! Cancels a session's statement or terminates the session: through the server, with the privileges of the
//! connection's role, and never by sending a signal.

use std::sync::mpsc::{channel, Receiver};

use error::Error;
use pq::Client;
use segment::Segment;
pub use view::session::SessionId;

use crate::server::{self, Access};
use crate::spec::Spec;

/// An action on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAction {
    /// Cancel the session's statement (pg_cancel_backend).
    Cancel,
    /// Terminate the session (pg_terminate_backend).
    Terminate,
}

impl SessionAction {
    fn sql(self) -> &'static str {
        match self {
            SessionAction::Cancel => "/* tally */ select pg_cancel_backend($1)",
            SessionAction::Terminate => "/* tally */ select pg_terminate_backend($1)",
        }
    }
}

/// Asks the server of `segment` to do this; `target` is the user's TARGET.
///
/// # Errors
///
/// The session has ended, the connection fails, or the server refuses, with the server's message.
pub fn send(
    deed: SessionAction,
    session: SessionId,
    segment: &Segment,
    target: Option<&str>,
) -> Result<(), Error> {
    let SessionId { pid, slot, generation } = session;
    let ended = || Error::Failed(format!("session {pid} has ended"));
    let mut client = connect(segment, target)?;
    of_this_server(&mut client, segment)?;
    // As late as possible, because a later session may get the same PID.
    let claims = segment.claims()?;
    if !claims
        .iter()
        .any(|claim| (claim.pid, claim.slot, claim.generation) == (pid, slot, generation))
    {
        return Err(ended());
    }
    match client.query_one(deed.sql(), &[&pid]) {
        Ok(row) if row.get(0)? => Ok(()),
        Ok(_) => Err(ended()),
        Err(error) => Err(refused(error)),
    }
}

/// Like [`send`], but in a thread, for callers that must not wait for the server, which may take ten seconds to accept
/// a connection. The result arrives through the channel.
///
/// # Errors
///
/// No thread could be started, or the segment could not be opened a second time.
pub fn send_aside(
    deed: SessionAction,
    session: SessionId,
    segment: &Segment,
    target: Option<&str>,
) -> Result<Receiver<Result<(), Error>>, Error> {
    let (segment, target) = (segment.again()?, target.map(str::to_owned));
    let (answer, answers) = channel();
    let work = move || {
        // This fails if the view has ended.
        let _ = answer.send(send(deed, session, &segment, target.as_deref()));
    };
    std::thread::Builder::new().name("backend".to_string()).spawn(work)?;
    Ok(answers)
}

fn connect(segment: &Segment, target: Option<&str>) -> Result<Client, Error> {
    match Spec::parse(target)? {
        Spec::Connection(_) | Spec::DataDirectory(_) => server::connect_target(target),
        // Only the segment says which server it is.
        Spec::Only | Spec::Segment(_) => match Access::of_segment(segment) {
            Some(access) => access.connect(None),
            None => Err(Error::Failed(
                "the segment does not say where its server listens; start tally top with a connection string \
                 (tally top \"host=... user=...\")"
                    .into(),
            )),
        },
    }
}

/// Fails if the connection leads to a server other than the segment's, whose sessions have other PIDs.
fn of_this_server(client: &mut Client, segment: &Segment) -> Result<(), Error> {
    match segment.knows_pids() {
        true => server::require_postmaster(client, segment.header().server_pid),
        false => Ok(()),
    }
}

/// The server's message with its detail, which says which privilege is missing.
fn refused(error: pq::Error) -> Error {
    let Some(detail) = error.detail() else { return error.into() };
    let detail = detail.to_string();
    Error::Failed(format!("{}. {detail}", Error::from(error)))
}
