// SPDX-License-Identifier: PostgreSQL
//! `tally disable`: out of the settings, off at once, and nothing left behind that pg_tally or
//! `tally enable` has made; what has to be left is named, with the way to remove it.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use postgres::Client;
use segment::{Level, LevelSwitch, Segment, SegmentPath};

use clap::Args;
use error::Error;
use live::extension::{self, Dropped};
use live::library_list::{Change, LibraryList};
use live::{server, target};

/// Arguments of `tally disable`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo -u postgres tally disable
  tally disable 'host=/run/postgresql user=postgres'")]
pub struct DisableArgs {
    /// The server: a connection string or a data directory
    pub target: Option<String>,
}

/// The server reads its files again, and our own session ends, within this time.
const PATIENCE: Duration = Duration::from_secs(5);
const RELOAD: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(50);
/// Where a server that stops in good order keeps its statements, in the data directory.
const KEPT_IN: &str = "pg_stat";

/// Disable it. Where it is not enabled, nothing happens.
pub fn run(args: &DisableArgs) -> Result<(), Error> {
    let mut client = server::connect_target(args.target.as_deref())?;
    server::require_superuser(&mut client)?;
    let shared = LibraryList::read(&mut client, "shared_preload_libraries")?;
    let session = LibraryList::read(&mut client, "session_preload_libraries")?;
    let place = target::segment_path_of(&mut client)?.filter(SegmentPath::is_owners);
    let changes = [
        ("shared_preload_libraries", shared.remove(&mut client)?),
        ("session_preload_libraries", session.remove(&mut client)?),
    ];
    // Settings of ours in the files would be remainders; the segment's own word is enough.
    let settings = settings_in_files(&mut client)?;
    let had_level = settings.iter().any(|name| name == "pg_tally.level");
    if !settings.is_empty() {
        // So that the server knows the settings.
        client.batch_execute("LOAD 'pg_tally'")?;
    }
    for name in &settings {
        client.batch_execute(&format!("ALTER SYSTEM RESET {name}"))?;
    }
    client.batch_execute("select pg_reload_conf()")?;
    let data: String = client.query_one("select current_setting('data_directory')", &[])?.get(0);
    let databases = extension::databases(&mut client)?;
    let kept = kept_statements(&mut client)?;
    // Our session may be instrumented itself, by the setting that is gone now.
    drop(client);
    if had_level {
        // The reload sets the level to the default; ours must come after that.
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
    let mut found = changes.iter().any(|(_, change)| *change != Change::None) || place.is_some();
    found |= drop_extensions(args, &databases, &mut out)?;
    for name in &kept {
        found = true;
        remove(&Path::new(&data).join(KEPT_IN).join(name), &mut out)?;
    }
    if !found {
        writeln!(out, "pg_tally is not enabled on {data}; nothing to do")?;
        return Ok(());
    }
    if let Some(place) = &place {
        finish(place, &data, shared.is_running(), by_hand, &mut out)?;
    }
    Ok(())
}

/// In each database where `enable` has created the extension. Returns whether any has one.
fn drop_extensions(
    args: &DisableArgs,
    databases: &[String],
    out: &mut impl Write,
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
            Err(error) => writeln!(
                out,
                "could not check database {database} for extension pg_tally: {error}"
            )?,
        }
        found = true;
    }
    Ok(found)
}

/// Names of the files in which the last run of the server has kept its statements. A server that
/// has the library takes them at its start, so that there is none while it runs.
fn kept_statements(client: &mut Client) -> Result<Vec<String>, Error> {
    let rows = client.query(
        "select name from pg_ls_dir('pg_stat') as name \
         where name in ('pg_tally.statements', 'pg_tally.statements.new', \
                        'pg_tally.statements.damaged') order by name",
        &[],
    )?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

fn remove(path: &Path, out: &mut impl Write) -> Result<(), Error> {
    let path_shown = path.display();
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            writeln!(out, "{path_shown} could not be removed ({error}); rm {path_shown}")?
        }
        _ => writeln!(out, "{path_shown} is removed")?,
    }
    Ok(())
}

/// What `enable`, `functions` or somebody's ALTER SYSTEM has put there, sound names only.
fn settings_in_files(client: &mut Client) -> Result<Vec<String>, Error> {
    let rows = client.query(
        "select distinct name from pg_file_settings \
         where name ~ '^pg_tally[.][a-z_]+$' and sourcefile like '%postgresql.auto.conf'",
        &[],
    )?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Switch off what still runs, and remove the segment when nothing does.
fn finish(
    place: &SegmentPath,
    data: &str,
    shared: bool,
    by_hand: bool,
    out: &mut impl Write,
) -> Result<(), Error> {
    let path = place.path();
    let switched = LevelSwitch::open(place).map(|switch| {
        switch.keep_statements(false);
        switch.set(Level::Off);
    });
    if let Err(error) = switched {
        if !matches!(error, segment::Error::NotFound { .. }) {
            writeln!(out, "running sessions are measured until they end: {error}")?;
        }
    } else if shared || by_hand {
        writeln!(out, "the level is off for all processes")?;
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
        let Ok(segment) = Segment::open(place) else {
            writeln!(out, "the segment is removed")?;
            return Ok(());
        };
        let left = segment.claims()?.iter().filter(|claim| alive(claim.pid)).count();
        if left == 0 && !by_hand {
            // The last session removes it; one that was killed could not.
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
