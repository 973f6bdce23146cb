// SPDX-License-Identifier: PostgreSQL
//! A comparison as a [`Document`], from which its text and page are made.

use jiff::tz::TimeZone;
use segment::statements::WaitClass;

use super::call_change::CallChange;
use super::comparison::{
    Change, ChangeVerdict, Compared, Comparison, ComparisonRow, DiffUnit, Rows, Subject,
};
use super::findings;
use view::document::{
    span, Cell, Column, Document, Fact, MeasuredTime, Section, Table, Tone, Unit,
};
use view::measured::relative_half_width;
use view::units::{count, duration, whole};

/// Rows of one kind, and how to show them.
struct Kind {
    /// Key of the table and of its section.
    id: &'static str,
    /// Key of the table of inconclusive rows.
    noise: &'static str,
    /// Title of the section.
    section: &'static str,
    title: &'static str,
    note: &'static str,
    /// The columns that identify a row.
    names: &'static [Column],
    rows: fn(&Rows) -> &Vec<ComparisonRow>,
}

const KINDS: [Kind; 6] = [
    Kind {
        id: "accounts",
        noise: "accounts_noise",
        section: "Where it changed",
        title: "Accounts of client sessions",
        note: "The changes of all rows add up to that of the total time.",
        names: &[text("activity", "Activity"), text("phase", "Phase")],
        rows: |rows| &rows.accounts,
    },
    Kind {
        id: "statements",
        noise: "statements_noise",
        section: "Statements",
        title: "Statements",
        note: "Server time: parse, plan, execute, commit. A call is one execution, relative to the other statements.",
        names: &[
            text("query", "Statement").elastic(),
            text("database", "Database").expendable(9),
            text("user", "User").expendable(10),
        ],
        rows: |rows| &rows.statements,
    },
    Kind {
        id: "files",
        noise: "files_noise",
        section: "Files",
        title: "File operations",
        note: "This time is part of the accounts' time; do not add the two.",
        names: &[text("file", "File"), text("operation", "Operation"), text("process", "By")],
        rows: |rows| &rows.files,
    },
    Kind {
        id: "locks",
        noise: "locks_noise",
        section: "Locks",
        title: "Locks",
        note: "Held: from acquisition to release; overlaps all other times.",
        names: &[text("lock", "Lock"), text("part", "What")],
        rows: |rows| &rows.locks,
    },
    Kind {
        id: "functions",
        noise: "functions_noise",
        section: "Functions",
        title: "Timed functions",
        note:
            "Inclusive: with the functions that it called; exclusive: without other timed functions. Both \
               overlap all other times.",
        names: &[text("function", "Function"), text("part", "Time"), text("process", "By")],
        rows: |rows| &rows.functions,
    },
    Kind {
        id: "processes",
        noise: "processes_noise",
        section: "The server's own processes",
        title: "The server's own processes",
        note: "Busy time. Clients do not wait for it, except by competing for CPUs.",
        names: &[text("activity", "Activity"), text("process", "Process")],
        rows: |rows| &rows.processes,
    },
];

const fn text(key: &'static str, title: &'static str) -> Column {
    Column::new(key, title, Unit::Text)
}

/// Number of statements that are listed even if chance could explain their change.
const LISTED: usize = 5;

/// Whether to list the inconclusive rows and the locations: a page lists them, a text only adds them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    Shown,
    Summed,
}

