// SPDX-License-Identifier: PostgreSQL
//! The findings of a comparison, as sentences.

use super::comparison::{
    ChangeVerdict, Comparison, ComparisonRow, DiffUnit, PerSecond, Subject, Total,
};
use super::machine;
use stats::FEWEST;
use view::document::{Finding, Verdict, Weight};
use view::measured::{change_of, relative, relative_size, Measured};
use view::units::{count, duration, two};

/// Maximum number of accounts that are named, and the share of the change after which to stop naming more.
const REASONS: usize = 3;
const ENOUGH: f64 = 0.9;
/// Maximum number of settings that are named.
const SETTINGS: usize = 6;
/// The noise of recordings shorter than this is underestimated; seconds.
const SHORT: f64 = 120.0;
/// If commands per commit differ by more than this share, the two workloads may not be the same.
const OTHER_WORK: f64 = 0.1;

/// All findings.
pub fn findings(comparison: &Comparison) -> Vec<Finding> {
    let of = |weight| {
        move |section, text| Finding {
            section,
            weight,
            text,
            remedy: None,
            details: Vec::new(),
            statement: None,
            times: Vec::new(),
        }
    };
    let (note, warning) = (of(Weight::Note), of(Weight::Warning));
    let mut found = Vec::new();
    if let Some(total) = comparison.rows.totals.first() {
        found.extend(culprit(comparison, total).map(|text| note("statements", text)));
        let whole = note("totals", change(total));
        let reasons = reasons(comparison, total).map(|text| note("accounts", text));
        match hides(comparison, total) {
            true => found.extend(reasons.into_iter().chain([whole])),
            false => found.extend([whole].into_iter().chain(reasons)),
        }
        found.extend(statements(comparison).map(|text| note("statements", text)));
        if total.per != DiffUnit::Second {
            found.push(note("totals", rate(total)));
        }
    }
    found.extend(set_up(comparison).map(|text| note("configuration", text)));
    found.extend(one_sided(comparison).map(|text| note("statements", text)));
    found.extend(other_work(comparison).map(|text| warning("totals", text)));
    let processors = comparison.a.processors.zip(comparison.b.processors);
    let common = !comparison.rows.statements.iter().any(ComparisonRow::is_real_by_itself);
    let total = comparison.rows.totals.first();
    let busy = processors.and_then(|(a, b)| machine::finding(&a, &b, total, common));
    found.extend(busy.map(|text| warning("totals", text)));
    for side in [&comparison.a, &comparison.b] {
        if side.blocks < FEWEST {
            found.push(warning(
                "totals",
                format!(
                    "{} has only {} intervals to estimate its noise from; at least {FEWEST} are required. \
                     All changes are inconclusive.",
                    side.recording, side.blocks
                ),
            ));
        }
    }
    found.extend(short(comparison).map(|text| warning("totals", text)));
    found.extend(comparison.left_out.iter().map(|text| warning("totals", text.clone())));
    found
}

/// What a page starts with: by how much B differs from A and, if it is one, the statement that changed the most. `None`: nothing
/// could be compared.
pub fn verdict(comparison: &Comparison) -> Option<Verdict> {
    let total = comparison.rows.totals.first()?;
    let is_worse = total.change.verdict.is_real() && total.change.change_seconds > 0.0;
    let culprit = culprit(comparison, total).map_or_else(String::new, |text| format!(" {text}"));
    Some(Verdict {
        weight: if is_worse { Weight::Warning } else { Weight::Note },
        text: format!("{}{culprit}", change(total)),
    })
}

fn more(change: f64) -> &'static str {
    if change < 0.0 {
        "less"
    } else {
        "more"
    }
}

