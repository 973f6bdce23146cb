// SPDX-License-Identifier: PostgreSQL
//! Looks up the names of relations in the server, database by database, in a separate thread. A
//! database that refuses the connection is tried again later; until then its relations are shown by number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use segment::{RelationRow, Segment};

use crate::backoff::Backoff;
use crate::server::Access;
use view::io::{RelationFile, RelationNames};

/// Number of relations to look up, the busiest first.
const BUSIEST: usize = 32;
/// How long to wait for the first answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// Minimum time between lookups, because each one connects to every database with new relations.
const SELDOM: Duration = Duration::from_secs(10);
/// Maximum number of names to keep.
const MOST: usize = 10_000;
/// The database in which shared relations are looked up.
const SHARED: &str = "postgres";

/// A request: files by database.
type Files = BTreeMap<String, Vec<RelationFile>>;

/// A database's reply.
#[derive(Debug)]
struct RelationNamesReply {
    database: String,
    /// The names of those that still exist, or all that were asked for if it refused the connection.
    names: Result<Vec<(RelationFile, String)>, Vec<RelationFile>>,
}

/// The names so far.
#[derive(Debug)]
pub struct RelationNameLookup {
    access: Option<Access>,
    /// Requested already, with or without a reply.
    asked: BTreeSet<RelationFile>,
    names: RelationNames,
    /// The databases that refused the last connection.
    closed: BTreeMap<String, Backoff>,
    answers: Option<Receiver<RelationNamesReply>>,
    last: Option<Instant>,
    patience: Duration,
}

impl RelationNameLookup {
    /// The lookup in the server of this segment.
    pub fn start(segment: &Segment) -> RelationNameLookup {
        RelationNameLookup {
            access: Access::of_segment(segment),
            asked: BTreeSet::new(),
            names: RelationNames::default(),
            closed: BTreeMap::new(),
            answers: None,
            last: None,
            patience: PATIENCE,
        }
    }

    /// Never waits, not even for the first answer: names come with later intervals.
    pub fn without_waiting(self) -> RelationNameLookup {
        RelationNameLookup { patience: Duration::ZERO, ..self }
    }

    /// The known names of these relations.
    pub fn next(&mut self, rows: &[RelationRow]) -> RelationNames {
        if self.asked.len() >= MOST {
            // Drop names of relations that no longer exist.
            (self.asked, self.names) = (BTreeSet::new(), RelationNames::default());
        }
        let rested = self.last.is_none_or(|last| last.elapsed() >= SELDOM);
        if self.answers.is_none() && rested {
            let files = self.unknown(rows, Instant::now());
            if let Some(access) = self.access.clone().filter(|_| !files.is_empty()) {
                self.asked.extend(files.values().flatten());
                self.answers = ask(access, files);
                self.last = Some(Instant::now());
            }
        }
        self.listen();
        let all = rows.iter().filter_map(RelationNames::file);
        let known = all.filter_map(|file| Some((file, self.names.0.get(&file)?.clone())));
        RelationNames(known.collect())
    }

