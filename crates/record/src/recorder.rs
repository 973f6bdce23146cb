// SPDX-License-Identifier: PostgreSQL
//! Writes each interval into a recording, with marks, gaps, settings and events.

use files::Access;
use std::path::Path;
use std::time::Duration;

use live::target::SegmentSource;
use recording::{
    About, Batch, ClientWaitsSum, EventRow, FrameRow, GapRow, KernelRow, MarkRow, RetentionPolicy,
    RowBuilder, RunRow, ServerRow, SettingRow, Writer,
};
use segment::{Header, Level, StatementsReading};

use super::clocks::{Clocks, Happening};
use super::duty::Duty;
use super::plans::{PlanRows, PlanSpan};
use super::server_log::RecordedLog;
use super::sessions::{self, SessionRows};
use super::shipping::Destination;
use super::summary::RecordSummary;
use super::vacuum;
use super::RecordArgs;
use error::Error;
use live::device_rows::DeviceRows;
use live::follower::{Absent, Details, Figures, FollowOptions, Follower, FrameReading, Step};
use live::machine::{self, Processors};
use live::relation_names::RelationNameLookup;
use live::settings::{self, SettingsWatch};
use live::slow_executions::SlowExecutionFollower;
use view::events::Row;
use view::io::RelationNames;
use view::statements::SessionCalls;

/// A recording has at least this many details at any time, if it has as many intervals.
const DETAILS: u64 = 16;

/// Records one server.
#[derive(Debug)]
pub struct Recorder<'a> {
    args: &'a RecordArgs,
    place: SegmentSource,
    destination: Destination,
    follower: Follower,
    writer: Option<Writer>,
    row_builder: RowBuilder,
    /// Number of the server's run that is being read.
    server: u32,
    clocks: Clocks,
    processors: Option<Processors>,
    level: Option<Level>,
    /// Whether the last run was sampled.
    sampled: Option<bool>,
    /// Boot ID of the server's machine.
    boot: String,
    /// End of the last interval.
    end: Option<Edge>,
    /// Why there is currently nothing to read.
    absent: Option<String>,
    /// Why there is time between the last interval and the next.
    gap: Option<String>,
    devices: DeviceRows,
    sessions: SessionRows,
    relation_names: Option<RelationNameLookup>,
    client_waits: ClientWaitsSum,
    plans: PlanRows,
    settings: Option<SettingsWatch>,
    /// With `--parameters`.
    slow_executions: Option<SlowExecutionFollower>,
    settings_asked: u64,
    log: Option<RecordedLog>,
    duty: Option<Duty>,
    /// When the recording began, by CLOCK_MONOTONIC.
    begun: Option<u64>,
    /// Rows to write with the next interval.
    pending: Batch,
    /// Messages for the user.
    pub messages: Vec<String>,
    /// What was recorded.
    pub summary: RecordSummary,
}

/// Length of details, in ns, after a recorded time: a sixteenth of that time, so that short recordings can also be
/// compared. Lengths divide `longest`, and are whole intervals if possible.
fn detail_length(elapsed_ns: u64, interval: Duration, longest: Duration) -> u64 {
    let ns = |length: Duration| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX).max(1);
    let (interval, longest) = (ns(interval), ns(longest));
    let fits = |part: &u64| {
        let length = longest / part;
        longest.is_multiple_of(*part) && length.is_multiple_of(interval)
    };
    let wanted = elapsed_ns / DETAILS;
    if wanted >= longest {
        return longest;
    }
    // The longest comes first.
    let lengths = || (1..=longest / interval).filter(fits).map(|part| longest / part);
    lengths().find(|length| *length <= wanted).or_else(|| lengths().next_back()).unwrap_or(longest)
}

/// The beginning or end of an interval, by the clocks of the server's machine.
#[derive(Debug, Clone)]
struct Edge {
    /// CLOCK_MONOTONIC, which restarts at each boot.
    monotonic_ns: u64,
    /// Microseconds since 1970.
    time_us: i64,
    boot: String,
}