/// Builds the document, with times in this time zone.
pub fn document(comparison: &Comparison, noise: Noise, zone: &TimeZone) -> Document {
    let mut tables = vec![configuration(comparison, noise), totals(comparison)];
    for kind in &KINDS {
        let rows = (kind.rows)(&comparison.rows);
        // They are sorted: changes beyond the noise first, then the largest changes.
        let listed = if kind.id == "statements" { LISTED } else { 0 };
        let (_, rest) = rows.split_at(listed.min(rows.len()));
        let noisy: Vec<&ComparisonRow> = rest.iter().filter(|row| is_noise(row)).collect();
        tables.push(table(kind, comparison, rows, &noisy));
        if noise == Noise::Shown {
            tables.push(below(kind, comparison, &noisy));
        }
    }
    let section = |id, title, tables| Section { id, title, tables, ..Section::default() };
    let mut sections = vec![
        section("configuration", "Differences in configuration", vec!["configuration"]),
        section("totals", "Total time", vec!["totals"]),
    ];
    sections.extend(KINDS.iter().map(|kind| section(kind.id, kind.section, vec![kind.id])));
    let noisy = KINDS.iter().map(|kind| kind.noise).collect();
    sections.push(section("noise", "Inconclusive", noisy));
    let title =
        format!("{} (B) compared with {} (A)", comparison.b.recording, comparison.a.recording);
    let mut document = Document {
        made: comparison.made.clone(),
        measured: MeasuredTime {
            recording: comparison.b.recording.clone(),
            host: comparison.b.host.clone(),
            from: comparison.b.from,
            to: comparison.b.to,
            covered_seconds: comparison.b.compared_seconds,
            exact: comparison.a.exact && comparison.b.exact,
            facts: facts(comparison, zone),
            ..MeasuredTime::default()
        },
        verdict: findings::verdict(comparison),
        findings: comparison.findings.clone(),
        sections,
        tables,
        ..Document::new(title)
    };
    document.tidy();
    document
}

fn facts(comparison: &Comparison, zone: &TimeZone) -> Vec<Fact> {
    let counted = match comparison.per {
        DiffUnit::Commit => {
            "commits: client transactions that wrote WAL; the time of read-only ones is included"
        }
        DiffUnit::Command => "commands: handled client messages",
        DiffUnit::Second => "seconds: the average number of sessions or threads in each activity",
    };
    let noise = format!(
        "estimated from {} blocks of A and {} of B; ± is the half-width of a 95 % confidence \
         interval. Fewer than 1 % of the rows reported as changed are so by chance. Variation between \
         runs does not show in a single recording",
        comparison.a.blocks, comparison.b.blocks
    );
    vec![
        Fact { name: "A", text: side(&comparison.a, zone) },
        Fact { name: "B", text: side(&comparison.b, zone) },
        Fact { name: "Counted by", text: counted.to_string() },
        Fact { name: "Noise", text: noise },
    ]
}

fn side(side: &Compared, zone: &TimeZone) -> String {
    let part = match side.compared_seconds < side.recorded_seconds * 0.999 {
        true => format!(" of {}", duration(side.recorded_seconds)),
        false => String::new(),
    };
    format!(
        "{}: {} on {}, {}, {}{part} compared, {}; {} commits, {} commands",
        side.recording,
        side.server,
        side.host,
        span(side.from, side.to, zone),
        duration(side.compared_seconds),
        match (side.source, side.exact) {
            ("exact", false) => "not exact",
            (source, _) => source,
        },
        whole(side.commits),
        whole(side.commands)
    )
}

/// Maximum length of a setting's value in a text, in characters.
const VALUE: usize = 48;

/// Settings that differ; a text leaves out those that are only locations.
fn configuration(comparison: &Comparison, noise: Noise) -> Table {
    let columns = vec![
        Column::new("group", "Of", Unit::Text).expendable(1),
        Column::new("name", "What", Unit::Text),
        Column::new("a", "A", Unit::Text),
        Column::new("b", "B", Unit::Text),
    ];
    let mut table = Table::new("configuration", "Differences in configuration", columns);
    let page = noise == Noise::Shown;
    let value = |value: &Option<String>| match value {
        Some(text) if !page && text.chars().count() > VALUE => {
            Some(text.chars().take(VALUE - 3).chain("...".chars()).collect())
        }
        value => value.clone(),
    };
    for setting in comparison.configuration.iter().filter(|setting| page || !setting.place) {
        table.push(
            Tone::Plain,
            vec![
                (&setting.group).into(),
                (&setting.name).into(),
                value(&setting.a).into(),
                value(&setting.b).into(),
            ],
        );
    }
    table
}

