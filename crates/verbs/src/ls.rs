// SPDX-License-Identifier: PostgreSQL
//! `tally ls`: lists the segments of servers and clients on this machine, including unreadable and damaged ones.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use segment::Segment;
use serde::Serialize;

use clap::Args;
use error::Error;
use live::ended_clients;
use live::target::{self, SegmentCandidate, DEFAULT_FOLDER};
use std::path::PathBuf;
use view::table::Table;

/// Arguments of `tally ls`.
#[derive(Debug, Args)]
pub struct LsArgs {
    /// Also look in this directory, besides /dev/shm; can be repeated
    #[arg(long, value_name = "DIR")]
    pub directory: Vec<PathBuf>,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// One row of the list, with the fields of `--json`.
#[derive(Debug, Serialize)]
struct SegmentRow {
    segment: String,
    /// Why it cannot be read; if set, the other fields are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    readable: Option<Readable>,
}

#[derive(Debug, Serialize)]
struct Readable {
    server: String,
    producer: String,
    pid: u32,
    /// `null` when the server's processes cannot be seen from here.
    running: Option<bool>,
    port: u32,
    data_directory: String,
    level: String,
    sessions: u32,
    slots: u32,
    /// Memory in use; most of the file is sparse.
    resident_bytes: u64,
    file_bytes: u64,
    age_seconds: f64,
}

/// Lists the segments.
pub fn run(args: &LsArgs) -> Result<(), Error> {
    let (mut rows, mut removed) = (Vec::new(), Vec::new());
    let default = Path::new(DEFAULT_FOLDER);
    for folder in std::iter::once(default).chain(args.directory.iter().map(PathBuf::as_path)) {
        if folder != default {
            std::fs::read_dir(folder)
                .map_err(|error| Error::Failed(format!("{}: {error}", folder.display())))?;
        }
        removed.extend(ended_clients::remove(folder));
        let found = target::in_folder(folder).into_iter().chain(target::clients_in(folder));
        rows.extend(found.map(SegmentRow::from_candidate));
    }
    if args.json {
        return view::output::json(&rows);
    }
    let mut out = view::escape::stdout();
    for path in &removed {
        writeln!(out, "removed {}: its process was killed", path.display())?;
    }
    if rows.is_empty() {
        return Ok(writeln!(
            out,
            "no segments found; to enable pg_tally on a server, run `tally enable`"
        )?);
    }
    print(&rows, &mut out)
}

impl SegmentRow {
    fn from_candidate(found: SegmentCandidate) -> Self {
        let segment = found.path.display().to_string();
        let read = found.segment.and_then(|segment| Readable::from_segment(&segment));
        match read {
            Ok(readable) => Self { segment, error: None, readable: Some(readable) },
            Err(error) => Self { segment, error: Some(error.to_string()), readable: None },
        }
    }
}

impl Readable {
    fn from_segment(segment: &Segment) -> Result<Self, segment::Error> {
        let header = segment.header();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let age_ns = now.as_nanos().saturating_sub(u128::from(header.created_realtime_ns));
        Ok(Self {
            server: header.server.clone(),
            producer: header.producer.clone(),
            pid: header.server_pid,
            running: segment.server_runs(),
            port: header.server_port,
            data_directory: header.host.clone(),
            level: segment.level()?.to_string(),
            sessions: segment.population()?,
            slots: header.slots,
            resident_bytes: std::fs::metadata(segment.path()).map_or(0, |m| m.blocks() * 512),
            file_bytes: header.size,
            age_seconds: age_ns as f64 / 1e9,
        })
    }
}

fn print(rows: &[SegmentRow], out: &mut impl Write) -> Result<(), Error> {
    let readable = || rows.iter().filter_map(|row| Some((row, row.readable.as_ref()?)));
    let of = |ended: bool| -> Vec<_> {
        readable().filter(|(_, segment)| (segment.running == Some(false)) == ended).collect()
    };
    let (running, ended) = (of(false), of(true));
    if !running.is_empty() {
        out.write_all(table(&running).for_stdout().as_bytes())?;
    }
    if !ended.is_empty() {
        if !running.is_empty() {
            writeln!(out)?;
        }
        writeln!(out, "Segments of servers that have stopped:")?;
        out.write_all(table(&ended).for_stdout().as_bytes())?;
    }
    // Each error begins with the path.
    for error in rows.iter().filter_map(|row| row.error.as_ref()) {
        writeln!(out, "{error}")?;
    }
    Ok(())
}

fn table(rows: &[(&SegmentRow, &Readable)]) -> Table {
    let mut columns = Table::with_headings(
        &[
            "SEGMENT",
            "PID",
            "PORT",
            "SLOTS",
            "MEMORY",
            "AGE",
            "LEVEL",
            "STATE",
            "SERVER",
            "DATA DIRECTORY OR PROGRAM",
        ],
        1..6,
    );
    for (row, facts) in rows {
        columns.push_texts(vec![
            row.segment.clone(),
            facts.pid.to_string(),
            facts.port.to_string(),
            format!("{}/{}", facts.sessions, facts.slots),
            mebibytes(facts.resident_bytes),
            age(facts.age_seconds),
            facts.level.clone(),
            match facts.running {
                Some(true) => "running",
                Some(false) => "ended",
                None => "unknown",
            }
            .into(),
            if facts.server.is_empty() { facts.producer.clone() } else { facts.server.clone() },
            facts.data_directory.clone(),
        ]);
    }
    columns
}

/// Formats bytes as MiB.
pub fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Formats a time in the largest unit that gives at least two of it.
pub fn age(seconds: f64) -> String {
    let (number, unit) = match seconds {
        s if s < 120.0 => (s, "s"),
        s if s < 7200.0 => (s / 60.0, "min"),
        s if s < 172_800.0 => (s / 3600.0, "h"),
        s => (s / 86_400.0, "d"),
    };
    format!("{number:.0} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_shown_in_its_largest_unit() {
        for (seconds, text) in [(3.0, "3 s"), (600.0, "10 min"), (7200.0, "2 h"), (864e3, "10 d")] {
            assert_eq!(age(seconds), text);
        }
    }

    #[test]
    fn segments_of_ended_servers_are_apart() {
        let row = |name: &str, running| {
            let readable = Readable {
                server: "PostgreSQL".into(),
                producer: String::new(),
                pid: 1,
                running,
                port: 5432,
                data_directory: "/d".into(),
                level: "waits".into(),
                sessions: 1,
                slots: 2,
                resident_bytes: 0,
                file_bytes: 0,
                age_seconds: 1.0,
            };
            SegmentRow { segment: name.into(), error: None, readable: Some(readable) }
        };
        let text = |rows: &[SegmentRow]| {
            let mut out = Vec::new();
            print(rows, &mut view::escape::Lines::new(&mut out)).unwrap();
            String::from_utf8(out).unwrap()
        };
        let rows = [row("one", Some(false)), row("two", Some(true)), row("three", None)];
        let all = text(&rows);
        let at = |what: &str| all.find(what).unwrap_or_else(|| panic!("{what}: {all}"));
        assert!(
            at("two") < at("three")
                && at("three") < at("\n\nSegments of servers that have stopped:")
        );
        assert!(at("that have stopped:") < at("one"), "{all}");
        assert!(text(&rows[..1]).starts_with("Segments of servers that have stopped:\nSEGMENT"));
        assert!(!text(&rows[1..]).contains("that have stopped"));
    }

    #[test]
    fn a_damaged_segment_is_listed_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("pg_tally.1.2"), "not one").unwrap();
        let rows: Vec<SegmentRow> =
            target::in_folder(folder.path()).into_iter().map(SegmentRow::from_candidate).collect();
        assert_eq!(rows.len(), 1);
        let mut out = Vec::new();
        print(&rows, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("pg_tally.1.2") && text.contains("not a segment"), "{text}");
    }
}