impl Edge {
    fn end_of(row: &FrameRow, boot: &str) -> Edge {
        let (monotonic_ns, time_us) = (row.monotonic_ns, row.time_us);
        Edge { monotonic_ns, time_us, boot: boot.to_string() }
    }

    fn begin_of(row: &FrameRow, boot: &str) -> Edge {
        let length_us = i64::try_from(row.interval_ns / 1000).unwrap_or(i64::MAX);
        Edge {
            monotonic_ns: row.monotonic_ns.saturating_sub(row.interval_ns),
            time_us: row.time_us.saturating_sub(length_us),
            boot: boot.to_string(),
        }
    }

    /// How much later this is than `earlier`; 0 if it is not later.
    fn ns_since(&self, earlier: &Edge) -> u64 {
        if self.boot == earlier.boot && !self.boot.is_empty() {
            return self.monotonic_ns.saturating_sub(earlier.monotonic_ns);
        }
        let us = self.time_us.saturating_sub(earlier.time_us);
        u64::try_from(us).unwrap_or(0).saturating_mul(1000)
    }
}

fn mark(kind: &str, text: String) -> MarkRow {
    MarkRow { kind: kind.into(), text: text.into(), ..MarkRow::default() }
}

/// The mark where the figures from here on are of another kind than those before.
fn seam(before: Option<bool>, sampled: bool) -> Option<MarkRow> {
    let text = match (before, sampled) {
        (Some(true), false) => "exact from here, with pg_tally",
        (Some(false), true) => "sampled from here, without pg_tally",
        _ => return None,
    };
    Some(mark("seam", text.to_string()))
}

/// Whether this run of the server was sampled; `None`: not known.
fn was_sampled(directory: &Path, server: u32) -> Option<bool> {
    let servers = recording::Recording::open(directory, None).ok()?.servers().ok()?;
    let run = servers.iter().rev().find(|run| run.server == server)?;
    Some(segment::Producer::from_text(&run.producer) == segment::Producer::Sampler)
}

fn note(name: &str, value: &str) -> SettingRow {
    SettingRow {
        group: "recorder".into(),
        name: name.into(),
        value: value.into(),
        source: "tally".into(),
        ..SettingRow::default()
    }
}

