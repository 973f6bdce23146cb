// SPDX-License-Identifier: PostgreSQL
//! The end of a command that runs until it is interrupted.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use error::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Is set by the first signal that asks for the end; the command then ends by itself.
pub fn by_signals() -> Result<Arc<AtomicBool>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
