// SPDX-License-Identifier: PostgreSQL
//! Traces a session for a few seconds, in a thread of its own, while the view goes on.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use error::Error;

/// How long a session is traced.
pub const LENGTH: Duration = Duration::from_secs(3);

/// A trace in progress. It ends early when it is dropped.
#[derive(Debug)]
pub struct Tracing {
    /// The session.
    pub name: String,
    text: Text,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

/// The output so far.
#[derive(Debug, Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Tracing {
    /// Starts to trace a process of TARGET.
    pub fn start(pid: i32, name: String, target: Option<&str>) -> Tracing {
        let (text, stop) = (Text::default(), Arc::new(AtomicBool::new(false)));
        let (out, stopped) = (Box::new(text.clone()), Arc::clone(&stop));
        let target = target.map(String::from);
        let thread = std::thread::spawn(move || {
            trace::for_a_while(pid, target.as_deref(), LENGTH, out, &stopped)
        });
        Tracing { name, text, stop, thread: Some(thread) }
    }

    /// The trace, line by line, if it is over.
    pub fn result(&mut self) -> Option<Result<Vec<String>, Error>> {
        let thread = self.thread.take_if(|thread| thread.is_finished())?;
        let done = thread.join().unwrap_or_else(|_| Err(Error::Failed("the trace failed".into())));
        let bytes = self.text.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = String::from_utf8_lossy(&bytes).lines().map(String::from).collect();
        Some(done.map(|()| lines))
    }
}

/// The command of `make demo` cannot trace.
#[cfg(not(feature = "trace"))]
mod trace {
    use super::{AtomicBool, Duration, Error, Write};

    pub fn for_a_while(
        _: i32,
        _: Option<&str>,
        _: Duration,
        _: Box<dyn Write + Send>,
        _: &AtomicBool,
    ) -> Result<(), Error> {
        Err(Error::Failed(
            "the command that `make demo` builds cannot trace; `make` builds the full command"
                .into(),
        ))
    }
}

impl Drop for Tracing {
    /// Releases its rings.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
