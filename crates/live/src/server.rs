// SPDX-License-Identifier: PostgreSQL
//! Connects to a server through libpq: flags, environment, service files, password files and certificates work as in
//! psql.
//!
//! A file may also name the server: a data directory's postmaster.pid, or a segment. In this case only a socket
//! of that file's owner is used. A password from the environment, a service file or a password file is sent to a server
//! that the user specified by a connection or a data directory; it is not sent to a server that only another user's
//! segment names.
//!
//! A segment that was found through a connection keeps its connection string ([`segment::SegmentPath::conninfo`]), so that
//! everything that is asked of its server later uses the user, the database and all else that the user named.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pq::{Client, Conninfo};
use process::Proc;
use segment::Segment;

use crate::default_server::{self, is_set};
use crate::postmaster_file::PostmasterFile;
use crate::session_limits;
use crate::spec::{self, Spec};
use error::Error;

/// Seconds to wait for a server, unless the user has set connect_timeout.
const PATIENCE: &str = "10";

/// The error of a command that changes the server step by step, and that continues if it is run again. Without a
/// SQLSTATE, the connection failed, and it is unknown whether the server has executed the statement.
pub fn interrupted(error: Error, command: &str) -> Error {
    match error.cause::<pq::Error>() {
        Some(cause) if cause.sqlstate().is_none() => Error::Failed(format!(
            "lost the connection to the server: {cause}\nSome changes may have been made. Run `{command}` again to \
             finish"
        )),
        _ => error,
    }
}

/// How to connect to the server of a segment.
#[derive(Debug, Clone)]
pub enum Access {
    /// Through the socket that a file names.
    Socket(Socket),
    /// As the user specified, to a server that may run on another machine.
    Connection(Conninfo),
    /// As the user specified, to the server of a segment on this machine.
    Local(LocalConnection),
}

/// How the user connects to the server of a segment on this machine.
#[derive(Debug, Clone)]
pub struct LocalConnection {
    conninfo: Conninfo,
    /// The PID of its postmaster; `None`: it has another one here.
    postmaster: Option<u32>,
}

/// The socket of a server that a file names, and its required owner.
#[derive(Debug, Clone)]
pub struct Socket {
    folder: PathBuf,
    port: u16,
    owner: u32,
    /// Whether a password from the environment may be sent to this server.
    named: bool,
}

impl Access {
    /// How to connect to a segment's server; `None` if the segment does not say.
    pub fn of_segment(segment: &Segment) -> Option<Access> {
        if let Some(conninfo) = segment.remote() {
            return Conninfo::parse(conninfo).ok().map(Access::Connection);
        }
        let header = segment.header();
        if let Some(conninfo) = segment.segment_path().conninfo() {
            let postmaster = segment.knows_pids().then_some(header.server_pid);
            let conninfo = Conninfo::parse(conninfo).ok()?;
            return Some(Access::Local(LocalConnection { conninfo, postmaster }));
        }
        let folder = PathBuf::from(&header.socket_dir);
        let port = u16::try_from(header.server_port).ok().filter(|port| *port != 0)?;
        let (owner, named) = (segment.owner(), segment.is_own());
        let socket = Socket { folder, port, owner, named };
        socket.folder.is_absolute().then_some(Access::Socket(socket))
    }

    /// The same, with an error that says what to do.
    pub fn require(segment: &Segment) -> Result<Access, Error> {
        Self::of_segment(segment).ok_or_else(|| {
            let path = segment.path().display();
            Error::Failed(format!(
                "{path} does not say where its server listens; specify a connection string"
            ))
        })
    }

    /// Whether the server is known to run on this machine.
    pub fn is_local(&self) -> bool {
        !matches!(self, Access::Connection(_))
    }

    /// Connect to this database, or to the one that the user or else the environment specifies, or to `postgres`.
    pub fn connect(&self, database: Option<&str>) -> Result<Client, Error> {
        let mut route = match self {
            Access::Socket(socket) => socket.route()?,
            Access::Connection(conninfo) => ServerRoute::named(conninfo.clone()),
            Access::Local(local) => ServerRoute::named(local.conninfo.clone()),
        };
        match database {
            Some(database) => drop(route.conninfo.set("dbname", database)),
            None => spec::complete_database(&mut route.conninfo),
        }
        let mut client = connect_to(route)?;
        if let Access::Local(LocalConnection { postmaster: Some(postmaster), .. }) = self {
            // The string may name several servers, or an address that moves.
            require_postmaster(&mut client, *postmaster)?;
        }
        Ok(client)
    }
}

