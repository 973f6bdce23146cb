// SPDX-License-Identifier: PostgreSQL
//! Errors. Each names the bucket, file or option, and the remedy, but never a credential.

use std::io;
use std::path::{Path, PathBuf};

/// Something could not be shipped or read from a bucket.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address does not name a bucket.
    #[error("{shown}: {reason}; use s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///DIRECTORY")]
    Address {
        /// The address without credentials.
        shown: String,
        /// The problem.
        reason: String,
    },
    /// The address contains a password, a key or a token.
    #[error(
        "the bucket URL must not contain credentials, because every process can see it. Put \
         them in the environment or a file that only you can read (docs/shipping.md), and replace \
         the credentials that you have just exposed"
    )]
    Credentials,
    /// A name cannot be part of a path in the bucket.
    #[error("{what} {name:?}: use 1 to 100 letters, digits and -_.")]
    Name {
        /// The option that has the name, such as "--cluster".
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The bucket does not exist or refuses the credentials, so retrying does not help.
    #[error("{url}: {reason}. {remedy}")]
    Refused {
        /// The bucket.
        url: String,
        /// Its response.
        reason: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The bucket did not respond, or returned an error that may be temporary.
    #[error("{url}: {reason}")]
    Unavailable {
        /// The bucket.
        url: String,
        /// What happened.
        reason: String,
    },
    /// Another recording is shipped there.
    #[error(
        "{url}: {origin} belongs to the recording in {owner}. Set --cluster to another name if that is \
         another server, or use --take-over if that recorder has ended for good"
    )]
    Owned {
        /// The bucket.
        url: String,
        /// The cluster and host.
        origin: String,
        /// The owner's directory and machine, and the time since when it has been the owner.
        owner: String,
    },
    /// The bucket has nothing of this host or time.
    #[error("{url}: {reason}")]
    Nothing {
        /// The bucket.
        url: String,
        /// What is missing.
        reason: String,
    },
    /// The recorder is ending.
    #[error("ended before everything was sent")]
    Ended,
    /// A file of the spool could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The recording could not be read.
    #[error(transparent)]
    Recording(#[from] recording::Error),
}

impl Error {
    /// Wraps an error of the operating system on a file.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
        move |source| Error::Io { path: path.to_path_buf(), source }
    }

    /// Whether this is a usage error.
    pub fn is_usage(&self) -> bool {
        matches!(self, Error::Address { .. } | Error::Credentials | Error::Name { .. })
    }

    /// Whether retrying may help.
    pub fn may_pass(&self) -> bool {
        matches!(self, Error::Unavailable { .. } | Error::Io { .. })
    }

    /// Wraps an error of the store, with a remedy if there is one.
    #[cfg(feature = "buckets")]
    pub(crate) fn of_store(url: &str, error: &object_store::Error) -> Error {
        use object_store::Error as E;
        let url = url.to_string();
        let reason = in_one_line(&with_causes(error));
        let remedy = match error {
            E::PermissionDenied { .. } => {
                "The credentials need permission to read, list, write and delete objects under the prefix"
            }
            E::Unauthenticated { .. } => {
                "Set credentials in the environment (docs/shipping.md)"
            }
            E::NotFound { .. } if !reason.contains("NoSuchKey") => "Create the bucket or correct its name",
            E::Generic { .. } if reason.contains("NoSuchBucket") => {
                "Create the bucket or correct its name"
            }
            _ => return Error::Unavailable { url, reason },
        };
        Error::Refused { url, reason, remedy }
    }
}

impl From<Error> for ::error::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Recording(error) => error.into(),
            error if error.is_usage() => Self::Usage(error.to_string()),
            error => Self::from_cause(error),
        }
    }
}

#[cfg(feature = "buckets")]
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Most errors repeat their cause.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// The text on one line, without the query parameters of URLs, which may contain a signature.
#[cfg(feature = "buckets")]
fn in_one_line(text: &str) -> String {
    const MAX: usize = 400;
    let mut line = String::new();
    let mut within_parameters = false;
    for c in text.chars() {
        if c.is_whitespace() || "\"'()<>".contains(c) {
            within_parameters = false;
        }
        if within_parameters {
            continue;
        }
        match c {
            '\n' | '\r' | '\t' => line.push(' '),
            c => line.push(c),
        }
        within_parameters |= c == '?';
        if line.len() > MAX {
            line.push('…');
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_a_message_has_no_parameters() {
        let text = "error sending request for url (https://a.blob/c/x?sig=SECRET&se=1)\nagain";
        assert_eq!(in_one_line(text), "error sending request for url (https://a.blob/c/x?) again");
    }

    #[test]
    fn refusals_have_a_remedy_and_all_else_may_pass() {
        use object_store::Error as E;
        let source = |text: &str| text.to_string().into();
        let denied = |text| E::PermissionDenied { path: "p".into(), source: source(text) };
        let absent = |text| E::NotFound { path: "p".into(), source: source(text) };
        let login = |text| E::Unauthenticated { path: "p".into(), source: source(text) };
        let other = |text| E::Generic { store: "S3", source: source(text) };
        for (error, remedy) in [
            (denied("no"), Some("need permission to read, list, write and delete")),
            (login("no"), Some("Set credentials in the environment")),
            (absent("NoSuchBucket"), Some("Create the bucket")),
            (other("NoSuchBucket"), Some("Create the bucket")),
            (absent("NoSuchKey"), None),
            (other("a timeout"), None),
        ] {
            let found = Error::of_store("s3://b", &error);
            let text = found.to_string();
            assert!(text.starts_with("s3://b: "), "{text}");
            assert_eq!(found.may_pass(), remedy.is_none(), "{text}");
            assert!(text.contains(remedy.unwrap_or("")), "{text}");
            assert!(!found.is_usage());
        }
        let long = Error::of_store("s3://b", &other(&"x".repeat(1000))).to_string();
        assert!(long.ends_with('…') && long.len() < 450, "{}", long.len());
    }
}
