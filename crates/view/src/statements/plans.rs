// SPDX-License-Identifier: PostgreSQL
//! The plans of statements.

use recording::RecordedPlan;
use segment::{Application, Plan, Segment, StatementKey};
use serde::Serialize;

use crate::json_id::id;
use crate::table::PaneSection;
use crate::units::{count, duration, whole};

/// A plan of a statement, from the executions that were recorded: the slow ones, and the second one of each
/// session that repeats the statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanRow {
    /// The statement to which it belongs.
    #[serde(skip)]
    pub key: StatementKey,
    /// The query ID of the statement.
    #[serde(serialize_with = "id")]
    pub queryid: i64,
    /// The plan ID: a hash of its nodes with their relations and indexes.
    #[serde(serialize_with = "id")]
    pub planid: i64,
    /// Number of recorded executions.
    pub noted: u64,
    /// Their mean duration, seconds.
    pub mean_seconds: f64,
    /// The longest duration, seconds.
    pub max_seconds: f64,
    /// Rows that one of them returned or changed on average.
    pub rows_per_call: f64,
    /// The planner's cost of the first recorded execution.
    pub cost: f64,
    /// When it was first recorded, seconds since 1970.
    pub first_noted: f64,
    /// When it was last recorded, seconds since 1970.
    pub last_noted: f64,
    /// One line for each node.
    pub plan: String,
    /// Whether lines at its end are missing.
    pub cut: bool,
}

impl PlanRow {
    fn from_plan(plan: Plan, segment: &Segment, tick: u64, now: f64) -> PlanRow {
        let clock = segment.clock();
        let noted = |at: u64| now - clock.seconds(tick.saturating_sub(at));
        let each = plan.count.max(1) as f64;
        PlanRow {
            key: plan.statement,
            queryid: plan.statement.query_id(),
            planid: plan.shape as i64,
            noted: plan.count,
            mean_seconds: clock.seconds(plan.ticks) / each,
            max_seconds: clock.seconds(plan.max),
            rows_per_call: plan.rows as f64 / each,
            cost: plan.cost,
            first_noted: noted(plan.first),
            last_noted: noted(plan.last),
            plan: plan.text,
            cut: plan.cut,
        }
    }

    /// All plans in the segment, those of a statement together, the one used last first.
    pub fn all(segment: &Segment) -> Result<Vec<PlanRow>, segment::Error> {
        Ok(PlanRow::of_all(segment.plans()?, segment))
    }

    /// These plans of a segment, in the same order.
    pub fn of_all(plans: Vec<Plan>, segment: &Segment) -> Vec<PlanRow> {
        let tick = if segment.is_of_this_boot() {
            segment.clock().now()
        } else {
            plans.iter().map(|plan| plan.last).max().unwrap_or(0)
        };
        let now = segment::clock::realtime_ns() as f64 * 1e-9;
        ordered(plans.into_iter().map(|plan| PlanRow::from_plan(plan, segment, tick, now)))
    }

    /// The plans of a part of a recording, in the same order, with the executions recorded in that part or, if
    /// there are none, before it.
    pub fn recorded(plans: Vec<RecordedPlan>) -> Vec<PlanRow> {
        ordered(plans.into_iter().map(|RecordedPlan { text, sums }| {
            let (seconds, micros) = (|ns: u64| ns as f64 * 1e-9, |us: i64| us as f64 * 1e-6);
            let each = sums.noted.max(1) as f64;
            PlanRow {
                key: StatementKey {
                    id: text.queryid as u64,
                    database_id: text.database_id,
                    user_id: text.user_id,
                    toplevel: text.toplevel,
                    application: Application::from_name(&text.application),
                },
                queryid: text.queryid,
                planid: text.planid,
                noted: sums.noted,
                mean_seconds: seconds(sums.exec_ns) / each,
                max_seconds: seconds(sums.exec_max_ns),
                rows_per_call: sums.rows as f64 / each,
                cost: text.cost,
                first_noted: micros(text.first_us),
                last_noted: micros(sums.last_us),
                cut: text.cut || text.text.len() != written(&text.text).len(),
                plan: written(&text.text).to_string(),
            }
        }))
    }