/// Whether the total is inconclusive although an account that is most of a side has changed.
fn hides(comparison: &Comparison, total: &Total) -> bool {
    let whole = total.change;
    let most = |row: &ComparisonRow| {
        let part = |one: f64, all: f64| all > 0.0 && one > all / 2.0;
        part(row.change.a_seconds, whole.a_seconds) || part(row.change.b_seconds, whole.b_seconds)
    };
    let mut real = comparison.rows.accounts.iter().filter(|row| row.change.verdict.is_real());
    !whole.verdict.is_real() && real.any(most)
}

fn change(total: &Total) -> String {
    let Total { per, change, .. } = total;
    let size = change.change_seconds.abs();
    let share = match change.a_seconds > 0.0 {
        true => format!(" ({})", relative_size(change.change_seconds / change.a_seconds)),
        false => String::new(),
    };
    let what = format!(
        "B takes {} {} per {} than A{share}: {}, was {}",
        // Without a half-width if it is unknown, or if time per second decided.
        Measured::new(size, change.half_width()).duration(),
        more(change.change_seconds),
        per.name(),
        duration(change.b_seconds),
        duration(change.a_seconds),
    );
    match (change.verdict, change.detectable_seconds) {
        (ChangeVerdict::Noise | ChangeVerdict::Unknown, Some(size)) if change.a_seconds > 0.0 => {
            let change = change_of(size / change.a_seconds);
            format!("{what}: inconclusive; {change} would have been detected.")
        }
        (ChangeVerdict::Noise | ChangeVerdict::Unknown, _) => format!("{what}: inconclusive."),
        _ => format!("{what}{}.", change.per_second.map_or(String::new(), sessions)),
    }
}

/// ", 7.90 sessions on average, were 0.06: a change of 7.84 ± 0.10".
pub fn sessions(rate: PerSecond) -> String {
    let PerSecond { a_sessions: a, b_sessions: b, half_width_sessions: half } = rate;
    let change = half.map_or_else(String::new, |half| {
        format!(": a change of {}", Measured::new(b - a, half).number())
    });
    format!(", {} sessions on average, were {}{change}", two(b), two(a))
}

/// "IO:DataFileRead in execute".
pub fn name(what: &Subject) -> String {
    match what {
        Subject::Account { phase, activity } => format!("{activity} in {phase}"),
        Subject::Process { process, activity } => format!("{activity} of {process}"),
        Subject::Lock { family, lock, part } => format!("{family}:{lock} {part}"),
        Subject::File { process, file, operation } => format!("{operation} {file} by {process}"),
        Subject::Function { process, function, part } => format!("{function} by {process}, {part}"),
        Subject::Statement { query, .. } => query.to_string(),
    }
}

/// The statement whose change is the largest part of the whole, or large even though the whole is inconclusive.
fn culprit(comparison: &Comparison, total: &Total) -> Option<String> {
    /// As a share of the whole change, or of A's whole time.
    const LARGE: f64 = 0.2;

    let whole = total.change;
    let real = |row: &&ComparisonRow| is_sent(row) && row.is_real_by_itself();
    let row = comparison.rows.statements.iter().find(real)?;
    let change = row.change.change_seconds;
    let part =
        change / if whole.verdict.is_real() { whole.change_seconds } else { whole.a_seconds };
    let enough = if whole.verdict.is_real() { part >= LARGE } else { part.abs() >= LARGE };
    let each = call(row)?;
    let plans = row.a_plan.as_ref().zip(row.b_plan.as_ref());
    let plan = plans.map_or(String::new(), |(a, b)| format!("; its plan has {b} instead of {a}"));
    let words = view::statements::one_line(&name(&row.what));
    enough.then(|| {
        format!(
            "The statement that changed the most takes {} {} per {}; {each}{plan}: {words}",
            duration(change.abs()),
            more(change),
            comparison.per.name()
        )
    })
}

