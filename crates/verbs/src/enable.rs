// SPDX-License-Identifier: PostgreSQL
//! `tally enable`: loads the extension into a server, and reports which processes it covers.

use std::io::Write;
use std::time::Duration;

use clap::{Args, ValueEnum};
use command::ConnectionFlags;
use command::Level;
use error::Error;
use live::extension::{self, ExtensionChange};
use live::library_list::{Change, LibraryList};
use live::local_server::LocalServer;
use live::{server, switch};
use pq::{Client, Row};

/// Arguments of `tally enable`.
#[derive(Debug, Args)]
#[command(after_help = "\
TARGET is a connection string or a data directory; the role must be a superuser. Without TARGET, \
PGHOST, PGPORT, PGUSER and PGDATABASE are used.

Examples:
  sudo -u postgres tally enable
  tally enable --mode shared 'host=/run/postgresql user=postgres'
  tally enable --database app 'postgresql://postgres@localhost/postgres'")]
pub struct EnableArgs {
    /// The server: a connection string or a data directory
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// Which processes to cover
    #[arg(long, value_enum, default_value_t = Mode::Session)]
    pub mode: Mode,
    /// Measuring level
    #[arg(long, value_enum, default_value_t = Level::Waits)]
    pub level: Level,
    /// Also create or update the extension's SQL views in this database; can be repeated
    #[arg(long, value_name = "NAME")]
    pub database: Vec<String>,
}

/// How the library is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Through session_preload_libraries: new sessions, without a restart
    Session,
    /// Through shared_preload_libraries: all processes, after a restart
    Shared,
}

/// Enables pg_tally. Running it again changes nothing.
pub fn run(args: &EnableArgs) -> Result<(), Error> {
    enable(args).map_err(|error| server::interrupted(error, "tally enable"))
}

fn enable(args: &EnableArgs) -> Result<(), Error> {
    let mut client = server::connect_target(args.target.as_deref())?;
    server::require_superuser(&mut client)?;
    let local = LocalServer::of_connection(&mut client)?;
    load_here(&mut client)?;
    // This comes first, so that nothing else has changed if a schema of that name exists.
    let mut made = Vec::new();
    for database in &args.database {
        let mut client = server::connect_database(args.target.as_deref(), database)?;
        made.push(extension::create(&mut client, database)?);
    }

    let shared = LibraryList::read(&mut client, "shared_preload_libraries")?;
    let session = LibraryList::read(&mut client, "session_preload_libraries")?;
    let change = match args.mode {
        Mode::Shared => shared.add(&mut client)?,
        // The library is already loaded into all processes.
        Mode::Session if shared.is_running() && shared.has() => Change::None,
        Mode::Session => session.add(&mut client)?,
    };
    let moved = match args.mode {
        Mode::Shared => session.remove(&mut client)?,
        Mode::Session => Change::None,
    };
    set_level(&mut client, args)?;
    let switched = switch_running(&mut client, local.as_ref(), args);
    let loaded: String = client.query_one(LOADED, &[])?.get(0)?;
    client.batch_execute("select pg_reload_conf()")?;

    let mut out = view::escape::stdout();
    report(args, &mut client, local.as_ref(), &shared, &change, &mut out)?;
    if let Change::ByHand(place) = moved {
        writeln!(out, "  note         session_preload_libraries also names pg_tally ({place})")?;
    }
    for line in own_lists(&mut client)? {
        writeln!(out, "  not covered  {line}")?;
    }
    for (database, made) in args.database.iter().zip(&made) {
        write!(out, "  SQL          schema tally in database {database}")?;
        match made {
            ExtensionChange::Updated(from, to) => {
                writeln!(out, ", updated from version {from} to {to}")?
            }
            ExtensionChange::New | ExtensionChange::Nothing => writeln!(out)?,
        }
    }
    switched?;
    follows(args.target.as_deref(), &loaded)
}

/// When the configuration was loaded, in seconds since 1970: in a new session, when the postmaster did so.
const LOADED: &str = "select extract(epoch from pg_conf_load_time())::text";
/// Number of queries whether the server has reloaded, and the time between them. Old sessions of a pool never report it.
const TRIES: u32 = 40;
const POLL: Duration = Duration::from_millis(50);

