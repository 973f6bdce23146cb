// SPDX-License-Identifier: PostgreSQL
//! Tables of a ClickHouse server that store the rows of all hosts, so that a query opens no file.
//!
//! A refresh adds the files that are new in the bucket. It inserts the rows before it lists itself among the
//! complete runs, and rows count by their file. Therefore a refresh that was killed, or two at the same time,
//! count nothing twice. As in a bucket, the names of the files decide which of them count (ADR 70).

use crate::kept::{complete, files_columns, table, Granularity};
use crate::source::{Files, Source, SOURCES};
use crate::valid::valid;
use crate::views::create_views;
use crate::{Dialect, Root, Window};

/// The columns that identify a merged row, besides the file and the time; `None` if rows are stored unmerged.
fn keys(source: &Source) -> Option<&'static [&'static str]> {
    match source.name {
        "statistics" | "histograms" => Some(&["process", "name", "kind", "unit"]),
        "statements" => {
            Some(&["queryid", "database_id", "user_id", "toplevel", "database", "user_name"])
        }
        _ => None,
    }
}

/// The SQL that creates the tables, unless they exist, and views on them.
pub fn tables(root: &Root, per: Granularity) -> String {
    let mut all = format!(
        "CREATE TABLE IF NOT EXISTS {} ({})\nENGINE = MergeTree PARTITION BY date ORDER BY (source, path);\n\n\
         CREATE TABLE IF NOT EXISTS {} (source LowCardinality(String), run Int64)\nENGINE = MergeTree ORDER BY (source, run);\n\n",
        table(per, "files"),
        files_columns(),
        table(per, "runs"),
    );
    for source in &SOURCES {
        all.push_str(&format!(
            "CREATE TABLE IF NOT EXISTS {} (file UInt64, {}, INDEX of_time time_ms TYPE minmax GRANULARITY 1)\n\
             ENGINE = MergeTree PARTITION BY date ORDER BY (hour, cluster, host, time_ms);\n\n",
            table(per, source.name),
            source.kept_columns()
        ));
    }
    let files =
        Files { dialect: Dialect::ClickHouse, root, window: None::<&Window>, tables: Some(per) };
    all + &create_views(&files)
}

/// The rows of a source from new files, with the number of each file.
fn fresh(
    source: &Source,
    root: &Root,
    window: Option<&Window>,
    per: Granularity,
    run: i64,
) -> String {
    let listed = format!(
        "SELECT path FROM {} WHERE source = '{}' AND run = {run}",
        table(per, "files"),
        source.name
    );
    let rows = source.read(root, window, &listed, &format!("cityHash64(_path, {run}) AS file, "));
    let Some(keys) = keys(source) else { return rows };
    let ms = per.ms();
    let columns = source.merged(keys);
    let keys: String = keys.iter().map(|key| format!(", it.{key}")).collect();
    format!(
        "SELECT it.file AS file, it.cluster AS cluster, it.host AS host, it.date AS date, it.hour AS hour, {columns}\n\
         FROM (SELECT *, intDiv(time_ms + {before}, {ms}) * {ms} AS end_ms FROM ({rows}) read) it\n\
         GROUP BY it.file, it.cluster, it.host, it.date, it.hour, it.end_ms{keys}",
        before = ms - 1,
    )
}

/// The SQL that adds what is new in the bucket. `run` is a number that no other refresh has; later refreshes have
/// higher numbers.
pub fn refresh(root: &Root, window: Option<&Window>, per: Granularity, run: i64) -> String {
    let [files, runs] = ["files", "runs"].map(|name| table(per, name));
    let many = "SETTINGS max_partitions_per_insert_block = 0, throw_on_max_partitions_per_insert_block = 0";
    let one = |source: &Source| {
        let name = source.name;
        let list = source.listed(root, window);
        format!(
            "INSERT INTO {files} {many}\nSELECT '{name}', path, size, modified, cityHash64(path, {run}), {run}, \
             regexp_extract(path, '/date=([^/]*)/', 1)\nFROM ({list}) listed\n\
             WHERE path IN ({valid})\nAND (path, size, modified) NOT IN (SELECT path, size, modified FROM ({complete}) complete);\n\n\
             INSERT INTO {table} {many}\n{fresh};\n\n\
             INSERT INTO {runs} SELECT '{name}', {run} WHERE (SELECT count() FROM {files} WHERE source = '{name}' AND run = {run}) > 0;\n\n",
            valid = valid(&format!("SELECT path FROM ({list}) every")),
            complete = complete(name, per),
            table = table(per, name),
            fresh = fresh(source, root, window, per, run),
        )
    };
    // Intervals come last, as in a bucket, so that rows always find theirs.
    SOURCES.iter().rev().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_a_table_and_a_refresh() {
        let root = Root::parse("/srv/fleet").unwrap();
        let (tables, refresh) =
            (tables(&root, Granularity::Hour), refresh(&root, None, Granularity::Hour, 7));
        for source in &SOURCES {
            let name = format!("tally_hour_{}", source.name);
            assert!(tables.contains(&format!("CREATE TABLE IF NOT EXISTS {name} (")), "{name}");
            assert!(refresh.contains(&format!("INSERT INTO {name} ")), "{name}");
        }
        assert!(!tables.contains("Parquet"), "{tables}");
        assert!(refresh.rfind("'frames'") > refresh.rfind("'statistics'"));
        let day = Window::new(1_772_409_600_000, 1_772_496_000_000, Default::default()).unwrap();
        let refresh = super::refresh(&root, Some(&day), Granularity::Hour, 7);
        assert!(refresh.contains("BETWEEN '2026-03-01 23' AND '2026-03-03 00'"), "{refresh}");
        assert_eq!(Granularity::of_name("minute"), Some(Granularity::Minute));
        assert_eq!(Granularity::of_name("second"), None);
    }
}
