// SPDX-License-Identifier: PostgreSQL
//! Where is listened.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;

use error::Error;

/// What `--listen` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// An address and a port; port 0: any that is free.
    Tcp(SocketAddr),
    /// A socket in the file system, for its owner alone.
    Unix(PathBuf),
}

impl std::str::FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        local.as_deref().unwrap_or(text).parse().map(Self::Tcp).map_err(|_| {
            "an address and a port are needed, as in 127.0.0.1:9188 or [::1]:9188, or a socket's \
             path, as in unix:/run/pgtally.sock"
                .to_string()
        })
    }
}

impl Place {
    /// Whether only this machine can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => match address.ip() {
                IpAddr::V4(ip) => ip.is_loopback(),
                IpAddr::V6(ip) => {
                    ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback())
                }
            },
            Self::Unix(_) => true,
        }
    }
}

/// Where is listened, once it is.
#[derive(Debug)]
pub enum Listener {
    /// On an address.
    Tcp(TcpListener),
    /// At a path; the file goes with this.
    Unix(UnixListener, Remove),
}

/// Removes a file at its end.
#[derive(Debug)]
pub struct Remove(PathBuf);

impl Drop for Remove {
    fn drop(&mut self) {
        // Somebody may have done so already.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    /// Listen there.
    pub fn open(place: &Place) -> Result<Listener, Error> {
        match place {
            Place::Tcp(address) => TcpListener::bind(address)
                .map(Listener::Tcp)
                .map_err(|error| Error::Failed(refused(*address, &error))),
            Place::Unix(path) => unix(path),
        }
    }

    /// The port; 0 for a socket.
    pub fn port(&self) -> std::io::Result<u16> {
        match self {
            Self::Tcp(listener) => Ok(listener.local_addr()?.port()),
            Self::Unix(..) => Ok(0),
        }
    }

    /// As a browser has to be told.
    pub fn url(&self) -> std::io::Result<String> {
        Ok(match self {
            Self::Tcp(listener) => format!("http://{}/", listener.local_addr()?),
            Self::Unix(_, Remove(path)) => format!("unix:{}", path.display()),
        })
    }
}

fn refused(address: SocketAddr, error: &std::io::Error) -> String {
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => {
            "another program listens there, perhaps another `tally serve`; --listen names another \
             port (port 0: one that is free)"
        }
        ErrorKind::PermissionDenied => "ports below 1024 are root's; --listen names another one",
        ErrorKind::AddrNotAvailable => "this machine has no such address",
        _ => "--listen names another address",
    };
    format!("cannot listen on {address}: {error}; {remedy}")
}

fn unix(path: &Path) -> Result<Listener, Error> {
    let named = |error: &dyn std::fmt::Display| {
        Error::Failed(format!("cannot listen on {}: {error}", path.display()))
    };
    let is_socket =
        |path: &Path| path.symlink_metadata().is_ok_and(|it| it.file_type().is_socket());
    if is_socket(path) {
        if UnixStream::connect(path).is_ok() {
            return Err(named(&"another program listens there; --listen names another path"));
        }
        // Left by one that was killed.
        std::fs::remove_file(path).map_err(|error| named(&error))?;
    }
    // Nobody may come in before the file is its owner's alone: it is made under another name.
    let aside = path.with_extension(format!("new.{}", std::process::id()));
    // From its first instant on, whatever the umask is: who has connected stays connected.
    let umask = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(&aside);
    rustix::process::umask(umask);
    let listener = bound.map_err(|error| named(&error))?;
    let remove = Remove(aside.clone());
    std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| std::fs::hard_link(&aside, path))
        .map_err(|error| named(&error))?;
    drop(remove);
    Ok(Listener::Unix(listener, Remove(path.to_path_buf())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_machine_alone_reaches_is_local() {
        let local = |text: &str| text.parse::<Place>().unwrap().is_local();
        for text in ["127.0.0.1:0", "localhost:9188", "[::1]:1", "127.8.9.1:5", "unix:/tmp/x"] {
            assert!(local(text), "{text}");
        }
        for text in ["0.0.0.0:9188", "[::]:9188", "192.168.1.1:1", "[::ffff:10.0.0.1]:1"] {
            assert!(!local(text), "{text}");
        }
        for text in ["9188", "127.0.0.1", "example.org:80", "unix:", ""] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_socket_that_was_left_behind_is_taken_over_and_one_in_use_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tally.sock");
        drop(UnixListener::bind(&path).unwrap());
        let place = Place::Unix(path.clone());
        let listener = Listener::open(&place).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let error = Listener::open(&place).unwrap_err().to_string();
        assert!(error.contains("another program"), "{error}");
        drop(listener);
        assert!(!path.exists());
        std::fs::write(&path, "not ours").unwrap();
        assert!(Listener::open(&place).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "not ours");
    }
}
