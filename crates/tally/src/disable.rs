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

use crate::connection::ConnectionFlags;

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
    let changes = [
        ("shared_preload_libraries", shared.remove(&mut client)?),
        ("session_preload_libraries", session.remove(&mut client)?),
    ];
    // Our settings in the files must not stay behind; the level in the segment is enough.
    let settings = settings_in_files(&mut client)?;
    let had_level = settings.iter().any(|name| name == "pg_tally.level");
    if !settings.is_empty() {
        // Without it the server rejects the settings' names.
        client.batch_execute("LOAD 'pg_tally'")?;
    }
    for name in &settings {
        client.batch_execute(&format!("ALTER SYSTEM RESET {name}"))?;
    }
    client.batch_execute("select pg_reload_conf()")?;
    let data: String = client.query_one("select current_setting('data_directory')", &[])?.get(0)?;
    let databases = extension::databases(&mut client)?;
    let saved = switch::saved_statements(&mut client)?;
    let removed = switch::remove_saved_statements(&mut client, &saved);
    // Our own session may be instrumented, by the setting that has just been removed.
    drop(client);
    if had_level || local.is_none() {
        // The reload sets the level to the default; set ours after that, and by a session that it does not measure.
        std::thread::sleep(RELOAD);
    }

    let mut out = view::escape::stdout();
    let mut by_hand = false;
    for (name, change) in &changes {
        match change {
            Change::None => {}
            Change::Made => writeln!(out, "{name} no longer names pg_tally")?,
            Change::ByHand(place) => {
                by_hand = true;
                writeln!(out, "{name} still names pg_tally: remove it from {place}, then reload")?;
            }
        }
    }
    let mut found = changes.iter().any(|(_, change)| *change != Change::None);
    let mut left = Vec::new();
    found |= drop_extensions(args, &databases, &mut out, &mut left)?;
    found |= !saved.is_empty();
    report_saved(&data, &saved, removed, &mut out, &mut left)?;
    let running = switch_off(args, local.as_ref(), &data, shared.is_running(), by_hand, &mut out);
    match running {
        Err(error @ Error::Io(_)) => return Err(error),
        Err(error) => left.push(error.to_string()),
        Ok(were_running) => found |= were_running,
    }
    if !left.is_empty() {
        return Err(Error::Failed(format!(
            "{}\nRun `tally disable` again to finish",
            left.join("\n")
        )));
    }
    if !found {
        writeln!(out, "pg_tally is not enabled on {data}; nothing to do")?;
    }
    Ok(())
}

/// Drops the extension in each database where `enable` created it. Returns whether it found any.
fn drop_extensions(
    args: &DisableArgs,
    databases: &[String],
    out: &mut impl Write,
    left: &mut Vec<String>,
) -> Result<bool, Error> {
    let mut found = false;
    for database in databases {
        let dropped = server::connect_database(args.target.as_deref(), database)
            .and_then(|mut client| extension::drop(&mut client));
        match dropped {
            Ok(Dropped::None) => continue,
            Ok(Dropped::Done) => {
                writeln!(out, "extension pg_tally of database {database} dropped")?
            }
            Ok(Dropped::Kept(why)) => writeln!(
                out,
                "database {database} keeps extension pg_tally: {why}; DROP EXTENSION pg_tally in \
                 that database removes it"
            )?,
            Err(error) => {
                left.push(format!(
                    "could not drop extension pg_tally of database {database}: {error}; DROP EXTENSION \
                     pg_tally in that database removes it"
                ));
                continue;
            }
        }
        found = true;
    }
    Ok(found)
}

/// Says which files with statements the server has removed, and which it has not.
fn report_saved(
    data: &str,
    saved: &[String],
    removed: Result<Vec<String>, Error>,
    out: &mut impl Write,
    left: &mut Vec<String>,
) -> Result<(), Error> {
    let (removed_now, why) = match removed {
        Ok(names) => (names, String::new()),
        Err(error) => (Vec::new(), format!(": {error}")),
    };
    for name in saved {
        if removed_now.contains(name) {
            writeln!(out, "{data}/{name} is removed")?;
        } else {
            left.push(format!("could not remove {data}/{name}{why}"));
        }
    }
    Ok(())
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

/// Switches measuring off, and removes the segment once no session uses it. Returns whether there was one.
fn switch_off(
    args: &DisableArgs,
    local: Option<&LocalServer>,
    data: &str,
    shared: bool,
    by_hand: bool,
    out: &mut impl Write,
) -> Result<bool, Error> {
    let running = match switch::in_segment(local, Level::Off, false) {
        // A new session, which the reload keeps from being measured.
        Ok(None) => server::connect_target(args.target.as_deref())
            .and_then(|mut client| switch::by_server(&mut client, Level::Off, false)),
        set => set.map(|set| set == Some(true)),
    };
    let running = running.map_err(|error| {
        Error::Failed(format!("running sessions are measured until they end: {error}"))
    })?;
    if !running {
        return Ok(false);
    }
    if shared || by_hand || local.is_none() {
        writeln!(out, "the level is off for all processes")?;
    }
    if shared {
        let segment = match local {
            Some(local) => format!("segment {}", local.segment_path().path().display()),
            None => "its segment".to_string(),
        };
        writeln!(
            out,
            "the server's processes keep the library, switched off, until the server restarts; \
             {segment} is removed then, and no statements are kept"
        )?;
        return Ok(true);
    }
    match local {
        Some(local) => remove_segment(local.segment_path(), data, by_hand, out)?,
        None => writeln!(
            out,
            "sessions that run now keep the library, switched off, until they end; the last one removes the \
             server's segment"
        )?,
    }
    Ok(true)
}

/// Waits until no session uses the segment of this machine's server, and removes it.
fn remove_segment(
    segment_path: &SegmentPath,
    data: &str,
    by_hand: bool,
    out: &mut impl Write,
) -> Result<(), Error> {
    let path = segment_path.path();
    let began = Instant::now();
    loop {
        let segment = match Segment::open(segment_path) {
            Err(segment::Error::NotFound { .. }) => {
                writeln!(out, "the segment is removed")?;
                return Ok(());
            }
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
            writeln!(
                out,
                "{left} {sessions} the library, switched off, until they end; the last one removes \
                 segment {} (or run `tally disable {data}` again)",
                path.display()
            )?;
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
}

fn alive(pid: i32) -> bool {
    u32::try_from(pid).is_ok_and(scratch::alive)
}