/// Fails if the connection does not lead to the server on this machine whose postmaster has this PID.
pub(crate) fn require_postmaster(client: &mut Client, postmaster: u32) -> Result<(), Error> {
    let ours: i32 =
        client.query_one("/* tally */ select pg_backend_pid(), 'tally'", &[])?.get(0)?;
    let stat = u32::try_from(ours).ok().and_then(|pid| Proc::default().stat(pid));
    // A process that does not exist here runs on another machine.
    if stat.is_some_and(|stat| stat.parent == postmaster) {
        return Ok(());
    }
    Err(Error::Failed(
        "connected to another server, not to the one shown; specify the one shown by its data \
         directory or a connection string"
            .into(),
    ))
}

/// How to connect, and what may be sent to the server.
#[derive(Debug)]
struct ServerRoute {
    conninfo: Conninfo,
    /// Whether a password from the environment may be sent to this server.
    named: bool,
    /// The socket, if a file of the server names it.
    socket: Option<PathBuf>,
}

impl ServerRoute {
    /// To the server that the user named.
    fn named(conninfo: Conninfo) -> ServerRoute {
        ServerRoute { conninfo, named: true, socket: None }
    }
}

impl Socket {
    fn path(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }

    fn route(&self) -> Result<ServerRoute, Error> {
        let (conninfo, socket) = (self.conninfo()?, Some(self.path()));
        Ok(ServerRoute { conninfo, named: self.named, socket })
    }

    /// Checks the socket's owner first. In a world-writable directory such as /tmp, no other user
    /// can replace the socket while the owner's exists.
    fn conninfo(&self) -> Result<Conninfo, Error> {
        let path = self.path();
        let named =
            |why: &dyn std::fmt::Display| Error::Failed(format!("{}: {why}", path.display()));
        let meta = path.symlink_metadata().map_err(|error| named(&error))?;
        if !meta.file_type().is_socket() || ![self.owner, 0].contains(&meta.uid()) {
            return Err(named(
                &"not a socket that belongs to the server's user, so not connecting; specify the server by a \
                  connection string",
            ));
        }
        Ok(local(&self.folder.to_string_lossy(), self.port))
    }
}

/// A server on this machine, and the database that the environment names, or else the one that every server has.
fn local(host: &str, port: u16) -> Conninfo {
    let mut conninfo = Conninfo::default();
    // The environment may name the address of another server.
    conninfo.set("host", host).set("hostaddr", "").set("port", port.to_string());
    if !is_set("PGDATABASE") {
        conninfo.set("dbname", "postgres");
    }
    conninfo
}

/// Connect to the server that TARGET specifies; for a segment, to its server.
pub fn connect_target(target: Option<&str>) -> Result<Client, Error> {
    connect_to(route_to(target)?)
}

/// Connect to this database of the server that TARGET specifies.
pub fn connect_database(target: Option<&str>, database: &str) -> Result<Client, Error> {
    let mut route = route_to(target)?;
    route.conninfo.set("dbname", database);
    connect_to(route)
}

/// Connect as the user specified.
pub fn connect(conninfo: &Conninfo) -> Result<Client, Error> {
    connect_to(ServerRoute::named(conninfo.clone()))
}

fn route_to(target: Option<&str>) -> Result<ServerRoute, Error> {
    match Spec::parse(target)? {
        Spec::Connection(conninfo) => Ok(ServerRoute::named(conninfo)),
        Spec::Only => Ok(ServerRoute::named(default_server::conninfo()?)),
        Spec::DataDirectory(data) => match PostmasterFile::read(&data) {
            Some(file) if Path::new(&file.socket_dir).is_absolute() => {
                let owner = std::fs::metadata(&data)?.uid();
                let folder = PathBuf::from(file.socket_dir);
                Socket { folder, port: file.port, owner, named: true }.route()
            }
            Some(file) => Ok(ServerRoute::named(local("localhost", file.port))),
            None => Err(Error::Failed(format!(
                "{}: no server runs there, or you may not read its postmaster.pid; run this as the \
                 server's user, or specify a connection string",
                data.display()
            ))),
        },
        Spec::Segment(path) => match Access::of_segment(&Segment::open(&path)?) {
            Some(Access::Socket(socket)) => socket.route(),
            Some(
                Access::Connection(conninfo) | Access::Local(LocalConnection { conninfo, .. }),
            ) => Ok(ServerRoute::named(conninfo)),
            None => Err(Error::Usage(format!(
                "{}: not the segment of a PostgreSQL server with a Unix-domain socket; specify a \
                 connection string",
                path.display()
            ))),
        },
    }
}

/// Resolves unqualified names only in pg_catalog: a database's owner may have set a
/// search_path that leads to other functions, and we may be a superuser.
const SAFE_PATH: &str = "/* tally */ SET search_path = pg_catalog, pg_temp";

