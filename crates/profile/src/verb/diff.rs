// SPDX-License-Identifier: PostgreSQL
//! `tally profile diff`: compares two profiles.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::compare::{compare, ProfileChange, ProfileComparison, WorkUnit};
use crate::flame_diff::flame_diff;
use crate::Profile;
use error::Error;
use serde::Serialize;
use view::table::{Cell, Column, Table, Tone, Unit};
use view::units::{duration, two, whole};

use super::args::ProfileDiffArgs;

/// Rows of the tables below a flame graph.
const PAGE_ROWS: usize = 50;

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct ProfileDiffJson<'c> {
    /// The servers of both profiles.
    servers: [&'c str; 2],
    #[serde(flatten)]
    comparison: &'c ProfileComparison,
}

/// Compare the profiles of two files.
pub fn run(args: &ProfileDiffArgs, color: bool) -> Result<(), Error> {
    if let Some(path) =
        args.output.as_deref().filter(|path| path.extension() != Some("html".as_ref()))
    {
        return Err(Error::Usage(format!(
            "-o {}: the file name must end in .html",
            path.display()
        )));
    }
    let (a, b) = (Profile::read(&args.a)?, Profile::read(&args.b)?);
    for (profile, path) in [(&a, &args.a), (&b, &args.b)] {
        if profile.stacks.is_empty() {
            return Err(Error::Failed(format!(
                "profile {} has no CPU samples; sample for longer (--for)",
                path.display()
            )));
        }
    }
    if a.scope != b.scope || a.kernel != b.kernel {
        return Err(Error::Failed(
            "the profiles differ in scope (--system, or the kernel); take both with the same options and rights"
                .into(),
        ));
    }
    let comparison = compare(&a, &b);
    if let Some(path) = &args.output {
        let title = match a.server == b.server {
            true => format!("Two profiles of {}", a.server),
            false => format!("Profiles of {} and {}", a.server, b.server),
        };
        let text = text(&a, &b, &comparison, PAGE_ROWS, false);
        let page = view::page::flame(&title, &text, &flame_diff(&a, &b, &comparison))?;
        view::output::write(path, page.as_bytes())?;
        view::output::announce(path);
    }
    if args.json {
        return view::output::json(&ProfileDiffJson {
            servers: [&a.server, &b.server],
            comparison: &comparison,
        });
    }
    let mut out = view::escape::coloured_stdout(color);
    out.write_all(text(&a, &b, &comparison, args.rows, color).as_bytes())?;
    Ok(out.flush()?)
}

fn text(a: &Profile, b: &Profile, found: &ProfileComparison, rows: usize, color: bool) -> String {
    let per = match found.per {
        WorkUnit::Transaction => "transaction",
        WorkUnit::Command => "command",
        WorkUnit::Second => "second",
    };
    let mut out = String::new();
    for (name, profile, units) in [("A", a, found.units[0]), ("B", b, found.units[1])] {
        let samples: u64 = profile.stacks.iter().map(|stack| stack.samples).sum();
        let _ = writeln!(
            out,
            "{name}: {}, {}: {} at {} Hz, {} CPU samples, {} {per}s",
            profile.server,
            profile.host,
            duration(profile.seconds),
            profile.hertz,
            whole(samples),
            whole(units as u64)
        );
    }
    let mut section = |title: String, mut table: Table| {
        table.rows.truncate(rows);
        let title = if color { format!("\x1b[1m{title}\x1b[0m") } else { title };
        let _ = write!(out, "\n{title}\n{}", table.for_stdout());
    };
    section(format!("Time per {per} by account, exact"), accounts(found));
    let images = table(&found.images, &["IMAGE"], |key| vec![key.as_str().into()]);
    section(format!("CPU time per {per} by image; * marks significant changes"), images);
    let functions = table(&found.functions, &["IMAGE", "SYMBOL"], |key| {
        vec![key.image.as_str().into(), key.symbol.as_str().into()]
    });
    section(format!("CPU time per {per} by function; * marks significant changes"), functions);
    out
}

fn accounts(found: &ProfileComparison) -> Table {
    let columns = vec![
        Column::new("a", "A", Unit::Seconds),
        Column::new("b", "B", Unit::Seconds),
        Column::new("change", "CHANGE", Unit::Seconds),
        Column::new("phase", "PHASE", Unit::Text),
        Column::new("activity", "ACTIVITY", Unit::Text),
    ];
    let mut table = Table::from_rows(columns, Vec::new());
    for row in &found.accounts {
        let [a, b] = row.seconds;
        let change = signed(b - a);
        let (phase, activity) = (row.account.phase.as_str(), row.account.activity.as_str());
        table.push(Tone::Plain, vec![a.into(), b.into(), change, phase.into(), activity.into()]);
    }
    table
}

fn table<K>(
    rows: &[ProfileChange<K>],
    names: &[&'static str],
    cells: impl Fn(&K) -> Vec<Cell>,
) -> Table {
    let mut columns = vec![
        Column::new("a", "A", Unit::Seconds),
        Column::new("b", "B", Unit::Seconds),
        Column::new("change", "CHANGE", Unit::Seconds),
        Column::new("ratio", "B/A", Unit::Number),
        Column::new("range", "95 %", Unit::Text),
        Column::new("verdict", "", Unit::Text),
    ];
    columns.extend(names.iter().map(|name| Column::new(name, name, Unit::Text)));
    let mut table = Table::from_rows(columns, Vec::new());
    for row in rows {
        let [a, b] = row.seconds;
        let range = row.ratio.zip(row.factor).map_or_else(
            || "-".to_string(),
            |(ratio, factor)| format!("{} to {}", two(ratio / factor), two(ratio * factor)),
        );
        let tone = match row.beyond_chance {
            true if b > a => Tone::Bad,
            true => Tone::Good,
            false => Tone::Faint,
        };
        let mut line = vec![
            a.into(),
            b.into(),
            signed(b - a),
            row.ratio.map_or(Cell::Empty, |ratio| two(ratio).into()),
            range.into(),
            if row.beyond_chance { "*".into() } else { "".into() },
        ];
        line.extend(cells(&row.key));
        table.push(tone, line);
    }
    table
}

fn signed(seconds: f64) -> Cell {
    let sign = if seconds < 0.0 { '-' } else { '+' };
    format!("{sign}{}", duration(seconds.abs())).into()
}