impl<'a> Recorder<'a> {
    /// A recorder of the segment at this place, which need not exist yet.
    pub fn new(
        args: &'a RecordArgs,
        place: SegmentSource,
        destination: Destination,
    ) -> Recorder<'a> {
        let wanted = FollowOptions {
            figures: Figures::Frames,
            kernel: true,
            statements: true,
            plans: true,
            vacuum: true,
            storage: true,
            sessions: !args.no_sessions,
            ..FollowOptions::default()
        };
        Recorder {
            args,
            follower: Follower::new(place.clone(), wanted),
            place,
            writer: None,
            row_builder: RowBuilder::new(),
            server: 0,
            clocks: Clocks::now(),
            processors: Processors::now(),
            level: None,
            sampled: None,
            boot: String::new(),
            end: None,
            absent: None,
            gap: None,
            devices: DeviceRows::default(),
            sessions: SessionRows::default(),
            relation_names: None,
            client_waits: ClientWaitsSum::default(),
            plans: PlanRows::default(),
            slow_executions: args.parameters.then(SlowExecutionFollower::default),
            settings: None,
            settings_asked: 0,
            log: None,
            duty: args.duty.map(Duty::new),
            begun: None,
            pending: Batch::default(),
            messages: Vec::new(),
            summary: RecordSummary::new(&destination.directory),
            destination,
        }
    }

    /// Whether the recording has begun, which means that a server was found.
    pub fn has_begun(&self) -> bool {
        self.writer.is_some()
    }

    /// Bytes written.
    pub fn size(&self) -> u64 {
        self.writer.as_ref().map_or(0, Writer::size)
    }

    /// Why there is currently nothing to record.
    pub fn waiting(&self) -> Option<&str> {
        self.absent.as_deref()
    }

    /// The current state of the recorder, as text.
    pub fn state(&self) -> String {
        let problem = self.destination.shipping.as_ref().and_then(|shipping| shipping.problem());
        match (self.waiting(), problem) {
            (Some(why), _) => why.to_string(),
            (None, Some(problem)) => format!("recording, not shipping ({problem})"),
            (None, None) => "recording".to_string(),
        }
    }

    /// Reads the slow executions since the last call, so that the sessions do not overwrite them.
    pub fn follow_slow_executions(&mut self) {
        let (Some(slow), Some(segment)) = (&mut self.slow_executions, self.follower.segment())
        else {
            return;
        };
        if let Err(error) = slow.follow(segment) {
            // Until the next run of the server.
            slow.detach();
            self.messages.push(error.to_string());
        }
    }

    /// Adds the slow executions since the last call to the next rows.
    fn add_slow_executions(&mut self) {
        self.follow_slow_executions();
        let Some(slow) = &mut self.slow_executions else { return };
        let (rows, missed) = slow.take();
        self.pending.slow_executions.extend(rows);
        if missed > 0 {
            let text =
                format!("at least {missed} slow executions are not recorded: too many at a time");
            self.pending.marks.push(mark("parameters", text));
        }
    }

    /// Adds output of the command to the next interval.
    pub fn ran(&mut self, rows: Vec<RunRow>) {
        self.pending.runs.extend(rows);
    }

    /// Reads the server and records what has happened since the last call. `last` also records details.
    pub fn look(&mut self, last: bool) -> Result<(), Error> {
        let now = Clocks::now();
        for happening in now.since(&self.clocks, self.args.interval) {
            self.happened(&happening, now);
        }
        let elapsed = now.monotonic.saturating_sub(self.begun.unwrap_or(now.monotonic));
        // Details end at multiples of their length, as intervals do.
        let length = detail_length(elapsed, self.args.interval, self.args.detail);
        let detail = last || now.realtime / length != self.clocks.realtime / length;
        self.clocks = now;
        if let Some(log) = &mut self.log {
            self.messages.extend(log.add(&mut self.pending, now.micros(), last));
        }
        for step in self.follower.step(detail) {
            match step {
                Step::Attached { fresh } => self.attached(fresh)?,
                Step::Events(rows) => {
                    self.pending.events.extend(rows.iter().map(|row| event(row, self.server)));
                }
                Step::Frame(taken) => self.take(*taken)?,
                Step::Ended(why) => self.ended(&why),
                Step::Absent(why) => self.nothing(&why),
                Step::Interval(_) => {}
            }
        }
        self.turn_level();
        self.hear_of_shipping();
        if self.absent.is_some() && !self.pending.is_empty() {
            // There is no interval to write the pending rows with.
            self.push(Batch::default())?;
        }
        Ok(())
    }

    fn hear_of_shipping(&mut self) {
        let Some(shipping) = &mut self.destination.shipping else { return };
        let (mut messages, marks, gaps) = shipping.news();
        self.messages.append(&mut messages);
        self.pending.marks.extend(marks);
        self.pending.gaps.extend(gaps);
    }

    fn happened(&mut self, happening: &Happening, now: Clocks) {
        let (kind, text) = match happening {
            Happening::Set { by, back } => {
                let to = if *back { "back" } else { "forward" };
                ("clock step", format!("the time of day was set {to} by {:.3} s", by.as_secs_f64()))
            }
            Happening::Slept(length) => {
                let text = format!("the machine slept for {:.3} s", length.as_secs_f64());
                let length_us = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
                self.pending.gaps.push(GapRow {
                    time_us: now.micros(),
                    from_us: now.micros().saturating_sub(length_us),
                    length_ns: length.as_nanos() as u64,
                    reason: "the machine slept".into(),
                    ..GapRow::default()
                });
                ("suspend", text)
            }
            Happening::Late(by) => (
                "late",
                format!(
                    "tally was not scheduled for {:.3} s; one interval covers that time",
                    by.as_secs_f64()
                ),
            ),
        };
        self.pending.marks.push(mark(kind, text));
    }

    /// A run of the server was found.
    fn attached(&mut self, fresh: bool) -> Result<(), Error> {
        let Some(segment) = self.follower.segment() else { return Ok(()) };
        if let SegmentSource::File(path) = &mut self.place {
            // The data directory may have been made anew.
            path.clone_from(segment.segment_path());
        }
        let header = &segment.header().clone();
        let plans = segment.plans()?;
        let sampled = segment.producer() == segment::Producer::Sampler;
        let of_client = !sampled && segment.producer() != segment::Producer::Server;
        if let Some(slow) = self.slow_executions.as_mut() {
            match slow.attach(segment) {
                Err(error) if self.writer.is_none() => return Err(error),
                Err(error) => self.messages.push(error.to_string()),
                Ok(()) => {}
            }
        }
        if self.writer.is_none() {
            self.begin(header, sampled)?;
        }
        self.server += 1;
        let name = if header.server.is_empty() { &header.producer } else { &header.server };
        let made_us = i64::try_from(header.created_realtime_ns / 1000).unwrap_or(0);
        self.pending.servers.push(ServerRow {
            server: self.server,
            name: name.as_str().into(),
            data_directory: header.host.as_str().into(),
            segment: self.place.to_string().into(),
            pid: header.server_pid,
            port: header.server_port,
            producer: header.producer.as_str().into(),
            created_us: made_us,
            clock: header.clock_kind.name().into(),
            boot: header.boot_id.as_str().into(),
            ..ServerRow::default()
        });
        if self.end.is_some() {
            self.pending.marks.push(mark("server start", format!("{name}, {}", header.host)));
            self.pending.marks.extend(seam(self.sampled, sampled));
            self.messages.extend(self.absent.as_ref().map(|_| "recording again".to_string()));
        }
        self.sampled = Some(sampled);
        self.absent = None;
        self.boot.clone_from(&header.boot_id);
        self.processors = Processors::now();
        self.row_builder.reset();
        let directory = std::path::PathBuf::from(&header.host);
        let here = matches!(self.place, SegmentSource::File(_));
        if directory.is_absolute() || !here {
            let directory = here.then_some(directory);
            self.settings = SettingsWatch::start(self.args.server(), &self.place, directory);
        }
        if let (None, Some(option), false) = (&self.log, &self.args.log, of_client) {
            let recorded = self.writer.as_ref().and_then(Writer::resumed);
            let before = recorded.map(|_| &*self.destination.directory);
            self.log = Some(RecordedLog::new(option, Path::new(&header.host), before)?);
        }
        if let Some(duty) = &mut self.duty {
            duty.attach(self.place.file("--duty")?)?;
        }
        (self.settings_asked, self.devices) = (0, DeviceRows::default());
        self.sessions = SessionRows::default();
        let segment = self.follower.segment();
        self.relation_names = segment.map(|of| RelationNameLookup::start(of).without_waiting());
        self.plans = PlanRows::default();
        if !fresh {
            self.plans.begin(plans);
        }
        Ok(())
    }

    /// Users who may read the server's segment may also read the recording. A spool is private.
    fn access(&self) -> Access {
        match &self.place {
            SegmentSource::File(path) if self.destination.shipping.is_none() => {
                Access::like(path.path())
            }
            _ => Access::Owner,
        }
    }

    fn begin(&mut self, header: &Header, sampled: bool) -> Result<(), Error> {
        let about = About {
            format: recording::FORMAT,
            made_by: concat!("pgtally ", env!("CARGO_PKG_VERSION")).to_string(),
            host: machine::host(),
            server: if header.server.is_empty() { &header.producer } else { &header.server }
                .clone(),
            data_directory: header.host.clone(),
            interval_ns: self.args.interval.as_nanos() as u64,
            detail_ns: self.args.detail.as_nanos() as u64,
            begun_us: self.clocks.micros(),
        };
        let mut policy =
            RetentionPolicy { retention: self.args.retention, ..RetentionPolicy::default() };
        if self.destination.shipping.is_some() {
            // The shipper removes files that were sent.
            policy.retention = None;
        }
        let open = Writer::open_for(&self.destination.directory, self.access(), about, policy);
        let mut writer = open.map_err(|error| self.destination.explain(error))?;
        if let Some(shipping) = &mut self.destination.shipping {
            let (frame, server) = shipping.first_numbers();
            writer.number_from(frame);
            self.server = server;
            shipping.begin(writer.files())?;
        }
        if let Some(last) = writer.resumed() {
            self.server = last.server;
            self.sampled = was_sampled(&self.destination.directory, last.server);
            let now = self.clocks.micros();
            self.pending.gaps.push(GapRow {
                time_us: now,
                from_us: last.time_us.min(now),
                reason: "no recorder was running".into(),
                ..GapRow::default()
            });
        }
        self.writer = Some(writer);
        self.begun = Some(self.clocks.monotonic);
        self.pending.marks.push(mark("begin", format!("tally record, {}", header.host)));
        self.pending.marks.extend(seam(self.sampled, sampled));
        self.pending.settings.extend(machine::settings());
        let every = |length: Duration| format!("{} s", length.as_secs_f64());
        for (name, value) in [
            ("version", env!("CARGO_PKG_VERSION").to_string()),
            ("interval", every(self.args.interval)),
            ("detail", every(self.args.detail)),
        ] {
            self.pending.settings.push(note(name, &value));
        }
        if let Some(duty) = self.args.duty {
            let text = format!("{} of {}", every(duty.on), every(duty.every));
            self.pending.settings.push(note("duty", &text));
        }
        if self.slow_executions.is_some() {
            self.pending.settings.push(note("parameters", "recorded"));
        }
        let clock = format!("{}, {} ticks per second", header.clock_kind.name(), self.rate());
        self.pending.settings.push(note("clock of the segment", &clock));
        if let Some(seconds) = ::clock::pgtally_clock_cost() {
            let reading = note("clock reading", &format!("{:.1}", seconds * 1e9));
            self.pending.settings.push(SettingRow { unit: "ns".into(), ..reading });
        }
        Ok(())
    }

    /// Now, by the clocks of this machine.
    fn now(&self) -> Edge {
        let here = matches!(self.place, SegmentSource::File(_));
        let now = Clocks::now();
        let boot = if here { self.boot.clone() } else { String::new() };
        Edge { monotonic_ns: now.monotonic, time_us: now.micros(), boot }
    }

    fn rate(&self) -> String {
        let rate = self.follower.segment().map(|segment| segment.clock().ticks_per_second());
        rate.map_or("unknown".to_string(), |rate| format!("{rate:.0}"))
    }

    /// The run of the server has ended.
    fn ended(&mut self, why: &str) {
        self.add_slow_executions();
        self.slow_executions.iter_mut().for_each(SlowExecutionFollower::detach);
        self.pending.marks.push(mark("server end", why.to_string()));
        self.messages.push(why.to_string());
        (self.absent, self.gap) = (Some(why.to_string()), Some(why.to_string()));
        self.level = None;
        self.settings = None;
    }

    fn nothing(&mut self, absent: &Absent) {
        let why = absent.to_string();
        // That a server is gone after its end is not news, but an error is.
        let news = self
            .absent
            .as_ref()
            .is_none_or(|known| *known != why && matches!(absent, Absent::Unreadable(_)));
        if news {
            self.messages.push(why.clone());
        }
        (self.absent, self.gap) = (Some(why.clone()), Some(why));
    }

    /// If there is an earlier interval and a reason for a gap, records the gap from that interval's end until `begin`.
    fn end_gap(&mut self, begin: &Edge) {
        let Some((reason, end)) = self.gap.take().zip(self.end.as_ref()) else { return };
        let length_ns = begin.ns_since(end);
        if length_ns == 0 {
            return;
        }
        self.pending.gaps.push(GapRow {
            time_us: begin.time_us,
            from_us: end.time_us.min(begin.time_us),
            length_ns,
            reason: reason.into(),
            ..GapRow::default()
        });
        self.summary.gaps += 1;
    }

    /// Records an interval.
    fn take(&mut self, taken: FrameReading) -> Result<(), Error> {
        let Some(number) = self.writer.as_ref().map(Writer::next_frame) else { return Ok(()) };
        let frame = &taken.frame;
        let time_us = recording::time_us(frame.realtime_ns);
        let mut batch = self.row_builder.frame(frame, number, self.server);
        if taken.reset {
            let text = "the totals were reset; counts since the previous interval are lost";
            self.pending.marks.push(mark("reset", text.to_string()));
            self.gap.get_or_insert_with(|| "reset".to_string());
        }
        if let Some(row) = batch.frames.first() {
            self.end_gap(&Edge::begin_of(row, &self.boot));
            self.end = Some(Edge::end_of(row, &self.boot));
        }
        if self.level.is_some_and(|level| level != frame.level) {
            self.pending.marks.push(mark("level", frame.level.to_string()));
        }
        self.level = Some(frame.level);
        let processors = Processors::now();
        for row in &mut batch.frames {
            row.partial = self.duty.is_some();
            row.detail = taken.details.is_some();
            if let (Some(before), Some(now)) = (&self.processors, &processors) {
                now.fill(before, row);
            }
            self.summary.interval(row);
        }
        self.processors = processors;
        self.client_waits.add(frame);
        if let Some(samples) = &taken.sessions {
            self.sessions.add(samples, frame, self.follower.segment(), &mut batch);
        }
        if let Some(mut details) = taken.details {
            self.add_slow_executions();
            if let (Some(plans), Some(segment)) = (details.plans.take(), self.follower.segment()) {
                let clock = segment.clock();
                let (tick, interval_ns) = (clock.now(), details.length_ns);
                let span = PlanSpan { frame: number, time_us, tick, interval_ns };
                self.plans.add(plans, clock, span, &mut batch);
            }
            let statements = details.statements.as_ref().map(|(_, now)| now.clone());
            if let (Some((before, now)), Some(row)) =
                (&details.statements, batch.frames.first_mut())
            {
                row.statements_kept = now.entries().into();
                row.statements_capacity = now.capacity().into();
                row.statements_evicted =
                    before.as_ref().map_or(0, |before| now.evicted_since(before));
            }
            let calls = details.statements.as_ref();
            let calls = calls.map(|(before, now)| SessionCalls::between(before.as_deref(), now));
            let called = |slot: u32| SessionCalls::most_of(calls.as_deref()?, slot);
            (batch.client_waits, batch.ended_sessions) =
                self.client_waits.rows(details.length_ns, called);
            if let Some(now) = &statements {
                sessions::add_running(now, &mut batch);
            }
            batch.histograms = self.row_builder.histograms(number);
            let names = match (&details.relations, &mut self.relation_names) {
                (Some(rows), Some(names)) => names.next(rows),
                _ => RelationNames::default(),
            };
            add_details(details, &names, frame, number, &mut batch);
            if let Some(now) = statements {
                self.sessions.add_texts(&now, &mut batch);
            }
        }
        if let Some(answer) = &taken.vacuum {
            vacuum::add(answer, &mut batch);
        }
        if let Some(answer) = taken.devices {
            self.devices.add(answer, &mut batch);
        }
        self.ask_settings(&mut batch);
        self.push(batch)
    }

    fn ask_settings(&mut self, batch: &mut Batch) {
        let Some(watch) = &mut self.settings else { return };
        let now = self.clocks.monotonic;
        let first = self.settings_asked == 0;
        if first || now - self.settings_asked >= settings::EVERY.as_nanos() as u64 {
            watch.ask(first);
            self.settings_asked = now;
        }
        for answer in watch.news() {
            if let Some(log) = &mut self.log {
                log.learn(&answer.rows);
            }
            batch.settings.extend(answer.rows);
            if let Some(text) = answer.note {
                batch.settings.push(note("settings of the server", &text));
                if self.summary.note(&text) {
                    self.messages.push(text);
                }
            }
        }
    }

    fn turn_level(&mut self) {
        let Some(duty) = &mut self.duty else { return };
        if self.absent.is_some() {
            return;
        }
        if let Some(level) = duty.turn(Duration::from_nanos(self.clocks.realtime)) {
            self.pending.marks.push(mark("duty", format!("level {level}")));
        }
    }

    /// Writes a batch with the pending rows.
    fn push(&mut self, mut batch: Batch) -> Result<(), Error> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        batch.append(std::mem::take(&mut self.pending));
        let (number, time_us) = batch
            .frames
            .last()
            .map_or((writer.next_frame(), self.clocks.micros()), |row| (row.frame, row.time_us));
        batch.stamp(number, time_us);
        batch.reduce_texts(self.args.texts.into());
        writer.push(batch)?;
        Ok(())
    }

    /// Ends the recording cleanly. Returns what was recorded, and messages for the user.
    pub fn close(mut self) -> Result<(RecordSummary, Vec<String>), Error> {
        // Restore the former level.
        self.duty = None;
        if self.absent.is_some() {
            self.end_gap(&self.now());
        }
        self.pending.marks.push(mark("end", "tally record ends".to_string()));
        self.push(Batch::default())?;
        let mut messages = Vec::new();
        if let Some(writer) = self.writer.take() {
            match self.destination.shipping.take() {
                // The minutes are shipped; a recorder that continues the recording merges them with its own.
                Some(shipping) => {
                    self.summary.bytes = writer.pause()?;
                    let (target, last) = shipping.finish();
                    self.summary.shipped = Some(target);
                    messages.extend(last);
                }
                None => self.summary.bytes = writer.close()?,
            }
        }
        Ok((self.summary, messages))
    }
}

