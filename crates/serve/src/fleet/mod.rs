// SPDX-License-Identifier: PostgreSQL
//! `tally serve --fleet`: a page with query results about the recordings of many hosts.
//!
//! [`asker`] has the only thread that runs the engine, which may take minutes, and another one that diagnoses the hosts; they put the
//! results on the [`board`]. [`answers`] answers requests from the board without delay.

mod answers;
mod asker;
mod board;
mod metrics;

use std::sync::mpsc::channel;
use std::sync::Arc;

use error::Error;
use fleet_sql::{HostFilter, Window};

use super::listen::Listener;
use super::{http, print_addresses, ServeArgs, Serving};
use crate::door::Door;
use board::{Board, Work};
use fleet::Asking;

/// Serves the page until a signal arrives.
pub fn run(args: &ServeArgs, door: Door) -> Result<(), Error> {
    let interval = args.pace()?;
    let flags = &args.fleet;
    let Some(engine) = flags.engine.clone() else {
        return Err(Error::Usage("specify --engine, which queries the recordings".into()));
    };
    let only = HostFilter { cluster: flags.cluster.clone(), host: args.connection.host.clone() };
    // Report errors now rather than on the page.
    Window::new(0, 1, only.clone()).map_err(Error::Usage)?;
    let asking = Arc::new(Asking::new(engine, flags.root.clone())?);
    asking.check()?;
    let Some(listener) = Listener::open(&args.listen)? else { return Ok(()) };
    let serving = Serving { engine: Some(asking.to_string()), ..Serving::default() };
    print_addresses(args, Some(&listener), serving, &door.access)?;
    let board = Arc::new(Board::new(only, asking.to_string(), interval, asking.root().is_some()));
    let thread = |name: &str| std::thread::Builder::new().name(name.to_string());
    let asker = |work: Work| {
        let (asking, board, since) = (asking.clone(), board.clone(), flags.since);
        move || asker::work(&asking, &board, since, work)
    };
    let queries = thread("queries").spawn(asker(Work::Queries))?;
    let has_doctor = asking.root().is_some();
    let doctor = has_doctor.then(|| thread("doctor").spawn(asker(Work::Diagnoses))).transpose()?;
    let (requests, received) = channel();
    let answers = thread("answers").spawn({
        let board = board.clone();
        move || answers::work(&board, &received)
    })?;
    let gate = door.gate(args, &listener)?;
    let served = http::serve(listener, gate, door.tls, requests, None);
    board.end();
    asking.stop();
    // Requests end when the last sender is dropped.
    let askers = std::iter::once(queries).chain(doctor);
    // All of them are joined.
    if askers.chain([answers]).filter_map(|thread| thread.join().err()).count() > 0 {
        return Err(Error::Failed("a thread of the page has failed".into()));
    }
    served
}
