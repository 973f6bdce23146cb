// SPDX-License-Identifier: PostgreSQL
//! Samples a server that does not load pg_tally, through one connection, and writes what it sees as a segment: one more
//! writer, whose image is read like that of a remote segment.
//!
//! A thread samples at random instants, and takes each sample into the ledger. A reader that refreshes its image waits for a
//! sample that it has not seen; the image then belongs to the instant of the last one. Readers of the same server in one program
//! share the thread, each with an image of its own, so that the server is sampled once.

mod image;
mod ledger;
mod observation;
mod query;
mod schedule;
mod statements;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use error::Error;
use pq::{Client, Conninfo};
use process::{Proc, Schedstat};
use segment::clock::{monotonic_ns, realtime_ns};
use segment::{Moment, Origin, Parts};

use crate::local_server::LocalServer;
use crate::session_limits::{self, Limit};
use crate::{remote, server};
use image::{About, Image};
use ledger::Ledger;
use observation::Sample;
use query::{Texts, Version};
use schedule::Schedule;
pub use schedule::{Budget, SampleRate};
use statements::Statements;

/// How long a reader waits for a sample: longer than the server may take for one.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often to look up who blocks whom, while sessions wait for locks.
const BLOCKED_EVERY: Duration = Duration::from_secs(1);
/// Processes beyond those that settings count.
const OTHER_PROCESSES: u32 = 64;
/// If the settings do not say how many sessions there may be.
const SLOTS: u32 = 1024;
const MOST_SLOTS: u32 = 32_768;

/// What the sampling thread and the readers share.
struct Shared {
    client: Mutex<Client>,
    state: Mutex<State>,
    /// A sample has arrived, or sampling has ended.
    news: Condvar,
    about: About,
    server: String,
    processors: u32,
    /// Whether the role sees all sessions.
    complete: bool,
}

#[derive(Debug)]
struct State {
    ledger: Ledger,
    /// Why sampling has ended.
    ended: Option<String>,
    /// Number of readers; without one, sampling ends.
    readers: u32,
}

/// The servers that are sampled now.
static RUNNING: Mutex<Vec<(Conninfo, SampleRate, Weak<Shared>)>> = Mutex::new(Vec::new());

/// A reader of samples.
pub(crate) struct Sampler {
    shared: Arc<Shared>,
    image: Image,
    statements: Statements,
    conninfo: String,
    /// Number of samples in the image; 0: there is none.
    samples: u64,
}

impl std::fmt::Debug for Sampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the connection string, which may contain a password.
        f.debug_struct("Sampler").field("server", &self.shared.server).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Joins the sampling of this server that already runs with the same rate, as one more reader.
    fn joined(conninfo: &Conninfo, rate: SampleRate) -> Option<Arc<Shared>> {
        let mut running = lock(&RUNNING);
        running.retain(|(.., shared)| shared.strong_count() > 0);
        let those = running.iter().filter(|(to, at, _)| to == conninfo && *at == rate);
        those.filter_map(|(.., shared)| shared.upgrade()).find(|shared| {
            let mut state = lock(&shared.state);
            let runs = state.ended.is_none() && state.readers > 0;
            state.readers += u32::from(runs);
            runs
        })
    }

    /// Connect and begin to sample.
    fn start(conninfo: &Conninfo, rate: SampleRate) -> Result<Arc<Shared>, Error> {
        let mut client = server::connect(conninfo)?;
        let limits = session_limits::in_force(&mut client);
        client.batch_execute(query::LIMITS)?;
        let row = client.query_one(query::ABOUT, &[])?;
        let version = Version(row.get(6)?);
        client.batch_execute(&version.prepare()).map_err(|error| {
            match pooled(error.sqlstate()) {
                "" => error.into(),
                hint => Error::Failed(format!("{error}{hint}")),
            }
        })?;
        let sessions = row.get::<Option<i64>>(4)?.and_then(|count| u32::try_from(count).ok());
        let slots = sessions.map_or(SLOTS, |count| count.saturating_add(OTHER_PROCESSES));
        let about = About {
            server: format!("PostgreSQL {}", row.get::<&str>(0)?),
            host: row.get::<Option<String>>(1)?.unwrap_or_default(),
            port: u32::try_from(row.get::<i32>(3)?).unwrap_or(0),
            begun_ns: u64::try_from(row.get::<i64>(2)?).unwrap_or(0) * 1000,
            tick: monotonic_ns(),
            realtime_ns: realtime_ns(),
            slots: slots.min(MOST_SLOTS),
            producer: segment::sampling::producer(rate.per_second()),
        };
        let complete = row.get(5)?;
        let backend = row.get::<i32>(7)?;
        let here = LocalServer::of_connection(&mut client)?.is_some();
        let name = remote::name_of(&client);
        let ledger = Ledger::new(about.slots as usize);
        let shared = Arc::new(Shared {
            client: Mutex::new(client),
            state: Mutex::new(State { ledger, ended: None, readers: 1 }),
            news: Condvar::new(),
            about,
            server: name,
            processors: if here { 0 } else { segment::UNKNOWN_PROCESSORS },
            complete,
        });
        let sampling = Sampling {
            texts: Texts::default(),
            blocked: version.blocked(),
            blocked_at: None,
            backend: u32::try_from(backend).ok().filter(|_| here),
            cpu_ns: None,
            fastest_ns: u64::MAX,
        };
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("sampler".to_string());
        let schedule = Schedule::new(rate, realtime_ns());
        thread.spawn(move || run(&theirs, sampling, schedule, &limits))?;
        lock(&RUNNING).push((conninfo.clone(), rate, Arc::downgrade(&shared)));
        Ok(shared)
    }
}

