// SPDX-License-Identifier: PostgreSQL
//! The spool: the directory in which a recorder that ships keeps its recording.

use crate::error::Error;
use crate::owner::Claimant;
use files::Access;
use rand::Rng;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A recording's directory, with a log of the files shipped to each bucket.
#[derive(Debug, Clone)]
pub struct Spool {
    /// The directory.
    pub directory: PathBuf,
    /// The recording's identity.
    pub identity: String,
}

/// The name of the file that marks a spool of a recorder.
const RECORDER: &str = "recorder";

impl Spool {
    /// The spool in a directory, which is created if necessary.
    pub fn open(directory: &Path) -> Result<Spool, Error> {
        let folder = directory.join(recording::SHIP);
        files::folder(&folder, Access::Owner).map_err(Error::io(&folder))?;
        let path = folder.join("identity");
        let identity = match files::read_text(&path, 4096) {
            Ok(text) if !text.trim().is_empty() => text.trim().to_string(),
            Ok(_) => new_identity(&path)?,
            Err(error) if error.kind() == ErrorKind::NotFound => new_identity(&path)?,
            Err(error) => return Err(Error::io(&path)(error)),
        };
        Ok(Spool { directory: directory.to_path_buf(), identity })
    }

    /// Whether a recorder ships this directory. If not, it is an ordinary recording, which may have been sent.
    pub fn is_at(directory: &Path) -> bool {
        directory.join(recording::SHIP).join(RECORDER).exists()
    }

    /// Mark the directory as the spool of a recorder.
    pub fn mark(&self) -> Result<(), Error> {
        let path = self.directory.join(recording::SHIP).join(RECORDER);
        files::write(&path, b"", Access::Owner).map_err(Error::io(&path))
    }

    /// The path of the log of files sent to a bucket under this cluster's name.
    pub(crate) fn sent(&self, url: &str, cluster: &str) -> PathBuf {
        let sum = crc32fast::hash(format!("{url}\n{cluster}").as_bytes());
        self.directory.join(recording::SHIP).join(format!("{sum:08x}.log"))
    }

    /// This spool as it appears in the owner object.
    pub fn claimant(&self, machine: &str) -> Claimant {
        let directory = self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone());
        Claimant {
            recording: self.identity.clone(),
            directory: directory.display().to_string(),
            machine: machine.to_string(),
        }
    }
}

fn new_identity(path: &Path) -> Result<String, Error> {
    let identity = format!("{:032x}", rand::rng().random::<u128>());
    files::replace(path, identity.as_bytes(), Access::Owner, "", true).map_err(Error::io(path))?;
    Ok(identity)
}

/// The default directory of the spool: under systemd's state directory, or the user's.
/// `variable` reads the environment.
pub fn default_directory(
    variable: impl Fn(&str) -> Option<PathBuf>,
    url: &str,
    cluster: &str,
) -> Option<PathBuf> {
    let given = |name: &str| variable(name).filter(|path| path.is_absolute());
    let spools = given("STATE_DIRECTORY").map(|path| path.join("spool")).or_else(|| {
        let state =
            given("XDG_STATE_HOME").or(given("HOME").map(|home| home.join(".local/state")))?;
        Some(state.join("pgtally/spool"))
    })?;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = url.replace("://", "-").chars().map(plain).take(80).collect();
    let sum = crc32fast::hash(format!("{url}\n{cluster}").as_bytes());
    Some(spools.join(format!("{name}-{cluster}-{sum:08x}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_keeps_its_identity() {
        let folder = tempfile::tempdir().unwrap();
        let first = Spool::open(folder.path()).unwrap();
        assert_eq!(first.identity.len(), 32);
        assert_eq!(Spool::open(folder.path()).unwrap().identity, first.identity);
        assert_ne!(first.sent("s3://b", "main"), first.sent("s3://b", "other"));
    }

    #[test]
    fn the_default_directory_is_of_the_service_or_the_user() {
        let of = |set: &[(&str, &str)], cluster| {
            let set: Vec<(String, PathBuf)> =
                set.iter().map(|(name, path)| (name.to_string(), path.into())).collect();
            let variable =
                move |name: &str| Some(set.iter().find(|pair| pair.0 == name)?.1.clone());
            default_directory(variable, "s3://bucket/a/b", cluster)
        };
        let service = of(&[("STATE_DIRECTORY", "/var/lib/pgtally"), ("HOME", "/root")], "main");
        let service = service.unwrap().display().to_string();
        assert!(service.starts_with("/var/lib/pgtally/spool/s3-bucket-a-b-main-"), "{service}");
        let user = of(&[("HOME", "/home/me")], "main").unwrap();
        assert!(user.starts_with("/home/me/.local/state/pgtally/spool"), "{user:?}");
        assert_ne!(of(&[("HOME", "/home/me")], "other").unwrap(), user);
        assert_eq!(of(&[("HOME", "relative")], "main"), None);
    }

    #[test]
    fn an_identity_without_an_end_is_made_anew_and_names_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(recording::SHIP).join("identity");
        let first = Spool::open(folder.path()).unwrap();
        std::fs::write(&path, format!("{}\n", first.identity)).unwrap();
        assert_eq!(Spool::open(folder.path()).unwrap().identity, first.identity);
        std::fs::write(&path, "\n").unwrap();
        assert_eq!(Spool::open(folder.path()).unwrap().identity.len(), 32);
        assert!(!Spool::is_at(folder.path()));
        first.mark().unwrap();
        assert!(Spool::is_at(folder.path()));
        let variable = |name: &str| match name {
            "STATE_DIRECTORY" => Some("relative".into()),
            "XDG_STATE_HOME" => Some("/state".into()),
            _ => Some("/home/me".into()),
        };
        let url = format!("s3://{}", "b".repeat(200));
        let found = default_directory(variable, &url, "main").unwrap().display().to_string();
        // 80 characters of the address, so that the directory's name is not too long.
        let expected = format!("/state/pgtally/spool/s3-{}-main-", "b".repeat(77));
        assert!(found.starts_with(&expected), "{found}");
        let other = default_directory(variable, &format!("{url}c"), "main").unwrap();
        assert_ne!(other.display().to_string(), found, "of another address");
    }
}
