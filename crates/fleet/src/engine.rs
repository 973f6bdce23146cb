// SPDX-License-Identifier: PostgreSQL
//! An engine: a program that runs a query, or a ClickHouse server.

use std::fmt::{Display, Formatter};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use error::Error;
use fleet_sql::Dialect;
use view::escape::visible;

/// How to reach an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reach {
    /// It cannot be run; only its SQL is known.
    None,
    /// DuckDB's command line.
    DuckDb(String),
    /// `clickhouse local`.
    ClickHouse(String),
    /// A Python with chdb.
    Chdb(String),
    /// A ClickHouse server's HTTP interface.
    Server(String),
}

/// An engine, as `--engine` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    dialect: Dialect,
    reach: Reach,
}

/// Long, because a query may scan the recordings of a thousand hosts.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Maximum size of a server's response, bytes.
const ANSWER: u64 = 256 << 20;
/// Maximum length of an engine's error message that is printed, characters.
const SHOWN: usize = 2000;

impl Engine {
    /// Parses the argument.
    pub fn parse(text: &str) -> Result<Engine, String> {
        let of = |dialect, reach| Ok(Engine { dialect, reach });
        if text.starts_with("http://") || text.starts_with("https://") {
            if text.contains('@') {
                return Err("set user and password in CLICKHOUSE_USER and CLICKHOUSE_PASSWORD, not in the URL: \
                            other users can see it in the list of processes"
                    .into());
            }
            return of(Dialect::ClickHouse, Reach::Server(text.trim_end_matches('/').into()));
        }
        let name = Path::new(text).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match name {
            "spark" => of(Dialect::Spark, Reach::None),
            _ if name.starts_with("duckdb") => of(Dialect::DuckDb, Reach::DuckDb(text.into())),
            _ if name.starts_with("clickhouse") => of(Dialect::ClickHouse, Reach::ClickHouse(text.into())),
            _ if name.starts_with("python") => of(Dialect::ClickHouse, Reach::Chdb(text.into())),
            _ => Err(format!(
                "\"{text}\" is not an engine; use duckdb, clickhouse or spark, the path of duckdb, clickhouse or a \
                 python with chdb, or the http:// URL of a ClickHouse server"
            )),
        }
    }

    /// Its SQL dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether it is a server, which can have views.
    pub fn is_server(&self) -> bool {
        matches!(self.reach, Reach::Server(_))
    }

    /// Fails if it cannot run queries at all.
    pub fn check(&self) -> Result<(), Error> {
        self.ask("SELECT 1 AS one", &Running::default()).map(drop)
    }

    /// Runs a query and returns the result as JSON; `running` holds the program that runs it.
    pub fn ask(&self, sql: &str, running: &Running) -> Result<String, Error> {
        let command = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        };
        match &self.reach {
            Reach::None => Err(Error::Usage(format!(
                "tally cannot run {}; `tally fleet sql` prints the query for it",
                self.dialect
            ))),
            Reach::DuckDb(program) => {
                answer(&mut command(program, &["-batch", "-bail", "-json"]), sql, running)
            }
            Reach::ClickHouse(program) => {
                let arguments =
                    ["local", "--output-format", "JSONEachRow", "--queries-file", "/dev/stdin"];
                answer(&mut command(program, &arguments), sql, running)
            }
            Reach::Chdb(python) => {
                answer(&mut command(python, &["-m", "chdb", sql, "JSONEachRow"]), "", running)
            }
            Reach::Server(url) => server(url, sql),
        }
    }
}

impl Display for Engine {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        match &self.reach {
            Reach::None | Reach::DuckDb(_) => write!(to, "{}", self.dialect),
            Reach::ClickHouse(_) => to.write_str("clickhouse local"),
            Reach::Chdb(_) => to.write_str("chdb"),
            Reach::Server(url) => to.write_str(url),
        }
    }
}

/// The program that is running, so that another thread can stop it.
#[derive(Debug, Default)]
pub struct Running(Mutex<EngineState>);

#[derive(Debug, Default)]
struct EngineState {
    child: Option<Child>,
    ended: bool,
}

impl Running {
    fn state(&self) -> MutexGuard<'_, EngineState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the program, and each one that would be started later.
    pub fn stop(&self) {
        let mut state = self.state();
        state.ended = true;
        // It may have ended by itself.
        let _ = state.child.as_mut().map(Child::kill);
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.state().ended
    }
}

