// SPDX-License-Identifier: PostgreSQL
//! Indexes that are missing: a statement reads a whole table for a few of its rows.

use view::indexes::{changed_tables, IndexChoice, KnownIndex, KnownTable, Purpose, WholeScan};
use view::statements::{PlanRow, StatementFigures};
use view::units::{bytes, clause, count, percent};
use view::vacuum::Condition;

use super::harms;
use super::names::{command, identifier};
use super::plans::{self, Reads};
use super::statements::{is_planned, spills, time, BLOCK};
use crate::advice::Advice;
use crate::case::{words, Case};
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};

/// Blocks that a call has to read; fewer are no trouble.
const BLOCKS: f64 = 500.0;
/// Blocks for each row, if nothing says how many an index would read.
const A_ROW: f64 = 100.0;
/// With an index, a call has to read this many times fewer blocks. Each row that the index finds may be in a
/// different block.
const FEWER: f64 = 10.0;

/// A statement reads hundreds of times as many blocks as it returns rows. Those that functions and foreign keys execute are
/// examined too: their caller reads as much, and its plan says nothing about it.
pub fn missing(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Share of the load that one statement has to take.
    const MUCH: f64 = 0.2;

    // What sorts or hashes beyond work_mem is another rule's.
    let suspect = |row: &&StatementFigures| {
        harms(case, time(row), MUCH) && is_planned(row) && !spills(row) && blocks(row) >= BLOCKS
    };
    let suspects = case.all_statement_rows().filter(|row| row.execution.count > 0).filter(suspect);
    let found: Vec<(&StatementFigures, Finding)> =
        suspects.filter_map(|row| Some((row, Finding::from_statement(case, row)?))).collect();
    // A statement whose own plan does not say it may be the caller of one that was found.
    let explained = |row: &StatementFigures, finding: &Finding| {
        let caller = |(other, finding): &(&StatementFigures, Finding)| {
            !other.toplevel && !finding.indirect && time(other) >= 0.5 * time(row)
        };
        row.toplevel && finding.indirect && found.iter().any(caller)
    };
    let reported = found.iter().filter(|(row, finding)| !explained(row, finding));
    reported.map(|(row, finding)| diagnosis(case, row, finding)).collect()
}

/// How to create the index that the statement's plan lacks, if its columns are known.
pub(super) fn creation(case: &Case<'_>, row: &StatementFigures) -> Option<Advice> {
    let plan = ParsedPlan::parse(plans::last(case.plans, row)?);
    let found = Finding::of_plan(case, row, &plan, false)?;
    let creates = |sql: &String| sql.starts_with("CREATE INDEX ");
    found.advice.commands().iter().any(creates).then_some(found.advice)
}

/// Blocks that a call reads.
fn blocks(row: &StatementFigures) -> f64 {
    (row.blocks.shared_hit + row.blocks.shared_read) as f64 / row.calls.max(1) as f64
}

/// Rows that a call returns or changes.
fn returned(row: &StatementFigures) -> f64 {
    row.rows as f64 / row.calls.max(1) as f64
}

/// Whether this scan may be the reason why a call reads so many blocks: they may be another table's. A block
/// has at least one row.
fn weighs(row: &StatementFigures, scan: &WholeScan, table: Option<&KnownTable<'_>>) -> bool {
    let size = table.map_or(scan.rows, |table| table.blocks.max(1.0));
    scan.repeated || size >= 0.2 * blocks(row)
}

/// Whether a call would read far fewer blocks with this index.
fn pays(
    row: &StatementFigures,
    scan: &WholeScan,
    table: Option<&KnownTable<'_>>,
    choice: &IndexChoice,
) -> bool {
    if let Some((before, after)) = table.and_then(|table| table.costs(choice)) {
        return before >= FEWER * after;
    }
    match choice.finds {
        // A statement that changes rows reads blocks for that, too.
        Some(finds) if table.is_some() || !changes(row) => {
            now(row, scan, table) >= FEWER * (finds + DESCENT)
        }
        _ => returned(row) * A_ROW <= blocks(row),
    }
}

