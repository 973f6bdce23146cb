// SPDX-License-Identifier: PostgreSQL
//! Asks the server for the names of relations, database by database, in a thread of its own. A
//! database that refuses the connection is not asked again; its relations are shown by number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use segment::{RelationRow, Segment};

use crate::server::Access;
use view::io::{RelationFile, RelationNames};

/// How many of the busiest relations to ask for.
const BUSIEST: usize = 32;
/// How long to wait for the first answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// The shortest time between questions: each connects to every database with new relations.
const SELDOM: Duration = Duration::from_secs(10);
/// How many names are kept.
const MOST: usize = 10_000;
/// The database that is asked for shared relations.
const SHARED: &str = "postgres";

/// The question: files by database.
type Files = BTreeMap<String, Vec<RelationFile>>;

/// The names found in a database; `None`: it refused the connection.
type Answer = (String, Option<Vec<(RelationFile, String)>>);

/// The names so far.
#[derive(Debug)]
pub struct Asker {
    access: Option<Access>,
    /// Asked for, with an answer or without.
    asked: BTreeSet<RelationFile>,
    names: RelationNames,
    closed: BTreeSet<String>,
    answers: Option<Receiver<Answer>>,
    last: Option<Instant>,
    patience: Duration,
}

impl Asker {
    /// For the server of this segment.
    pub fn start(segment: &Segment) -> Asker {
        Asker {
            access: Access::open_to_us(segment),
            asked: BTreeSet::new(),
            names: RelationNames::default(),
            closed: BTreeSet::new(),
            answers: None,
            last: None,
            patience: PATIENCE,
        }
    }

    /// The known names of these relations.
    pub fn next(&mut self, rows: &[RelationRow]) -> RelationNames {
        if self.asked.len() >= MOST {
            // Drop names of relations that no longer exist.
            (self.asked, self.names) = (BTreeSet::new(), RelationNames::default());
        }
        let rested = self.last.is_none_or(|last| last.elapsed() >= SELDOM);
        if self.answers.is_none() && rested {
            let files = self.unknown(rows);
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

    /// The busiest relations that have not been asked for.
    fn unknown(&self, rows: &[RelationRow]) -> Files {
        let mut files = Files::new();
        for row in rows.iter().take(BUSIEST).filter(|row| !row.temporary) {
            let Some(file) = RelationNames::file(row).filter(|it| !self.asked.contains(it)) else {
                continue;
            };
            let database = match (&row.database, row.database_id) {
                (Some(name), _) => name.as_str(),
                (None, None) => SHARED,
                // No session has reported its name.
                (None, Some(_)) => continue,
            };
            if !self.closed.contains(database) {
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
                Ok((_, Some(found))) => self.names.0.extend(found),
                Ok((database, None)) => {
                    self.closed.insert(database);
                }
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.answers = None;
    }
}

fn ask(access: Access, files: Files) -> Option<Receiver<Answer>> {
    let (answer, answers) = channel();
    let work = move || {
        for (database, files) in files {
            let found = names(&access, &database, &files);
            // The receiver may have ended.
            if answer.send((database, found)).is_err() {
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
    // Where there is no such relation any more, there is no name. Those of the usual schemas are as
    // one writes them, whatever the session's search_path.
    let sql = "/* tally */ select n - 1, case when s.nspname in ('public', 'pg_catalog') then ''
                                  else quote_ident(s.nspname) || '.' end || quote_ident(c.relname)
               from unnest($1::oid[], $2::oid[]) with ordinality as f (space, file, n)
               join pg_class c on c.oid = pg_filenode_relation(space, file)
               join pg_namespace s on s.oid = c.relnamespace";
    let parameters = (numbers(|file| file.1), numbers(|file| file.2));
    let rows = client.query(sql, &[&parameters.0, &parameters.1]).ok()?;
    let named = |row: &pq::Row| {
        let file = files.get(usize::try_from(row.get::<i64>(0)).ok()?)?;
        Some((*file, row.get(1)))
    };
    Some(rows.iter().filter_map(named).collect())
}
