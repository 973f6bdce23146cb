// SPDX-License-Identifier: PostgreSQL
//! The run of the server that is read now, all of it since its begin: what the metrics and the
//! table of statements are made from.

use std::path::Path;
use std::sync::Arc;

use segment::{Frame, Segment, Statements};

/// A segment of our own, beside the one that intervals are read from.
#[derive(Debug)]
pub struct Run {
    segment: Segment,
    previous: Option<segment::Snapshot>,
    statements: Option<Arc<Statements>>,
}

impl Run {
    /// The segment at `path`.
    pub fn open(path: &Path) -> Result<Run, segment::Error> {
        let segment = Segment::open(path)?;
        let mut run = Run { segment, previous: None, statements: None };
        run.read_statements()?;
        Ok(run)
    }

    /// When it was made, seconds since 1970.
    pub fn created(&self) -> f64 {
        self.segment.header().created_realtime_ns as f64 * 1e-9
    }

    /// Everything until now.
    pub fn frame(&mut self) -> Result<Frame, segment::Error> {
        let snapshot = self.segment.snapshot(self.previous.as_ref())?;
        let frame = Frame::between(&self.segment, None, &snapshot);
        self.previous = Some(snapshot);
        Ok(frame)
    }

    /// Events that were ever noted.
    pub fn events(&self) -> Result<u64, segment::Error> {
        self.segment.event_count()
    }

    /// Read the statements anew.
    pub fn read_statements(&mut self) -> Result<(), segment::Error> {
        self.statements = self.segment.statements()?.map(Arc::new);
        Ok(())
    }

    /// The statements as read last.
    pub fn statements(&self) -> Option<&Arc<Statements>> {
        self.statements.as_ref()
    }
}
