// SPDX-License-Identifier: PostgreSQL
//! A scratch cluster: create, start, stop, kill, remove.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use files::Access;
use pq::Conninfo;
use rustix::process::Signal;

use crate::binaries::Binaries;
use crate::directory;
use crate::distinct;
use crate::error::Error;
use crate::os_user::{apart, OsUser};
use crate::pgbench::{Load, Pgbench};
use crate::process::{alive, children, signal, Process};
use crate::program::{run, run_with, tail};
use crate::template;
use crate::watchdog::Watchdog;

/// The port is only part of the socket's name, and each cluster has its own directory.
const PORT: u16 = 5432;
/// The time limit for a start or stop; crash recovery after a load may be slow.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(10);

/// How to stop a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Wait for the sessions to end, write a checkpoint.
    Smart,
    /// Disconnect the sessions, write a checkpoint.
    Fast,
    /// Write no checkpoint; the next start performs crash recovery.
    Immediate,
}

/// The options of a new cluster.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    binaries: Option<Binaries>,
    settings: Vec<(String, String)>,
    parent: Option<PathBuf>,
    libraries: Vec<PathBuf>,
    fsync: bool,
    group_access: bool,
}

impl Builder {
    /// Use this installation instead of [`Binaries::find`]'s.
    pub fn binaries(mut self, binaries: Binaries) -> Self {
        self.binaries = Some(binaries);
        self
    }

    /// Add a line to postgresql.conf; the value is quoted here.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Add several lines to postgresql.conf.
    pub fn settings<'a>(mut self, settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.settings.extend(settings.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Whether commits are flushed to disk; default off.
    pub fn fsync(mut self, on: bool) -> Self {
        self.fsync = on;
        self
    }

    /// Create the temporary directory in `parent` rather than in `TMPDIR` or /tmp.
    pub fn directory(mut self, parent: impl Into<PathBuf>) -> Self {
        self.parent = Some(parent.into());
        self
    }

    /// Copy a loadable module into the cluster, where the server's user can read it, and put that
    /// directory first in `dynamic_library_path`.
    pub fn library(mut self, file: impl Into<PathBuf>) -> Self {
        self.libraries.push(file.into());
        self
    }

    /// Let the group read the data directory, as `initdb --allow-group-access` does.
    pub fn group_access(mut self, on: bool) -> Self {
        self.group_access = on;
        self
    }

    /// Create the cluster without starting it.
    pub fn create(self) -> Result<Cluster, Error> {
        let binaries = self.binaries.clone().map_or_else(Binaries::find, Ok)?;
        let os_user = OsUser::find()?;
        let (dir, watchdog) = directory::create(&os_user, self.parent.as_deref())?;
        // A later failure removes the directory: it drops the watchdog.
        let data = dir.join(directory::DATA);
        template::copy_to(&binaries, &os_user, &data)?;
        let cluster = Cluster { binaries, os_user, dir, data, server: None, watchdog };
        cluster.configure(&self)?;
        Ok(cluster)
    }

    /// Create the cluster, start it and wait until it accepts connections.
    pub fn start(self) -> Result<Cluster, Error> {
        let mut cluster = self.create()?;
        cluster.start()?;
        Ok(cluster)
    }
}

/// A scratch cluster. Dropping it stops the server and removes its files.
#[derive(Debug)]
pub struct Cluster {
    binaries: Binaries,
    os_user: OsUser,
    dir: PathBuf,
    data: PathBuf,
    server: Option<Child>,
    /// Removes the directory when dropped, after the server has been stopped.
    watchdog: Watchdog,
}

impl Cluster {
    /// Options for a new cluster.
    pub fn builder() -> Builder {
        Builder::default()
    }

