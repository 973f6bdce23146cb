// SPDX-License-Identifier: PostgreSQL
//! A server, from outside: how to connect to it, and what its postmaster.pid says.
//!
//! The environment of libpq counts (PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE);
//! encrypted connections do not, since these are to servers of this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use postgres::config::Host;
use postgres::{Client, Config, NoTls};

use crate::error::Error;
use crate::target::{self, Spec};

/// Where sockets usually are: Debian's folder, then PostgreSQL's own default.
const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];
const DEFAULT_PORT: u16 = 5432;

/// The first lines of a running server's postmaster.pid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostmasterFile {
    /// Its first process.
    pub pid: u32,
    /// Its port.
    pub port: u16,
    /// The folder of its first socket; empty when it has none.
    pub socket_dir: String,
}

impl PostmasterFile {
    /// Of this data directory; none when no server runs there or it is not for us to read.
    pub fn read(data: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(data.join("postmaster.pid")).ok()?;
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let pid: u32 = lines.first()?.parse().ok()?;
        scratch::alive(pid).then_some(Self {
            pid,
            port: lines.get(3)?.parse().ok()?,
            socket_dir: lines.get(4)?.to_string(),
        })
    }
}

/// Connect to the server that TARGET means; for a segment, to the server it tells of.
pub fn connect_target(target: Option<&str>) -> Result<Client, Error> {
    connect_config(config_of(target)?)
}

/// The same, to another database.
pub fn connect_database(target: Option<&str>, database: &str) -> Result<Client, Error> {
    let mut config = config_of(target)?;
    config.dbname(database);
    connect_config(config)
}

/// How to reach the server that a segment tells of, where it may let us in.
pub fn of_segment(header: &segment::Header) -> Option<String> {
    // Hardly any server knows a role "root": to try would only put a line into its log.
    let stranger = rustix::process::geteuid().is_root() && std::env::var_os("PGUSER").is_none();
    let port = u16::try_from(header.server_port).ok().filter(|port| *port != 0 && !stranger)?;
    Some(socket_string(&header.socket_dir, port))
}

/// Connect by a connection string, to this database.
pub fn connect_within(string: &str, database: &str) -> Result<Client, Error> {
    let mut config = parse(string)?;
    config.dbname(database);
    connect_config(config)
}

/// Connect by a connection string or URI, completed from the environment.
pub fn connect(string: &str) -> Result<Client, Error> {
    connect_config(parse(string)?)
}

fn parse(string: &str) -> Result<Config, Error> {
    string.parse().map_err(|error| Error::Usage(format!("not a connection string: {error}")))
}

fn config_of(target: Option<&str>) -> Result<Config, Error> {
    match Spec::parse(target)? {
        Spec::Connection(string) => parse(&string),
        Spec::Only => Ok(Config::new()),
        Spec::DataDirectory(data) => match PostmasterFile::read(&data) {
            Some(file) => parse(&socket_string(&file.socket_dir, file.port)),
            None => Err(Error::Failed(format!(
                "{}: no server runs there, or its postmaster.pid is not for you to read; run this \
                 as the server's user, or give a connection string",
                data.display()
            ))),
        },
        Spec::Segment(path) => {
            let segment = segment::Segment::open(&path)?;
            let header = segment.header();
            match u16::try_from(header.server_port) {
                Ok(port) if port != 0 => parse(&socket_string(&header.socket_dir, port)),
                _ => Err(Error::Usage(format!(
                    "{}: not the segment of a PostgreSQL server; give a connection string",
                    path.display()
                ))),
            }
        }
    }
}