/// Whether the statement changes rows.
fn changes(row: &StatementFigures) -> bool {
    !matches!(command(row.text()).as_str(), "SELECT" | "VALUES" | "TABLE")
}

/// Blocks of an index that a search reads, from its root to a leaf.
const DESCENT: f64 = 3.0;

/// Blocks that the scan reads each time.
fn now(row: &StatementFigures, scan: &WholeScan, table: Option<&KnownTable<'_>>) -> f64 {
    match table {
        Some(table) if scan.repeated => table.blocks,
        Some(table) => table.blocks.min(blocks(row)),
        None => blocks(row),
    }
}

/// What a plan does to tables.
struct ParsedPlan {
    /// The tables that it reads as a whole for some of their rows.
    scans: Vec<WholeScan>,
    /// OIDs of the tables that it changes.
    changed: Vec<u32>,
}

impl ParsedPlan {
    fn parse(plan: &PlanRow) -> ParsedPlan {
        ParsedPlan { scans: WholeScan::all(&plan.plan), changed: changed_tables(&plan.plan) }
    }
}

/// What is missing.
struct Finding {
    /// "An index on public.orders (customer) is missing".
    what: String,
    /// What its plan says; `None`: nobody has seen it.
    seen: Option<String>,
    /// Whether it was concluded from something else than its plan.
    indirect: bool,
    /// More evidence.
    evidence: Vec<String>,
    advice: Advice,
    confidence: Confidence,
}

impl Finding {
    /// `None`: its plan has no scan that an index would replace (a nested loop over a primary key), or it needs the whole table.
    fn from_statement(case: &Case<'_>, row: &StatementFigures) -> Option<Finding> {
        let own = plans::last(case.plans, row);
        let parsed = own.map(ParsedPlan::parse);
        let found = parsed.as_ref().and_then(|plan| Finding::of_plan(case, row, plan, false));
        if found.is_some() {
            return found;
        }
        let reads = plans::reads(own);
        let is_caller = row.toplevel && matches!(reads, Reads::Unknown | Reads::Other);
        let nested = is_caller.then(|| Finding::of_nested(case, row)).flatten();
        let needed = parsed.is_some_and(|plan| Finding::needs_whole(case, row, &plan));
        let few = returned(row) * A_ROW <= blocks(row);
        nested.or_else(|| match reads {
            // Of a statement that another one executes, much is read for a plan that nobody has seen.
            Reads::Unknown if row.toplevel && few => Some(Finding::without_columns(row, None)),
            Reads::Unknown | Reads::Other | Reads::Whole => None,
            Reads::Filtered(..) if needed || !few => None,
            Reads::Filtered(_, rows) if rows < 0.2 * blocks(row) => None,
            Reads::Filtered(table, rows) => {
                Some(Finding::without_columns(row, Some((table, rows))))
            }
        })
    }

    /// By the plan of a statement that it executes, as in a function, and that is not counted.
    fn of_nested(case: &Case<'_>, row: &StatementFigures) -> Option<Finding> {
        /// The plans are read a little after the statements.
        const SLACK: f64 = 1.0;

        let is_nested = |plan: &&PlanRow| {
            let counted = case.all_statement_rows().any(|counted| counted.key == plan.key);
            !plan.key.toplevel
                && !counted
                && plan.key.database_id == row.key.database_id
                && plan.last_noted >= case.from() - SLACK
        };
        let nested = case.plans.iter().filter(is_nested);
        let found = nested.filter_map(|plan| {
            // It has to explain most of the caller's time.
            (plan.mean_seconds >= 0.3 * row.execution.mean_seconds?).then_some(())?;
            Some((plan, Finding::of_plan(case, row, &ParsedPlan::parse(plan), true)?))
        });
        let (_, mut found) = found.max_by(|a, b| a.0.mean_seconds.total_cmp(&b.0.mean_seconds))?;
        found.evidence.push(
            "This plan is that of a statement within it, as of a function. To see that statement, too: ALTER SYSTEM SET \
             pg_tally.statements = 'all'; SELECT pg_reload_conf()."
                .to_owned(),
        );
        Some(found)
    }