fn connect_to(route: ServerRoute) -> Result<Client, Error> {
    let ServerRoute { mut conninfo, named, socket } = route;
    // Sessions of this name are ours (segment::own), whatever PGAPPNAME says.
    conninfo.set_default("application_name", segment::own::APPLICATION);
    if !is_set("PGCONNECT_TIMEOUT") && !is_set("PGSERVICE") && conninfo.get("service").is_none() {
        conninfo.set_default("connect_timeout", PATIENCE);
    }
    if !named {
        // With an empty password, libpq would look into a password file.
        conninfo.set("password", "").set("passfile", "/dev/null/none");
    }
    if named && conninfo.get("password").is_none() && !is_set("PGPASSWORD") {
        if let Some(command) = std::env::var_os(PASSWORD_COMMAND).filter(|text| !text.is_empty()) {
            conninfo.set("password", password_of(&command)?);
        }
    }
    let mut client = match as_owner_at_once(&conninfo, socket) {
        Some(client) => client,
        None => match Client::connect(&conninfo) {
            Err(error) => {
                as_servers_user(&conninfo, &error).ok_or_else(|| refused(&error, named))?
            }
            Ok(client) => client,
        },
    };
    session_limits::lift_statement_timeout(&mut client);
    client.batch_execute(SAFE_PATH)?;
    session_limits::lift_others(&mut client);
    Ok(client)
}

/// Names a command whose output is the password. It runs for each connection, because some passwords are valid for minutes only.
const PASSWORD_COMMAND: &str = "PGTALLY_PASSWORD_COMMAND";

/// The first line that this command prints.
fn password_of(command: &OsStr) -> Result<String, Error> {
    let output = Command::new("/bin/sh").arg("-c").arg(command).stdin(Stdio::null()).output()?;
    let why = |why: String| Err(Error::Failed(format!("{PASSWORD_COMMAND} {why}")));
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return why(format!("failed ({}): {}", output.status, said.trim()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next().filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_string()),
        None => why("printed no password".to_string()),
    }
}

/// Whether the process is root's and nobody has named a role. Root has a role in hardly any server, so it connects as the user
/// who owns the server's socket: with peer authentication the server asks the kernel for the user of the thread that connects.
/// To a server that a file names, it does so at once. To one that the user named, it connects as psql does, and as that user
/// only where no role "root" exists; the next connection does so at once, because each attempt is a line in the server's log.
fn is_root_without_role(conninfo: &Conninfo) -> bool {
    let is_named = |keyword| conninfo.get(keyword).is_some_and(|value| !value.is_empty());
    rustix::process::geteuid().is_root()
        && !["PGUSER", "PGSERVICE"].into_iter().any(is_set)
        && !["user", "service"].into_iter().any(is_named)
}

/// The host and port of a connection, as they were named.
type NamedAddress = [Option<String>; 2];

/// The sockets of servers without a role "root".
static WITHOUT_ROOT: Mutex<BTreeMap<NamedAddress, PathBuf>> = Mutex::new(BTreeMap::new());

fn without_root() -> MutexGuard<'static, BTreeMap<NamedAddress, PathBuf>> {
    WITHOUT_ROOT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn named_address(conninfo: &Conninfo) -> NamedAddress {
    ["host", "port"].map(|keyword| conninfo.get(keyword).map(str::to_owned))
}

/// Connects as the owner of this socket, which a file names, or of one whose server is known to have no role "root". `None`: not
/// root, or it fails.
fn as_owner_at_once(conninfo: &Conninfo, socket: Option<PathBuf>) -> Option<Client> {
    if !is_root_without_role(conninfo) {
        return None;
    }
    let known = || without_root().get(&named_address(conninfo)).cloned();
    as_owner(conninfo, &socket.or_else(known)?)
}

/// Connects as the owner of the socket to which libpq connected. `None`: the error is another one, or that fails, too.
fn as_servers_user(conninfo: &Conninfo, error: &pq::Error) -> Option<Client> {
    let unknown = error.message().ends_with("role \"root\" does not exist");
    if !unknown || !rustix::process::geteuid().is_root() || is_set("PGUSER") {
        return None;
    }
    // libpq's words have the socket, wherever that was named.
    let path = error.message().split('"').nth(1).filter(|path| path.starts_with('/'))?;
    let client = as_owner(conninfo, Path::new(path))?;
    without_root().insert(named_address(conninfo), path.into());
    Some(client)
}