    /// Its nodes without their estimates: "Seq Scan on t [filter] [table of 300 rows]".
    pub fn nodes(&self) -> Vec<String> {
        self.plan.lines().map(node).collect()
    }

    /// The first node that the other plan does not have, preferably one that names an index, otherwise one that
    /// names a table, otherwise any.
    pub fn unlike(&self, other: &PlanRow) -> String {
        let (own, others) = (self.nodes(), other.nodes());
        let differs =
            |node: &&String| !others.iter().any(|other| sizeless(other) == sizeless(node));
        let of = |words: &str| own.iter().filter(differs).find(|differ| differ.contains(words));
        let of_index = of(" using ").or_else(|| of("Bitmap Index Scan on "));
        let of_table = of_index.or_else(|| of(" on "));
        let node = of_table.or(own.iter().find(differs)).or(own.first());
        node.cloned().unwrap_or_default()
    }

    /// Whether it has the same nodes, even on another server, where relations have other OIDs.
    pub fn is_like(&self, other: &PlanRow) -> bool {
        self.planid == other.planid
            || self
                .nodes()
                .iter()
                .map(|node| sizeless(node))
                .eq(other.nodes().iter().map(|node| sizeless(node)))
    }

    /// Its figures and its nodes, for a document.
    pub fn details(&self, now: f64) -> (String, String) {
        let PaneSection { title, lines, .. } = self.section(now);
        let mut lines = lines.into_iter();
        let figures = lines.next().unwrap_or_default();
        (format!("{title}: {figures}"), lines.collect::<Vec<_>>().join("\n"))
    }

    /// Its section in a page: its figures, then its nodes.
    pub(super) fn section(&self, now: f64) -> PaneSection {
        let ago = |then: f64| duration((now - then).max(0.0));
        let times = if self.noted == 1 { "execution" } else { "executions" };
        let mut lines = vec![format!(
            "{} {times} noted: mean {}, max {}, {} rows each; first {} ago, last {} ago",
            whole(self.noted),
            duration(self.mean_seconds),
            duration(self.max_seconds),
            count(self.rows_per_call),
            ago(self.first_noted),
            ago(self.last_noted),
        )];
        lines.extend(self.plan.lines().map(str::to_string));
        if self.cut {
            lines.push("... truncated".to_string());
        }
        PaneSection { title: format!("Plan {}", self.planid), lines, table: None }
    }
}

/// The complete lines of a recorded text. Before texts were cut at line ends, a text that did not fit ended in
/// other memory of the server.
fn written(text: &str) -> &str {
    /// The space for a text, bytes.
    const FULL: usize = 3976;
    if text.len() < FULL {
        return text;
    }
    let odd = |c: char| c != '\n' && (c.is_control() || c == char::REPLACEMENT_CHARACTER);
    match text.find(odd) {
        Some(at) => &text[..text[..at].rfind('\n').map_or(0, |end| end + 1)],
        None => text,
    }
}

/// A node without its estimates.
fn node(line: &str) -> String {
    let line = line.trim();
    match (line.find("  (cost="), line.find(')')) {
        (Some(from), Some(to)) if to > from => format!("{}{}", &line[..from], &line[to + 1..]),
        _ => line.to_string(),
    }
}

/// A node without the size of its table.
fn sizeless(node: &str) -> &str {
    node.split(" [table of ").next().unwrap_or(node)
}

