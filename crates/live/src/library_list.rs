// SPDX-License-Identifier: PostgreSQL
//! The settings that name libraries: read from the configuration files, changed by ALTER SYSTEM.
//!
//! A change may wait for a restart, so the value is read from pg_file_settings rather than from the
//! running server.

use pq::Client;

use error::Error;

/// The name by which the extension is loaded.
pub const LIBRARY: &str = "pg_tally";
/// ALTER SYSTEM writes this file.
const AUTO_CONF: &str = "postgresql.auto.conf";

/// A setting that lists libraries, with its value in the configuration files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryList {
    name: &'static str,
    /// The libraries in effect after a reload or restart.
    libraries: Vec<String>,
    /// Whether ALTER SYSTEM has set it.
    by_alter_system: bool,
    /// The value that would be in effect without ALTER SYSTEM: libraries, and the file that lists them.
    below: Vec<String>,
    below_at: Option<String>,
    /// Whether the setting is set on the server's command line, which overrides all files.
    fixed: bool,
    /// The libraries in effect in the running server.
    running: Vec<String>,
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// No change was needed.
    None,
    /// ALTER SYSTEM has changed it.
    Made,
    /// The library is listed in this file and line, which `tally` does not edit.
    ByHand(String),
}

impl LibraryList {
    /// Read `shared_preload_libraries` or `session_preload_libraries`.
    pub fn read(client: &mut Client, name: &'static str) -> Result<Self, Error> {
        let entries = client.query(
            "select sourcefile, sourceline, setting from pg_file_settings \
             where name = $1 order by seqno",
            &[&name],
        )?;
        let row = client
            .query_one("select setting, source from pg_settings where name = $1", &[&name])?;
        let running = split(row.get(0)?);
        let fixed = row.get::<&str>(1)? == "command line";
        let mut list = Self {
            name,
            libraries: Vec::new(),
            by_alter_system: false,
            below: Vec::new(),
            below_at: None,
            fixed,
            running,
        };
        for entry in &entries {
            let (file, line): (&str, i32) = (entry.get(0)?, entry.get(1)?);
            list.libraries = split(entry.get::<Option<&str>>(2)?.unwrap_or(""));
            list.by_alter_system = file.ends_with(AUTO_CONF);
            if !list.by_alter_system {
                list.below = list.libraries.clone();
                list.below_at = Some(format!("{file}, line {line}"));
            }
        }
        if fixed {
            list.libraries = list.running.clone();
        }
        Ok(list)
    }

    /// Whether the configuration files list the extension.
    pub fn has(&self) -> bool {
        names(&self.libraries)
    }

    /// Whether the running server has loaded the extension through this setting.
    pub fn is_running(&self) -> bool {
        names(&self.running)
    }

    /// Add the extension at the end.
    pub fn add(&self, client: &mut Client) -> Result<Change, Error> {
        if self.has() {
            return Ok(Change::None);
        }
        self.refuse_if_fixed()?;
        let mut wanted = self.libraries.clone();
        wanted.push(LIBRARY.into());
        self.set(client, &wanted)?;
        Ok(Change::Made)
    }

    /// Remove the extension and keep the other libraries.
    pub fn remove(&self, client: &mut Client) -> Result<Change, Error> {
        if !self.has() {
            return Ok(Change::None);
        }
        self.refuse_if_fixed()?;
        if !self.by_alter_system {
            return Ok(Change::ByHand(self.below_at.clone().unwrap_or_default()));
        }
        let wanted: Vec<String> =
            self.libraries.iter().filter(|library| !is_ours(library)).cloned().collect();
        // An empty list cannot be written: ALTER SYSTEM would make it a list of one empty name.
        if wanted.is_empty() || wanted == self.below {
            client.batch_execute(&format!("ALTER SYSTEM RESET {}", self.name))?;
        } else {
            self.set(client, &wanted)?;
        }
        Ok(match &self.below_at {
            Some(place) if names(&self.below) && wanted.is_empty() => Change::ByHand(place.clone()),
            _ => Change::Made,
        })
    }

    fn set(&self, client: &mut Client, libraries: &[String]) -> Result<(), Error> {
        Ok(client.batch_execute(&statement(self.name, libraries))?)
    }

    fn refuse_if_fixed(&self) -> Result<(), Error> {
        if self.fixed {
            return Err(Error::Failed(format!(
                "{} is set on the server's command line, which overrides ALTER SYSTEM; \
                 change it there",
                self.name
            )));
        }
        Ok(())
    }
}

fn is_ours(library: &str) -> bool {
    let file = library.rsplit('/').next().unwrap_or(library);
    file == LIBRARY || file == "pg_tally.so"
}

fn names(libraries: &[String]) -> bool {
    libraries.iter().any(|library| is_ours(library))
}

/// Each library is a separate literal, because PostgreSQL takes one literal as one name.
fn statement(name: &str, libraries: &[String]) -> String {
    let literals: Vec<String> =
        libraries.iter().map(|library| format!("'{}'", library.replace('\'', "''"))).collect();
    format!("ALTER SYSTEM SET {name} = {}", literals.join(", "))
}

/// Split a list as PostgreSQL's SplitDirectoriesString does: names are separated by commas and may be
/// surrounded by whitespace; a name that contains either is in double quotes.
fn split(text: &str) -> Vec<String> {
    let mut list = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let mut name = String::new();
        if let Some(quoted) = rest.strip_prefix('"') {
            rest = quoted;
            loop {
                let Some(end) = rest.find('"') else {
                    name.push_str(rest);
                    rest = "";
                    break;
                };
                name.push_str(&rest[..end]);
                rest = &rest[end + 1..];
                // Two quotes stand for one.
                match rest.strip_prefix('"') {
                    Some(after) => {
                        name.push('"');
                        rest = after;
                    }
                    None => break,
                }
            }
            rest = rest.find(',').map_or("", |comma| &rest[comma..]);
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            name.push_str(rest[..end].trim_end());
            rest = &rest[end..];
        }
        if !name.is_empty() {
            list.push(name);
        }
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_as_the_server_splits_it() {
        for (text, parts) in [
            ("", vec![]),
            ("pg_stat_statements", vec!["pg_stat_statements"]),
            (" a , b,c ", vec!["a", "b", "c"]),
            (r#""$libdir/a b", "x,y", "q""q""#, vec!["$libdir/a b", "x,y", "q\"q"]),
            (r#""""#, vec![]),
            (r#""open"#, vec!["open"]),
        ] {
            assert_eq!(split(text), parts, "{text}");
        }
    }

    #[test]
    fn a_list_is_written_name_by_name() {
        let list = ["auto_explain".to_string(), "$libdir/it's".to_string()];
        assert_eq!(statement("x", &list), "ALTER SYSTEM SET x = 'auto_explain', '$libdir/it''s'");
    }

    #[test]
    fn the_extension_is_known_by_any_path() {
        assert!(is_ours("pg_tally") && is_ours("$libdir/pg_tally") && is_ours("/a/pg_tally.so"));
        assert!(!is_ours("pg_tally2") && !is_ours("pg_stat_statements"));
    }
}
