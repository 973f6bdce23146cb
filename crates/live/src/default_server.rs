// SPDX-License-Identifier: PostgreSQL
//! The default server, if neither the user nor the environment names one: the one on this machine that psql would connect to.
//!
//! libpq alone would connect to port 5432. Debian's psql looks for clusters first: the one that PGCLUSTER names, else the only
//! one, else the one on port 5432. This module finds the running servers by their sockets, since only root and the server's
//! user may read every configuration. If psql would not choose a server on another port, the message names it.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use error::Error;
use pq::Conninfo;

/// Where Debian's servers have their sockets, and where libpq looks that was built with its own defaults.
const FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];
/// Where Debian has the configuration of each cluster, as VERSION/NAME.
const CLUSTERS: &str = "/etc/postgresql";
/// The port of psql.
const PORT: u16 = 5432;
/// Bytes of a configuration file that are read.
const LONGEST: u64 = 1 << 20;

/// The socket of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListeningSocket {
    folder: PathBuf,
    port: u16,
}

impl ListeningSocket {
    fn conninfo(&self) -> Conninfo {
        let mut conninfo = Conninfo::default();
        conninfo.set("host", self.folder.to_string_lossy()).set("port", self.port.to_string());
        conninfo
    }
}

/// How to connect to the cluster that PGCLUSTER names.
pub(crate) fn cluster() -> Result<Option<Conninfo>, Error> {
    let named = std::env::var_os("PGCLUSTER").filter(|name| !name.is_empty());
    named.map(|name| of_cluster(&name.to_string_lossy(), Path::new(CLUSTERS))).transpose()
}

/// How to connect to it, where PGCLUSTER names none; empty: libpq's defaults lead there.
pub(crate) fn conninfo() -> Result<Conninfo, Error> {
    let sockets: Vec<ListeningSocket> =
        FOLDERS.iter().flat_map(|folder| sockets(Path::new(folder))).collect();
    choose(&sockets, count_clusters(Path::new(CLUSTERS)))
}

/// Whether this is the socket that Debian's psql connects to by itself, where several servers run.
pub(crate) fn is(folder: &str, port: u32) -> bool {
    let known = Path::new(FOLDERS[0]);
    let same = |found: &Path| found.canonicalize().ok() == known.canonicalize().ok();
    port == u32::from(PORT)
        && (Path::new(folder) == known || same(Path::new(folder)) && known.exists())
}

fn choose(sockets: &[ListeningSocket], clusters: usize) -> Result<Conninfo, Error> {
    match sockets {
        _ if sockets.iter().any(|socket| socket.port == PORT) => Ok(Conninfo::default()),
        // libpq says what it has tried.
        [] => Ok(Conninfo::default()),
        // Debian's psql would try the cluster on port 5432, which does not run.
        [only] if clusters <= 1 => Ok(only.conninfo()),
        several => {
            let list: String = several
                .iter()
                .map(|socket| {
                    format!("\n  -p {}  (socket in {})", socket.port, socket.folder.display())
                })
                .collect();
            Err(Error::Usage(format!(
                "no server runs on port {PORT}; name the one that you mean:{list}"
            )))
        }
    }
}

/// The sockets of servers in a folder, by port. In one where everybody may make files, those of others are left out.
fn sockets(folder: &Path) -> Vec<ListeningSocket> {
    let everybody = folder.metadata().is_ok_and(|meta| meta.mode() & 0o002 != 0);
    let me = rustix::process::geteuid().as_raw();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<ListeningSocket> = entries
        .filter(|entry| {
            let meta = entry.path().symlink_metadata();
            meta.is_ok_and(|meta| {
                meta.file_type().is_socket() && (!everybody || [0, me].contains(&meta.uid()))
            })
        })
        .filter_map(|entry| {
            let port = entry.file_name().to_str()?.strip_prefix(".s.PGSQL.")?.parse().ok()?;
            Some(ListeningSocket { folder: folder.into(), port })
        })
        .collect();
    found.sort_by_key(|socket| socket.port);
    found
}