/// Adds the rows of statements, relations and the kernel's view, for an interval with this number.
fn add_details(
    details: Details,
    names: &RelationNames,
    frame: &segment::Frame,
    number: u64,
    batch: &mut Batch,
) {
    let length = details.length_ns;
    let interval = (number, recording::time_us(frame.realtime_ns));
    if let Some((Some(before), now)) = details.statements {
        let records = StatementsReading::records(&before, &now);
        batch.append(recording::statement_rows(&records, frame, number, length));
    }
    if let Some(rows) = &details.relations {
        batch.relations = recording::relation_rows(rows, interval, length);
        for (row, relation) in batch.relations.iter_mut().zip(rows) {
            row.name = names.get(relation).unwrap_or_default().into();
        }
    }
    if let Some(witness) = details.kernel.filter(|view| view.available) {
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        let unexplained =
            witness.cpu_account_seconds - witness.on_cpu_seconds - witness.run_queue_seconds;
        batch.kernel.push(KernelRow {
            interval_ns: length,
            sessions: witness.sessions as u64,
            cpu_account_ns: ns(witness.cpu_account_seconds),
            on_cpu_ns: ns(witness.on_cpu_seconds),
            run_queue_ns: ns(witness.run_queue_seconds),
            unexplained_ns: ns(unexplained.max(0.0)),
            ..KernelRow::default()
        });
    }
}

