// SPDX-License-Identifier: PostgreSQL
//! The live page: a report on the last few minutes.

use jiff::tz::TimeZone;
use maud::{html, DOCTYPE};
use segment::Interval;

use super::history::{HistoryExtract, LiveHistory};
use error::Error;
use live::slow_executions::RecentSlowExecutions;
use report::assemble;
use report::marks;
use report::material::{Material, RelationTimes};
use view::blocking::Forest;
use view::document::{Document, Fact, Live, MeasuredTime};
use view::html::Visible;
use view::page;
use view::statements::{PlanRow, SlowExecutionFigures};
use view::units::duration;
use view::vacuum::Vacuum;

/// Path from which the page loads newer figures.
pub const FIGURES: &str = "report.json";
/// The query with which it also gets the tables over time, while a part of the time is selected.
pub const PARTS: &str = "parts";

/// Time settings of the page.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Length of an interval, seconds.
    pub interval: f64,
    /// Length of a column of the heat map, seconds.
    pub detail: f64,
}

/// What is known only about the current moment.
#[derive(Debug, Default)]
pub struct LiveConditions<'s> {
    /// Who blocks whom.
    pub blocking: Option<Forest>,
    /// How far vacuum is behind.
    pub vacuum: Option<Vacuum>,
    /// The plans of the statements.
    pub plans: Vec<PlanRow>,
    /// The slowest executions, with parameters; `None`: without `--parameters`.
    pub slow_executions: Option<&'s RecentSlowExecutions>,
}

/// Number of sessions that blocked others to show.
const BLOCKERS: usize = 100;

/// The report on the history; `None` if the history is empty.
pub fn document(
    history: &LiveHistory,
    latest: Option<&std::sync::Arc<segment::StatementsReading>>,
    now: LiveConditions<'_>,
    pace: Pace,
) -> Result<Option<Document>, Error> {
    let Some(kept) = history.all() else { return Ok(None) };
    let from = kept.from;
    // The page itself shows changed settings.
    let vacuum = now.vacuum.map(|mut answer| {
        answer.conditions.retain(|condition| condition.kind.is_recorded());
        answer
    });
    let mut material =
        Material { blocking: now.blocking, vacuum, ..material(kept, history, latest, pace) };
    if let Some(statements) = &mut material.statements {
        statements.plans = now.plans;
        let slow = now.slow_executions.map(|slow| slow.since(from));
        statements.slow_executions = SlowExecutionFigures::recorded(slow.unwrap_or_default());
    }
    let mut document = assemble::document(material, &TimeZone::system())?;
    document.live = Some(Live { url: FIGURES.to_string(), seconds: None });
    Ok(Some(document))
}

fn material(
    kept: HistoryExtract,
    history: &LiveHistory,
    latest: Option<&std::sync::Arc<segment::StatementsReading>>,
    pace: Pace,
) -> Material {
    let whole = Interval::with_others(&kept.sum);
    let statements = history.statements(latest);
    let rankings = history.rankings(&kept.points, statements.as_ref());
    let histories = statements.as_ref().and_then(|all| history.statement_histories(all));
    let statement_parts = history.statement_parts();
    let mut facts = vec![
        Fact { name: "Machine", text: format!("{} CPUs", whole.cores) },
        Fact { name: "Level", text: whole.level.to_string() },
        Fact {
            name: "Live",
            text: format!(
                "the last few minutes, updated every {}; nothing is stored on disk \
                 (`tally record` does that)",
                duration(pace.interval)
            ),
        },
    ];
    if let Some(why) = history.silence() {
        facts.push(Fact { name: "Now", text: format!("no data: {why}") });
    }
    let measured = kept.points.iter().filter(|point| point.seconds > 0.0).count();
    let blockers = history.blockers();
    Material {
        blocking: None,
        blocker: blockers.main().cloned(),
        vacuum: None,
        measured: MeasuredTime {
            recording: whole.server.segment.clone(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            from: kept.from,
            to: kept.to,
            interval_seconds: pace.interval,
            detail_seconds: Some(pace.detail),
            intervals: measured as u64,
            facts,
            ..MeasuredTime::default()
        },
        statements,
        sessions: None,
        rankings,
        histories,
        statement_parts,
        points: kept.points,
        moments: kept.moments,
        latency: kept.latency,
        events: history.events.iter().cloned().collect(),
        marks: marks::blocking(&blockers.most(BLOCKERS))
            .into_iter()
            .chain(history.marks.iter().cloned())
            .collect(),
        gaps: kept.gaps,
        settings: Vec::new(),
        setting_changes: history.setting_changes.iter().cloned().collect(),
        runs: Vec::new(),
        relations: RelationTimes::default(),
        client: None,
        cost: None,
        log: Vec::new(),
        devices: Vec::new(),
        problems: Vec::new(),
        whole,
    }
}

/// A page that may connect only to the server from which it was loaded, and its Content-Security-Policy.
#[derive(Debug, Clone)]
pub struct LivePage {
    /// HTML.
    pub html: String,
    /// The policy for the header. It also forbids frames, which a policy within a page cannot do.
    pub policy: String,
}

const NOTHING: &str = "default-src 'none'";
const ONLY_HERE: &str = "default-src 'none'; connect-src 'self'";

impl LivePage {
    /// The page of a report.
    pub fn render(document: &Document) -> Result<LivePage, Error> {
        let html = page::page(document)?.replacen(NOTHING, ONLY_HERE, 1);
        let policy = LivePage::policy_of(&html);
        Ok(LivePage { html, policy })
    }

    /// Extracts the policy within a page, for the header; if there is none, nothing is allowed.
    pub fn policy_of(html: &str) -> String {
        let within = html.split_once(NOTHING).and_then(|(_, rest)| rest.split_once('"'));
        let rest = within.map_or("", |(rest, _)| rest);
        format!("{NOTHING}{rest}; frame-ancestors 'none'")
    }

    /// A page that says why there is nothing to show yet, and that reloads.
    pub fn waiting(why: &str) -> LivePage {
        let html = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="refresh" content="2";
                    title { "pgtally" }
                }
                body { p { "Nothing to show yet: " (Visible(why)) ". This page reloads every two seconds." } }
            }
        };
        LivePage { html: html.into_string(), policy: format!("{NOTHING}; frame-ancestors 'none'") }
    }
}