fn folders(path: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn count_clusters(clusters: &Path) -> usize {
    let is_cluster = |path: &PathBuf| path.join("postgresql.conf").exists();
    folders(clusters).flat_map(|version| folders(&version)).filter(is_cluster).count()
}

/// Of PGCLUSTER: VERSION/NAME, or VERSION/HOST:PORT.
fn of_cluster(cluster: &str, clusters: &Path) -> Result<Conninfo, Error> {
    let failed = |why: &str| Error::Failed(format!("PGCLUSTER is {cluster}: {why}"));
    let (version, name) = cluster
        .split_once('/')
        .ok_or_else(|| failed("it has to be VERSION/NAME; pg_lsclusters lists them"))?;
    let mut conninfo = Conninfo::default();
    if let Some((host, port)) = name.rsplit_once(':') {
        conninfo.set("host", host).set("port", if port.is_empty() { "5432" } else { port });
        return Ok(conninfo);
    }
    let file = clusters.join(version).join(name).join("postgresql.conf");
    let text = files::read_text(&file, LONGEST).map_err(|error| {
        failed(&format!("{}: {error}; pg_lsclusters lists the clusters", file.display()))
    })?;
    let setting = |name: &str| setting(&text, name);
    let folder = setting("unix_socket_directories").unwrap_or_else(|| FOLDERS[0].to_string());
    let folder = folder.split(',').next().unwrap_or("").trim().to_string();
    conninfo.set("host", if folder.is_empty() { "localhost".to_string() } else { folder });
    conninfo.set("port", setting("port").unwrap_or_else(|| PORT.to_string()));
    Ok(conninfo)
}

/// The last value of a setting in the text of a configuration file.
fn setting(text: &str, name: &str) -> Option<String> {
    text.lines().rev().find_map(|line| {
        let rest = line.trim_start().strip_prefix(name)?;
        let rest = rest.trim_start();
        let value = rest
            .strip_prefix('=')
            .or_else(|| (rest.len() < line.trim_start().len() - name.len()).then_some(rest))?;
        let value = value.trim_start();
        Some(match value.strip_prefix('\'') {
            Some(quoted) => quoted.split('\'').next().unwrap_or("").to_string(),
            None => value.split([' ', '\t', '#']).next().unwrap_or("").to_string(),
        })
    })
}

/// Whether the environment variable is set and not empty.
pub(crate) fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(port: u16) -> ListeningSocket {
        ListeningSocket { folder: "/run".into(), port }
    }

    #[test]
    fn it_is_the_one_on_psqls_port_or_else_the_only_one() {
        let of = |ports: &[u16], clusters| {
            let sockets: Vec<ListeningSocket> = ports.iter().map(|port| socket(*port)).collect();
            choose(&sockets, clusters)
                .map(|target| target.to_string())
                .map_err(|error| error.to_string())
        };
        assert_eq!(of(&[], 1), Ok(String::new()));
        assert_eq!(of(&[5432, 5433], 2), Ok(String::new()));
        assert_eq!(of(&[5433], 1), Ok("host='/run' port='5433'".into()));
        // 5432 is that of a cluster which does not run.
        for (ports, clusters) in [(&[5433][..], 2), (&[5433, 5434], 0)] {
            let error = of(ports, clusters).unwrap_err();
            assert!(
                error.contains("no server runs on port 5432") && error.contains("-p 5433"),
                "{error}"
            );
        }
    }

    #[test]
    fn only_sockets_that_nobody_else_could_make_count() {
        use std::os::unix::fs::{chown, PermissionsExt};
        let folder = tempfile::tempdir().unwrap();
        let listen =
            |name: &str| std::os::unix::net::UnixListener::bind(folder.path().join(name)).unwrap();
        let _sockets = [".s.PGSQL.5434", ".s.PGSQL.5433", ".s.PGSQL.x", "other"].map(listen);
        std::fs::write(folder.path().join(".s.PGSQL.5435"), "").unwrap();
        let ports = || sockets(folder.path()).iter().map(|socket| socket.port).collect::<Vec<_>>();
        assert_eq!(ports(), [5433, 5434]);
        if rustix::process::geteuid().is_root() {
            chown(folder.path().join(".s.PGSQL.5433"), Some(65_534), None).unwrap();
            assert_eq!(ports(), [5433, 5434], "in a folder of the server's");
            std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777)).unwrap();
            assert_eq!(ports(), [5434]);
        }
    }

    #[test]
    fn a_cluster_of_debian_is_found_by_its_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let cluster = folder.path().join("15/two");
        std::fs::create_dir_all(&cluster).unwrap();
        let text = "#port = 1\nport = 5439\t# (change requires restart)\nunix_socket_directories = '/a b, /c'\n";
        std::fs::write(cluster.join("postgresql.conf"), text).unwrap();
        let of = |name: &str| of_cluster(name, folder.path()).map(|target| target.to_string());
        assert_eq!(of("15/two").unwrap(), "host='/a b' port='5439'");
        assert_eq!(of("15/db1:5440").unwrap(), "host='db1' port='5440'");
        assert_eq!(of("15/db1:").unwrap(), "host='db1' port='5432'");
        for name in ["15", "15/none"] {
            let error = of(name).unwrap_err().to_string();
            assert!(error.contains("pg_lsclusters"), "{error}");
        }
        assert_eq!(count_clusters(folder.path()), 1);
        assert_eq!(setting("ports = 1\nport 5441\n", "port").as_deref(), Some("5441"));
    }
}
