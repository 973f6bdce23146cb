// SPDX-License-Identifier: PostgreSQL
//! Reads the server's settings in a separate thread, because a busy or starting server may respond
//! late.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::time::SystemTime;

use recording::SettingRow;

use error::Error;
use live::server;
use live::target::SegmentSource;

/// The settings of one reading.
#[derive(Debug)]
pub struct SettingsReading {
    /// The settings.
    pub rows: Vec<SettingRow>,
    /// Why the settings could not be read by SQL.
    pub note: Option<String>,
}

/// Reads the settings of a server.
#[derive(Debug)]
pub struct RecordedSettings {
    ask: Sender<()>,
    answers: Receiver<SettingsReading>,
    /// The data directory; `None`: it is on another machine.
    data_directory: Option<PathBuf>,
    /// When the configuration files were last changed.
    changed: Option<[Option<SystemTime>; 2]>,
    /// Settings reported so far, by name.
    known: HashMap<String, String>,
    /// Whether the server has answered; otherwise asking it again would only add another line to its log.
    answers_sql: bool,
}

const FILES: [&str; 2] = ["postgresql.conf", "postgresql.auto.conf"];

/// Parts of the names of server settings whose values may be, or contain, a password. Recordings may be stored where
/// other people can read them. The server's library hides the same values in statements
/// (`pg_tally/statement/statement_text.c`).
const SECRET: [&str; 6] = ["command", "conninfo", "pass", "secret", "token", "key"];

/// Whether the value of a setting must not be recorded. Only texts can be secret. The purpose of settings of other
/// extensions and of applications is unknown. Without a type, as in a file, only numbers and booleans are certain not
/// to be secret.
fn is_secret(name: &str, value: &str, kind: Option<&str>) -> bool {
    let number = || value.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let is_text = match kind {
        Some(kind) => kind == "string",
        None => !number() && !["on", "off", "true", "false", "yes", "no"].contains(&value),
    };
    let name = name.to_ascii_lowercase();
    is_text
        && !value.is_empty()
        && !name.starts_with("pg_tally.")
        && (name.contains('.') || SECRET.iter().any(|part| name.contains(part)))
}

fn row(name: &str, value: &str, kind: Option<&str>, unit: &str, source: &str) -> SettingRow {
    let value = if is_secret(name, value, kind) { "(not recorded)" } else { value };
    SettingRow {
        group: "server".into(),
        name: name.into(),
        value: value.into(),
        unit: unit.into(),
        source: source.into(),
        ..SettingRow::default()
    }
}

