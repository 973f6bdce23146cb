// SPDX-License-Identifier: PostgreSQL
//! What the statements with the most time did over time, for recordings and live pages.

use std::collections::{BTreeMap, HashSet};

use segment::statements::WaitClass;
use view::document::{ClassTimes, Histories, Mark, PlanTimes};
use view::statements::{beginning, PlanRow, StatementFigures, StatementsTable};

use crate::charts::ORDER;
use crate::statement_id::{is_of_statement, key_of_row, statement_id, statement_key, StatementId};

/// Number of statements with a history.
pub const STATEMENTS: usize = 30;
/// Maximum number of its points.
pub const POINTS: usize = 240;
/// Maximum number of characters of a statement in a sentence.
const LETTERS: usize = 60;
/// A shorter statement is not recognised in a sentence, bytes.
const SHORTEST: usize = 8;

/// The statements that have a history, most time first.
pub fn most(all: &StatementsTable) -> Vec<StatementId> {
    let mut seen = HashSet::new();
    let rows = all.rows.iter().filter(|row| is_of_statement(row));
    rows.map(|row| statement_id(&row.key)).filter(|id| seen.insert(*id)).take(STATEMENTS).collect()
}

/// Times of one class in one point each, added up by class in the order of stacks.
pub fn by_class(
    points: usize,
    times: impl IntoIterator<Item = (WaitClass, usize, f64)>,
) -> Vec<ClassTimes> {
    let mut sums: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for (class, at, seconds) in times {
        let sum = sums.entry(class.name()).or_insert_with(|| vec![0.0; points]);
        if let Some(sum) = sum.get_mut(at) {
            *sum += seconds;
        }
    }
    let of = |class: WaitClass| {
        let seconds = sums.remove(class.name())?;
        let took = seconds.iter().any(|seconds| *seconds > 0.0);
        took.then(|| ClassTimes { class: class.name(), seconds })
    };
    ORDER.into_iter().filter_map(of).collect()
}

/// The plans of each statement with the times when they were noted, those first noted first. The histories have the noted
/// executions, if these are known.
pub fn with_plans(mut histories: Histories, all: Option<&StatementsTable>) -> Histories {
    let mut plans = plans_of(all.map_or(&[], |all| &all.plans));
    for history in &mut histories.statements {
        let mut noted: BTreeMap<String, Vec<u64>> =
            history.plans.drain(..).map(|plan| (plan.plan, plan.noted)).collect();
        let known = plans.remove(&history.statement).unwrap_or_default();
        history.plans = known
            .into_iter()
            .map(|used| {
                let plan = used.plan.planid.to_string();
                let noted = noted.remove(&plan).unwrap_or_default();
                PlanTimes { plan, first: used.first, last: used.last, noted }
            })
            .collect();
    }
    histories
}

/// A plan of a statement, of all applications together.
struct UsedPlan<'p> {
    plan: &'p PlanRow,
    first: f64,
    last: f64,
}

/// The plans by statement, those first noted first.
fn plans_of(plans: &[PlanRow]) -> BTreeMap<String, Vec<UsedPlan<'_>>> {
    let mut of: BTreeMap<String, Vec<UsedPlan<'_>>> = BTreeMap::new();
    for plan in plans {
        let known = of.entry(statement_key(&statement_id(&plan.key))).or_default();
        match known.iter_mut().find(|used| used.plan.planid == plan.planid) {
            Some(used) => {
                used.first = used.first.min(plan.first_noted);
                used.last = used.last.max(plan.last_noted);
            }
            None => {
                known.push(UsedPlan { plan, first: plan.first_noted, last: plan.last_noted });
            }
        }
    }
    for plans in of.values_mut() {
        plans.sort_by(|a, b| a.first.total_cmp(&b.first));
    }
    of
}

/// A mark for each plan that a statement with much time got after another one, from this time on.
pub fn plan_changes(all: &StatementsTable, from: f64) -> Vec<Mark> {
    let mut plans = plans_of(&all.plans);
    let mut marks = Vec::new();
    for id in most(all) {
        let of = plans.remove(&statement_key(&id)).unwrap_or_default();
        for (at, new) in of.iter().enumerate().filter(|(_, new)| new.first >= from) {
            let used = |one: &&UsedPlan<'_>| one.last.min(new.first);
            let Some(old) = of[..at].iter().max_by(|a, b| used(a).total_cmp(&used(b))) else {
                continue;
            };
            if new.plan.is_like(old.plan) {
                continue;
            }
            let row = all.rows.iter().find(|row| statement_id(&row.key) == id);
            let text = row.and_then(|row| row.query.as_deref());
            marks.push(Mark {
                time: new.first,
                until: None,
                kind: "plan".to_string(),
                text: format!(
                    "new plan of {}: {}, before {}",
                    text.map_or_else(
                        || format!("statement {}", id.0),
                        |text| beginning(text, LETTERS)
                    ),
                    new.plan.unlike(old.plan),
                    old.plan.unlike(new.plan),
                ),
            });
        }
    }
    marks
}