/// "a call takes 1.2 ms, was 1.0 ms (+20.1 % ± 3.0, adjusted for the change of all statements)".
fn call(row: &ComparisonRow) -> Option<String> {
    Some(match (row.a_mean_seconds, row.b_mean_seconds) {
        (Some(a), Some(b)) if a > 0.0 => {
            let call = row.call.map_or(String::new(), |call| {
                let change = Measured::new(call.relative * 100.0, call.half_width * 100.0);
                format!(" ({}, adjusted for the change of all statements)", change.change(1))
            });
            format!("a call takes {}, was {}{call}", duration(b), duration(a))
        }
        (None, Some(b)) => format!("it is new and takes {} per call", duration(b)),
        (Some(a), None) => format!("it is absent in B; in A, a call took {}", duration(a)),
        _ => return None,
    })
}

fn is_sent(row: &ComparisonRow) -> bool {
    matches!(&row.what, Subject::Statement { toplevel: true, .. })
}

/// The statements that changed or, if none has, the smallest change that would have been detected.
fn statements(comparison: &Comparison) -> Option<String> {
    let rows = &comparison.rows.statements;
    let words = |row: &ComparisonRow| view::statements::one_line(&name(&row.what));
    let changed = rows.iter().filter(|row| is_sent(row) && row.is_real_by_itself());
    let named: Vec<String> = changed
        .clone()
        .filter_map(|row| Some(format!("{}: {}", words(row), call(row)?)))
        .take(REASONS)
        .collect();
    if !named.is_empty() {
        let number = changed.count();
        return Some(format!("Statements changed: {number}. {}.", named.join("; ")));
    }
    if rows.iter().any(|row| is_sent(row) && row.follows_the_others()) {
        return Some(
            "No statement changed more than the others: the machine, or something else that they share, did.".into(),
        );
    }
    let time = |row: &ComparisonRow| row.change.a_seconds + row.change.b_seconds;
    let known = rows.iter().filter(|row| is_sent(row) && row.call.is_some());
    let row = known.max_by(|a, b| time(a).total_cmp(&time(b)))?;
    Some(format!(
        "No statement changed by more than the noise. For the one with the most time, nine of ten comparisons would have \
         detected {} per call: {}",
        change_of(row.call?.detectable),
        words(row)
    ))
}

/// "; for the largest, cpu in execute, a change of 12.1 % would have been detected".
fn detectable(accounts: &[ComparisonRow]) -> String {
    let time = |row: &ComparisonRow| row.change.a_seconds + row.change.b_seconds;
    let largest = accounts.iter().max_by(|a, b| time(a).total_cmp(&time(b)));
    let known = largest.filter(|row| row.change.a_seconds > 0.0);
    let size = known.and_then(|row| Some((row, row.change.detectable_seconds?)));
    size.map_or(String::new(), |(row, size)| {
        let change = change_of(size / row.change.a_seconds);
        format!("; for the largest, {}, {change} would have been detected", name(&row.what))
    })
}

/// The accounts that explain most of the change, and the largest ones that go against it.
fn reasons(comparison: &Comparison, total: &Total) -> Option<String> {
    let whole = total.change.change_seconds;
    if total.change.verdict == ChangeVerdict::Unknown {
        let largest = in_words(comparison.rows.accounts.iter().take(REASONS));
        return (!largest.is_empty()).then(|| format!("Largest changes (not tested): {largest}."));
    }
    let real: Vec<&ComparisonRow> =
        comparison.rows.accounts.iter().filter(|row| row.change.verdict.is_real()).collect();
    if real.is_empty() {
        return Some(format!(
            "No account changed by more than the noise{}.",
            detectable(&comparison.rows.accounts)
        ));
    }
    if !total.change.verdict.is_real() {
        let named = in_words(real.iter().take(REASONS).copied());
        let others = real.len().saturating_sub(REASONS);
        let rest = if others > 0 { format!("; and {others} more") } else { String::new() };
        return Some(format!("These accounts changed: {named}{rest}."));
    }
    let (with, against): (Vec<&ComparisonRow>, Vec<&ComparisonRow>) =
        real.into_iter().partition(|row| row.change.change_seconds * whole > 0.0);
    let mut explained = 0.0;
    let main: Vec<&ComparisonRow> = with
        .into_iter()
        .take(REASONS)
        .take_while(|row| {
            let go_on = explained < ENOUGH;
            explained += row.change.change_seconds / whole;
            go_on
        })
        .collect();
    let mut text = match main.is_empty() {
        true => "No single account explains the change".to_string(),
        false if explained >= 0.5 => format!("Most of the change: {}", in_words(main.into_iter())),
        false => format!("Changes beyond the noise: {}", in_words(main.into_iter())),
    };
    // At least a tenth of the change.
    let large = |row: &&ComparisonRow| (row.change.change_seconds / whole).abs() >= 1.0 - ENOUGH;
    let against: Vec<&ComparisonRow> = against.into_iter().filter(large).take(REASONS).collect();
    if !against.is_empty() {
        text.push_str(&format!("; in the opposite direction: {}", in_words(against.into_iter())));
    }
    Some(text + ".")
}

