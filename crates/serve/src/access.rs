// SPDX-License-Identifier: PostgreSQL
//! Who may read: anybody who can connect, anybody with the token that is printed at the start, or the users
//! in a file.
//!
//! The file has a line for each user, with a name and a token; or a single token. It is read again when it changes, so that a
//! user can be added or removed without a restart.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use error::Error;

use super::watched::{check_secret, named, WatchedFile};

/// Minimum length of a token, so that it cannot be guessed.
const MIN_TOKEN: usize = 16;
/// Maximum size of the file, bytes.
const FILE_BYTES: u64 = 64 * 1024;

/// Who may read.
#[derive(Debug)]
pub enum Access {
    /// Anybody who can connect: a Unix-domain socket, or --no-token.
    Anybody,
    /// Whoever has this token, which is printed once at the start.
    Printed(String),
    /// The users in a file.
    Listed(TokenFile),
}

/// A user, who may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name; `None`: the file has a single token.
    pub name: Option<Arc<str>>,
    /// The secret.
    pub token: Arc<str>,
}

/// A file with users.
#[derive(Debug)]
pub struct TokenFile(Mutex<KnownUsers>);

#[derive(Debug)]
struct KnownUsers {
    file: WatchedFile,
    users: Arc<[User]>,
}

impl Access {
    /// Whether a token is required.
    pub fn needs_token(&self) -> bool {
        !matches!(self, Access::Anybody)
    }

    /// The user who has this token.
    pub fn user(&self, given: &str) -> Option<User> {
        match self {
            Access::Anybody => None,
            Access::Printed(token) => {
                same(given, token).then(|| User { name: None, token: token.as_str().into() })
            }
            Access::Listed(file) => {
                // All of them are compared, so that the time does not depend on who it is.
                let users = file.users();
                users.iter().fold(None, |found, user| match same(given, &user.token) {
                    true => Some(user.clone()),
                    false => found,
                })
            }
        }
    }
}

impl TokenFile {
    /// Reads the file.
    pub fn open(path: &Path) -> Result<TokenFile, Error> {
        let mut file = WatchedFile::new(path);
        file.has_changed();
        let users = read(path)?.into();
        Ok(TokenFile(Mutex::new(KnownUsers { file, users })))
    }

    /// The users now. If the file cannot be read any more, they stay.
    pub fn users(&self) -> Arc<[User]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.file.has_changed() {
            match read(known.file.path()) {
                Ok(users) => known.users = users.into(),
                Err(error) => {
                    view::escape::say(&format!("{error}; the previous users stay valid"));
                }
            }
        }
        known.users.clone()
    }
}

fn read(path: &Path) -> Result<Vec<User>, Error> {
    check_secret(path, "token")?;
    let text = files::read_named_text(path, FILE_BYTES).map_err(|error| named(path, &error))?;
    users(&text).map_err(|why| named(path, &why))
}

/// The users in the text of a file.
fn users(text: &str) -> Result<Vec<User>, String> {
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut users: Vec<User> = Vec::new();
    for line in lines {
        let (name, token) = match line.split_once(char::is_whitespace) {
            Some((name, token)) => (Some(name), token.trim_start()),
            None => (None, line),
        };
        if name.is_some_and(|name| !name.chars().all(is_of_name)) {
            return Err("a user's name may contain only letters, digits and - . _ @".into());
        }
        check(token)?;
        if users.iter().any(|user| &*user.token == token) {
            return Err("two users have the same token".into());
        }
        if users.iter().any(|user| user.name.as_deref() == name) {
            return Err(match name {
                Some(name) => format!("user {name} is listed twice"),
                None => "several tokens need names: write NAME TOKEN in each line".into(),
            });
        }
        users.push(User { name: name.map(Into::into), token: token.into() });
    }
    if users.is_empty() {
        return Err(format!("the token must have at least {MIN_TOKEN} characters"));
    }
    Ok(users)
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || "-._@".contains(letter)
}

/// Tokens are used in headers and URLs without escaping.
fn check(token: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if token.len() < MIN_TOKEN {
        return Err(format!("the token must have at least {MIN_TOKEN} characters"));
    }
    if !token.bytes().all(plain) {
        return Err("the token may contain only letters, digits and - . _ ~".to_string());
    }
    Ok(())
}

/// Whether two texts are equal, in a time that does not depend on where they differ.
fn same(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    let mut differ = u8::from(given.len() != token.len());
    for (at, byte) in token.iter().enumerate() {
        differ |= byte ^ given.get(at).copied().unwrap_or(!byte);
    }
    std::hint::black_box(differ) == 0
}

/// A random token of 128 bits.
pub fn random_token() -> String {
    format!("{:032x}", rand::random::<u128>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const TOKEN: &str = "0123456789abcdef";
    const OTHER: &str = "fedcba9876543210";

    fn write(path: &Path, text: &str) {
        let next = path.with_extension("next");
        std::fs::write(&next, text).unwrap();
        std::fs::set_permissions(&next, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::rename(&next, path).unwrap();
    }

    #[test]
    fn a_file_has_one_token_or_users_with_names() {
        let names = |text: &str| -> Result<Vec<(Option<String>, String)>, String> {
            let of =
                |user: &User| (user.name.as_deref().map(str::to_string), user.token.to_string());
            Ok(users(text)?.iter().map(of).collect())
        };
        assert_eq!(names(&format!(" {TOKEN}\n")), Ok(vec![(None, TOKEN.into())]));
        assert_eq!(
            names(&format!("# who may read\nalice {TOKEN}\n\nbob@shop\t {OTHER}\n")),
            Ok(vec![(Some("alice".into()), TOKEN.into()), (Some("bob@shop".into()), OTHER.into())])
        );
        let refused = |text: &str, why: &str| {
            let error = names(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused("short", "at least 16");
        refused("", "at least 16");
        refused("0123456789abcdef;x", "only letters");
        refused(&format!("alice {TOKEN} {OTHER}"), "only letters");
        refused(&format!("{TOKEN}\n{OTHER}"), "need names");
        refused(&format!("alice {TOKEN}\nbob {TOKEN}"), "same token");
        refused(&format!("alice {TOKEN}\nalice {OTHER}"), "listed twice");
        refused(&format!("a;b {TOKEN}"), "name may contain");
    }

    #[test]
    fn users_are_added_and_removed_while_the_file_is_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        write(&path, &format!("alice {TOKEN}\n"));
        let access = Access::Listed(TokenFile::open(&path).unwrap());
        let name = |token: &str| access.user(token).map(|user| user.name.unwrap().to_string());
        assert_eq!((name(TOKEN), name(OTHER)), (Some("alice".into()), None));
        write(&path, &format!("bob {OTHER}\n"));
        assert_eq!((name(TOKEN), name(OTHER)), (None, Some("bob".into())));
        // A file that is wrong or missing locks nobody out.
        write(&path, "wrong\n");
        assert_eq!(name(OTHER), Some("bob".into()));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(name(OTHER), Some("bob".into()));
    }

    #[test]
    fn a_token_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        write(&path, TOKEN);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = TokenFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
    }
}
