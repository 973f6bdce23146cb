// SPDX-License-Identifier: PostgreSQL
//! Statements: their sampled time by account, their counters from pg_stat_statements where that is installed, and their
//! texts.

use std::collections::{HashMap, HashSet};

use pq::{Client, Row};
use segment::layout::counts;

use super::ledger::{Key, LastSample, Ledger, MOST_STATEMENTS};

/// Count, sum and extremes of times.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Times {
    pub count: u64,
    pub total_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    pub squares: f64,
}

/// The counters of a statement: those of executions and plannings, and numbers by their offset in the counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Counted {
    pub exec: Times,
    pub plan: Times,
    pub numbers: Vec<(usize, u64)>,
}

impl Counted {
    /// The number at this offset.
    pub(super) fn number(&self, field: usize) -> u64 {
        self.numbers.iter().find(|(at, _)| *at == field).map_or(0, |(_, number)| *number)
    }

    /// These counts and later ones, of which the extremes hold.
    fn plus(&self, later: Counted) -> Counted {
        let times = |a: &Times, b: Times| Times {
            count: a.count + b.count,
            total_ns: a.total_ns + b.total_ns,
            squares: a.squares + b.squares,
            ..b
        };
        Counted {
            exec: times(&self.exec, later.exec),
            plan: times(&self.plan, later.plan),
            numbers: later
                .numbers
                .iter()
                .map(|(at, number)| (*at, self.number(*at) + number))
                .collect(),
        }
    }
}

/// A statement.
#[derive(Debug, Clone, Default)]
pub(super) struct StatementRow {
    pub key: Key,
    /// Tick at which it was first seen.
    pub born: u64,
    /// Start of its counts, microseconds since 1970.
    pub since_us: i64,
    /// Accounts and ticks.
    pub parts: Vec<(u32, u64)>,
    pub counted: Counted,
    /// The part of it that was counted before the server last forgot its counts, by a reset or an eviction.
    before: Counted,
    /// How often its text was looked up in vain.
    lookups: u8,
    /// A text that is not in the image yet; then where it is, and its size.
    pub text: Option<String>,
    pub first_block: u32,
    pub text_bytes: u32,
    pub text_whole: u32,
    pub changed: bool,
}

/// All statements so far, each at its place in the image.
#[derive(Debug, Default)]
pub(super) struct Statements {
    pub rows: Vec<StatementRow>,
    by_key: HashMap<Key, usize>,
    /// Number of statements for which there was no space, and those that are known to have none: each counts once.
    pub dropped: u64,
    without_space: HashSet<Key>,
    view: View,
}

/// What is known of pg_stat_statements in the connection's database.
#[derive(Debug, Default)]
enum View {
    #[default]
    Unknown,
    Missing,
    /// The function, what selects the statements that clients sent, the statement that reads the counters of these, and the
    /// offset of each in the counts.
    Function {
        name: String,
        toplevel: &'static str,
        query: String,
        fields: Vec<usize>,
    },
}

/// Columns of pg_stat_statements, by version the first that exists, the offset of the counter, and whether the unit is ms.
const COLUMNS: [(&[&str], usize, bool); 18] = [
    (&["rows"], counts::ROWS, false),
    (&["shared_blks_hit"], counts::SHARED_HIT, false),
    (&["shared_blks_read"], counts::SHARED_READ, false),
    (&["shared_blks_dirtied"], counts::SHARED_DIRTIED, false),
    (&["shared_blks_written"], counts::SHARED_WRITTEN, false),
    (&["local_blks_hit"], counts::LOCAL_HIT, false),
    (&["local_blks_read"], counts::LOCAL_READ, false),
    (&["local_blks_dirtied"], counts::LOCAL_DIRTIED, false),
    (&["local_blks_written"], counts::LOCAL_WRITTEN, false),
    (&["temp_blks_read"], counts::TEMP_READ, false),
    (&["temp_blks_written"], counts::TEMP_WRITTEN, false),
    (&["wal_records"], counts::WAL_RECORDS, false),
    (&["wal_fpi"], counts::WAL_FPI, false),
    (&["wal_bytes"], counts::WAL_BYTES, false),
    (&["shared_blk_read_time", "blk_read_time"], counts::SERVER_READ_NS, true),
    (&["shared_blk_write_time", "blk_write_time"], counts::SERVER_WRITE_NS, true),
    (&["temp_blk_read_time"], counts::SERVER_TEMP_READ_NS, true),
    (&["temp_blk_write_time"], counts::SERVER_TEMP_WRITE_NS, true),
];

