// SPDX-License-Identifier: PostgreSQL
//! `tally disable`: out of the settings, off at once, and nothing left behind.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use postgres::Client;
use segment::{Level, Segment};

use crate::cli::DisableArgs;
use crate::error::Error;
use crate::library_list::{Change, LibraryList};
use crate::server;

/// The server reads its files again, and our own session ends, within this time.
const PATIENCE: Duration = Duration::from_secs(5);
const RELOAD: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(50);

/// Disable it. Where it is not enabled, nothing happens.
pub fn run(args: &DisableArgs) -> Result<(), Error> {
    let mut client = server::connect_target(args.target.as_deref())?;
    server::require_superuser(&mut client)?;
    let shared = LibraryList::read(&mut client, "shared_preload_libraries")?;
    let session = LibraryList::read(&mut client, "session_preload_libraries")?;
    let path = server::segment_path(&mut client)?.filter(|path| path.exists());
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
    // Our session may be instrumented itself, by the setting that is gone now.
    drop(client);
    if had_level {
        // The reload sets the level to the default; ours must come after that.
        std::thread::sleep(RELOAD);
    }

    let mut out = std::io::stdout().lock();
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
    if changes.iter().all(|(_, change)| *change == Change::None) && path.is_none() {
        writeln!(out, "pg_tally is not enabled on {data}; nothing to do")?;
        return Ok(());
    }
    if let Some(path) = &path {
        finish(path, &data, shared.is_running(), by_hand, &mut out)?;
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
    path: &Path,
    data: &str,
    shared: bool,
    by_hand: bool,
    out: &mut impl Write,
) -> Result<(), Error> {
    if let Err(error) = segment::set_level(path, Level::Off) {
        if !matches!(error, segment::Error::NotFound { .. }) {
            writeln!(out, "running sessions go on being measured until they end: {error}")?;
        }
    } else if shared || by_hand {
        writeln!(out, "the level is off for all processes, at once")?;
    }
    if shared {
        writeln!(
            out,
            "the server's processes keep the library, switched off, until the server restarts; \
             its segment {} goes then",
            path.display()
        )?;
        return Ok(());
    }
    let began = Instant::now();
    loop {
        let Ok(segment) = Segment::open(path) else {
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
                "{left} {sessions} the library, switched off, until the end; the last one removes \
                 the segment {} (or another `tally disable {data}` does)",
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