/// A connection string for a server of this machine.
pub fn socket_string(folder: &str, port: u16) -> String {
    let host = if folder.is_empty() { "localhost" } else { folder };
    format!("host='{}' port={port}", host.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn connect_config(mut config: Config) -> Result<Client, Error> {
    complete(&mut config);
    config.connect(NoTls).map_err(|error| refused(&error, &config))
}

/// Settings can only be changed by a superuser.
pub fn require_superuser(client: &mut Client) -> Result<(), Error> {
    let row =
        client.query_one("select current_setting('is_superuser'), current_user::text", &[])?;
    if row.get::<_, &str>(0) == "on" {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "role {} is not a superuser, and only a superuser may change the settings of a server; \
         connect as one",
        row.get::<_, &str>(1)
    )))
}

/// The segment of the server at the other end, whether it exists or not: where the extension
/// would put it. None when the role may not see the data directory.
pub fn segment_path(client: &mut Client) -> Result<Option<PathBuf>, Error> {
    let row = client.query_one(
        "select current_setting('pg_tally.directory', true), \
                (select setting from pg_settings where name = 'data_directory')",
        &[],
    )?;
    let text = |at: usize| row.get::<_, Option<&str>>(at).filter(|text| !text.is_empty());
    let Some(data) = text(1) else { return Ok(None) };
    let folder = Path::new(text(0).unwrap_or(target::DEFAULT_FOLDER));
    Ok(Some(folder.join(target::name_of(Path::new(data))?)))
}

fn complete(config: &mut Config) {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if config.get_ports().is_empty() {
        let port = variable("PGPORT").and_then(|port| port.parse().ok()).unwrap_or(DEFAULT_PORT);
        config.port(port);
    }
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let port = config.get_ports()[0];
        match variable("PGHOST") {
            Some(host) => config.host(&host),
            None => config.host(socket_folder(port)),
        };
    }
    if config.get_user().is_none() {
        config.user(&variable("PGUSER").unwrap_or_else(own_name));
    }
    if config.get_password().is_none() {
        if let Some(password) = variable("PGPASSWORD") {
            config.password(password);
        }
    }
    if config.get_dbname().is_none() {
        config.dbname(variable("PGDATABASE").as_deref().unwrap_or("postgres"));
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(10));
    }
    if config.get_application_name().is_none() {
        config.application_name("tally");
    }
}

fn socket_folder(port: u16) -> &'static str {
    SOCKET_FOLDERS
        .into_iter()
        .find(|folder| Path::new(folder).join(format!(".s.PGSQL.{port}")).exists())
        .unwrap_or(SOCKET_FOLDERS[0])
}

/// The caller's name as PostgreSQL's peer authentication sees it.
fn own_name() -> String {
    let uid = rustix::process::geteuid().as_raw();
    std::fs::read_to_string("/etc/passwd")
        .ok()
        .and_then(|text| {
            text.lines().find_map(|line| {
                let mut fields = line.split(':');
                let name = fields.next()?;
                (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_string())
            })
        })
        .or_else(|| std::env::var("USER").ok())
        .unwrap_or_else(|| "postgres".into())
}

fn refused(error: &postgres::Error, config: &Config) -> Error {
    let user = config.get_user().unwrap_or_default();
    let place = match (config.get_hosts().first(), config.get_ports().first()) {
        (Some(Host::Unix(folder)), Some(port)) => {
            PathBuf::from(folder).join(format!(".s.PGSQL.{port}")).display().to_string()
        }
        (Some(Host::Tcp(host)), Some(port)) => format!("{host}:{port}"),
        _ => "the server".into(),
    };
    let cause = match error.as_db_error() {
        Some(db) => db.message().to_string(),
        None => match std::error::Error::source(error) {
            Some(cause) => cause.to_string(),
            None => error.to_string(),
        },
    };
    let denied = error.as_db_error().is_some_and(|db| db.code().code().starts_with("28"));
    let remedy = if denied {
        "; run this as the server's user (sudo -u postgres tally ...) or give a connection string \
         with a superuser"
    } else if error.as_db_error().is_none() {
        "; is the server running? A data directory or a connection string names another one"
    } else {
        ""
    };
    Error::Failed(format!("cannot connect to {place} as {user}: {cause}{remedy}"))
}