    fn configure(&self, wanted: &Builder) -> Result<(), Error> {
        let lib = self.dir.join("lib");
        if !wanted.libraries.is_empty() {
            files::new_folder(&lib, Access::Everybody)
                .map_err(Error::file("cannot create", &lib))?;
        }
        for library in &wanted.libraries {
            let to = lib.join(library.file_name().unwrap_or_default());
            std::fs::read(library)
                .and_then(|content| files::write(&to, &content, Access::Everybody))
                .map_err(Error::file("cannot copy", library))?;
        }
        let mut text = String::from("\n# of the scratch cluster\n");
        let mut line = |name: &str, value: &str| {
            text.push_str(&format!("{name} = '{}'\n", value.replace('\'', "''")));
        };
        line("listen_addresses", "");
        line("unix_socket_directories", &self.host().to_string_lossy());
        line("unix_socket_permissions", "0700");
        line("port", &PORT.to_string());
        line("fsync", if wanted.fsync { "on" } else { "off" });
        if !wanted.libraries.is_empty() {
            line("dynamic_library_path", &format!("{}:$libdir", lib.display()));
        }
        for (name, value) in &wanted.settings {
            line(name, value);
        }
        if wanted.group_access {
            let mut chmod = self.as_server(Path::new("chmod"));
            run(chmod.args(["-R", "g+rX", "--"]).arg(&self.data), "chmod")?;
        }
        self.append_config(&text)
    }

    /// A program that runs as the server's user, in [`Cluster::dir`], which belongs to the caller. Files in the data
    /// directory belong to the server's user, who may replace them with links, so only programs of that user open them.
    fn as_server(&self, program: &Path) -> Command {
        let mut command = self.os_user.command(program);
        command.current_dir(&self.dir);
        command
    }

    /// Add lines to postgresql.conf; later ones win. [`Cluster::reload`] makes them effective.
    pub fn append_config(&self, text: &str) -> Result<(), Error> {
        self.append_to("postgresql.conf", text)
    }

    /// Replace a file of the data directory atomically.
    pub fn replace_file(&self, name: &str, text: &str) -> Result<(), Error> {
        self.write("cat > \"$1.new\" && mv -fT -- \"$1.new\" \"$1\"", name, text)
    }

    /// Move a subdirectory of the data directory to `to`, which must not exist, and leave a symbolic link. The server
    /// must not be running.
    pub fn move_directory(&mut self, name: &str, to: &Path) -> Result<(), Error> {
        files::new_folder(to, Access::Owner).map_err(Error::file("cannot create", to))?;
        // Not earlier, because we must not remove a directory that existed before.
        self.watchdog.remove(to);
        self.os_user.chown(to)?;
        let script =
            "umask 077; cp -a -- \"$1/.\" \"$2\" && rm -rf -- \"$1\" && ln -s -- \"$2\" \"$1\"";
        let mut shell = self.as_server(Path::new("/bin/sh"));
        run(shell.args(["-c", script, "sh"]).arg(self.data.join(name)).arg(to), "sh")
    }

    /// Append to a file of the data directory.
    fn append_to(&self, name: &str, text: &str) -> Result<(), Error> {
        self.write("cat >> \"$1\"", name, text)
    }

    fn write(&self, script: &str, name: &str, text: &str) -> Result<(), Error> {
        let mut shell = self.as_server(Path::new("/bin/sh"));
        shell.args(["-c", &format!("umask 077; {script}"), "sh"]).arg(self.data.join(name));
        run_with(&mut shell, "sh", text)
    }

    /// Start the server and wait until it accepts connections.
    pub fn start(&mut self) -> Result<(), Error> {
        if self.server.is_some() {
            return Ok(());
        }
        let log = files::append(&self.log_path(), Access::Everybody)
            .map_err(Error::file("cannot open", self.log_path()))?;
        let errors = log.try_clone().map_err(Error::file("cannot open", self.log_path()))?;
        let program = self.binaries.program("postgres");
        let mut postgres = self.as_server(&program);
        postgres.arg("-D").arg(&self.data).stdin(Stdio::null()).stdout(log).stderr(errors);
        let child =
            apart(&mut postgres).spawn().map_err(|source| Error::Spawn { program, source })?;
        self.watchdog.server(child.id());
        self.server = Some(child);
        self.wait_ready()
    }