    /// Whether the statement needs most of a table that its plan filters.
    fn needs_whole(case: &Case<'_>, row: &StatementFigures, plan: &ParsedPlan) -> bool {
        let conditions = case.vacuum.map_or(&[][..], |answer| &answer.conditions);
        plan.scans.iter().any(|scan| {
            let table = KnownTable::find(conditions, &row.database, scan.table_id);
            weighs(row, scan, table.as_ref())
                && scan.purpose == Purpose::Filter
                && (scan.complete || scan.needs_many())
                && scan.choose(table.as_ref(), (!scan.repeated).then_some(returned(row))).is_none()
        })
    }

    /// By this plan: its own, or that of a statement that it executes.
    fn of_plan(
        case: &Case<'_>,
        row: &StatementFigures,
        plan: &ParsedPlan,
        is_nested: bool,
    ) -> Option<Finding> {
        let conditions = case.vacuum.map_or(&[][..], |answer| &answer.conditions);
        for scan in &plan.scans {
            // A function may execute it many times.
            let scan = WholeScan { repeated: scan.repeated || is_nested, ..scan.clone() };
            let table = KnownTable::find(conditions, &row.database, scan.table_id);
            if !weighs(row, &scan, table.as_ref()) {
                continue;
            }
            let of_call = (!scan.repeated).then(|| returned(row));
            let choice = scan.choose(table.as_ref(), of_call);
            let choice = choice.filter(|choice| pays(row, &scan, table.as_ref(), choice));
            if let Some(choice) = choice {
                return Some(Finding::of_scan(row, &scan, table.as_ref(), &choice));
            }
        }
        let few = returned(row) * A_ROW <= blocks(row);
        plan.changed
            .iter()
            .filter(|_| few)
            .find_map(|id| Finding::of_reference(row, conditions, *id))
    }

    /// The statement deletes rows of the table of this OID, or updates them, and a foreign key reads another table as a whole for
    /// each of them.
    fn of_reference(row: &StatementFigures, conditions: &[Condition], id: u32) -> Option<Finding> {
        let rows = (row.rows as f64 / row.calls.max(1) as f64).max(1.0);
        let changed = KnownTable::find(conditions, &row.database, id)?;
        for table in KnownTable::referring(conditions, &row.database, id) {
            // It must explain what is read.
            if blocks(row) < 0.5 * table.blocks * rows || table.blocks * rows < 0.2 * blocks(row) {
                continue;
            }
            for key in table.foreign_keys.iter().filter(|key| key.references == changed.name) {
                let columns = key.columns.clone();
                let choice = IndexChoice { columns, ordered: 0, finds: Some(1.0) };
                let existing = table.index(&choice);
                let Some(list) =
                    table.list(&choice).filter(|_| existing.is_none_or(|index| !index.valid))
                else {
                    continue;
                };
                let on = format!("{} ({list})", table.name);
                let seen = format!(
                    "For each row of {} that it deletes, or whose key it changes, the server reads all of {} ({}) for rows that refer \
                     to it.",
                    changed.name,
                    table.name,
                    bytes(table.blocks * BLOCK)
                );
                return Some(Finding {
                    what: match existing {
                        Some(index) => format!("Index {} on {on} is invalid", index.name),
                        None => format!("Foreign key {} has no index on {on}", key.name),
                    },
                    seen: Some(seen),
                    indirect: true,
                    evidence: Vec::new(),
                    advice: advice(row, Some(&table), existing, table.name, &on),
                    confidence: Confidence::Likely,
                });
            }
        }
        None
    }