fn totals(comparison: &Comparison) -> Table {
    let mut columns = vec![Column::new("per", "Time per", Unit::Text)];
    columns.extend(CHANGE);
    columns.extend([
        Column::new("a_per_second", "A a second", Unit::PerSecond).expendable(3),
        Column::new("b_per_second", "B a second", Unit::PerSecond).expendable(2),
    ]);
    let whose =
        if comparison.rows.accounts.is_empty() { "all processes" } else { "client sessions" };
    let note = format!("Busy time of {whose}, including waits.");
    let mut table = Table::new("totals", "Total time", columns).noted(Some(note));
    table.note = by_second(
        table.note,
        comparison.rows.totals.iter().map(|total| (total.per.name().to_string(), &total.change)),
    );
    for total in &comparison.rows.totals {
        let mut row: Vec<Cell> = vec![total.per.name().into()];
        row.extend(cells(&total.change, total.change.verdict.words()));
        row.extend([total.a_per_second.into(), total.b_per_second.into()]);
        table.push(Tone::Plain, row);
    }
    table
}

/// Maximum number of rows, judged by time per second, that a note names.
const NAMED: usize = 3;

/// Adds a note about rows whose verdict is based on time per second, because their half-widths are of that.
fn by_second<'c>(
    note: Option<String>,
    rows: impl Iterator<Item = (String, &'c Change)>,
) -> Option<String> {
    let named = rows.filter_map(|(name, change)| {
        Some(format!("{name}{}", findings::sessions(change.per_second?)))
    });
    let named: Vec<String> = named.take(NAMED).collect();
    if named.is_empty() {
        return note;
    }
    let by = format!(
        "For these rows, there are too few units, or their rate varies too much, so time per second was tested: {}.",
        named.join("; ")
    );
    Some([note.unwrap_or_default(), by].join(" "))
}

const A: Column = Column::new("a_seconds", "A", Unit::Seconds);
const B: Column = Column::new("b_seconds", "B", Unit::Seconds);
const CHANGED: Column = Column::new("change_seconds", "Change", Unit::Seconds);
const WIDTH: Column = Column::new("half_width_seconds", "±", Unit::Seconds)
    .help("half-width of the 95 % confidence interval");
const RELATIVE: Column = Column::new("relative", "Relative", Unit::Change).expendable(4);
const VERDICT: Column = Column::new("verdict", "Verdict", Unit::Text);
const CHANGE: [Column; 6] = [A, B, CHANGED, WIDTH, RELATIVE, VERDICT];

fn cells(change: &Change, verdict: &'static str) -> [Cell; 6] {
    let relative = (change.a_seconds > 0.0).then(|| change.change_seconds / change.a_seconds);
    [
        change.a_seconds.into(),
        change.b_seconds.into(),
        change.change_seconds.into(),
        change.half_width().into(),
        relative.into(),
        verdict.into(),
    ]
}

/// Neither rows of unknown significance nor statements that changed by more than their own noise are added up.
fn is_noise(row: &ComparisonRow) -> bool {
    row.change.verdict == ChangeVerdict::Noise && !row.is_real() && !row.stands_out
}

/// The cells of the columns that identify a row.
fn name_cells(what: &Subject) -> Vec<Cell> {
    match what {
        Subject::Account { phase, activity } => vec![activity.into(), phase.into()],
        Subject::Process { process, activity } => vec![activity.into(), process.into()],
        Subject::File { process, file, operation } => {
            vec![file.into(), operation.into(), process.into()]
        }
        Subject::Lock { family, lock, part } => {
            vec![format!("{family}:{lock}").into(), (*part).into()]
        }
        Subject::Function { process, function, part } => {
            vec![function.into(), (*part).into(), process.into()]
        }
        Subject::Statement { query, database, user, .. } => {
            vec![query.into(), database.as_str().into(), user.as_str().into()]
        }
    }
}

