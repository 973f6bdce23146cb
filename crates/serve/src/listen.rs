// SPDX-License-Identifier: PostgreSQL
//! The address to listen on.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;

use error::Error;

/// The address in `--listen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An IP address and a port; port 0 chooses a free one.
    Tcp(SocketAddr),
    /// A Unix-domain socket that only its owner can access.
    Unix(PathBuf),
    /// No address.
    None,
}

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        local.as_deref().unwrap_or(text).parse().map(Self::Tcp).map_err(|_| {
            "must be an address with a port, as in 127.0.0.1:9188 or [::1]:9188, the path of a \
             socket, as in unix:/run/pgtally.sock, or none with --otlp"
                .to_string()
        })
    }
}

impl Address {
    /// Whether it can be reached only from this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => match address.ip() {
                IpAddr::V4(ip) => ip.is_loopback(),
                IpAddr::V6(ip) => {
                    ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback())
                }
            },
            Self::Unix(_) | Self::None => true,
        }
    }
}

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    /// On an IP address.
    Tcp(TcpListener),
    /// At a path; the file is removed on drop.
    Unix(UnixListener, Remove),
}

/// Removes a file when dropped.
#[derive(Debug)]
pub struct Remove(PathBuf);

impl Drop for Remove {
    fn drop(&mut self) {
        // Another process may have removed it already.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    /// Starts to listen, unless the address is `none`.
    pub fn open(address: &Address) -> Result<Option<Listener>, Error> {
        match address {
            Address::Tcp(address) => TcpListener::bind(address)
                .map(|listener| Some(Listener::Tcp(listener)))
                .map_err(|error| Error::Failed(refused(*address, &error))),
            Address::Unix(path) => unix(path).map(Some),
            Address::None => Ok(None),
        }
    }

    /// The port; 0 for a Unix-domain socket.
    pub fn port(&self) -> std::io::Result<u16> {
        match self {
            Self::Tcp(listener) => Ok(listener.local_addr()?.port()),
            Self::Unix(..) => Ok(0),
        }
    }

    /// The URL for a browser, or unix:PATH.
    pub fn url(&self, tls: bool) -> std::io::Result<String> {
        Ok(match self {
            Self::Tcp(listener) => {
                let scheme = if tls { "https" } else { "http" };
                format!("{scheme}://{}/", listener.local_addr()?)
            }
            Self::Unix(_, Remove(path)) => format!("unix:{}", path.display()),
        })
    }
}

fn refused(address: SocketAddr, error: &std::io::Error) -> String {
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => {
            "another program is listening there, perhaps another `tally serve`; use --listen to choose another \
             port (0 chooses a free one)"
        }
        ErrorKind::PermissionDenied => "ports below 1024 require root; use --listen to choose another port",
        ErrorKind::AddrNotAvailable => "this machine has no such address",
        _ => "use --listen to choose another address",
    };
    format!("could not listen on {address}: {error}; {remedy}")
}

fn unix(path: &Path) -> Result<Listener, Error> {
    let named = |error: &dyn std::fmt::Display| {
        Error::Failed(format!("could not listen on {}: {error}", path.display()))
    };
    // Checked before anything there is removed.
    files::check(path).map_err(|error| named(&error))?;
    let is_socket =
        |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket());
    if is_socket(path) {
        if UnixStream::connect(path).is_ok() {
            return Err(named(
                &"another program is listening there; use --listen to choose another path",
            ));
        }
        // It was left behind by a killed process.
        std::fs::remove_file(path).map_err(|error| named(&error))?;
    }
    // Create the socket under another name, so that nobody can connect before its permissions are set.
    let aside = path.with_extension(format!("new.{}", std::process::id()));
    // Restrict it from the start, whatever the umask is, because existing connections would remain.
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
    fn only_loopback_addresses_and_sockets_are_local() {
        let local = |text: &str| text.parse::<Address>().unwrap().is_local();
        for text in
            ["127.0.0.1:0", "localhost:9188", "[::1]:1", "127.8.9.1:5", "unix:/tmp/x", "none"]
        {
            assert!(local(text), "{text}");
        }
        for text in ["0.0.0.0:9188", "[::]:9188", "192.168.1.1:1", "[::ffff:10.0.0.1]:1"] {
            assert!(!local(text), "{text}");
        }
        for text in ["9188", "127.0.0.1", "example.org:80", "unix:", ""] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_stale_socket_is_replaced_and_one_in_use_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tally.sock");
        drop(UnixListener::bind(&path).unwrap());
        let address = Address::Unix(path.clone());
        let listener = Listener::open(&address).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let error = Listener::open(&address).unwrap_err().to_string();
        assert!(error.contains("another program"), "{error}");
        drop(listener);
        assert!(!path.exists());
        std::fs::write(&path, "not ours").unwrap();
        assert!(Listener::open(&address).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "not ours");
    }
}