/// The schema of pg_stat_statements and the view's columns.
const FIND: &str = "/* tally */ select quote_ident(n.nspname), a.attname::text \
    from pg_extension e join pg_namespace n on n.oid = e.extnamespace \
    join pg_class c on c.relnamespace = n.oid and c.relname = 'pg_stat_statements' \
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped \
    where e.extname = 'pg_stat_statements'";

/// Texts of running statements, which may have ended since.
const TEXTS: &str = "/* tally */ select query_id, datid, usesysid, query from pg_stat_activity \
    where query_id = any($1::int8[]) and state <> 'idle'";

const NS_PER_MS: f64 = 1e6;

impl View {
    fn find(client: &mut Client) -> View {
        let Ok(rows) = client.query(FIND, &[]) else { return View::Missing };
        let columns: HashSet<String> = rows.iter().filter_map(|row| row.get(1).ok()).collect();
        let schema = rows.first().and_then(|row| row.get::<String>(0).ok());
        schema.map_or(View::Missing, |schema| View::with_columns(&schema, &columns))
    }

    /// The view in this schema, with these columns. Before PostgreSQL 13, it has no times of executions alone; before 14, it
    /// does not tell nested statements apart, which it counts only if pg_stat_statements.track is all.
    fn with_columns(schema: &str, columns: &HashSet<String>) -> View {
        let mut fields = Vec::new();
        let mut list = String::new();
        for (names, at, is_ms) in COLUMNS {
            if let Some(name) = names.iter().find(|name| columns.contains(**name)) {
                let factor = if is_ms { NS_PER_MS } else { 1.0 };
                list.push_str(&format!(", (sum({name}) * {factor})::float8"));
                fields.push(at);
            }
        }
        let has = |name: &str| columns.contains(name);
        if !["queryid", "total_exec_time", "stddev_exec_time"].into_iter().all(has) {
            return View::Missing;
        }
        let toplevel = if has("toplevel") { " and toplevel" } else { "" };
        let name = format!("{schema}.pg_stat_statements");
        let query = format!(
            "/* tally */ select queryid, dbid, userid, \
             sum(calls)::int8, sum(total_exec_time), min(min_exec_time), max(max_exec_time), \
             sum((stddev_exec_time ^ 2 + mean_exec_time ^ 2) * calls), \
             sum(plans)::int8, sum(total_plan_time), min(min_plan_time), max(max_plan_time), \
             sum((stddev_plan_time ^ 2 + mean_plan_time ^ 2) * plans){list} \
             from {name}(false) where queryid is not null{toplevel} group by 1, 2, 3"
        );
        View::Function { name, toplevel, query, fields }
    }
}

fn times(row: &Row, at: usize) -> Result<Times, pq::Error> {
    let ns = |column: usize| -> Result<u64, pq::Error> {
        Ok((row.get::<Option<f64>>(column)?.unwrap_or(0.0) * NS_PER_MS) as u64)
    };
    Ok(Times {
        count: u64::try_from(row.get::<Option<i64>>(at)?.unwrap_or(0)).unwrap_or(0),
        total_ns: ns(at + 1)?,
        min_ns: ns(at + 2)?,
        max_ns: ns(at + 3)?,
        squares: row.get::<Option<f64>>(at + 4)?.unwrap_or(0.0) * NS_PER_MS * NS_PER_MS,
    })
}