fn tone(what: &Subject) -> Tone {
    let class = match what {
        Subject::Account { activity, .. } | Subject::Process { activity, .. } => {
            WaitClass::of_name(activity)
        }
        Subject::Lock { family, .. } => WaitClass::of_name(&format!("{family}:")),
        Subject::File { .. } => WaitClass::Io,
        Subject::Function { .. } | Subject::Statement { .. } => return Tone::Plain,
    };
    Tone::Class(class)
}

const MEANS: [Column; 2] = [
    Column::new("a_mean_seconds", "A mean", Unit::Seconds).expendable(2),
    Column::new("b_mean_seconds", "B mean", Unit::Seconds).expendable(2),
];
const SHARE: Column = Column::new("share", "of the change", Unit::Share);
const COUNTS: [Column; 2] = [
    Column::new("a_count", "A count", Unit::Number).expendable(8),
    Column::new("b_count", "B count", Unit::Number).expendable(7),
];
const CALLS: [Column; 2] = [
    Column::new("a_count", "A calls", Unit::Number).expendable(8),
    Column::new("b_count", "B calls", Unit::Number).expendable(7),
];
const CALL: [Column; 3] = [
    Column::new("call_relative", "A call", Unit::Change).help(
        "time of an execution in B relative to A, adjusted for the change common to all statements (the machine)",
    ),
    Column::new("call_half_width", "CALL ±", Unit::Share)
        .help("half-width of the 95 % confidence interval of that change"),
    Column::new("call_detectable", "Found from", Unit::Change)
        .help("smallest change of a call that nine of ten comparisons would detect")
        .expendable(1),
];
const PLAN: Column = Column::new("plan", "Plan", Unit::Text)
    .help("if the plan changed, a node that differs: A -> B")
    .expendable(3);
const BYTES: [Column; 2] = [
    Column::new("a_bytes", "A bytes", Unit::Bytes).expendable(6),
    Column::new("b_bytes", "B bytes", Unit::Bytes).expendable(5),
];

/// The half-width of a call's change, in the unit of that change.
fn half_width(call: CallChange) -> Cell {
    Cell::Rounded {
        text: relative_half_width(call.relative, call.half_width).into(),
        exact: Some(call.half_width),
        tone: Tone::Plain,
    }
}

/// The columns, including the one for plans if any plan changed.
fn columns(id: &str, names: &[Column], rows: &[&ComparisonRow]) -> Vec<Column> {
    let mut columns = names.to_vec();
    if id == "statements" {
        columns.extend(CALL);
    }
    columns.extend(CHANGE);
    if id == "accounts" {
        columns.push(SHARE);
    }
    columns.extend(if id == "statements" { CALLS } else { COUNTS });
    if id == "statements" {
        columns.extend(MEANS);
        columns.extend(any_plan(rows).then_some(PLAN));
    }
    if id == "files" {
        columns.extend(BYTES);
    }
    columns
}

fn any_plan(rows: &[&ComparisonRow]) -> bool {
    rows.iter().any(|row| row.b_plan.is_some())
}

fn row(id: &str, names: Vec<Cell>, compared: &ComparisonRow, plans: bool) -> Vec<Cell> {
    let mut row = names;
    if id == "statements" {
        let figure = |of: fn(&CallChange) -> f64| -> Cell { compared.call.as_ref().map(of).into() };
        row.extend([
            figure(|call| call.relative),
            compared.call.map(half_width).into(),
            figure(|call| call.detectable),
        ]);
    }
    row.extend(cells(&compared.change, compared.words()));
    if id == "accounts" {
        row.push(compared.share.into());
    }
    row.extend([compared.a_count.into(), compared.b_count.into()]);
    if id == "statements" {
        row.extend([compared.a_mean_seconds.into(), compared.b_mean_seconds.into()]);
        if plans {
            let both = compared.a_plan.as_ref().zip(compared.b_plan.as_ref());
            row.push(both.map(|(a, b)| format!("{a} -> {b}")).into());
        }
    }
    if id == "files" {
        row.extend([compared.a_bytes.into(), compared.b_bytes.into()]);
    }
    row
}

