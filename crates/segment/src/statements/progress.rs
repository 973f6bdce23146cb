// SPDX-License-Identifier: PostgreSQL
//! Which statement has the time of a message in progress.

use super::figures::InFlight;
use super::key::StatementKey;
use super::last::MessageText;
use super::reading::StatementsReading;

/// Who has it.
#[derive(Debug, Clone, Copy)]
pub enum Holder<'s> {
    /// A statement; that of id 0 as long as nothing is known of it.
    Statement(StatementKey),
    /// One whose query identifier is not known yet, by what its message says.
    Message(&'s MessageText),
}

/// A message in progress in one of two readings.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'s> {
    /// Who has its time in the later reading.
    pub holder: Holder<'s>,
    /// The message.
    pub flight: &'s InFlight,
    /// The reading that it is in.
    pub reading: &'s StatementsReading,
    /// Of the later reading: its time counts, though it has not ended. Else it was counted before, and is in the later reading
    /// again or has been charged to its statement.
    pub is_later: bool,
}

impl InFlight {
    /// Who has its time in its own reading.
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
            let holder = match same.filter(|it| it.begun == flight.begun) {
                Some(same) => same.holder(),
                // It has been charged since: to its statement, or if that was not known then, most likely to the last one.
                None if flight.key.is_identified() => Holder::Statement(flight.key),
                None => Holder::Statement(latest.copied().unwrap_or(flight.key)),
            };
            Progress { holder, flight, reading, is_later: false }
        })
    });
    of_later.chain(of_earlier)
}
