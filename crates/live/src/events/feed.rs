// SPDX-License-Identifier: PostgreSQL
//! The events of a server, across its restarts.

use segment::{Segment, SegmentPath};

use super::tail::Tail;
use crate::attachment::{Attachment, End};
use error::Error;
use view::events::Row;

/// The result of one look.
#[derive(Debug, Default)]
pub struct Found {
    /// New events, oldest first.
    pub rows: Vec<Row>,
    /// That the server has ended, or was restarted.
    pub notice: Option<String>,
}

/// Reads the events of one server.
#[derive(Debug)]
pub struct Feed {
    attachment: Attachment,
    segment: Option<Segment>,
    capacity: u32,
    tail: Tail,
}

impl Feed {
    /// Attach to the segment at this path, for the events after this number.
    pub fn open(path: SegmentPath, after: u64) -> Result<Feed, Error> {
        let (attachment, segment) = Attachment::open(path)?;
        let (capacity, tail) = (segment.event_capacity(), Tail::after(after));
        Ok(Feed { attachment, segment: Some(segment), capacity, tail })
    }

    /// Whether events are held back because an earlier one is missing.
    pub fn waits(&self) -> bool {
        self.tail.waits()
    }

    /// How many events the ring keeps.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Events since the last call. After the end of a run, the next one looks for the next run.
    pub fn look(&mut self) -> Result<Found, Error> {
        let Some(segment) = self.segment.take() else {
            let notice = Some(self.attach());
            let rows = if self.segment.is_some() { self.look()?.rows } else { Vec::new() };
            return Ok(Found { rows, notice });
        };
        let end = End::of(&segment);
        let rows = self.tail.rows(&segment, end.is_some_and(End::is_final))?;
        if end.is_none() {
            self.segment = Some(segment);
        }
        Ok(Found { rows, notice: None })
    }

    fn attach(&mut self) -> String {
        let (segment, fresh) = match self.attachment.attach(|segment, fresh| Ok((segment, fresh))) {
            Ok(attached) => attached,
            Err(absent) => return absent.waiting(),
        };
        if fresh {
            self.tail = Tail::after(0);
        }
        self.capacity = segment.event_capacity();
        self.segment = Some(segment);
        End::Restarted.reason().to_string()
    }
}
