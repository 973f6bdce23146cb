// SPDX-License-Identifier: PostgreSQL
//! `tally status`: shows what is measured, what is not, and whether any data is missing.

mod model;
mod render;

use std::time::Duration;

use clap::Args;
use command::ConnectionFlags;
use segment::kernel::KernelView;
use segment::{Event, EventKind, Interval, Parts, Producer, Segment};

use error::Error;
use live::coverage::Coverage;
use live::follower::{Figures, FollowOptions, Follower};
use live::target::{self, SegmentSource};
use view::events::When;
use view::statements::TableRow;

use model::{EventRow, File, Mode, ProcessRow, Processes, RelationTable, Slots, Status};

/// Arguments of `tally status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tally status
  tally status /var/lib/postgresql/15/main
  tally status --json | jq .witness.unexplained_share")]
pub struct StatusArgs {
    /// Segment, data directory or connection string
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// Length of the interval that is compared with the kernel's figures.
const WITNESS: Duration = Duration::from_secs(1);
/// Number of events to show.
const EVENTS: u64 = 10;

/// Prints the status.
pub fn run(args: &StatusArgs, color: bool) -> Result<(), Error> {
    let place = target::source(args.target.as_deref())?;
    let mut segment = place.open()?;
    segment.want(Parts::STATEMENTS.and(Parts::RELATIONS))?;
    // The processes of a server; a client has threads.
    let coverage = match segment.producer() {
        Producer::Server => Coverage::read(&segment)?,
        Producer::JavaAgent | Producer::Libpq | Producer::Sampler => None,
    };
    let status = Status::read(&place, &mut segment, coverage.as_ref())?;
    if args.json {
        return view::output::json(&status);
    }
    render::text(&status, coverage.as_ref(), color, &mut view::escape::coloured_stdout(color))
}

impl Status {
    fn read(
        place: &SegmentSource,
        segment: &mut Segment,
        coverage: Option<&Coverage>,
    ) -> Result<Self, Error> {
        let running = segment.server_runs();
        let interval = look(place, segment, running)?;
        let statements = segment.statements()?;
        let statements_paused = statements.as_ref().is_some_and(segment::StatementsReading::paused);
        let statements = statements.map(|reading| TableRow::from_reading(&reading));
        let header = segment.header();
        let memory = segment.memory();
        let now_ns = segment.realtime_ns();
        let age_ns = now_ns.saturating_sub(header.created_realtime_ns);
        Ok(Self {
            running,
            mode: coverage
                .map(|coverage| if coverage.shared { Mode::Shared } else { Mode::Session }),
            level: interval.level,
            level_left_seconds: interval.level_left_seconds,
            level_then: interval.level_then,
            segment: File {
                format: segment::layout::FORMAT_VERSION,
                resident_bytes: memory.map(|memory| memory.held),
                limit_bytes: memory.map(|memory| memory.limit),
                file_bytes: header.size,
                age_seconds: age_ns as f64 / 1e9,
            },
            slots: Slots { used: segment.population()?, capacity: header.slots },
            statements,
            relations: segment
                .relations()?
                .map(|relations| RelationTable::from_relations(&relations)),
            files_given_up: segment.files_given_up()?,
            statements_paused,
            processes: coverage.map(|coverage| Processes {
                covered: coverage.covered.len(),
                not_covered: coverage.uncovered.iter().map(ProcessRow::from).collect(),
            }),
            overflow: segment.overflows()?,
            exact: interval.exact
                && !coverage
                    .is_some_and(|coverage| coverage.shared && !coverage.uncovered.is_empty()),
            probes: segment.probes()?,
            events: events(segment)?,
            busy_seconds: interval.busy_seconds,
            server: interval.server,
            clock: interval.clock,
            witness: interval.kernel,
        })
    }
}

/// Measures one interval and compares it with the kernel's figures. If the server has stopped, the interval is
/// the whole life of the segment.
fn look(
    place: &SegmentSource,
    segment: &mut Segment,
    running: Option<bool>,
) -> Result<Interval, Error> {
    if running == Some(false) {
        let snapshot = segment.snapshot(None)?;
        let mut whole = Interval::between(segment, None, &snapshot);
        whole.kernel = KernelView::unavailable(match segment.producer() {
            Producer::Server => "the server has stopped",
            Producer::JavaAgent | Producer::Libpq | Producer::Sampler => "the process has ended",
        });
        return Ok(whole);
    }
    let wanted =
        FollowOptions { figures: Figures::Intervals, kernel: true, ..FollowOptions::default() };
    let mut follower = Follower::open(place.clone(), wanted)?;
    std::thread::sleep(WITNESS);
    Ok(follower.interval()?.interval)
}

fn events(segment: &Segment) -> Result<Vec<EventRow>, Error> {
    let now = segment.realtime_ns() as f64 / 1e9;
    let when = When::from_segment(segment);
    let last = segment.events(segment.event_count()?.saturating_sub(EVENTS))?;
    let row = |event: Event| {
        let time = when.as_ref().map(|when| when.seconds(event.tick));
        EventRow {
            time,
            seconds_ago: time.map(|time| (now - time).max(0.0)),
            pid: event.pid,
            warning: event.kind == EventKind::Warning,
            kind: event.kind.to_string(),
            text: event.text,
        }
    };
    Ok(last.into_iter().map(row).collect())
}
