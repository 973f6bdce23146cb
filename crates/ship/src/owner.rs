// SPDX-License-Identifier: PostgreSQL
//! Which recording may ship the files of a host of a cluster: one at a time.
//!
//! An object names the owner. It is created, and later replaced, only if no other process has done so
//! meanwhile; neither clocks nor leases are involved. The owner reads it before each pass. Between two
//! passes a former owner may still write files, but under names of its own generation, so these neither
//! replace nor hide files of the new owner.

use crate::bucket::{Bucket, UpdateVersion};
use crate::error::Error;
use crate::layout::Origin;
use recording::format_utc;
use serde::{Deserialize, Serialize};

/// The contents of the owner object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The recordings that have been shipped here, in the order of their generations, which start at 1.
    pub recordings: Vec<String>,
    /// The recording that is shipped here now.
    pub recording: String,
    /// Its directory.
    pub directory: String,
    /// The machine with that directory.
    pub machine: String,
    /// When it became the owner, microseconds since 1970.
    pub since_us: i64,
}

/// A recording that is to be shipped.
#[derive(Debug, Clone)]
pub struct Claimant {
    /// The identity of the recording, which is stored in its directory.
    pub recording: String,
    /// The directory.
    pub directory: String,
    /// The machine.
    pub machine: String,
}

/// The result of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The claimant ships as this generation.
    Ours(u32),
    /// Another recording is shipped there.
    Other(Owner),
}

impl Claim {
    /// The generation, or an error that names the other owner.
    pub fn generation(self, bucket: &Bucket, origin: &Origin) -> Result<u32, Error> {
        match self {
            Claim::Ours(generation) => Ok(generation),
            Claim::Other(owner) => Err(Error::Owned {
                url: bucket.url().to_string(),
                origin: format!("cluster {}, host {}", origin.cluster, origin.host),
                owner: format!(
                    "{} on {} (since {})",
                    owner.directory,
                    owner.machine,
                    format_utc(owner.since_us)
                ),
            }),
        }
    }
}

fn read(bucket: &Bucket, origin: &Origin) -> Result<Option<(Owner, UpdateVersion)>, Error> {
    let Some((bytes, version)) = bucket.get(&origin.owner())? else { return Ok(None) };
    let owner = serde_json::from_slice(&bytes).map_err(|error| Error::Nothing {
        url: bucket.url().to_string(),
        reason: format!(
            "{}: malformed ({error}); remove this object if no recorder ships there",
            origin.owner()
        ),
    })?;
    Ok(Some((owner, version)))
}

fn text(owner: &Owner) -> bytes::Bytes {
    // A structure of strings and numbers always becomes JSON.
    serde_json::to_vec_pretty(owner).unwrap_or_default().into()
}

/// Become the owner of an origin, or find out who is. `take_over`: become the owner in any case. `now_us`:
/// microseconds since 1970.
pub fn claim(
    bucket: &Bucket,
    origin: &Origin,
    who: &Claimant,
    take_over: bool,
    now_us: i64,
) -> Result<Claim, Error> {
    let new = Owner {
        recordings: vec![who.recording.clone()],
        recording: who.recording.clone(),
        directory: who.directory.clone(),
        machine: who.machine.clone(),
        since_us: now_us,
    };
    // A round fails if another process has changed the object.
    for _ in 0..10 {
        // Write first, which shows whether the credentials suffice.
        if bucket.create(&origin.owner(), text(&new))? {
            return Ok(Claim::Ours(1));
        }
        let Some((owner, version)) = read(bucket, origin)? else { continue };
        if owner.recording == who.recording {
            return Ok(Claim::Ours(generation(&owner)));
        }
        if !take_over {
            return Ok(Claim::Other(owner));
        }
        let mut recordings = owner.recordings;
        if !recordings.contains(&who.recording) {
            recordings.push(who.recording.clone());
        }
        let new = Owner { recordings, ..new.clone() };
        if bucket.replace(&origin.owner(), text(&new), version)? {
            return Ok(Claim::Ours(generation(&new)));
        }
    }
    Err(Error::Unavailable {
        url: bucket.url().to_string(),
        reason: format!("{} keeps changing", origin.owner()),
    })
}

/// Whether this recording is still the owner. If there is no owner, it becomes the owner.
pub(crate) fn check(
    bucket: &Bucket,
    origin: &Origin,
    who: &Claimant,
    now_us: i64,
) -> Result<Claim, Error> {
    match read(bucket, origin)? {
        Some((owner, _)) if owner.recording == who.recording => Ok(Claim::Ours(generation(&owner))),
        Some((owner, _)) => Ok(Claim::Other(owner)),
        None => claim(bucket, origin, who, false, now_us),
    }
}

fn generation(owner: &Owner) -> u32 {
    let position = owner.recordings.iter().position(|recording| *recording == owner.recording);
    position.and_then(|at| u32::try_from(at + 1).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimant(recording: &str) -> Claimant {
        let directory = format!("/spool/{recording}");
        Claimant { recording: recording.into(), directory, machine: "db1".into() }
    }

    #[test]
    fn a_place_has_one_owner_who_keeps_its_generation() {
        let folder = tempfile::tempdir().unwrap();
        let bucket = Bucket::open(&format!("file://{}", folder.path().display())).unwrap();
        let origin = Origin::new("main", "db1").unwrap();
        let claim = |who: &str, take| claim(&bucket, &origin, &claimant(who), take, 0).unwrap();
        assert_eq!(claim("a", false), Claim::Ours(1));
        assert_eq!(claim("a", false), Claim::Ours(1));
        let refused = claim("b", false).generation(&bucket, &origin).unwrap_err().to_string();
        assert!(
            refused.contains("/spool/a on db1") && refused.contains("--take-over"),
            "{refused}"
        );
        assert_eq!(claim("b", true), Claim::Ours(2));
        assert!(matches!(claim("a", false), Claim::Other(owner) if owner.recording == "b"));
        assert_eq!(claim("a", true), Claim::Ours(1));
        assert_eq!(claim("c", true), Claim::Ours(3));
        assert_eq!(claim("b", true), Claim::Ours(2));
    }
}
