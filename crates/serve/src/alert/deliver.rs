// SPDX-License-Identifier: PostgreSQL
//! Delivers messages, one at a time and in order, by a thread that may wait for its destination.
//!
//! A message that is not accepted is sent again after a growing pause, for some minutes, and then dropped,
//! because it is outdated. Each change is reported once.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use otlp::queue::Queue;
use rustix::process::{kill_process_group, Pid, Signal};
use ureq::http::Uri;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::Agent;
use view::escape::{say, visible};

use super::destination::Destination;

/// First pause before trying again, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// When a message is given up.
const PATIENCE: Duration = Duration::from_secs(600);
/// Time limit of a request and of a command.
const LIMIT: Duration = Duration::from_secs(30);
/// How often to look whether a command has ended.
const TICK: Duration = Duration::from_millis(20);

/// Why a message was not delivered.
#[derive(Debug, PartialEq)]
enum Failure {
    /// It may be accepted later.
    Later(String),
    /// It will not.
    Refused(String),
}

/// Delivers the messages of a queue.
#[derive(Debug)]
pub struct Courier {
    destination: Destination,
    agent: Agent,
    queue: Arc<Queue>,
    /// The last report; `None` while everything works.
    reported: Option<String>,
}

impl Courier {
    /// A courier to this destination.
    pub fn new(destination: Destination, queue: Arc<Queue>) -> Courier {
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect could send texts elsewhere.
            .max_redirects(0)
            .user_agent(concat!("pgtally/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build();
        Courier { destination, agent: Agent::new_with_config(config), queue, reported: None }
    }

    /// Delivers until the queue is closed.
    pub fn work(mut self) {
        while let Some(taken) = self.queue.first() {
            let begin = Instant::now();
            let mut pause = PAUSE;
            loop {
                let failure = match self.deliver(&taken.body) {
                    Ok(()) => {
                        if self.reported.take().is_some() {
                            say(&format!("alert: {} accepts messages again", self.destination));
                        }
                        self.queue.settle(&taken, Some(0));
                        break;
                    }
                    Err(failure) => failure,
                };
                let (why, again) = match failure {
                    Failure::Later(why) => (why, begin.elapsed() < PATIENCE),
                    Failure::Refused(why) => (why, false),
                };
                self.report(format!("could not deliver to {}: {why}", self.destination));
                if !again {
                    self.queue.settle(&taken, None);
                    break;
                }
                self.queue.pause(pause);
                pause = (pause * 2).min(LONGEST);
                if !self.queue.holds(&taken) {
                    break;
                }
            }
        }
    }

    fn report(&mut self, what: String) {
        if self.reported.as_ref() != Some(&what) {
            say(&format!("alert: {what}"));
            self.reported = Some(what);
        }
    }

    fn deliver(&self, body: &[u8]) -> Result<(), Failure> {
        let limit = self.queue.left().unwrap_or(LIMIT).min(LIMIT).max(Duration::from_millis(1));
        match &self.destination {
            Destination::Alertmanager(url) | Destination::Webhook(url) => {
                self.post(url, body, limit)
            }
            Destination::Command(command) => run(command, body, limit),
        }
    }

    fn post(&self, url: &Uri, body: &[u8], limit: Duration) -> Result<(), Failure> {
        let request = self.agent.post(url).config().timeout_global(Some(limit)).build();
        let answer = request.content_type("application/json").send(body);
        let status = match answer {
            Ok(answer) => answer.status().as_u16(),
            Err(error) => return Err(Failure::Later(visible(&error.to_string()).to_string())),
        };
        match status {
            200..=299 => Ok(()),
            408 | 429 | 500..=599 => Err(Failure::Later(format!("HTTP status {status}"))),
            _ => Err(Failure::Refused(format!("HTTP status {status}"))),
        }
    }
}

/// Runs a command with the message as its input.
fn run(command: &str, body: &[u8], limit: Duration) -> Result<(), Failure> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        // A group of its own, which is ended whole.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| Failure::Refused(format!("could not run sh: {error}")))?;
    if let Some(mut input) = child.stdin.take() {
        let body = body.to_vec();
        // Waits while the pipe is full, and fails once nobody can read it any more.
        std::thread::spawn(move || input.write_all(&body));
    }
    let end = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                return Err(Failure::Later(format!("the command ended with {status}")))
            }
            Ok(None) if Instant::now() < end => std::thread::sleep(TICK),
            Ok(None) => {
                end_group(&mut child);
                return Err(Failure::Later("the command takes too long".to_string()));
            }
            Err(error) => return Err(Failure::Refused(error.to_string())),
        }
    }
}

fn end_group(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_message_and_its_exit_status_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("message");
        let write = format!("cat > {}", file.display());
        assert_eq!(run(&write, b"{}", LIMIT), Ok(()));
        assert_eq!(std::fs::read(&file).unwrap(), b"{}");
        // It need not read the message.
        assert_eq!(run("true", &vec![b' '; 60_000], LIMIT), Ok(()));
        let Err(Failure::Later(why)) = run("exit 3", b"{}", LIMIT) else { panic!("accepted") };
        assert!(why.contains('3'), "{why}");
    }

    #[test]
    fn a_command_that_does_not_end_is_ended_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let command = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let mut limit = Duration::from_secs(1);
        // Until it has had the time to start.
        let pid: i32 = loop {
            let late = run(&command, b"{}", limit);
            assert_eq!(late, Err(Failure::Later("the command takes too long".to_string())));
            let written = std::fs::read_to_string(&file).unwrap_or_default();
            if let Some(pid) = written.strip_suffix('\n').and_then(|pid| pid.parse().ok()) {
                break pid;
            }
            limit *= 2;
        };
        // It is a zombie, or no more.
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat"));
        while state().is_ok_and(|stat| !stat.contains(") Z ")) {
            std::thread::sleep(TICK);
        }
    }
}
