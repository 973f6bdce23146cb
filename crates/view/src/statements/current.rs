// SPDX-License-Identifier: PostgreSQL
//! The statements that sessions are executing. Their time counts up to now, so that a statement that takes eight
//! seconds appears in each of them.

use std::collections::HashMap;
use std::sync::Arc;

use recording::{SessionHistoryRow, StatementTexts};
use segment::interval::SessionRow;
use segment::statements::{in_progress, Holder, MessageText, Split as Parts, WaitClass};
use segment::{InFlight, StatementKey};
use serde::Serialize;

use super::row::StatementFigures;
use super::{ActivityRow, Split};
use crate::json_id::id_or_null;
use crate::units::percent;

/// The statement that a session works for.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CurrentRow {
    /// The process ID.
    pub pid: i32,
    /// The session's slot.
    pub slot: u32,
    /// The slot's generation: the number of processes that have owned it.
    pub generation: u32,
    /// The query ID as PostgreSQL prints it; `None` if it is not known yet, or not identified.
    #[serde(serialize_with = "id_or_null")]
    pub queryid: Option<i64>,
    /// Its text, without constants while the query ID is not known; `None` if unknown.
    pub query: Option<Arc<str>>,
    /// Time since the client sent it, seconds.
    pub seconds: f64,
    /// That time by class of activity.
    pub split: Split,
    /// That time by phase and activity, longest first.
    pub activities: Vec<ActivityRow>,
}

impl CurrentRow {
    pub(super) fn from_in_flight(
        in_flight: &InFlight,
        source: &segment::StatementsReading,
    ) -> CurrentRow {
        let activities = ActivityRow::all(in_flight.split(source.directory()));
        let known = source.get(&in_flight.key).and_then(|known| known.text.as_ref());
        let text = in_flight.message.as_ref().map(|message| &message.text).or(known);
        CurrentRow {
            pid: in_flight.pid,
            slot: in_flight.slot,
            generation: in_flight.generation,
            queryid: in_flight.key.is_identified().then(|| in_flight.key.query_id()),
            query: text.map(|text| text.shown.clone()),
            seconds: in_flight.age_seconds,
            split: Split::from_activities(&activities),
            activities,
        }
    }

    /// Whether this session works for it. A recording knows sessions by their PIDs, without slots.
    pub fn is_of(&self, session: &SessionRow) -> bool {
        (self.pid, self.slot, self.generation) == (session.pid, session.slot, session.generation)
    }

    /// The statements that recorded sessions had been executing for long at the end of an interval; `earlier` are samples of
    /// the sessions up to then, from which follows what they did meanwhile.
    pub fn recorded(
        rows: &[SessionHistoryRow],
        earlier: &[SessionHistoryRow],
        texts: Option<&StatementTexts>,
    ) -> Vec<CurrentRow> {
        let current = |row: &SessionHistoryRow| {
            let text = row.statement().and_then(|key| texts?.get(&key));
            let session = row.session();
            let begun_us = row.time_us - i64::try_from(row.statement_ns? / 1000).unwrap_or(0);
            let samples = earlier.iter().filter(|sample| {
                sample.pid == row.pid && sample.time_us > begun_us && sample.time_us <= row.time_us
            });
            let activities = ActivityRow::sampled(samples);
            Some(CurrentRow {
                pid: session.pid,
                slot: session.slot,
                generation: session.generation,
                queryid: row.queryid,
                query: text.map(|text| text.text.clone()),
                seconds: row.statement_ns? as f64 * 1e-9,
                split: Split::from_activities(&activities),
                activities,
            })
        };
        rows.iter().filter_map(current).collect()
    }