fn table(
    kind: &Kind,
    comparison: &Comparison,
    rows: &[ComparisonRow],
    noisy: &[&ComparisonRow],
) -> Table {
    let Kind { id, title, note, names, .. } = *kind;
    let note = format!("Per {}. {note}", comparison.per.name());
    let all: Vec<&ComparisonRow> = rows.iter().collect();
    let plans = any_plan(&all);
    let named = rows.iter().map(|row| (findings::name(&row.what), &row.change));
    let note = by_second(Some(note), named);
    let mut table = Table::new(id, title, columns(id, names, &all)).noted(note);
    let summed =
        |row: &ComparisonRow| noisy.iter().any(|inconclusive| std::ptr::eq(*inconclusive, row));
    for shown in rows.iter().filter(|row| !summed(row)) {
        table.push(tone(&shown.what), row(id, name_cells(&shown.what), shown, plans));
    }
    if let Some(sum) = sum(noisy) {
        let number = match noisy.len() {
            1 => "one inconclusive".to_string(),
            n => format!("{} inconclusive", count(n as f64)),
        };
        let mut cells: Vec<Cell> = vec![number.into()];
        cells.resize(names.len(), Cell::Empty);
        // In a table with classes, every row has one.
        let tone = match tone(&sum.what) {
            Tone::Plain => Tone::Plain,
            _ => Tone::OTHER,
        };
        table.push(tone, row(id, cells, &sum, plans));
    }
    table
}

/// The sum of the inconclusive rows.
fn sum(rows: &[&ComparisonRow]) -> Option<ComparisonRow> {
    let (first, rest) = rows.split_first()?;
    let mut sum = (*first).clone();
    for row in rest {
        let (all, one) = (&mut sum.change, &row.change);
        all.a_seconds += one.a_seconds;
        all.b_seconds += one.b_seconds;
        all.change_seconds += one.change_seconds;
        sum.a_count += row.a_count;
        sum.b_count += row.b_count;
        sum.a_bytes += row.a_bytes;
        sum.b_bytes += row.b_bytes;
        sum.share = sum.share.zip(row.share).map(|(all, one)| all + one);
    }
    // The noise of a sum is unknown.
    if !rest.is_empty() {
        sum.change.half_width_seconds = None;
        sum.call = None;
    }
    Some(sum)
}

fn below(kind: &Kind, comparison: &Comparison, rows: &[&ComparisonRow]) -> Table {
    let Kind { id, noise, title, names, .. } = *kind;
    let mut table = Table::new(noise, title, columns(id, names, rows)).noted(Some(format!(
        "Per {}. All of these changes are inconclusive.",
        comparison.per.name()
    )));
    for below in rows {
        table.push(tone(&below.what), row(id, name_cells(&below.what), below, any_plan(rows)));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_noise_has_no_width_and_what_stands_out_is_no_noise() {
        let change = Change {
            a_seconds: 4.0,
            b_seconds: 5.0,
            change_seconds: 1.0,
            half_width_seconds: Some(0.5),
            verdict: ChangeVerdict::Noise,
            ..Change::default()
        };
        let what = Subject::Account { phase: "".into(), activity: "cpu".into() };
        let row =
            ComparisonRow { share: Some(0.25), a_count: 1.0, ..ComparisonRow::new(what, change) };
        assert_eq!(sum(&[&row]).unwrap(), row);
        let both = sum(&[&row, &row]).unwrap();
        let sums = (
            both.change.a_seconds,
            both.change.b_seconds,
            both.change.change_seconds,
            both.share,
            both.a_count,
        );
        assert_eq!(sums, (8.0, 10.0, 2.0, Some(0.5), 2.0));
        assert_eq!(both.change.half_width_seconds, None);
        assert_eq!(cells(&change, "")[4], Cell::from(0.25), "relative to A");
        assert!(is_noise(&row) && !is_noise(&ComparisonRow { stands_out: true, ..row.clone() }));
        let unknown = Change { verdict: ChangeVerdict::Unknown, ..change };
        assert!(!is_noise(&ComparisonRow { change: unknown, ..row }));
    }
}
