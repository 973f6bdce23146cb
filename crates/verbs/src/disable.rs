// SPDX-License-Identifier: PostgreSQL
//! `tally disable`: removes pg_tally from the settings, stops measuring at once, and removes whatever pg_tally or
//! `tally enable` created. It reports what it cannot remove, and how to remove it.

use std::io::Write;
use std::time::{Duration, Instant};

use pq::Client;
use segment::{Level, Segment, SegmentPath};

use clap::Args;
use error::Error;
use live::extension::{self, Dropped};
use live::library_list::{Change, LibraryList};
use live::local_server::LocalServer;
use live::{server, switch};

use command::ConnectionFlags;

/// Arguments of `tally disable`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo -u postgres tally disable
  tally disable 'host=/run/postgresql user=postgres'")]
pub struct DisableArgs {
    /// The server: a connection string or a data directory
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
}

/// How long sessions that have the library loaded may take to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the server may take to reload its configuration.
const RELOAD: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(50);

/// Disables pg_tally. Does nothing if pg_tally is not enabled.
pub fn run(args: &DisableArgs) -> Result<(), Error> {
    disable(args).map_err(|error| server::interrupted(error, "tally disable"))
}

fn disable(args: &DisableArgs) -> Result<(), Error> {
    let mut client = server::connect_target(args.target.as_deref())?;
    server::require_superuser(&mut client)?;
    let shared = LibraryList::read(&mut client, "shared_preload_libraries")?;
    let session = LibraryList::read(&mut client, "session_preload_libraries")?;
    let local = LocalServer::of_connection(&mut client)?;
    let data: String = client.query_one("select current_setting('data_directory')", &[])?.get(0)?;
    let databases = extension::databases(&mut client)?;
    let saved = switch::saved_statements(&mut client)?;
    let settings = settings_in_files(&mut client)?;
    let had_level = settings.iter().any(|name| name == "pg_tally.level");
    let changes = configure(&mut client, &shared, &session, &settings).map_err(|error| match error.cause::<pq::Error>() {
        Some(cause) if cause.sqlstate().is_some() => Error::Failed(format!(
            "{error}\nSome settings may have been changed already, and sessions are still measured (`tally level off` stops that). \
             Run `tally disable` again to finish"
        )),
        _ => error,
    })?;
    // Our own session may be measured, because of the setting that has just been removed.
    drop(client);
    if had_level || local.is_none() {
        // The reload sets the level to the default. Ours must be set after that, in a session that is not
        // measured.
        std::thread::sleep(RELOAD);
    }
    // Measuring stops first, so that it stops even if a later step fails or nobody reads the output.
    let off = switch_off(args, local.as_ref());
    let removed = match saved.is_empty() {
        true => Ok(Vec::new()),
        false => server::connect_target(args.target.as_deref())
            .and_then(|mut client| switch::remove_saved_statements(&mut client, &saved)),
    };

    let mut done = DisableReport::default();
    let mut by_hand = false;
    for (name, change) in &changes {
        match change {
            Change::None => continue,
            Change::Made => done.say(format!("{name} no longer names pg_tally")),
            Change::ByHand(place) => {
                by_hand = true;
                let remedy = format!("remove it from {place}, then reload the configuration");
                done.say(format!("{name} still names pg_tally: {remedy}"));
            }
        }
        done.found = true;
    }
    drop_extensions(args, &databases, &mut done);
    saved_statements(&data, &saved, removed, &mut done);
    match off {
        Ok(true) => running(local.as_ref(), &data, shared.is_running(), by_hand, &mut done),
        Ok(false) => {}
        Err(error) => {
            done.left.push(format!("could not stop measuring the running sessions, which continue until they end: {error}"));
        }
    }
    if !done.found && done.left.is_empty() {
        done.say(format!("pg_tally is not enabled on {data}; nothing to do"));
    }
    let mut out = view::escape::stdout();
    let printed = done.lines.iter().try_for_each(|line| writeln!(out, "{line}"));
    if !done.left.is_empty() {
        return Err(Error::Failed(format!(
            "{}\nRun `tally disable` again to finish",
            done.left.join("\n")
        )));
    }
    Ok(printed?)
}