fn as_owner(conninfo: &Conninfo, path: &Path) -> Option<Client> {
    let meta = path.symlink_metadata().ok()?;
    let owner = meta.file_type().is_socket().then(|| meta.uid()).filter(|uid| *uid != 0)?;
    let mut conninfo = conninfo.clone();
    // Without a database's name it would be that of the role.
    if !is_set("PGDATABASE") {
        conninfo.set_default("dbname", "postgres");
    }
    let connect = move || {
        let (real, saved) = (rustix::process::getuid(), rustix::process::Uid::ROOT);
        // Of this thread alone, which ends.
        rustix::thread::set_thread_res_uid(real, rustix::process::Uid::from_raw(owner), saved)
            .ok()?;
        Client::connect(&conninfo).ok()
    };
    let thread = std::thread::Builder::new().name("connect".to_string()).spawn(connect).ok()?;
    thread.join().ok().flatten()
}

/// Fails unless the role is a superuser; only superusers may change settings.
pub fn require_superuser(client: &mut Client) -> Result<(), Error> {
    let row = client
        .query_one("/* tally */ select current_setting('is_superuser'), current_user::text", &[])?;
    if row.get::<&str>(0)? == "on" {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "role {} is not a superuser, and only superusers may change server settings; \
         connect as a superuser",
        row.get::<&str>(1)?
    )))
}

fn is_unknown_role(message: &str) -> bool {
    message.contains("role \"") && message.ends_with("does not exist")
}

/// Whether libpq took no role, because the user has no name, as in a container with a user ID of its own.
fn is_nameless_user(message: &str) -> bool {
    message.contains("could not look up local user ID") || message.contains("local user with ID")
}

/// libpq's message names the server and the user.
fn refused(error: &pq::Error, named: bool) -> Error {
    let message = error.message();
    let remedy = if !named && message.contains("password") {
        "; PGPASSWORD was not sent, because this server is known only from another user's segment: \
         specify its data directory or a connection string"
    } else if message.contains("Peer authentication failed") || is_unknown_role(message) {
        "; run this as the server's user (sudo -u postgres tally ...) or specify a connection string \
         with a superuser"
    } else if is_nameless_user(message) {
        "; the user who runs this has no name on this system: name a role by -U or PGUSER"
    } else {
        ""
    };
    Error::Failed(format!("cannot connect to the server: {message}{remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::chown;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_password_is_the_first_line_that_a_command_prints() {
        let of = |command: &str| password_of(OsStr::new(command));
        assert_eq!(of("printf 'a b\\nc\\n'").unwrap(), "a b");
        let error = of("echo expired >&2; exit 3").unwrap_err().to_string();
        assert!(error.contains(PASSWORD_COMMAND) && error.contains("expired"), "{error}");
        assert!(of("true").unwrap_err().to_string().contains("printed no password"));
    }

    #[test]
    fn only_a_socket_of_the_servers_user_is_connected_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".s.PGSQL.5433");
        let of = |owner: u32| {
            let folder = folder.path().into();
            Socket { folder, port: 5433, owner, named: true }.conninfo()
        };
        let user = rustix::process::geteuid().as_raw();
        assert!(of(user).unwrap_err().to_string().contains(".s.PGSQL.5433"));
        std::fs::write(&path, "").unwrap();
        assert!(of(user).unwrap_err().to_string().contains("not a socket"));
        std::fs::remove_file(&path).unwrap();
        let _listener = UnixListener::bind(&path).unwrap();
        let conninfo = of(user).unwrap();
        let get = |name: &str| conninfo.get(name).map(str::to_string);
        assert_eq!(get("host"), Some(folder.path().display().to_string()));
        assert_eq!((get("port"), get("hostaddr")), (Some("5433".into()), Some(String::new())));
        // Root's sockets are trusted, so root gives this one away.
        let owner = if user == 0 { 65_534 } else { user };
        if user == 0 {
            chown(&path, Some(owner), None).unwrap();
        }
        assert!(of(owner).is_ok());
        assert!(of(owner - 1).unwrap_err().to_string().contains("server's user"));
    }

    #[test]
    fn an_unknown_role_differs_from_other_refusals() {
        for (message, unknown) in [
            ("FATAL:  role \"me\" does not exist", true),
            ("FATAL:  database \"me\" does not exist", false),
            ("FATAL:  role \"me\" is not permitted to log in", false),
        ] {
            assert_eq!(is_unknown_role(message), unknown, "{message}");
        }
    }

    #[test]
    fn a_user_without_a_name_differs_from_other_refusals() {
        for (message, nameless) in [
            ("could not look up local user ID 65534: No such file or directory", true),
            ("local user with ID 65534 does not exist", true),
            ("FATAL:  role \"me\" does not exist", false),
        ] {
            assert_eq!(is_nameless_user(message), nameless, "{message}");
        }
    }
}