    /// The two classes with the most time: "io 62.1 cpu 37.9", in percent.
    pub fn shares(&self) -> String {
        let whole: f64 = WaitClass::ALL.iter().map(|class| self.split.class(*class)).sum();
        let mut parts: Vec<_> = WaitClass::ALL
            .iter()
            .map(|class| (class.name(), self.split.class(*class)))
            .filter(|(_, seconds)| *seconds >= 0.001 * whole && *seconds > 0.0)
            .collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let part = |(name, seconds): &(&str, f64)| format!("{name} {}", percent(seconds / whole));
        parts.iter().take(2).map(part).collect::<Vec<_>>().join(" ")
    }
}

/// A message that has been handled for less than this has no row while nothing is known about its statement,
/// because a busy server always has some messages between their arrival and the first hook. Seconds.
const BRIEF: f64 = 0.001;

/// Adds the unfinished statements of the later reading to the rows, and subtracts those of the earlier one,
/// because they have been counted since, or are in the later reading again. Messages whose statements are not
/// known yet are rows of their own, one for each text.
pub(super) fn add_unfinished(
    rows: &mut Vec<StatementFigures>,
    earlier: Option<&segment::StatementsReading>,
    later: &segment::StatementsReading,
) {
    let mut known: HashMap<StatementKey, usize> =
        rows.iter().enumerate().map(|(at, row)| (row.key, at)).collect();
    for running in in_progress(earlier, later) {
        let key = match running.holder {
            Holder::Statement(key) => key,
            Holder::Message(message) => key_of(message),
        };
        let split = running.flight.split(running.reading.directory());
        if !running.is_later {
            if let Some(&at) = known.get(&key) {
                change(&mut rows[at], split, -1.0);
            }
            continue;
        }
        let at = *known.entry(key).or_insert_with(|| {
            rows.push(match running.holder {
                Holder::Statement(key) => StatementFigures::unfinished(key, later),
                Holder::Message(message) => StatementFigures::unnamed(key, message, later),
            });
            rows.len() - 1
        });
        rows[at].running += 1;
        if !running.flight.key.is_identified() {
            let seconds = split.accounts.iter().map(|part| part.seconds);
            rows[at].unnamed_seconds += seconds.fold(0.0, |sum, s| sum + s);
        }
        change(&mut rows[at], split, 1.0);
    }
    for row in rows.iter_mut() {
        row.settle();
    }
    let is_brief =
        |row: &StatementFigures| !row.key.is_identified() && row.calls == 0 && row.seconds < BRIEF;
    rows.retain(|row| (row.running > 0 || row.seconds > 0.0 || row.calls > 0) && !is_brief(row));
}

/// Distinguishes the rows of messages, in the same way at each reading: FNV-1a of the text.
fn key_of(message: &MessageText) -> StatementKey {
    let hash = |h: u64, byte: &u8| (h ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let id = message.text.shown.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, hash);
    let (database_id, user_id) = (message.database_id, message.user_id);
    StatementKey { id: id | 1, database_id, user_id, toplevel: true, ..StatementKey::default() }
}

fn change(row: &mut StatementFigures, split: Parts, sign: f64) {
    for part in split.accounts {
        let same = |a: &&mut ActivityRow| a.phase == part.phase && a.activity == part.activity;
        match row.activities.iter_mut().find(same) {
            Some(known) => known.seconds += sign * part.seconds,
            None => row.activities.push(ActivityRow {
                phase: part.phase,
                activity: part.activity,
                class: part.class,
                count: 0,
                seconds: sign * part.seconds,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_the_two_largest() {
        let of = |(class, seconds)| ActivityRow {
            phase: "".into(),
            activity: "".into(),
            class,
            count: 1,
            seconds,
        };
        let spent = [(WaitClass::Cpu, 1.0), (WaitClass::Io, 6.0), (WaitClass::Lock, 3.0)];
        let row =
            CurrentRow { split: Split::from_activities(&spent.map(of)), ..CurrentRow::default() };
        assert_eq!(row.shares(), "io 60.0 lock 30.0");
        assert_eq!(CurrentRow::default().shares(), "");
    }
}