    /// The columns are not known.
    fn without_columns(row: &StatementFigures, filtered: Option<(String, f64)>) -> Finding {
        Finding {
            what: match &filtered {
                None => "An index may be missing".to_owned(),
                Some((table, _)) => format!("An index on table {table} may be missing"),
            },
            confidence: match filtered {
                None => Confidence::Possible,
                Some(_) => Confidence::Likely,
            },
            indirect: filtered.is_none(),
            seen: filtered.map(|(table, rows)| {
                format!("Its plan reads all {} rows of table {table} and filters them.", count(rows))
            }),
            evidence: Vec::new(),
            advice: format!(
                "Look at its plan: {}. If a sequential scan removes most rows by its filter, create an index on the filter's \
                 columns (CREATE INDEX CONCURRENTLY).",
                explain(row)
            )
            .into(),
        }
    }

    fn of_scan(
        row: &StatementFigures,
        scan: &WholeScan,
        table: Option<&KnownTable<'_>>,
        choice: &IndexChoice,
    ) -> Finding {
        let name = table.map_or_else(|| identifier(&scan.table), |table| table.name.to_owned());
        let plain = || {
            choice.columns.iter().map(|column| identifier(column)).collect::<Vec<_>>().join(", ")
        };
        let list = table.and_then(|table| table.list(choice)).unwrap_or_else(plain);
        let on = format!("{name} ({list})");
        let key = table
            .filter(|_| is_of_foreign_key(row))
            .and_then(|table| table.foreign_key(&choice.columns));
        let existing = table.and_then(|table| table.index(choice));
        let mut evidence: Vec<String> = gain(row, scan, table, choice).into_iter().collect();
        evidence.extend(key.map(|key| {
            format!(
                "The foreign key {} refers to {}: each row that is deleted there, or whose key changes, executes it once.",
                key.name, key.references
            )
        }));
        let confidence = match (table, existing) {
            (_, Some(index)) if index.valid => Confidence::Possible,
            _ => Confidence::Likely,
        };
        Finding {
            what: match (existing, key) {
                (Some(index), _) if !index.valid => {
                    format!("Index {} on {on} is invalid", index.name)
                }
                (Some(index), _) => format!("Index {} on {on} is not used", index.name),
                (None, Some(key)) => format!("Foreign key {} has no index on {on}", key.name),
                (None, None) => format!("An index on {on} is missing"),
            },
            seen: Some(format!(
                "Its plan reads all {} rows of table {} and {}.",
                count(scan.rows),
                scan.table,
                match scan.purpose {
                    Purpose::Filter => format!("filters them by {list}"),
                    Purpose::Join => format!("joins few of them by {list}"),
                    Purpose::Order => format!("returns the first ones by {list}"),
                }
            )),
            indirect: false,
            evidence,
            advice: advice(row, table, existing, &name, &on),
            confidence,
        }
    }
}

/// The SQL that ends it.
fn advice(
    row: &StatementFigures,
    table: Option<&KnownTable<'_>>,
    existing: Option<&KnownIndex<'_>>,
    name: &str,
    on: &str,
) -> Advice {
    let place = match table.is_some_and(|table| table.standby) {
        true => format!("In database {} of the primary", row.database),
        false => format!("In database {}", row.database),
    };
    match existing {
        Some(index) if !index.valid => {
            return Advice::from(format!(
                "Unless a session is building it now, its CREATE INDEX CONCURRENTLY has failed. {place}: "
            ))
            .run(format!("REINDEX INDEX CONCURRENTLY {}", index.name))
            .say(".")
        }
        Some(index) => {
            return Advice::from(format!("{place}: ")).run(format!("ANALYZE {name}")).say(&format!(
                ". Compare the types in the condition (a cast keeps an index from being used), and look at random_page_cost and \
                 enable_indexscan. If {} was created a moment ago, the next executions will use it.",
                index.name
            ))
        }
        None => {}
    }
    let place = match table {
        Some(_) => place,
        None => {
            format!(
                "In database {}, unless there is such an index (the catalog was not read)",
                row.database
            )
        }
    };
    let partitions = match table.and_then(|table| table.parent) {
        Some(parent) => format!(
            " It is a partition of {parent}: create the index on each partition so, then once on {parent} without CONCURRENTLY, \
             which takes them over."
        ),
        None => String::new(),
    };
    Advice::from(format!("{place}: "))
        .run(format!("CREATE INDEX CONCURRENTLY ON {on}"))
        .say(".")
        .say(&partitions)
}

