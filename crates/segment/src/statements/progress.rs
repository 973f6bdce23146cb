// SPDX-License-Identifier: PostgreSQL
//! The statement to which the time of a message in progress belongs.

use super::figures::InFlight;
use super::key::StatementKey;
use super::last::MessageText;
use super::reading::StatementsReading;

/// The holder of the time of a message in progress.
#[derive(Debug, Clone, Copy)]
pub enum Holder<'s> {
    /// A statement; its id is 0 while nothing is known about it.
    Statement(StatementKey),
    /// A statement whose query identifier is not known yet, identified by its message.
    Message(&'s MessageText),
}

/// A message in progress in one of two readings.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'s> {
    /// The holder of its time in the later reading.
    pub holder: Holder<'s>,
    /// The message.
    pub flight: &'s InFlight,
    /// The reading that it is in.
    pub reading: &'s StatementsReading,
    /// Whether it is in the later reading: then its time counts, although it has not ended. Otherwise its time was
    /// counted before, and is in the later reading again or has been charged to its statement.
    pub is_later: bool,
}

impl InFlight {
    /// The holder of its time in its own reading.
    fn holder(&self) -> Holder<'_> {
        match &self.message {
            Some(message) if !self.key.is_identified() => Holder::Message(message),
            _ => Holder::Statement(self.key),
        }
    }
}

/// The messages in progress in the later reading, then those of the earlier one.
pub fn in_progress<'s>(
    earlier: Option<&'s StatementsReading>,
    later: &'s StatementsReading,
) -> impl Iterator<Item = Progress<'s>> {
    let of_later = later.in_flight().iter().map(move |flight| Progress {
        holder: flight.holder(),
        flight,
        reading: later,
        is_later: true,
    });
    let of_earlier = earlier.into_iter().flat_map(move |reading| {
        reading.in_flight().iter().map(move |flight| {
            let same = later.in_flight_of(flight.slot, flight.generation);
            let latest = later.latest.get(&(flight.slot, flight.generation));
            let holder = match same.filter(|same| same.begun == flight.begun) {
                Some(same) => same.holder(),
                // It has been charged since: to its statement or, if that was not known, most likely to the last
                // statement.
                None if flight.key.is_identified() => Holder::Statement(flight.key),
                None => Holder::Statement(latest.copied().unwrap_or(flight.key)),
            };
            Progress { holder, flight, reading, is_later: false }
        })
    });
    of_later.chain(of_earlier)
}