/// "IO:DataFileRead in execute takes 11.8 us less, ...".
fn in_words<'r>(rows: impl Iterator<Item = &'r ComparisonRow>) -> String {
    let one = |row: &ComparisonRow| {
        let change = &row.change;
        let size = duration(change.change_seconds.abs());
        let name = name(&row.what);
        let average = |of: f64| format!("{} sessions on average", two(of));
        match (change.verdict, change.per_second) {
            (ChangeVerdict::New, None) => format!("{name} is new and takes {size}"),
            (ChangeVerdict::New, Some(rate)) => {
                format!("{name} is new, {}", average(rate.b_sessions))
            }
            (ChangeVerdict::Absent, None) => format!("{name} is absent in B, {size}"),
            (ChangeVerdict::Absent, Some(rate)) => {
                format!("{name} is absent in B, {}", average(rate.a_sessions))
            }
            (_, None) => format!("{name} takes {size} {}", more(change.change_seconds)),
            (_, Some(rate)) => {
                let more = more(change.change_seconds);
                format!(
                    "{name} takes {size} {more} ({}, were {})",
                    average(rate.b_sessions),
                    two(rate.a_sessions)
                )
            }
        }
    };
    rows.map(one).collect::<Vec<_>>().join(", ")
}

fn rate(total: &Total) -> String {
    let Total { per, a_per_second: a, b_per_second: b, .. } = total;
    let change = match *a > 0.0 {
        true => format!(" ({})", relative(b / a - 1.0)),
        false => String::new(),
    };
    format!("{}s per second: {}, was {}{change}.", capital(per.name()), count(*b), count(*a))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |c| c.to_uppercase().chain(letters).collect())
}

fn set_up(comparison: &Comparison) -> Option<String> {
    let differ: Vec<_> = comparison.configuration.iter().filter(|setting| !setting.place).collect();
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_string());
    let named: Vec<String> = differ
        .iter()
        .take(SETTINGS)
        .map(|setting| {
            format!("{} (A {}, B {})", setting.name, value(&setting.a), value(&setting.b))
        })
        .collect();
    let others = differ.len().saturating_sub(SETTINGS);
    let rest = if others > 0 { format!(", and {others} more") } else { String::new() };
    (!named.is_empty())
        .then(|| format!("Differences in configuration: {}{rest}.", named.join(", ")))
}

/// Statements that ran on one side only.
fn one_sided(comparison: &Comparison) -> Option<String> {
    let count =
        |only: fn(&&ComparisonRow) -> bool| comparison.rows.statements.iter().filter(only).count();
    let in_a = count(|row| row.a_count > 0.0 && row.b_count == 0.0);
    let in_b = count(|row| row.b_count > 0.0 && row.a_count == 0.0);
    match (in_a, in_b) {
        (0, 0) => None,
        (a, b) => Some(format!("Statements that ran only in A: {a}; only in B: {b}.")),
    }
}