/// What the index would save.
fn gain(
    row: &StatementFigures,
    scan: &WholeScan,
    table: Option<&KnownTable<'_>>,
    choice: &IndexChoice,
) -> Option<String> {
    let tested =
        table.and_then(|table| table.costs(choice)).filter(|(before, after)| before > after);
    if let Some((before, after)) = tested {
        return Some(format!(
            "With this index, the planner expects a cost of {} instead of {}: {} times less (HypoPG).",
            count(after),
            count(before),
            count(before / after.max(1.0))
        ));
    }
    let finds = choice.finds?;
    let now = now(row, scan, table);
    let then = finds + DESCENT;
    (now >= 2.0 * then).then(|| {
        format!(
            "With this index, it would read about {} blocks instead of {}.",
            count(then.ceil()),
            count(now)
        )
    })
}

/// Whether a foreign key executes it for a row of the table that it refers to (ri_triggers.c).
fn is_of_foreign_key(row: &StatementFigures) -> bool {
    let text = row.text();
    let begins = ["DELETE FROM ONLY ", "UPDATE ONLY "].iter().any(|begin| text.starts_with(begin))
        || text.starts_with("SELECT ")
            && text.contains(" FROM ONLY ")
            && text.contains(" FOR KEY SHARE OF ");
    !row.toplevel && begins && text.contains("OPERATOR(pg_catalog.")
}

fn diagnosis(case: &Case<'_>, row: &StatementFigures, finding: &Finding) -> Diagnosis {
    let nested = match row.toplevel {
        true => "",
        false if is_of_foreign_key(row) => "",
        false => " Other statements execute it, such as functions.",
    };
    let evidence = format!(
        "It takes {} % of the sessions' time: {} calls{}.",
        percent(case.share(time(row))),
        count(row.calls as f64),
        clause(" of ", row.execution.mean_seconds, "")
    );
    Diagnosis {
        rule: Rule::MissingIndex,
        kind: Kind::Problem,
        text: format!(
            "{}: {} reads {} per call to {} {}.{nested}",
            finding.what,
            words(row),
            bytes(blocks(row) * BLOCK),
            purpose(row),
            rows_of(row.rows as f64 / row.calls.max(1) as f64)
        ),
        seconds: time(row),
        share: Some(case.share(time(row))),
        evidence: [evidence]
            .into_iter()
            .chain(finding.seen.clone())
            .chain(finding.evidence.iter().cloned())
            .collect(),
        advice: finding.advice.clone(),
        confidence: finding.confidence,
        section: "statements",
        consequence_of: None,
    }
}

/// How to see its plan without changing anything.
fn explain(row: &StatementFigures) -> &'static str {
    match command(row.text()).as_str() {
        "SELECT" | "VALUES" | "TABLE" => "EXPLAIN (ANALYZE, BUFFERS)",
        _ => "BEGIN; EXPLAIN (ANALYZE, BUFFERS) ...; ROLLBACK",
    }
}

/// What it does to its rows.
fn purpose(row: &StatementFigures) -> &'static str {
    match command(row.text()).as_str() {
        "DELETE" => "delete",
        "INSERT" => "insert",
        "UPDATE" | "MERGE" => "change",
        _ => "return",
    }
}

/// "1 row", "12 rows", "0.3 rows".
fn rows_of(rows: f64) -> String {
    let unit = if rows == 1.0 { "row" } else { "rows" };
    format!("{} {unit}", count(rows))
}
