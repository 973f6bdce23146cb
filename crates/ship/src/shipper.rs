// SPDX-License-Identifier: PostgreSQL
//! The thread of a recorder that ships its files.
//!
//! The recorder and the thread only exchange messages. Nothing waits for the network, except the end of the
//! recorder, for a limited time.

use crate::backoff::Backoff;
use crate::bucket::Deadline;
use crate::error::Error;
use crate::pass::{Dropped, Pass};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often to look for finished files. The files of a minute are sent at most this much later.
const EVERY: Duration = Duration::from_secs(5);

/// Something for the recorder to record or print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShippingNews {
    /// Files cannot be sent now.
    Failed(String),
    /// Files can be sent again.
    Recovered,
    /// Files were removed from the full spool.
    Dropped(Dropped),
}

/// A thread that ships a recording.
#[derive(Debug)]
pub struct Shipper {
    thread: JoinHandle<u64>,
    /// Closed when the recorder ends.
    open: Sender<()>,
    news: Receiver<ShippingNews>,
    deadline: Deadline,
}

impl Shipper {
    /// Start the thread.
    pub fn start(pass: Pass) -> Result<Shipper, Error> {
        let deadline = pass.bucket().deadline();
        let (open, closed) = channel();
        let (tell, news) = channel();
        let thread = std::thread::Builder::new()
            .name("ship".to_string())
            .spawn(move || work(pass, &closed, &tell))
            .map_err(Error::io(std::path::Path::new("thread ship")))?;
        Ok(Shipper { thread, open, news, deadline })
    }

    /// What happened since the last call.
    pub fn news(&self) -> Vec<ShippingNews> {
        self.news.try_iter().collect()
    }

    /// Send the finished files, for at most this time. Returns the number of files left, and the last news.
    pub fn finish(self, patience: Duration) -> (u64, Vec<ShippingNews>) {
        self.deadline.set(patience);
        drop(self.open);
        let left = self.thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e));
        (left, self.news.try_iter().collect())
    }
}

fn work(mut pass: Pass, closed: &Receiver<()>, tell: &Sender<ShippingNews>) -> u64 {
    let mut backoff = Backoff::default();
    let mut failure = None;
    let mut last = false;
    loop {
        let passed = pass.run(&crate::now_us);
        // This fails if the recorder has ended.
        if let Some(dropped) = passed.dropped {
            let _ = tell.send(ShippingNews::Dropped(dropped));
        }
        let wait = match passed.problem {
            None if passed.more => {
                backoff.succeeded();
                continue;
            }
            None => {
                backoff.succeeded();
                if failure.take().is_some() {
                    let _ = tell.send(ShippingNews::Recovered);
                }
                EVERY
            }
            Some(Error::Ended) => return passed.left,
            Some(error) => {
                // Errors of the same kind have different texts, which contain the file and the duration.
                let kind = Some(std::mem::discriminant(&error));
                if failure != kind {
                    let _ = tell.send(ShippingNews::Failed(error.to_string()));
                    failure = kind;
                }
                backoff.failed()
            }
        };
        if last {
            return passed.left;
        }
        last = match closed.recv_timeout(wait) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => false,
            // One more pass, for files that the recorder finished as it ended.
            Err(RecvTimeoutError::Disconnected) => true,
        };
    }
}