/// Warns about short recordings: variation that is slower than a recording does not show in its blocks.
fn short(comparison: &Comparison) -> Option<String> {
    let shorter = comparison.a.compared_seconds.min(comparison.b.compared_seconds);
    let few = comparison.a.blocks.min(comparison.b.blocks) < FEWEST;
    (shorter < SHORT && !few).then(|| {
        format!(
            "Only {} are compared. In such a short recording, slow variation looks like a change; \
             record for a few minutes.",
            duration(shorter)
        )
    })
}

fn other_work(comparison: &Comparison) -> Option<String> {
    let each = |side: &super::comparison::Compared| {
        (side.commits > 0).then(|| side.commands as f64 / side.commits as f64)
    };
    let (a, b) = (each(&comparison.a)?, each(&comparison.b)?);
    let differ = (b / a - 1.0).abs() > OTHER_WORK && comparison.per == DiffUnit::Commit;
    differ.then(|| {
        format!(
            "A has {} commands per commit and B has {}, so the workloads may differ; use --per command to compare \
             per command.",
            count(a),
            count(b)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::call_change::CallChange;
    use super::super::comparison::Change;
    use super::*;

    #[test]
    fn a_half_width_stands_behind_the_change_that_it_belongs_to() {
        let of = |half_width_seconds, verdict| {
            let change = Change {
                a_seconds: 8.56e-3,
                b_seconds: 8.60e-3,
                change_seconds: 40e-6,
                half_width_seconds,
                verdict,
                ..Change::default()
            };
            super::change(&Total::new(DiffUnit::Command, change))
        };
        assert_eq!(
            of(Some(14.5e-6), ChangeVerdict::Noise),
            "B takes 40 us ± 14 more per command than A (0.5 %): 8.60 ms, was 8.56 ms: inconclusive."
        );
        assert_eq!(
            of(None, ChangeVerdict::More),
            "B takes 40 us more per command than A (0.5 %): 8.60 ms, was 8.56 ms."
        );
    }

    #[test]
    fn a_change_from_nearly_nothing_is_a_factor() {
        let change = Change {
            a_seconds: 27.2e-6,
            b_seconds: 84.8e-3,
            change_seconds: 84.7728e-3,
            detectable_seconds: Some(1e-3),
            verdict: ChangeVerdict::More,
            ..Change::default()
        };
        let said = |change| super::change(&Total::new(DiffUnit::Command, change));
        assert_eq!(
            said(change),
            "B takes 84.8 ms more per command than A (3,118 times as much): 84.8 ms, was 27.2 us."
        );
        let unknown = Change { verdict: ChangeVerdict::Noise, ..change };
        assert!(
            said(unknown)
                .ends_with("inconclusive; a change by a factor of 37.8 would have been detected."),
            "{}",
            said(unknown)
        );
        let total = Total {
            a_per_second: 0.5,
            b_per_second: 120.0,
            ..Total::new(DiffUnit::Command, change)
        };
        assert_eq!(rate(&total), "Commands per second: 120, was 0.50 (240 times).");
        let what = Subject::Statement {
            query: "select 1".into(),
            database: String::new(),
            user: String::new(),
            toplevel: true,
        };
        let call = CallChange {
            relative: 1_023.711,
            common: 0.0,
            half_width: 3_410.188,
            p: 0.5,
            detectable: 0.1,
            verdict: ChangeVerdict::Noise,
        };
        let row = ComparisonRow {
            call: Some(call),
            a_mean_seconds: Some(27.2e-6),
            b_mean_seconds: Some(27.9e-3),
            ..ComparisonRow::new(what, change)
        };
        assert_eq!(
            super::call(&row).unwrap(),
            "a call takes 27.9 ms, was 27.2 us (roughly 1,025 times, adjusted for the change of all statements)"
        );
    }
}