impl Sampler {
    /// Begin to sample a server, or join those in this program that do so already.
    pub(crate) fn open(conninfo: &Conninfo, rate: SampleRate) -> Result<Sampler, Error> {
        let shared = match Shared::joined(conninfo, rate) {
            Some(shared) => shared,
            None => Shared::start(conninfo, rate)?,
        };
        Ok(Sampler {
            image: Image::new(shared.about.slots),
            shared,
            statements: Statements::default(),
            conninfo: conninfo.to_string(),
            samples: 0,
        })
    }

    fn error(&self, why: impl std::fmt::Display) -> segment::Error {
        segment::Error::Remote { server: self.shared.server.clone(), why: why.to_string() }
    }

    /// The state with a sample that the image does not have.
    fn next(&self) -> Result<MutexGuard<'_, State>, segment::Error> {
        let state = lock(&self.shared.state);
        let lacks =
            |state: &mut State| state.ended.is_none() && state.ledger.samples <= self.samples;
        let waited = self.shared.news.wait_timeout_while(state, PATIENCE, lacks);
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        match &state.ended {
            Some(why) => Err(self.error(why)),
            None if timeout.timed_out() => {
                Err(self.error(format!("no answer within {} s", PATIENCE.as_secs())))
            }
            None => Ok(state),
        }
    }
}

impl Origin for Sampler {
    fn bring(&mut self, file: &File, parts: Parts) -> Result<Moment, segment::Error> {
        let shared = self.shared.clone();
        if self.samples == 0 {
            self.image.create(file, &shared.about).map_err(|error| self.error(error))?;
        } else if parts.0 & Parts::STATEMENTS.0 != 0 {
            let mut client = lock(&shared.client);
            let now = lock(&shared.state).ledger.last;
            let read = self.statements.read(&mut client, now);
            read.map_err(|error| self.error(error.message()))?;
        }
        drop(self.next()?);
        let state = lock(&shared.state);
        self.statements.add_times(&state.ledger);
        let image = &mut self.image;
        let written = image.write(file, &state.ledger);
        let written = written.and_then(|()| image.write_statements(file, &mut self.statements));
        written.map_err(|error| self.error(error))?;
        self.samples = state.ledger.samples;
        let last = state.ledger.last.ok_or_else(|| self.error("there is no sample"))?;
        let slots =
            state.ledger.slots.iter().map(|(_, session)| session.as_ref().map_or(0, |_| last.tick));
        Ok(Moment {
            tick: last.tick,
            monotonic_ns: last.tick,
            realtime_ns: last.realtime_ns,
            slots: slots.collect(),
            processors: shared.processors,
            complete: shared.complete && !last.hidden,
            sample_seconds: state.ledger.mean_gap_seconds(),
        })
    }

    fn server(&self) -> &str {
        &self.shared.server
    }

    fn conninfo(&self) -> &str {
        &self.conninfo
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.readers = state.readers.saturating_sub(1);
        drop(state);
        self.shared.news.notify_all();
    }
}