/// Waits until new sessions have what was changed, so that the next command finds pg_tally there.
fn follows(target: Option<&str>, loaded: &str) -> Result<(), Error> {
    for _ in 0..TRIES {
        let mut new = server::connect_target(target)?;
        let later = format!("select ({LOADED})::numeric > $1::numeric");
        if new.query_one(&later, &[&loaded])?.get(0)? {
            break;
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// LOAD proves that the server finds the library and that it fits this server. It does nothing if the library is
/// already loaded.
fn load_here(client: &mut Client) -> Result<(), Error> {
    let Err(error) = client.batch_execute("LOAD 'pg_tally'") else { return Ok(()) };
    if error.sqlstate().is_none() {
        return Err(error.into());
    }
    let row = client.query_one(
        "select (select setting from pg_config where name = 'PKGLIBDIR'), \
                (select setting from pg_config where name = 'BINDIR')",
        &[],
    )?;
    let (folder, bin): (&str, &str) = (row.get(0)?, row.get(1)?);
    let reason = error.message().to_string();
    Err(Error::Failed(format!(
        "the server cannot load pg_tally: {reason}\nIt must be installed in {folder}. In pgtally's source \
         directory, run: sudo make install PG_CONFIG={bin}/pg_config"
    )))
}

/// Sets the level if it differs. The default needs no line in the configuration files, but in session mode before PostgreSQL
/// 16, each new session defines `pg_tally.level` and `pg_tally.functions` in a sixth of the instructions if the files set them:
/// then the server does not sort its table of settings (guc.c, `define_custom_variable`).
fn set_level(client: &mut Client, args: &EnableArgs) -> Result<(), Error> {
    let wanted = args.level.name();
    let row = client.query_one(
        "select current_setting('pg_tally.level'), \
                (select source from pg_settings where name = 'pg_tally.level'), \
                (select source from pg_settings where name = 'pg_tally.functions'), \
                current_setting('server_version_num')::int >= 160000",
        &[],
    )?;
    let (current, level, functions): (&str, &str, &str) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let sorts = args.mode == Mode::Session && !row.get::<bool>(3)?;
    if current != wanted || sorts && level == "default" {
        client.batch_execute(&format!("ALTER SYSTEM SET pg_tally.level = '{wanted}'"))?;
    }
    if sorts && functions == "default" {
        client.batch_execute("ALTER SYSTEM SET pg_tally.functions = ''")?;
    }
    Ok(())
}

/// Sets the level of running processes, which may differ from the setting after `tally disable` or `tally cost`.
fn switch_running(
    client: &mut Client,
    local: Option<&LocalServer>,
    args: &EnableArgs,
) -> Result<(), Error> {
    let level = args.level.into();
    let set = match switch::in_segment(local, level, true) {
        Ok(None) => switch::by_server(client, level, true).map(drop),
        set => set.map(drop),
    };
    set.map_err(|error| {
        Error::Failed(format!(
            "could not set the level of running sessions: {error}\nRun `tally enable` again to \
             finish"
        ))
    })
}

fn report(
    args: &EnableArgs,
    client: &mut Client,
    local: Option<&LocalServer>,
    shared: &LibraryList,
    change: &Change,
    out: &mut impl Write,
) -> Result<(), Error> {
    let row = client.query_one(
        "select current_setting('server_version'), current_setting('data_directory'), \
                current_setting('port'), \
                (select count(*) from pg_stat_activity \
                 where backend_type = 'client backend' and pid <> pg_backend_pid())",
        &[],
    )?;
    let (version, data, port): (&str, &str, &str) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let sessions: i64 = row.get(3)?;
    let again = if *change == Change::None { " (it was already)" } else { "" };
    writeln!(
        out,
        "pg_tally is enabled on PostgreSQL {version}, {data}, port {port}; level {}{again}",
        args.level.name()
    )?;
    if shared.is_running() {
        writeln!(out, "  covered now  all processes, through shared_preload_libraries")?;
        next(args, local.map(|_| data), out)?;
    } else if args.mode == Mode::Shared {
        writeln!(out, "  covered now  nothing")?;
        writeln!(out, "  covered      all processes, after a restart of the server")?;
        let command = local.map(|_| format!(", e.g. {}", restart_command(data)));
        writeln!(out, "  next         restart the server{}", command.unwrap_or_default())?;
    } else {
        writeln!(out, "  covered now  every new session, and its parallel workers")?;
        if sessions > 0 {
            let (what, until) = match sessions {
                1 => ("1 running session", "it reconnects"),
                _ => ("running sessions", "they reconnect"),
            };
            let number = if sessions == 1 { String::new() } else { format!("{sessions} ") };
            writeln!(
                out,
                "  not covered  {number}{what}, until {until} (a connection pool: restart or \
                 RECONNECT it)"
            )?;
        }
        writeln!(
            out,
            "  not covered  checkpointer, walwriter, autovacuum and other server processes; \
             `tally enable --mode shared` and a restart cover them"
        )?;
        next(args, local.map(|_| data), out)?;
    }
    Ok(())
}

/// The three commands that a new user needs next, for this server: its data directory leads to it, if it runs here.
fn next(args: &EnableArgs, data: Option<&str>, out: &mut impl Write) -> Result<(), Error> {
    let (target, with) = match (data, &args.target) {
        (Some(data), _) => (format!(" {data}"), ""),
        (None, Some(_)) => (String::new(), ", with the same connection"),
        (None, None) => (String::new(), ""),
    };
    for (at, (verb, what)) in [
        ("status", "which sessions are covered; those that connect from now on are"),
        ("top", "where the time goes, live"),
        ("doctor", "what is wrong, and what to do"),
    ]
    .into_iter()
    .enumerate()
    {
        let label = if at == 0 { "next" } else { "" };
        writeln!(out, "  {label:<12} tally {verb}{target}{with}: {what}")?;
    }
    Ok(())
}

/// On Debian, each cluster is a service that is named by its version and name.
fn restart_command(data: &str) -> String {
    match data.strip_prefix("/var/lib/postgresql/").and_then(|rest| rest.split_once('/')) {
        Some((version, name)) => format!("sudo systemctl restart postgresql@{version}-{name}"),
        None => format!("pg_ctl restart -D {data}"),
    }
}

/// Roles and databases with a session_preload_libraries of their own, which overrides the server's.
fn own_lists(client: &mut Client) -> Result<Vec<String>, Error> {
    let rows = client.query(
        "select coalesce('database ' || d.datname, 'all databases') || ', ' || \
                coalesce('role ' || r.rolname, 'all roles') \
         from pg_db_role_setting s left join pg_database d on d.oid = s.setdatabase \
              left join pg_roles r on r.oid = s.setrole, unnest(setconfig) c \
         where c like 'session_preload_libraries=%' and c not like '%pg_tally%' order by 1",
        &[],
    )?;
    let exempt = |row: &Row| {
        let whose: &str = row.get(0)?;
        Ok(format!("sessions of {whose}, whose own session_preload_libraries takes precedence"))
    };
    rows.iter().map(exempt).collect()
}