/// The statement of which these sentences quote the most; `None`: they quote none.
pub fn quoted<'s>(
    all: &StatementsTable,
    sentences: impl Iterator<Item = &'s str> + Clone,
) -> Option<String> {
    let quote = |row: &StatementFigures| {
        let quote = beginning(row.query.as_deref()?, LETTERS);
        let quote = quote.trim_end_matches('…');
        let known = quote.len() >= SHORTEST && sentences.clone().any(|one| one.contains(quote));
        known.then_some(quote.len())
    };
    let mut best: Option<(usize, String)> = None;
    // If quotes are equal, the statement with more time, which comes first.
    for row in &all.rows {
        let (Some(length), Some(key)) = (quote(row), key_of_row(row)) else { continue };
        if best.as_ref().is_none_or(|(most, _)| length > *most) {
            best = Some((length, key));
        }
    }
    best.map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use view::document::{Axis, StatementHistory};
    use view::sample;

    #[test]
    fn times_are_added_up_by_class_in_the_order_of_stacks() {
        let times = [
            (WaitClass::Lock, 1, 0.5),
            (WaitClass::Cpu, 0, 1.0),
            (WaitClass::Timeout, 0, 0.25),
            (WaitClass::Cpu, 0, 1.0),
            (WaitClass::Io, 1, 0.0),
            (WaitClass::Cpu, 9, 1.0),
        ];
        let classes = by_class(2, times);
        let of = |one: &ClassTimes| (one.class, one.seconds.clone());
        assert_eq!(
            classes.iter().map(of).collect::<Vec<_>>(),
            [("cpu", vec![2.0, 0.0]), ("lock", vec![0.0, 0.5]), ("other", vec![0.25, 0.0])]
        );
    }

    /// The first statement of the sample with three plans.
    fn changed() -> (StatementsTable, StatementId) {
        let mut all = sample::statements();
        let key = all.rows[0].key;
        let plan = |planid, first_noted, last_noted, plan: &str| PlanRow {
            key,
            queryid: key.query_id(),
            planid,
            noted: 2,
            mean_seconds: 0.1,
            max_seconds: 0.2,
            rows_per_call: 1.0,
            cost: 1.0,
            first_noted,
            last_noted,
            plan: plan.to_string(),
            cut: false,
        };
        all.plans = vec![
            plan(3, 300.0, 400.0, "Seq Scan on orders [filter]"),
            plan(1, 100.0, 250.0, "Index Scan on orders using orders_pkey"),
            plan(2, 150.0, 160.0, "Bitmap Heap Scan on orders\n  Bitmap Index Scan on orders_day"),
        ];
        let id = statement_id(&key);
        (all, id)
    }

    #[test]
    fn a_plan_that_follows_another_one_is_a_mark_and_the_first_one_is_not() {
        let (all, _) = changed();
        let marks = plan_changes(&all, 0.0);
        assert_eq!(marks.iter().map(|mark| mark.time).collect::<Vec<_>>(), [150.0, 300.0]);
        let last = &marks[1];
        assert_eq!(last.kind, "plan");
        // The plan that was used last before it, which is not the one that was noted first last.
        assert!(
            last.text.ends_with(
                ": Seq Scan on orders [filter], before Index Scan on orders using orders_pkey"
            ),
            "{}",
            last.text
        );
        assert!(plan_changes(&all, 301.0).is_empty());
    }

    #[test]
    fn plans_have_their_times_and_the_executions_that_are_known() {
        let (all, id) = changed();
        let noted =
            |plan: &str, noted| PlanTimes { plan: plan.into(), noted, ..PlanTimes::default() };
        let history = StatementHistory {
            statement: statement_key(&id),
            plans: vec![noted("3", vec![0, 2]), noted("9", vec![1, 1])],
            ..StatementHistory::default()
        };
        let histories = Histories { axis: Axis::default(), statements: vec![history] };
        let plans = &with_plans(histories, Some(&all)).statements[0].plans;
        let of = |one: &PlanTimes| (one.plan.clone(), one.first, one.last, one.noted.clone());
        assert_eq!(
            plans.iter().map(of).collect::<Vec<_>>(),
            [
                ("1".to_string(), 100.0, 250.0, vec![]),
                ("2".to_string(), 150.0, 160.0, vec![]),
                ("3".to_string(), 300.0, 400.0, vec![0, 2]),
            ]
        );
    }

    #[test]
    fn the_key_says_whether_a_statement_is_nested() {
        assert_eq!(statement_key(&(-7, 5, 10, true)), "-7.5.10");
        assert_eq!(statement_key(&(-7, 5, 10, false)), "-7.5.10.nested");
    }

    #[test]
    fn a_sentence_is_about_the_statement_of_which_it_quotes_the_most() {
        let mut all = sample::statements();
        all.rows[0].query = Some("SELECT v FROM t".into());
        all.rows[1].query = Some(format!("SELECT v FROM t\nWHERE {}", "x".repeat(80)).into());
        let key = |at: usize| key_of_row(&all.rows[at]);
        let of = |text: &str| quoted(&all, std::iter::once(text));
        assert_eq!(of("a plan of SELECT v FROM t changed"), key(0));
        let long = beginning(all.rows[1].query.as_deref().unwrap(), 70);
        assert_eq!(of(&format!("a plan of {long} changed")), key(1));
        assert_eq!(of("a plan of SELECT w FROM t changed"), None);
    }
}