    /// Wait until the server accepts connections.
    pub fn wait_ready(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.exited() {
                self.set_stopped();
                return Err(self.server_error(format!("exited during startup ({status})")));
            }
            if self.server.is_none() {
                return Err(Error::NotRunning);
            }
            if self.is_ready() {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err(self.server_error(format!("was not ready within {PATIENCE:?}")));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Since PostgreSQL 10, line 8 of postmaster.pid is the server's state. A file that a killed
    /// server left behind has another PID.
    fn is_ready(&self) -> bool {
        // The server's user may put a link or a pipe there.
        let Ok(text) = files::read_text(&self.data.join("postmaster.pid"), 1 << 16) else {
            return false;
        };
        let mut lines = text.lines();
        let pid = lines.next().and_then(|line| line.trim().parse().ok());
        pid == self.server.as_ref().map(Child::id)
            && lines.nth(6).is_some_and(|state| state.trim() == "ready")
    }

    fn exited(&mut self) -> Option<ExitStatus> {
        self.server.as_mut()?.try_wait().ok().flatten()
    }

    fn set_stopped(&mut self) {
        self.server = None;
        self.watchdog.server(0);
    }

    fn server_error(&self, what: String) -> Error {
        Error::Server { what, log: self.log_tail(30) }
    }

    /// Stop the server; succeeds if it is not running.
    pub fn stop(&mut self, mode: StopMode) -> Result<(), Error> {
        let Some(pid) = self.server.as_ref().map(Child::id) else { return Ok(()) };
        let number = match mode {
            StopMode::Smart => Signal::TERM,
            StopMode::Fast => Signal::INT,
            StopMode::Immediate => Signal::QUIT,
        };
        signal(pid, number);
        if self.wait_exit(PATIENCE) {
            return Ok(());
        }
        Err(self.server_error(format!("did not stop within {PATIENCE:?}")))
    }

    fn wait_exit(&mut self, patience: Duration) -> bool {
        let began = Instant::now();
        while self.server.is_some() {
            if self.exited().is_some() {
                self.set_stopped();
            } else if began.elapsed() > patience {
                return false;
            } else {
                std::thread::sleep(POLL);
            }
        }
        true
    }

    /// Stop (fast) and start again.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop(StopMode::Fast)?;
        self.start()
    }

    /// Kill the postmaster with SIGKILL, and wait until its children have ended.
    pub fn kill9_postmaster(&mut self) -> Result<(), Error> {
        let pid = self.postmaster_pid()?;
        let orphans = children(pid);
        signal(pid, Signal::KILL);
        self.wait_exit(PATIENCE);
        let began = Instant::now();
        while orphans.iter().any(|process| self.is_ours(process.pid)) {
            if began.elapsed() > PATIENCE {
                return Err(self.server_error("left processes behind".into()));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Whether a process runs in this cluster's data directory.
    fn is_ours(&self, pid: u32) -> bool {
        alive(pid)
            && std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == self.data)
    }

    /// Kill one process of this server with SIGKILL.
    pub fn kill9(&self, pid: u32) -> Result<(), Error> {
        let postmaster = self.postmaster_pid()?;
        if children(postmaster).iter().any(|process| process.pid == pid) {
            signal(pid, Signal::KILL);
        }
        Ok(())
    }

    /// Tell the server to reload its configuration, which takes effect some time later.
    pub fn reload(&self) -> Result<(), Error> {
        signal(self.postmaster_pid()?, Signal::HUP);
        Ok(())
    }

    /// The postmaster's PID.
    pub fn postmaster_pid(&self) -> Result<u32, Error> {
        self.server.as_ref().map(Child::id).ok_or(Error::NotRunning)
    }

    /// All processes of the server except the postmaster.
    pub fn processes(&self) -> Vec<Process> {
        self.postmaster_pid().map(children).unwrap_or_default()
    }

    /// PIDs of client backends, except that of this query.
    pub fn backend_pids(&self) -> Result<Vec<u32>, Error> {
        let mut client = self.client()?;
        let rows = client.query(
            "select pid from pg_stat_activity \
             where backend_type = 'client backend' and pid <> pg_backend_pid() order by pid",
            &[],
        )?;
        let pids = rows.iter().map(|row| row.get::<i32>(0)).collect::<Result<Vec<_>, _>>()?;
        Ok(pids.into_iter().filter_map(|pid| u32::try_from(pid).ok()).collect())
    }

    /// Its installation of PostgreSQL.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// The user who runs it.
    pub fn os_user(&self) -> &OsUser {
        &self.os_user
    }

    /// Its temporary directory, in which only the caller may create files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its data directory.
    pub fn data_dir(&self) -> &Path {
        &self.data
    }

    /// The directory of the socket, in which the server's user may create files.
    pub fn host(&self) -> PathBuf {
        self.dir.join(directory::RUN)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        PORT
    }

    /// Its superuser.
    pub fn user(&self) -> &'static str {
        "postgres"
    }

    /// A libpq connection string to the database `postgres`.
    pub fn connection_string(&self) -> String {
        format!("host={} port={PORT} user=postgres dbname=postgres", self.host().display())
    }

    /// The connection settings for the crate `postgres`.
    #[cfg(feature = "postgres")]
    pub fn config(&self) -> postgres::Config {
        let mut config = postgres::Config::new();
        config.host_path(self.host()).port(PORT).user("postgres").dbname("postgres");
        config
    }

    /// Connect as the superuser, through the crate `postgres`.
    #[cfg(feature = "postgres")]
    pub fn connect(&self) -> Result<postgres::Client, Error> {
        Ok(self.config().connect(postgres::NoTls)?)
    }

    /// Connect as the superuser.
    pub fn client(&self) -> Result<pq::Client, Error> {
        // The caller's connection settings must not reach it.
        let string = format!(
            "{} options='' target_session_attrs=any gssencmode=disable channel_binding=disable",
            self.connection_string()
        );
        Ok(pq::Client::connect(&Conninfo::parse(&string)?)?)
    }

    /// Run statements. Returns all rows, with columns separated by tabs and null as an empty string.
    pub fn psql(&self, sql: &str) -> Result<String, Error> {
        let columns = |row: Vec<Option<String>>| {
            row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join("\t")
        };
        Ok(self.client()?.texts(sql)?.into_iter().map(columns).collect::<Vec<_>>().join("\n"))
    }

    /// Create pgbench's tables.
    pub fn pgbench_init(&self, scale: u32) -> Result<(), Error> {
        let program = self.binaries.program("pgbench");
        let mut command = self.as_server(&program);
        command.args(["-i", "-q", "-s", &scale.to_string(), "-U", "postgres", "-p"]);
        command.arg(PORT.to_string()).arg("-h").arg(self.host()).arg("postgres");
        run(&mut command, "pgbench -i")
    }

    /// Create the tables of a load: those of pgbench at this scale, or its own.
    pub fn fill(&self, load: &Load, scale: u32) -> Result<(), Error> {
        match load {
            Load::Distinct { .. } => self.psql(&distinct::table()).map(drop),
            _ => self.pgbench_init(scale),
        }
    }

    /// The options of a pgbench run against this cluster.
    pub fn pgbench(&self) -> Pgbench {
        let program = self.binaries.program("pgbench");
        Pgbench::new(program, &self.dir, &self.host(), PORT, &self.os_user)
    }

    /// The path of the server's log.
    pub fn log_path(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// The server's log.
    pub fn log(&self) -> String {
        let text = std::fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The last lines of the log.
    pub fn log_tail(&self, lines: usize) -> String {
        tail(&self.log(), lines)
    }

    /// Also remove this file or directory when the cluster is removed.
    pub fn also_remove(&mut self, path: &Path) {
        self.watchdog.remove(path);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // No checkpoint, because the data is removed anyway.
        if let Some(pid) = self.server.as_ref().map(Child::id) {
            signal(pid, Signal::QUIT);
            if !self.wait_exit(Duration::from_secs(10)) {
                signal(pid, Signal::KILL);
                self.wait_exit(Duration::from_secs(10));
            }
        }
    }
}
