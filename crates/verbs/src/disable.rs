// SPDX-License-Identifier: PostgreSQL
//! `tally disable`: removes pg_tally from the settings, switches it off at once, and removes what
//! pg_tally or `tally enable` created. It names what it cannot remove, with the way to do so.

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
    /// How to connect to it
    #[command(flatten)]
    pub connection: ConnectionFlags,
}

/// How long sessions that keep the library may take to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the server may take to reload its configuration.
const RELOAD: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(50);

/// Disable pg_tally. Does nothing if it is not enabled.
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
            "{error}\nThe settings may have been changed in part, and sessions are still measured (`tally level off` ends that). \
             Run `tally disable` again to finish"
        )),
        _ => error,
    })?;
    // Our own session may be instrumented, by the setting that has just been removed.
    drop(client);
    if had_level || local.is_none() {
        // The reload sets the level to the default; set ours after that, and by a session that it does not measure.
        std::thread::sleep(RELOAD);
    }
    // Measuring ends first, whatever fails or is interrupted after that; and nothing depends on who reads what is printed.
    let off = switch_off(args, local.as_ref());
    let removed = match saved.is_empty() {
        true => Ok(Vec::new()),
        false => server::connect_target(args.target.as_deref())
            .and_then(|mut client| switch::remove_saved_statements(&mut client, &saved)),
    };

    let mut done = Done::default();
    let mut by_hand = false;
    for (name, change) in &changes {
        match change {
            Change::None => continue,
            Change::Made => done.say(format!("{name} no longer names pg_tally")),
            Change::ByHand(place) => {
                by_hand = true;
                let remedy = format!("remove it from {place}, then reload");
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
            done.left.push(format!("running sessions are measured until they end: {error}"));
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

/// Takes the library and our settings out of the server's configuration.
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
    // Our settings in the files must not stay behind; the level in the segment is enough.
    if !settings.is_empty() {
        // Without it the server rejects the settings' names.
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
struct Done {
    /// A line each.
    lines: Vec<String>,
    /// What could not be done.
    left: Vec<String>,
    /// Whether there was anything of ours.
    found: bool,
}

impl Done {
    fn say(&mut self, line: String) {
        self.lines.push(line);
    }
}

/// Drops the extension in each database where `enable` created it.
fn drop_extensions(args: &DisableArgs, databases: &[String], done: &mut Done) {
    for database in databases {
        let dropped = server::connect_database(args.target.as_deref(), database)
            .and_then(|mut client| extension::drop(&mut client));
        let remedy = "DROP EXTENSION pg_tally in that database removes it";
        match dropped {
            Ok(Dropped::None) => continue,
            Ok(Dropped::Done) => {
                done.say(format!("extension pg_tally of database {database} dropped"));
            }
            Ok(Dropped::Kept(why)) => {
                done.say(format!("database {database} keeps extension pg_tally: {why}; {remedy}"));
            }
            Err(error) => {
                done.left.push(format!(
                    "could not drop extension pg_tally of database {database}: {error}; {remedy}"
                ));
                continue;
            }
        }
        done.found = true;
    }
}

/// Says which files with statements the server has removed, and which it has not.
fn saved_statements(
    data: &str,
    saved: &[String],
    removed: Result<Vec<String>, Error>,
    done: &mut Done,
) {
    let (removed_now, why) = match removed {
        Ok(names) => (names, String::new()),
        Err(error) => (Vec::new(), format!(": {error}")),
    };
    done.found |= !saved.is_empty();
    for name in saved {
        if removed_now.contains(name) {
            done.say(format!("{data}/{name} is removed"));
        } else {
            done.left.push(format!("could not remove {data}/{name}{why}"));
        }
    }
}

/// Settings of pg_tally that ALTER SYSTEM has set; plain names only.
fn settings_in_files(client: &mut Client) -> Result<Vec<String>, Error> {
    let rows = client.query(
        "select distinct name from pg_file_settings \
         where name ~ '^pg_tally[.][a-z_]+$' and sourcefile like '%postgresql.auto.conf'",
        &[],
    )?;
    Ok(rows.iter().map(|row| row.get(0)).collect::<Result<_, _>>()?)
}

/// Switches measuring off. Returns whether there are processes that are measured.
fn switch_off(args: &DisableArgs, local: Option<&LocalServer>) -> Result<bool, Error> {
    match switch::in_segment(local, Level::Off, false) {
        // A new session, which the reload keeps from being measured.
        Ok(None) => server::connect_target(args.target.as_deref())
            .and_then(|mut client| switch::by_server(&mut client, Level::Off, false)),
        set => set.map(|set| set == Some(true)),
    }
}

/// Says what becomes of the running processes and their segment, which is removed once no session uses it.
fn running(local: Option<&LocalServer>, data: &str, shared: bool, by_hand: bool, done: &mut Done) {
    done.found = true;
    if shared || by_hand || local.is_none() {
        done.say("the level is off for all processes".into());
    }
    match local {
        _ if shared => {
            let segment = match local {
                Some(local) => format!("segment {}", local.segment_path().path().display()),
                None => "its segment".to_string(),
            };
            done.say(format!(
                "the server's processes keep the library, switched off, until the server restarts; \
                 {segment} is removed then, and no statements are kept"
            ));
        }
        Some(local) => match remove_segment(local.segment_path(), data, by_hand) {
            Ok(line) => done.say(line),
            Err(error) => done.left.push(error.to_string()),
        },
        None => done.say(
            "sessions that run now keep the library, switched off, until they end; the last one removes the \
             server's segment"
                .into(),
        ),
    }
}

/// Waits until no session uses the segment of this machine's server, and removes it. Returns what has become of it.
fn remove_segment(segment_path: &SegmentPath, data: &str, by_hand: bool) -> Result<String, Error> {
    let path = segment_path.path();
    let began = Instant::now();
    loop {
        let segment = match Segment::open(segment_path) {
            Err(segment::Error::NotFound { .. }) => return Ok("the segment is removed".into()),
            opened => opened?,
        };
        let left = segment.claims()?.iter().filter(|claim| alive(claim.pid)).count();
        if left == 0 && !by_hand {
            // The last session removes it, unless it was killed.
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::Failed(format!("{}: {error}", path.display())));
                }
                _ => {}
            }
        } else if began.elapsed() > PATIENCE {
            let sessions = if left == 1 { "session keeps" } else { "sessions keep" };
            return Ok(format!(
                "{left} {sessions} the library, switched off, until they end; the last one removes \
                 segment {} (or run `tally disable {data}` again)",
                path.display()
            ));
        }
        std::thread::sleep(POLL);
    }
}

fn alive(pid: i32) -> bool {
    u32::try_from(pid).is_ok_and(scratch::alive)
}