/// Those of a statement together, the one used last first.
fn ordered(rows: impl Iterator<Item = PlanRow>) -> Vec<PlanRow> {
    let mut rows: Vec<PlanRow> = rows.collect();
    rows.sort_by(|a, b| a.key.cmp(&b.key).then_with(|| b.last_noted.total_cmp(&a.last_noted)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_figures_and_the_nodes_of_a_plan() {
        let row = PlanRow {
            key: StatementKey::default(),
            queryid: 1,
            planid: -7,
            noted: 3,
            mean_seconds: 0.25,
            max_seconds: 0.5,
            rows_per_call: 12.0,
            cost: 100.0,
            first_noted: 940.0,
            last_noted: 999.0,
            plan: "Limit\n  Seq Scan on t [filter]\n".into(),
            cut: true,
        };
        let section = row.section(1000.0);
        assert_eq!(section.title, "Plan -7");
        assert_eq!(
            section.lines,
            [
                "3 executions noted: mean 250 ms, max 500 ms, 12 rows each; first 60 s ago, last 1 s ago",
                "Limit",
                "  Seq Scan on t [filter]",
                "... truncated",
            ]
        );
    }

    fn recorded(last_us: i64) -> RecordedPlan {
        let mut plan = RecordedPlan { text: Default::default(), sums: Default::default() };
        (plan.sums.noted, plan.sums.exec_ns, plan.sums.exec_max_ns, plan.sums.rows) =
            (4, 2_000_000_000, 900_000_000, 10);
        (plan.text.first_us, plan.sums.last_us) = (1_000_000, last_us);
        plan
    }

    #[test]
    fn a_recorded_plan_has_means_and_the_last_used_comes_first() {
        let rows = PlanRow::recorded(vec![recorded(2_000_000), recorded(3_000_000)]);
        let times: Vec<f64> = rows.iter().map(|row| row.last_noted).collect();
        assert_eq!((times, rows[0].first_noted), (vec![3.0, 2.0], 1.0));
        assert_eq!(
            (rows[0].mean_seconds, rows[0].max_seconds, rows[0].rows_per_call),
            (0.5, 0.9, 2.5)
        );
    }

    #[test]
    fn what_is_no_line_of_a_recorded_plan_is_not_shown() {
        let mut plan = recorded(0);
        let shown = |plan: &RecordedPlan| {
            let row = PlanRow::recorded(vec![plan.clone()]).remove(0);
            (row.plan, row.cut)
        };
        let lines = |count| "  Seq Scan on größe\n".repeat(count);
        plan.text.text = lines(200).into();
        assert_eq!(shown(&plan), (lines(200), false));
        for tail in ["\0\0", "  Seq\x7f", "\u{fffd}\u{fffd}U"] {
            plan.text.text = (lines(200) + tail).into();
            assert_eq!(shown(&plan), (lines(200), true));
            // Not enough to fill the space: a name in another encoding.
            plan.text.text = (lines(20) + tail).into();
            assert_eq!(shown(&plan), (lines(20) + tail, false));
        }
    }

    #[test]
    fn plans_are_compared_by_their_nodes_without_sizes_and_named_by_an_index_first() {
        let plan = |planid, text: &str| PlanRow {
            planid,
            plan: text.into(),
            ..PlanRow::recorded(vec![recorded(0)]).remove(0)
        };
        let node =
            |text: &str| format!("{text}  (cost=0.00..1.00 rows=1 width=4) [table of 300 rows]");
        let scan = plan(1, &format!("Sort\n  {}\n", node("Seq Scan on t")));
        let larger = plan(2, &scan.plan.replace("300", "900").replace("1.00", "9.00"));
        let index = plan(
            3,
            &format!(
                "Limit\n  {}\n    {}\n",
                node("Seq Scan on u"),
                node("Index Scan using i on t")
            ),
        );
        assert!(scan.is_like(&larger) && !scan.is_like(&index));
        assert_eq!(scan.nodes(), ["Sort", "Seq Scan on t [table of 300 rows]"]);
        assert_eq!(index.unlike(&scan), "Index Scan using i on t [table of 300 rows]");
        assert_eq!(scan.unlike(&index), "Seq Scan on t [table of 300 rows]");
        assert_eq!(plan(4, "Sort\nLimit\n").unlike(&scan), "Limit");
    }
}
