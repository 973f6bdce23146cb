// SPDX-License-Identifier: PostgreSQL
//! Attaches to the segment of a server, notices when that run of the server ends, and attaches to
//! the next one. What is read from the segment is up to the caller.

use std::fmt;

use segment::{Segment, SegmentPath};

use error::Error;

/// Why a run of a server can be read no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its postmaster has ended.
    Stopped,
    /// The path names another file now, or none.
    Replaced,
    /// Another postmaster continues in the same file.
    Restarted,
}

impl End {
    /// Why the run in this segment has ended; `None` while it goes on. Ask before the last
    /// reading, so that everything written before the end is read.
    pub fn of(segment: &Segment) -> Option<End> {
        if segment.server_runs() == Some(false) {
            Some(End::Stopped)
        } else if segment.replaced() {
            Some(End::Replaced)
        } else {
            segment.server_changed().then_some(End::Restarted)
        }
    }

    /// Whether nothing can be written to the file any more.
    pub fn is_final(self) -> bool {
        self != End::Restarted
    }

    /// The reason in words.
    pub fn reason(self) -> &'static str {
        match self {
            End::Stopped => "the server has stopped",
            End::Replaced => "the segment was replaced",
            End::Restarted => "the server was restarted",
        }
    }
}

/// Why there is nothing to attach to.
#[derive(Debug)]
pub enum Absent {
    /// The segment's server does not run.
    Stopped,
    /// There is no segment.
    Ended,
    /// The segment cannot be read.
    Unreadable(Error),
}

impl Absent {
    /// The reason in words, for a reader that waits for the server.
    pub fn waiting(&self) -> String {
        match self {
            Absent::Unreadable(error) => error.to_string(),
            _ => format!("{self}; waiting for it to come back"),
        }
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absent::Stopped => f.write_str(End::Stopped.reason()),
            Absent::Ended => f.write_str("the server has ended"),
            Absent::Unreadable(error) => error.fmt(f),
        }
    }
}

/// The segment's path, and which segment was read there last.
#[derive(Debug)]
pub struct Attachment {
    path: SegmentPath,
    /// When that segment was created, which tells it from its successors.
    created: Option<u64>,
}

impl Attachment {
    /// To a segment that need not exist yet.
    pub fn new(path: SegmentPath) -> Attachment {
        Attachment { path, created: None }
    }

    /// To a segment that exists, whether its server runs or not.
    pub fn open(path: SegmentPath) -> Result<(Attachment, Segment), Error> {
        let segment = Segment::open(&path)?;
        let created = Some(segment.header().created_realtime_ns);
        Ok((Attachment { path, created }, segment))
    }

    /// The segment's path.
    pub fn path(&self) -> &SegmentPath {
        &self.path
    }

    /// Open the segment of a running server and begin to read it. `begin` gets the segment and
    /// whether it was created after the one read before; if it fails, the next call asks the same.
    pub fn attach<R>(
        &mut self,
        begin: impl FnOnce(Segment, bool) -> Result<R, Error>,
    ) -> Result<R, Absent> {
        let segment = match Segment::open(&self.path) {
            Ok(segment) if segment.server_runs() == Some(false) => return Err(Absent::Stopped),
            Ok(segment) => segment,
            Err(segment::Error::NotFound { .. }) => return Err(Absent::Ended),
            Err(error) => return Err(Absent::Unreadable(error.into())),
        };
        let created = segment.header().created_realtime_ns;
        let fresh = self.created.is_some_and(|known| known != created);
        let reader = begin(segment, fresh).map_err(Absent::Unreadable)?;
        self.created = Some(created);
        Ok(reader)
    }
}