impl RecordedSettings {
    /// Starts the thread for the server of `target`, or of the segment.
    pub fn start(
        target: Option<String>,
        place: &SegmentSource,
        data_directory: Option<PathBuf>,
    ) -> Option<RecordedSettings> {
        let (ask, questions) = channel();
        let (answer, answers) = channel();
        let named = place.target();
        let data = data_directory.clone();
        let work = move || {
            while questions.recv().is_ok() {
                let found = find_out(target.as_deref(), &named, data.as_deref());
                if answer.send(found).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("settings".to_string()).spawn(work).ok()?;
        Some(RecordedSettings {
            ask,
            answers,
            data_directory,
            changed: None,
            known: HashMap::new(),
            answers_sql: false,
        })
    }

    /// Requests the settings if the server answers, its configuration has changed since the last request, or `anyway`. Files
    /// alone do not tell when they are loaded.
    pub fn ask(&mut self, anyway: bool) {
        let data = self.data_directory.as_deref();
        let time = |name| std::fs::metadata(data?.join(name)).ok()?.modified().ok();
        let changed = Some(FILES.map(time));
        if anyway || self.answers_sql || changed != self.changed {
            self.changed = changed;
            // This fails if the thread has ended.
            let _ = self.ask.send(());
        }
    }

    /// Readings since the last call, with only the settings that changed.
    pub fn news(&mut self) -> Vec<SettingsReading> {
        let mut news: Vec<SettingsReading> = self.answers.try_iter().collect();
        for answer in &mut news {
            self.answers_sql = answer.note.is_none();
            answer.rows.retain(|row| {
                let value = format!("{} {}", row.value, row.unit);
                self.known.insert(row.name.to_string(), value.clone()) != Some(value)
            });
        }
        news
    }
}

fn find_out(target: Option<&str>, segment: &str, data: Option<&Path>) -> SettingsReading {
    match by_sql(target.unwrap_or(segment)) {
        Ok(rows) => SettingsReading { rows, note: None },
        Err(error) => {
            let (rows, read) = data.map(from_files).unwrap_or_default();
            let read = if read.is_empty() {
                "its configuration files are not readable either"
            } else {
                "read from its configuration files instead"
            };
            let note = format!("could not query the server's settings ({error}); {read}");
            SettingsReading { rows, note: Some(note) }
        }
    }
}

fn by_sql(target: &str) -> Result<Vec<SettingRow>, Error> {
    let mut client = server::connect_target(Some(target))?;
    let rows = client.query(
        "/* tally */ select name, setting, coalesce(unit, ''), source, vartype from pg_settings order by name",
        &[],
    )?;
    let setting = |setting: &pq::Row| -> Result<SettingRow, Error> {
        let source = match setting.get::<&str>(3)? {
            "default" => "sql: default".to_string(),
            source => format!("sql: {source}"),
        };
        Ok(row(setting.get(0)?, setting.get(1)?, Some(setting.get(4)?), setting.get(2)?, &source))
    };
    let mut settings: Vec<SettingRow> = rows.iter().map(setting).collect::<Result<_, _>>()?;
    let version = client.query_one("/* tally */ select version(), 'tally'", &[])?;
    settings.push(row("version", version.get(0)?, Some("string"), "", "sql"));
    Ok(settings)
}

/// Maximum number of bytes to read of a file.
const LONGEST: u64 = 16 << 20;

/// The text of a file in the data directory. The owner may have put a pipe there, or a link to a file that only we may
/// read.
fn text_of(data: &Path, name: &str) -> Option<String> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(nonblocking).open(data.join(name)).ok()?;
    let meta = file.metadata().ok()?;
    let theirs = meta.uid() == std::fs::metadata(data).ok()?.uid() || meta.mode() & 0o004 != 0;
    let mut text = String::new();
    (meta.is_file() && theirs).then(|| file.take(LONGEST).read_to_string(&mut text).ok())??;
    Some(text)
}

/// Settings from the configuration files, where later lines and files override earlier ones, and the names of the
/// files that could be read.
fn from_files(data: &Path) -> (Vec<SettingRow>, Vec<&'static str>) {
    let mut found: HashMap<String, SettingRow> = HashMap::new();
    let mut read = Vec::new();
    for file in FILES {
        let Some(text) = text_of(data, file) else { continue };
        read.push(file);
        for (name, value) in text.lines().filter_map(assignment) {
            found.insert(name.to_string(), row(name, &value, None, "", file));
        }
    }
    let mut rows: Vec<SettingRow> = found.into_values().collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    (rows, read)
}

/// Parses `name = value` or `name value`; the value may be quoted.
fn assignment(line: &str) -> Option<(&str, String)> {
    let line = line.trim_start();
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))?;
    let (name, rest) = line.split_at(end);
    if name.is_empty() || name.starts_with("include") {
        return None;
    }
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let value = match rest.strip_prefix('\'') {
        Some(quoted) => quoted.split('\'').next().unwrap_or("").to_string(),
        None => rest.split(['#', ' ', '\t']).next().unwrap_or("").to_string(),
    };
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_file_is_read_as_the_server_reads_it() {
        for (line, expected) in [
            ("shared_buffers = 128MB  # min 128kB", Some(("shared_buffers", "128MB"))),
            ("  log_line_prefix = '%m [%p] '", Some(("log_line_prefix", "%m [%p] "))),
            ("port 5433", Some(("port", "5433"))),
            ("pg_tally.level='waits'", Some(("pg_tally.level", "waits"))),
            ("#port = 5432", None),
            ("", None),
            ("include 'other.conf'", None),
        ] {
            let found = assignment(line);
            assert_eq!(found.as_ref().map(|(n, v)| (*n, v.as_str())), expected, "{line}");
        }
    }

    #[test]
    fn later_files_override_earlier_ones() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILES[0]), "a = 1\nb = 2\na = 3\n").unwrap();
        std::fs::write(folder.path().join(FILES[1]), "b = '4'\n").unwrap();
        let (rows, read) = from_files(folder.path());
        assert_eq!(read, FILES);
        let settings: Vec<_> = rows.iter().map(|row| (&*row.name, &*row.value)).collect();
        assert_eq!(settings, [("a", "3"), ("b", "4")]);
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join(FILES[0]);
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        assert_eq!(from_files(folder.path()).1, [""; 0]);
    }

    #[test]
    fn a_setting_that_may_contain_a_password_is_named_without_its_value() {
        let folder = tempfile::tempdir().unwrap();
        let text = "primary_conninfo = 'host=a password=SECRET'\nssl_passphrase_command = ''\n\
                    archive_command = 'a SECRET'\napp.password = SECRET\napp.limit = 5\napp.on = off\n\
                    pg_tally.statements = all\n";
        std::fs::write(folder.path().join(FILES[0]), text).unwrap();
        let (rows, _) = from_files(folder.path());
        let settings: Vec<_> = rows.iter().map(|row| (&*row.name, &*row.value)).collect();
        assert_eq!(
            settings,
            [
                ("app.limit", "5"),
                ("app.on", "off"),
                ("app.password", "(not recorded)"),
                ("archive_command", "(not recorded)"),
                ("pg_tally.statements", "all"),
                ("primary_conninfo", "(not recorded)"),
                ("ssl_passphrase_command", "")
            ]
        );
        for (name, kind, is) in [
            ("password_encryption", "enum", false),
            ("app.password", "string", true),
            ("pg_stat_statements.track", "enum", false),
            ("search_path", "string", false),
            ("Restore_Command", "string", true),
        ] {
            assert_eq!(is_secret(name, "1a", Some(kind)), is, "{name}");
        }
    }
}