impl Statements {
    /// The row of a statement, which is added if there is space.
    fn row(&mut self, key: Key, born: u64, since_us: i64) -> Option<&mut StatementRow> {
        let at = match self.by_key.get(&key) {
            Some(&at) => at,
            None if self.rows.len() >= MOST_STATEMENTS => {
                // Beyond this number, not all are kept apart.
                if self.without_space.len() < MOST_STATEMENTS && self.without_space.insert(key) {
                    self.dropped += 1;
                }
                return None;
            }
            None => {
                let changed = true;
                self.rows.push(StatementRow {
                    key,
                    born,
                    since_us,
                    changed,
                    ..StatementRow::default()
                });
                self.by_key.insert(key, self.rows.len() - 1);
                self.rows.len() - 1
            }
        };
        self.rows.get_mut(at)
    }

    /// Take in the sampled times, which the ledger has in total.
    pub(super) fn add_times(&mut self, ledger: &Ledger) {
        let Some(last) = ledger.last else { return };
        let since_us = (last.realtime_ns / 1000) as i64;
        for (key, time) in &ledger.statements {
            let Some(row) = self.row(*key, last.tick, since_us) else { continue };
            if row.parts != time.parts {
                (row.parts, row.changed) = (time.parts.clone(), true);
            }
            let lacks = row.first_block == 0 && row.text.is_none();
            if let Some(text) = time.text.as_ref().filter(|_| lacks) {
                row.text_whole = text.len() as u32;
                row.text = Some(text.clone());
            }
        }
    }

    /// Read the counters of pg_stat_statements, if the database has it, and texts that are missing.
    pub(super) fn read(
        &mut self,
        client: &mut Client,
        last: Option<LastSample>,
    ) -> Result<(), pq::Error> {
        let Some(last) = last else { return Ok(()) };
        let since_us = (last.realtime_ns / 1000) as i64;
        if matches!(self.view, View::Unknown) {
            self.view = View::find(client);
        }
        if let View::Function { query, fields, .. } = &self.view {
            match client.query(query, &[]) {
                // This time, it took too long.
                Err(error) if matches!(error.sqlstate(), Some("57014" | "55P03")) => {}
                // The library is not loaded, or the role may not execute the function.
                Err(error) if error.sqlstate().is_some() => self.view = View::Missing,
                Err(error) => return Err(error),
                Ok(rows) => {
                    let fields = fields.clone();
                    for row in rows {
                        let key = (row.get(0)?, row.get(1)?, row.get(2)?);
                        let (exec, plan) = (times(&row, 3)?, times(&row, 8)?);
                        let number = |at: usize| -> Result<u64, pq::Error> {
                            Ok(row.get::<Option<f64>>(13 + at)?.unwrap_or(0.0).max(0.0) as u64)
                        };
                        let numbers = fields.iter().enumerate();
                        let numbers = numbers.map(|(at, field)| Ok((*field, number(at)?)));
                        let numbers = numbers.collect::<Result<_, pq::Error>>()?;
                        let counted = Counted { exec, plan, numbers };
                        let Some(statement) = self.row(key, last.tick, since_us) else { continue };
                        let known = &statement.counted;
                        let before = &statement.before;
                        let forgot = before.exec.count + counted.exec.count < known.exec.count
                            || before.plan.count + counted.plan.count < known.plan.count;
                        if forgot {
                            statement.before = statement.counted.clone();
                        }
                        let counted = statement.before.plus(counted);
                        if statement.counted != counted {
                            (statement.counted, statement.changed) = (counted, true);
                        }
                    }
                }
            }
        }
        self.read_texts(client)
    }

