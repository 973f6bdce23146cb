// SPDX-License-Identifier: PostgreSQL
//! The events of a server, across its restarts.

use std::time::Instant;

use segment::{Segment, SegmentPath};

use super::tail::{Item, Tail};
use error::Error;
use view::events::{rows, Row};

/// What came of looking.
#[derive(Debug, Default)]
pub struct Found {
    /// New events, oldest first.
    pub rows: Vec<Row>,
    /// That the server has ended, or is there again.
    pub notice: Option<String>,
}

/// Where events come from.
#[derive(Debug)]
pub struct Feed {
    place: SegmentPath,
    segment: Option<Segment>,
    /// When the segment that was read last was made: by this the same one is known again.
    made: u64,
    capacity: u32,
    tail: Tail,
    /// Lost ones that no row has told of yet.
    lost: u64,
}

impl Feed {
    /// The events after this number of the segment at a place.
    pub fn open(place: SegmentPath, after: u64) -> Result<Feed, Error> {
        let segment = Segment::open(&place)?;
        Ok(Feed {
            place,
            made: segment.header().created_realtime_ns,
            capacity: segment.event_capacity(),
            segment: Some(segment),
            tail: Tail::after(after),
            lost: 0,
        })
    }

    /// Whether there is an event that cannot be told yet.
    pub fn waits(&self) -> bool {
        self.tail.waits()
    }

    /// How many events the ring keeps.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// What is new.
    pub fn next(&mut self) -> Result<Found, Error> {
        let Some(segment) = self.segment.take() else {
            let notice = self.attach();
            let rows = if self.segment.is_some() { self.next()?.rows } else { Vec::new() };
            return Ok(Found { rows, notice: Some(notice) });
        };
        // Looked at first, so that nothing is missed of what was written before the end.
        let gone = segment.server_runs() == Some(false) || segment.replaced();
        let other = segment.server_changed();
        let rows = self.read(&segment, gone)?;
        if !gone && !other {
            self.segment = Some(segment);
        }
        Ok(Found { rows, notice: None })
    }

    fn read(&mut self, segment: &Segment, gone: bool) -> Result<Vec<Row>, Error> {
        let (mut events, mut losses) = (Vec::new(), Vec::new());
        for item in self.tail.read(segment, Instant::now(), gone)? {
            match item {
                Item::Lost(number) => self.lost += number,
                Item::Event(event) => {
                    losses.push(std::mem::take(&mut self.lost));
                    events.push(event);
                }
            }
        }
        let mut rows = rows(segment, events)?;
        for (row, lost) in rows.iter_mut().zip(losses) {
            row.lost = lost;
        }
        Ok(rows)
    }

    /// Look for the server again. Says what there is.
    fn attach(&mut self) -> String {
        let segment = match Segment::open(&self.place) {
            Ok(segment) if segment.server_runs() == Some(false) => {
                return "the server has stopped; waiting for it to come back".to_string()
            }
            Ok(segment) => segment,
            Err(segment::Error::NotFound { .. }) => {
                return "the server has ended; waiting for it to come back".to_string()
            }
            Err(error) => return error.to_string(),
        };
        if segment.header().created_realtime_ns != self.made {
            self.made = segment.header().created_realtime_ns;
            self.tail = Tail::after(0);
            self.lost = 0;
        }
        self.capacity = segment.event_capacity();
        self.segment = Some(segment);
        "the server was restarted".to_string()
    }
}
