// SPDX-License-Identifier: PostgreSQL
//! `tally disable`: removes pg_tally from the settings, switches it off at once, and removes what
//! pg_tally or `tally enable` created. It names what it cannot remove, with the way to do so.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use pq::Client;
use segment::{Level, LevelSwitch, Segment, SegmentPath};

use clap::Args;
use error::Error;
use live::extension::{self, Dropped};
use live::library_list::{Change, LibraryList};
use live::{server, target};

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
/// Where a clean shutdown stores the statements, within the data directory.
const KEPT_IN: &str = "pg_stat";

/// Disable pg_tally. Does nothing if it is not enabled.
pub fn run(args: &DisableArgs) -> Result<(), Error> {
    disable(args).map_err(|error| server::interrupted(error, "tally disable"))
}

fn disable(args: &DisableArgs) -> Result<(), Error> {
    let mut client = server::connect_target(args.target.as_deref())?;
    server::require_superuser(&mut client)?;
    let shared = LibraryList::read(&mut client, "shared_preload_libraries")?;
    let session = LibraryList::read(&mut client, "session_preload_libraries")?;
    let segment_path = target::segment_path_of(&mut client)?.filter(SegmentPath::is_owners);
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
    let data: String = client.query_one("select current_setting('data_directory')", &[])?.get(0);
    let databases = extension::databases(&mut client)?;
    let kept = kept_statements(&mut client)?;
    // Our own session may be instrumented, by the setting that has just been removed.
    drop(client);
    if had_level {
        // The reload sets the level to the default; set ours after that.
        std::thread::sleep(RELOAD);
    }

    let mut out = view::escape::stdout();
    let mut by_hand = false;
    for (name, change) in &changes {
        match change {
            Change::None => {}
            Change::Made => writeln!(out, "{name} no longer names pg_tally")?,
            Change::ByHand(segment_path) => {
                by_hand = true;
                writeln!(
                    out,
                    "{name} still names pg_tally: remove it from {segment_path}, then reload"
                )?;
            }
        }
    }
    let mut found =
        changes.iter().any(|(_, change)| *change != Change::None) || segment_path.is_some();
    let mut left = Vec::new();
    found |= drop_extensions(args, &databases, &mut out, &mut left)?;
    for name in &kept {
        found = true;
        remove(&Path::new(&data).join(KEPT_IN).join(name), &mut out, &mut left)?;
    }
    if !found && left.is_empty() {
        writeln!(out, "pg_tally is not enabled on {data}; nothing to do")?;
        return Ok(());
    }
    if let Some(segment_path) = &segment_path {
        match finish(segment_path, &data, shared.is_running(), by_hand, &mut out) {
            Err(error @ Error::Io(_)) => return Err(error),
            Err(error) => left.push(error.to_string()),
            Ok(()) => {}
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    Err(Error::Failed(format!("{}\nRun `tally disable` again to finish", left.join("\n"))))
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

/// Names of the files in which the server's last run stored its statements. A server with the library
/// reads and removes them at its start.
fn kept_statements(client: &mut Client) -> Result<Vec<String>, Error> {
    let rows = client.query(
        "select name from pg_ls_dir('pg_stat') as name \
         where name in ('pg_tally.statements', 'pg_tally.statements.new', \
                        'pg_tally.statements.damaged') order by name",
        &[],
    )?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

fn remove(path: &Path, out: &mut impl Write, left: &mut Vec<String>) -> Result<(), Error> {
    let path_shown = path.display();
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            left.push(format!("could not remove {path_shown}: {error}"));
        }
        _ => writeln!(out, "{path_shown} is removed")?,
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
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Switch measuring off, and remove the segment once no session uses it.
fn finish(
    segment_path: &SegmentPath,
    data: &str,
    shared: bool,
    by_hand: bool,
    out: &mut impl Write,
) -> Result<(), Error> {
    let path = segment_path.path();
    let switched = LevelSwitch::open(segment_path).map(|switch| {
        switch.keep_statements(false);
        switch.set(Level::Off);
    });
    match switched {
        Err(segment::Error::NotFound { .. }) => {}
        Err(error) => {
            return Err(Error::Failed(format!(
                "running sessions are measured until they end: {error}"
            )));
        }
        Ok(()) if shared || by_hand => writeln!(out, "the level is off for all processes")?,
        Ok(()) => {}
    }
    if shared {
        writeln!(
            out,
            "the server's processes keep the library, switched off, until the server restarts; \
             segment {} is removed then, and no statements are kept",
            path.display()
        )?;
        return Ok(());
    }
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