/// Runs a program that reads a query from standard input, and returns its output.
fn answer(command: &mut Command, sql: &str, running: &Running) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error: std::io::Error| {
        Error::Failed(format!(
            "could not run {program}: {error}; install it, or name its path with --engine"
        ))
    };
    let (input, output, complaint) = {
        let mut state = running.state();
        if state.ended {
            return Err(Error::Failed(format!("{program} was stopped")));
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        state.child = Some(child);
        pipes
    };
    if let Some(mut input) = input {
        let text = format!("{sql};\n");
        // A program that stops reading reports the reason itself. Queries are shorter than a pipe's buffer.
        let _ = input.write_all(text.as_bytes());
    }
    let mut err = Vec::new();
    let out = std::thread::scope(|scope| {
        scope.spawn(|| complaint.map(|mut pipe| pipe.read_to_end(&mut err)));
        output.map_or(Ok(Vec::new()), |pipe| files::read_all(pipe, ANSWER))
    });
    let child = running.state().child.take();
    let out = out.map_err(|error| {
        Error::Failed(format!("{program}: {error}; query fewer hosts, or a shorter time"))
    });
    let status = child.map(|mut child| child.wait()).transpose().map_err(failed)?;
    if status.is_some_and(|status| status.success()) {
        return Ok(String::from_utf8_lossy(&out?).into_owned());
    }
    out?;
    Err(Error::Failed(format!("{program}: {}", shown(&String::from_utf8_lossy(&err)))))
}

/// Sends a query to a ClickHouse server and returns its response.
fn server(url: &str, sql: &str) -> Result<String, Error> {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        // A redirect could send the credentials elsewhere.
        .max_redirects(0)
        .http_status_as_error(false)
        .build();
    let mut request = ureq::Agent::new_with_config(config).post(url);
    for (header, variable) in
        [("X-ClickHouse-User", "CLICKHOUSE_USER"), ("X-ClickHouse-Key", "CLICKHOUSE_PASSWORD")]
    {
        if let Ok(value) = std::env::var(variable) {
            request = request.header(header, value);
        }
    }
    let failed = |error: ureq::Error| {
        Error::Failed(format!(
            "could not query {url}: {error}; is this the HTTP interface of a ClickHouse server?"
        ))
    };
    let mut response = request.send(format!("{sql}\nFORMAT JSONEachRow")).map_err(failed)?;
    let status = response.status();
    let text = response.body_mut().with_config().limit(ANSWER).read_to_string().map_err(failed)?;
    match status.is_success() {
        true => Ok(text),
        false => {
            Err(Error::Failed(format!("{url}: HTTP status {}: {}", status.as_u16(), shown(&text))))
        }
    }
}

/// Makes an error message from elsewhere safe to print; removes ClickHouse's stack trace.
fn shown(text: &str) -> String {
    let text = text.find("DB::Exception").map_or(text, |at| &text[at..]);
    visible(text.trim()).chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_a_name_a_program_or_an_address() {
        for (text, dialect) in [
            ("duckdb", Dialect::DuckDb),
            ("/opt/bin/duckdb", Dialect::DuckDb),
            ("clickhouse", Dialect::ClickHouse),
            ("/usr/bin/clickhouse-local", Dialect::ClickHouse),
            ("venv/bin/python3", Dialect::ClickHouse),
            ("http://localhost:8123/", Dialect::ClickHouse),
            ("spark", Dialect::Spark),
        ] {
            assert_eq!(Engine::parse(text).unwrap().dialect(), dialect, "{text}");
        }
        assert!(Engine::parse("https://x").unwrap().is_server());
        assert!(Engine::parse("http://a:b@x").unwrap_err().contains("CLICKHOUSE_PASSWORD"));
        assert!(Engine::parse("postgres").unwrap_err().contains("clickhouse"));
        let error = Engine::parse("/nowhere/duckdb").unwrap().check().unwrap_err();
        assert!(error.to_string().contains("install"), "{error}");
    }

    #[test]
    fn credentials_follow_no_redirection() {
        let listen = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (server, elsewhere) = (listen(), listen());
        let to = elsewhere.local_addr().unwrap();
        let url = format!("http://{}", server.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut head = [0; 4096];
            assert!(stream.read(&mut head).unwrap() > 0);
            write!(
                stream,
                "HTTP/1.1 302 Found\r\nLocation: http://{to}/\r\nContent-Length: 0\r\n\r\n"
            )
        });
        let error = super::server(&url, "SELECT 1").unwrap_err().to_string();
        assert!(error.contains("302"), "{error}");
        served.join().unwrap().unwrap();
        elsewhere.set_nonblocking(true).unwrap();
        assert!(elsewhere.accept().is_err());
    }

    #[test]
    fn a_program_that_runs_can_be_ended_and_none_is_run_then() {
        let running = Running::default();
        let mut sleep = Command::new("sleep");
        let error = std::thread::scope(|scope| {
            let answered = scope.spawn(|| answer(sleep.arg("1000"), "", &running));
            while running.state().child.is_none() {
                std::thread::yield_now();
            }
            running.stop();
            answered.join().unwrap().unwrap_err()
        });
        assert!(error.to_string().starts_with("sleep"), "{error}");
        let error = answer(&mut Command::new("true"), "", &running).unwrap_err();
        assert!(error.to_string().contains("stopped"), "{error}");
    }
}