/// What to do if our prepared statement is gone, or there already: the next transaction may have another session.
fn pooled(sqlstate: Option<&str>) -> &'static str {
    match sqlstate {
        Some("26000" | "42P05") => {
            "; connect to the server itself: a pooler in transaction mode loses prepared statements"
        }
        _ => "",
    }
}

/// Samples until no reader is left, or the server no longer answers.
fn run(shared: &Shared, mut sampling: Sampling, mut schedule: Schedule, limits: &[Limit]) {
    let mut due = Instant::now();
    loop {
        let late = due.elapsed();
        let sampled = sampling.sample(shared, late);
        let mut state = lock(&shared.state);
        match sampled {
            Ok(cost_ns) => schedule.note_cost(cost_ns),
            Err(error) => {
                let limits = session_limits::explain(error.sqlstate(), limits);
                state.ended =
                    Some(format!("{}{}{limits}", error.message(), pooled(error.sqlstate())));
            }
        }
        shared.news.notify_all();
        // A sample that could not be taken in time is left out, not made up for.
        due = (due + schedule.draw()).max(Instant::now());
        while state.readers > 0 && state.ended.is_none() {
            let Some(left) =
                due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            else {
                break;
            };
            let waited = shared.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.readers == 0 || state.ended.is_some() {
            return;
        }
    }
}

/// What the sampling thread knows from one sample to the next.
struct Sampling {
    texts: Texts,
    /// The query that looks up who blocks whom, and when it last did.
    blocked: String,
    blocked_at: Option<Instant>,
    /// Our server process, if its CPU time can be seen, and that at the last sample.
    backend: Option<u32>,
    cpu_ns: Option<u64>,
    /// The shortest time that a sample took besides the server's work.
    fastest_ns: u64,
}

impl Sampling {
    /// Take a sample and add it to the ledger. Returns the time that the server spent on it, ns.
    fn sample(&mut self, shared: &Shared, late: Duration) -> Result<u64, pq::Error> {
        let late_ns = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        let mut client = lock(&shared.client);
        let begin = monotonic_ns();
        let reading = query::sample(&mut client, &mut self.texts)?;
        let end = monotonic_ns();
        // All but the server's work, which grows with the sessions: the ways there and back, and until both processes run.
        let ways_ns = (end - begin).saturating_sub(reading.took_ns);
        self.fastest_ns = self.fastest_ns.min(ways_ns);
        let sample = Sample {
            tick: begin + (end - begin) / 2,
            realtime_ns: u64::try_from(reading.at_us).unwrap_or(0) * 1000,
            // Longer ways than the shortest ones are a delay, too: the server's process waited for a CPU.
            late_ns: late_ns.saturating_add(ways_ns - self.fastest_ns),
            read_ns: reading.took_ns,
            cost_ns: self.cpu_since_last().unwrap_or(reading.took_ns),
            sessions: reading.sessions,
            hidden: reading.hidden,
        };
        let waits = sample.has_lock_waits();
        let due = waits && self.blocked_at.is_none_or(|at| at.elapsed() >= BLOCKED_EVERY);
        // Read after the sample, which shows that these sessions wait.
        let blockages = match due.then(|| query::blocked(&mut client, &self.blocked)) {
            Some(Err(error)) if error.sqlstate().is_none() => return Err(error),
            // What the server refuses, or has no time for, is not known.
            blockages => blockages.and_then(Result::ok),
        };
        drop(client);
        let mut state = lock(&shared.state);
        let (tick, cost_ns) = (sample.tick, sample.cost_ns);
        state.ledger.apply(sample);
        if due {
            self.blocked_at = Some(Instant::now());
        }
        if let Some(blockages) = blockages {
            state.ledger.block(blockages, tick);
        } else if !waits {
            state.ledger.block(Vec::new(), tick);
            self.blocked_at = None;
        }
        Ok(cost_ns)
    }

    /// The CPU time of our server process since the last sample, if it can be seen: it includes other queries of ours.
    fn cpu_since_last(&mut self) -> Option<u64> {
        let Schedstat { on_cpu_ns, .. } = Proc::default().schedstat(self.backend?)?;
        let before = self.cpu_ns.replace(on_cpu_ns)?;
        Some(on_cpu_ns.saturating_sub(before))
    }
}