/// Removes the library and our settings from the server's configuration.
fn configure(
    client: &mut Client,
    shared: &LibraryList,
    session: &LibraryList,
    settings: &[String],
) -> Result<[(&'static str, Change); 2], Error> {
    let changes = [
        ("shared_preload_libraries", shared.remove(client)?),
        ("session_preload_libraries", session.remove(client)?),
    ];
    // Our settings must not stay in the files; the level in the segment is enough.
    if !settings.is_empty() {
        // Unless the library is loaded, the server rejects these setting names.
        client.batch_execute("LOAD 'pg_tally'")?;
    }
    for name in settings {
        client.batch_execute(&format!("ALTER SYSTEM RESET {name}"))?;
    }
    client.batch_execute("select pg_reload_conf()")?;
    Ok(changes)
}

/// What was done.
#[derive(Debug, Default)]
struct DisableReport {
    /// One line for each thing done.
    lines: Vec<String>,
    /// What could not be done.
    left: Vec<String>,
    /// Whether pg_tally was found on the server.
    found: bool,
}

impl DisableReport {
    fn say(&mut self, line: String) {
        self.lines.push(line);
    }
}

/// Drops the extension in each database where `tally enable` created it.
fn drop_extensions(args: &DisableArgs, databases: &[String], done: &mut DisableReport) {
    for database in databases {
        let dropped = server::connect_database(args.target.as_deref(), database)
            .and_then(|mut client| extension::drop(&mut client));
        let remedy = "to remove it, run DROP EXTENSION pg_tally in that database";
        match dropped {
            Ok(Dropped::None) => continue,
            Ok(Dropped::Done) => {
                done.say(format!("dropped extension pg_tally in database {database}"));
            }
            Ok(Dropped::Kept(why)) => {
                done.say(format!("database {database} keeps extension pg_tally: {why}; {remedy}"));
            }
            Err(error) => {
                done.left.push(format!(
                    "could not drop extension pg_tally in database {database}: {error}; {remedy}"
                ));
                continue;
            }
        }
        done.found = true;
    }
}

/// Reports which files of saved statements the server has removed, and which it has not.
fn saved_statements(
    data: &str,
    saved: &[String],
    removed: Result<Vec<String>, Error>,
    done: &mut DisableReport,
) {
    let (removed_now, why) = match removed {
        Ok(names) => (names, String::new()),
        Err(error) => (Vec::new(), format!(": {error}")),
    };
    done.found |= !saved.is_empty();
    for name in saved {
        if removed_now.contains(name) {
            done.say(format!("removed {data}/{name}"));
        } else {
            done.left.push(format!("could not remove {data}/{name}{why}"));
        }
    }
}

/// Settings of pg_tally that ALTER SYSTEM has set; unqualified names only.
fn settings_in_files(client: &mut Client) -> Result<Vec<String>, Error> {
    let rows = client.query(
        "select distinct name from pg_file_settings \
         where name ~ '^pg_tally[.][a-z_]+$' and sourcefile like '%postgresql.auto.conf'",
        &[],
    )?;
    Ok(rows.iter().map(|row| row.get(0)).collect::<Result<_, _>>()?)
}

/// Stops measuring. Returns whether any processes are measured.
fn switch_off(args: &DisableArgs, local: Option<&LocalServer>) -> Result<bool, Error> {
    match switch::in_segment(local, Level::Off, false) {
        // A new session, which is not measured after the reload.
        Ok(None) => server::connect_target(args.target.as_deref())
            .and_then(|mut client| switch::by_server(&mut client, Level::Off, false)),
        set => set.map(|set| set == Some(true)),
    }
}

/// Reports what happens to the running processes and to their segment, which is removed once no session uses it.
fn running(
    local: Option<&LocalServer>,
    data: &str,
    shared: bool,
    by_hand: bool,
    done: &mut DisableReport,
) {
    done.found = true;
    if shared || by_hand || local.is_none() {
        done.say("measuring is off for all processes".into());
    }
    match local {
        _ if shared => {
            let segment = match local {
                Some(local) => format!("segment {}", local.segment_path().path().display()),
                None => "its segment".to_string(),
            };
            done.say(format!(
                "the server's processes keep the library loaded, switched off, until the server restarts; \
                 then {segment} is removed, and no statements are saved"
            ));
        }
        Some(local) => match remove_segment(local.segment_path(), data, by_hand) {
            Ok(line) => done.say(line),
            Err(error) => done.left.push(error.to_string()),
        },
        None => done.say(
            "running sessions keep the library loaded, switched off, until they end; the last one removes the \
             server's segment"
                .into(),
        ),
    }
}

/// Waits until no session uses the segment of this machine's server, and removes it. Returns a message that says
/// what happened.
fn remove_segment(segment_path: &SegmentPath, data: &str, by_hand: bool) -> Result<String, Error> {
    let path = segment_path.path();
    let began = Instant::now();
    loop {
        let segment = match Segment::open(segment_path) {
            Err(segment::Error::NotFound { .. }) => {
                return Ok("the segment has been removed".into())
            }
            opened => opened?,
        };
        let left = segment.claims()?.iter().filter(|claim| alive(claim.pid)).count();
        if left == 0 && !by_hand {
            // The last session removes the segment, unless that session was killed.
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::Failed(format!("{}: {error}", path.display())));
                }
                _ => {}
            }
        } else if began.elapsed() > PATIENCE {
            let sessions = if left == 1 { "session keeps" } else { "sessions keep" };
            return Ok(format!(
                "{left} {sessions} the library loaded, switched off, until they end; the last one removes \
                 segment {} (or run `tally disable {data}` again then)",
                path.display()
            ));
        }
        std::thread::sleep(POLL);
    }
}

fn alive(pid: i32) -> bool {
    u32::try_from(pid).is_ok_and(scratch::alive)
}