    /// Texts of statements that have none yet: from pg_stat_statements, otherwise those of running ones.
    fn read_texts(&mut self, client: &mut Client) -> Result<(), pq::Error> {
        /// Look-ups, each of which reads all texts in the server. Hidden and evicted ones are not found later, either.
        const MOST: u8 = 3;

        let lacks = |row: &StatementRow| row.first_block == 0 && row.text.is_none();
        let mut ids: HashSet<i64> = HashSet::new();
        for row in self.rows.iter_mut().filter(|row| lacks(row) && row.lookups < MOST) {
            row.lookups += 1;
            ids.insert(row.key.0);
        }
        if ids.is_empty() {
            return Ok(());
        }
        let ids = ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        let ids = format!("{{{ids}}}");
        let of_view = match &self.view {
            View::Function { name, toplevel, .. } => Some((name, toplevel)),
            View::Unknown | View::Missing => None,
        };
        let of_view = of_view.map(|(name, toplevel)| {
            format!(
                "/* tally */ select queryid, dbid, userid, query from {name}(true) \
                 where queryid = any($1::int8[]){toplevel}"
            )
        });
        let queries = of_view.iter().map(|query| (query.as_str(), true));
        for (query, is_normal) in queries.chain([(TEXTS, false)]) {
            let rows = match client.query(query, &[&ids]) {
                Ok(rows) => rows,
                Err(error) if error.sqlstate().is_some() => continue,
                Err(error) => return Err(error),
            };
            for row in rows {
                let user = row.get::<Option<u32>>(2)?.unwrap_or(0);
                let key = (row.get(0)?, row.get::<Option<u32>>(1)?.unwrap_or(0), user);
                let text: Option<String> = row.get(3)?;
                let Some(text) = text.filter(|text| text != HIDDEN) else { continue };
                let row = self.by_key.get(&key).map(|&at| &mut self.rows[at]);
                let Some(row) = row.filter(|row| lacks(row)) else {
                    continue;
                };
                let text = if is_normal { text } else { recording::without_constants(&text) };
                row.text_whole = text.len() as u32;
                row.text = Some(text);
            }
        }
        Ok(())
    }
}

/// In place of a text that the role may not see.
pub(super) const HIDDEN: &str = "<insufficient privilege>";

#[cfg(test)]
mod tests {
    use super::*;
    use segment::statements::COUNTER;
    use view::known::{COUNTED, COUNTED_IF_SET};

    fn view(columns: &[&str]) -> View {
        View::with_columns("public", &columns.iter().map(|name| name.to_string()).collect())
    }

    #[test]
    fn pg_stat_statements_is_read_as_its_version_allows() {
        let of_13 = ["queryid", "total_exec_time", "stddev_exec_time", "rows", "blk_read_time"];
        let View::Function { query, toplevel, fields, .. } = view(&of_13) else {
            panic!("PostgreSQL 13 has it")
        };
        assert!(toplevel.is_empty() && !query.contains("toplevel"), "{query}");
        assert_eq!(fields, [counts::ROWS, counts::SERVER_READ_NS]);
        let View::Function { query, toplevel, .. } = view(&[&of_13[..], &["toplevel"]].concat())
        else {
            panic!("PostgreSQL 14 has it")
        };
        assert!(query.contains(" and toplevel group by"), "{query}");
        assert_eq!(toplevel, " and toplevel");
        assert!(matches!(view(&["queryid", "total_time", "stddev_time"]), View::Missing));
    }

    #[test]
    fn the_counters_that_json_shows_are_those_that_are_read() {
        let name = |at: usize| {
            let counter = COUNTER.iter().find(|counter| counter.at == at).unwrap();
            let name = counter.name.trim_start_matches("server_");
            name.strip_suffix("_ns").map_or(name.to_string(), |time| format!("io_{time}_seconds"))
        };
        let read: HashSet<String> = COLUMNS.iter().map(|(_, at, _)| name(*at)).collect();
        let shown = COUNTED.iter().chain(COUNTED_IF_SET).filter(|path| !path.ends_with('*'));
        let shown: HashSet<String> =
            shown.map(|path| path.replace('.', "_").replace("blocks_", "")).collect();
        assert_eq!(read, shown);
    }
}