    /// The busiest relations that have not been looked up yet.
    fn unknown(&self, rows: &[RelationRow], now: Instant) -> Files {
        let mut files = Files::new();
        for row in rows.iter().take(BUSIEST).filter(|row| !row.temporary) {
            let Some(file) = RelationNames::file(row).filter(|file| !self.asked.contains(file))
            else {
                continue;
            };
            let database = match (&row.database, row.database_id) {
                (Some(name), _) => name.as_str(),
                (None, None) => SHARED,
                // No session has reported its name.
                (None, Some(_)) => continue,
            };
            if self.closed.get(database).is_none_or(|backoff| backoff.is_due(now)) {
                let files = files.entry(database.to_string()).or_default();
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        files
    }

    fn listen(&mut self) {
        let Some(answers) = &self.answers else { return };
        let until = Instant::now() + std::mem::take(&mut self.patience);
        loop {
            match answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(RelationNamesReply { database, names: Ok(found) }) => {
                    self.closed.remove(&database);
                    self.names.0.extend(found);
                }
                Ok(RelationNamesReply { database, names: Err(files) }) => {
                    self.asked.retain(|file| !files.contains(file));
                    self.closed.entry(database).or_default().note_refusal(Instant::now());
                }
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.answers = None;
    }
}

fn ask(access: Access, files: Files) -> Option<Receiver<RelationNamesReply>> {
    let (answer, answers) = channel();
    let work = move || {
        for (database, files) in files {
            let names = names(&access, &database, &files).ok_or(files);
            // The receiver may have ended.
            if answer.send(RelationNamesReply { database, names }).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("relations".to_string()).spawn(work).ok()?;
    Some(answers)
}

fn names(
    access: &Access,
    database: &str,
    files: &[RelationFile],
) -> Option<Vec<(RelationFile, String)>> {
    let mut client = access.connect(Some(database)).ok()?;
    let numbers = |number: fn(&RelationFile) -> u32| files.iter().map(number).collect::<Vec<_>>();
    // A relation that no longer exists has no name. Names in the usual schemas are unqualified, whatever
    // the session's search_path is.
    let sql = "/* tally */ select n - 1, case when s.nspname in ('public', 'pg_catalog') then ''
                                  else quote_ident(s.nspname) || '.' end || quote_ident(c.relname)
               from unnest($1::oid[], $2::oid[]) with ordinality as f (space, file, n)
               join pg_class c on c.oid = pg_filenode_relation(space, file)
               join pg_namespace s on s.oid = c.relnamespace";
    let parameters = (numbers(|file| file.1), numbers(|file| file.2));
    let rows = client.query(sql, &[&parameters.0, &parameters.1]).ok()?;
    let named = |row: &pq::Row| {
        let file = files.get(usize::try_from(row.get::<i64>(0).ok()?).ok()?)?;
        Some((*file, row.get(1).ok()?))
    };
    Some(rows.iter().filter_map(named).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use segment::relations::{RelationKey, RelationTiming};

    fn row(database: Option<(u32, &str)>, relfilenode: u32) -> RelationRow {
        let none = RelationTiming::default();
        RelationRow {
            key: RelationKey::default(),
            tablespace: Some(1663),
            database_id: database.map(|named| named.0),
            database: database.map(|named| named.1.to_string()).filter(|name| !name.is_empty()),
            relfilenode: Some(relfilenode),
            fork: Some("main"),
            temporary: false,
            seconds: 1.0,
            failed: 0,
            read: none,
            write: none,
            extend: none,
            sync: none,
            truncate: none,
        }
    }

    #[test]
    fn each_of_the_busiest_is_asked_for_once_in_its_database() {
        let now = Instant::now();
        let mut shut = Backoff::default();
        shut.note_refusal(now);
        let mut asker = RelationNameLookup {
            access: None,
            asked: BTreeSet::from([(Some(5), 1663, 11)]),
            names: RelationNames::default(),
            closed: BTreeMap::from([("shut".to_string(), shut)]),
            answers: None,
            last: None,
            patience: Duration::ZERO,
        };
        let temporary = RelationRow { temporary: true, ..row(Some((5, "shop")), 12) };
        let rows = vec![
            row(Some((5, "shop")), 10),
            row(Some((5, "shop")), 10),
            row(Some((5, "shop")), 11),
            temporary,
            row(None, 1262),
            row(Some((6, "shut")), 13),
            row(Some((7, "")), 14),
        ];
        let file = |database, number| (database, 1663, number);
        let expected = Files::from([
            ("shop".to_string(), vec![file(Some(5), 10)]),
            ("postgres".to_string(), vec![file(None, 1262)]),
        ]);
        assert_eq!(asker.unknown(&rows, now), expected);
        let many: Vec<RelationRow> = (0..40).map(|n| row(Some((5, "shop")), 100 + n)).collect();
        assert_eq!(asker.unknown(&many, now)["shop"].len(), BUSIEST);
        // A reply names some relations and reports that a database refuses connections.
        let (answer, answers) = channel();
        let reply = |database: &str, names| RelationNamesReply { database: database.into(), names };
        let found = vec![(file(Some(5), 10), "orders".to_string())];
        answer.send(reply("shop", Ok(found))).unwrap();
        answer.send(reply("postgres", Err(vec![file(None, 1262)]))).unwrap();
        drop(answer);
        asker.answers = Some(answers);
        let names = asker.next(&rows);
        assert_eq!(names.0, BTreeMap::from([(file(Some(5), 10), "orders".to_string())]));
        assert!(!asker.unknown(&rows, now).contains_key("postgres"));
        let later = asker.unknown(&rows, Instant::now() + Duration::from_secs(61));
        assert_eq!(later["postgres"], [file(None, 1262)], "it is asked again");
        assert!(later.contains_key("shut"));
        assert!(asker.answers.is_none());
    }
}
