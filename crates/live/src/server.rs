// SPDX-License-Identifier: PostgreSQL
//! Connects to a server, as libpq would by its environment (PGHOST, PGPORT, PGUSER, PGPASSWORD,
//! PGDATABASE). Connections are not encrypted, since the server is on this machine.
//!
//! A file may also name the server: a data directory's postmaster.pid, or a segment. Only a socket
//! of that file's owner is used then. PGPASSWORD is sent to a server that the user named by a
//! connection string, a data directory, or PGHOST and PGPORT; it is not sent to a server that only
//! another user's segment names.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgres::config::Host;
use postgres::{Client, Config, NoTls};
use segment::Segment;

use crate::postmaster_file::PostmasterFile;
use crate::spec::Spec;
use error::Error;

/// The usual socket directories: Debian's, then PostgreSQL's default.
const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];
const DEFAULT_PORT: u16 = 5432;

/// The socket of a server that a file names, and its required owner.
#[derive(Debug, Clone)]
pub struct Socket {
    folder: PathBuf,
    port: u16,
    owner: u32,
    /// Whether the environment's password is meant for this server.
    named: bool,
}

impl Socket {
    /// The socket of a segment's server, if it has one.
    pub fn of_segment(segment: &Segment) -> Option<Socket> {
        let header = segment.header();
        let folder = PathBuf::from(&header.socket_dir);
        let port = u16::try_from(header.server_port).ok().filter(|port| *port != 0)?;
        let (owner, named) = (segment.owner(), segment.is_own());
        folder.is_absolute().then_some(Socket { folder, port, owner, named })
    }

    /// The same, for optional questions: `None` if the server would refuse us anyway.
    pub fn open_to_us(segment: &Segment) -> Option<Socket> {
        // Hardly any server knows a role "root": to try would only put a line into its log.
        let root = rustix::process::geteuid().is_root() && std::env::var_os("PGUSER").is_none();
        Self::of_segment(segment).filter(|_| !root)
    }

    /// Connect, to this database or to the environment's.
    pub fn connect(&self, database: Option<&str>) -> Result<Client, Error> {
        let mut config = self.config()?;
        if let Some(database) = database {
            config.dbname(database);
        }
        connect_config(config, self.named)
    }

    /// Checks the socket's owner first. In a directory that all may write, such as /tmp, nobody else
    /// can replace the socket while the owner's exists.
    fn config(&self) -> Result<Config, Error> {
        let path = self.folder.join(format!(".s.PGSQL.{}", self.port));
        let named =
            |why: &dyn std::fmt::Display| Error::Failed(format!("{}: {why}", path.display()));
        let meta = path.symlink_metadata().map_err(|error| named(&error))?;
        if !meta.file_type().is_socket() || ![self.owner, 0].contains(&meta.uid()) {
            return Err(named(
                &"not a socket of the server's user, so not connected to; a connection string \
                  names the server",
            ));
        }
        let mut config = Config::new();
        config.host_path(&self.folder).port(self.port);
        Ok(config)
    }
}

/// Connect to the server that TARGET names; for a segment, to its server.
pub fn connect_target(target: Option<&str>) -> Result<Client, Error> {
    let (config, named) = config_of(target)?;
    connect_config(config, named)
}

/// The same, to another database.
pub fn connect_database(target: Option<&str>, database: &str) -> Result<Client, Error> {
    let (mut config, named) = config_of(target)?;
    config.dbname(database);
    connect_config(config, named)
}

/// Connect by a connection string or URI, completed from the environment.
pub fn connect(string: &str) -> Result<Client, Error> {
    connect_config(parse(string)?, true)
}

fn parse(string: &str) -> Result<Config, Error> {
    string.parse().map_err(|error| Error::Usage(format!("not a connection string: {error}")))
}