/// The row of an event. An event without a time gets that of the interval.
fn event(row: &Row, server: u32) -> EventRow {
    let text = |text: &Option<String>| text.as_deref().map(Into::into);
    EventRow {
        time_us: row.time.map_or(0, |seconds| (seconds * 1e6) as i64),
        server,
        number: row.number,
        pid: i64::from(row.pid),
        process: text(&row.process),
        database: text(&row.database),
        user: text(&row.user),
        kind: row.kind.to_string().into(),
        text: row.text.as_str().into(),
        lost: row.lost,
        ..EventRow::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: RecordArgs,
    }

    #[test]
    fn details_are_short_at_the_beginning_and_divide_the_longest() {
        let of = |seconds: u64, interval: u64, longest: u64| {
            let ms = Duration::from_millis;
            detail_length(seconds * 1_000_000_000, ms(interval), ms(longest)) / 1_000_000
        };
        let usual = [0, 31, 32, 79, 80, 159, 160, 90_000].map(|at| of(at, 1000, 10_000));
        assert_eq!(usual, [1000, 1000, 2000, 2000, 5000, 5000, 10_000, 10_000]);
        assert_eq!([0, 79, 80, 160].map(|at| of(at, 5000, 10_000)), [5000, 5000, 5000, 10_000]);
        // No divisor of ten seconds is a multiple of three.
        assert_eq!([0, 600].map(|at| of(at, 3000, 10_000)), [10_000; 2]);
        assert_eq!([0, 600].map(|at| of(at, 1000, 1000)), [1000; 2]);
        assert_eq!([0, 600].map(|at| of(at, 5000, 1000)), [1000; 2]);
        assert_eq!([0, 8, 1600, 9600].map(|at| of(at, 100, 600_000)), [100, 500, 100_000, 600_000]);
    }

    #[test]
    fn a_gap_lies_between_the_end_of_an_interval_and_the_begin_of_the_next() {
        let args = Cli::try_parse_from(["record", "-o", "x"]).unwrap().args;
        let nowhere = segment::ToSegmentPath::to_segment_path(std::path::Path::new("/nowhere"));
        let destination = Destination { directory: "x".into(), shipping: None };
        let mut recorder = Recorder::new(&args, nowhere.into(), destination);
        let row = |end: u64, length: u64| FrameRow {
            monotonic_ns: end * 1_000_000,
            time_us: 5_000_000_000 + end as i64 * 1000,
            interval_ns: length * 1_000_000,
            ..FrameRow::default()
        };
        // In milliseconds: the end of the previous interval, then the end and length of the next one; and its boot.
        let mut gaps = |end, (next, length), boot: &str, why: Option<&str>| {
            recorder.end = Some(Edge::end_of(&row(end, 1000), "boot"));
            recorder.gap = why.map(str::to_string);
            recorder.end_gap(&Edge::begin_of(&row(next, length), boot));
            let found = std::mem::take(&mut recorder.pending.gaps);
            found.iter().map(|gap| (gap.from_us, gap.time_us, gap.length_ns)).collect::<Vec<_>>()
        };
        let gap = |from: i64, to: i64| {
            let at = |ms: i64| 5_000_000_000 + ms * 1000;
            vec![(at(from), at(to), ((to - from) * 1_000_000) as u64)]
        };
        assert_eq!(gaps(7000, (12_000, 1500), "boot", Some("it stopped")), gap(7000, 10_500));
        assert_eq!(gaps(7000, (12_000, 1500), "another", Some("it stopped")), gap(7000, 10_500));
        assert_eq!(gaps(7000, (12_000, 5000), "boot", Some("it stopped")), []);
        assert_eq!(gaps(7000, (12_000, 1500), "boot", None), []);
        assert_eq!(recorder.summary.gaps, 2);
    }

    #[test]
    fn clock_steps_sleep_and_delays_are_recorded_as_marks() {
        let args = Cli::try_parse_from(["record", "-o", "x"]).unwrap().args;
        let nowhere = segment::ToSegmentPath::to_segment_path(std::path::Path::new("/nowhere"));
        let destination = Destination { directory: "x".into(), shipping: None };
        let mut recorder = Recorder::new(&args, nowhere.into(), destination);
        let now = Clocks { realtime: 9_000_000_000_000, ..Clocks::now() };
        let hour = Duration::from_secs(3600);
        recorder.happened(&Happening::Set { by: hour, back: true }, now);
        recorder.happened(&Happening::Slept(hour), now);
        recorder.happened(&Happening::Late(Duration::from_secs(5)), now);
        let marks: Vec<(&str, &str)> =
            recorder.pending.marks.iter().map(|row| (&*row.kind, &*row.text)).collect();
        assert_eq!(marks[0], ("clock step", "the time of day was set back by 3600.000 s"));
        assert_eq!(marks[1], ("suspend", "the machine slept for 3600.000 s"));
        assert_eq!(marks[2].0, "late");
        let gap = &recorder.pending.gaps[0];
        assert_eq!((gap.from_us, gap.time_us), (5_400_000_000, 9_000_000_000));
        assert_eq!((gap.length_ns, &*gap.reason), (3_600_000_000_000, "the machine slept"));
    }
}