/// How to connect, and whether the environment's password is meant for that server.
fn config_of(target: Option<&str>) -> Result<(Config, bool), Error> {
    match Spec::parse(target)? {
        Spec::Connection(string) => Ok((parse(&string)?, true)),
        Spec::Only => Ok((Config::new(), true)),
        Spec::DataDirectory(data) => match PostmasterFile::read(&data) {
            Some(file) if Path::new(&file.socket_dir).is_absolute() => {
                let owner = std::fs::metadata(&data)?.uid();
                let folder = PathBuf::from(file.socket_dir);
                let socket = Socket { folder, port: file.port, owner, named: true };
                Ok((socket.config()?, true))
            }
            Some(file) => Ok((parse(&socket_string(&file.socket_dir, file.port))?, true)),
            None => Err(Error::Failed(format!(
                "{}: no server runs there, or you may not read its postmaster.pid; run this as the \
                 server's user, or give a connection string",
                data.display()
            ))),
        },
        Spec::Segment(path) => {
            let segment = Segment::open(&path)?;
            let Some(socket) = Socket::of_segment(&segment) else {
                return Err(Error::Usage(format!(
                    "{}: not the segment of a PostgreSQL server with a Unix-domain socket; give a \
                     connection string",
                    path.display()
                )));
            };
            Ok((socket.config()?, socket.named))
        }
    }
}

/// A connection string for a server of this machine.
pub fn socket_string(folder: &str, port: u16) -> String {
    let host = if folder.is_empty() { "localhost" } else { folder };
    format!("host='{}' port={port}", host.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Resolves names without a schema in pg_catalog only: a database's owner may have set a
/// search_path that leads to other functions, and we may be superuser.
const SAFE_PATH: &str = "/* tally */ SET search_path = pg_catalog, pg_temp";

fn connect_config(mut config: Config, named: bool) -> Result<Client, Error> {
    let held_back = complete(&mut config, named);
    let mut client = config.connect(NoTls).map_err(|error| refused(&error, &config, held_back))?;
    client.batch_execute(SAFE_PATH)?;
    Ok(client)
}

/// An error unless the role is a superuser, who alone may change settings.
pub fn require_superuser(client: &mut Client) -> Result<(), Error> {
    let row = client
        .query_one("/* tally */ select current_setting('is_superuser'), current_user::text", &[])?;
    if row.get::<_, &str>(0) == "on" {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "role {} is not a superuser, and only a superuser may change the settings of a server; \
         connect as one",
        row.get::<_, &str>(1)
    )))
}

/// Complete from the environment. Returns whether it has a password not `meant` for this server.
fn complete(config: &mut Config, meant: bool) -> bool {
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
    let password = variable("PGPASSWORD").filter(|_| config.get_password().is_none());
    let held_back = password.is_some() && !meant;
    if let Some(password) = password.filter(|_| meant) {
        config.password(password);
    }
    if config.get_dbname().is_none() {
        config.dbname(variable("PGDATABASE").as_deref().unwrap_or("postgres"));
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(10));
    }
    if config.get_application_name().is_none() {
        config.application_name(segment::own::APPLICATION);
    }
    held_back
}

fn socket_folder(port: u16) -> &'static str {
    SOCKET_FOLDERS
        .into_iter()
        .find(|folder| Path::new(folder).join(format!(".s.PGSQL.{port}")).exists())
        .unwrap_or(SOCKET_FOLDERS[0])
}

/// The caller's name as PostgreSQL's peer authentication sees it.
fn own_name() -> String {
    segment::passwd_name(rustix::process::geteuid().as_raw())
        .or_else(|| std::env::var("USER").ok())
        .unwrap_or_else(|| "postgres".into())
}

fn refused(error: &postgres::Error, config: &Config, held_back: bool) -> Error {
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
    let remedy = if held_back {
        "; PGPASSWORD was not sent, since only another user's segment names this server: give its \
         data directory or a connection string"
    } else if denied {
        "; run this as the server's user (sudo -u postgres tally ...) or give a connection string \
         with a superuser"
    } else if error.as_db_error().is_none() {
        "; is the server running? A data directory or a connection string names another one"
    } else {
        ""
    };
    Error::Failed(format!("cannot connect to {place} as {user}: {cause}{remedy}"))
}
