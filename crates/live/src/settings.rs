// SPDX-License-Identifier: PostgreSQL
//! Reads the server's settings in a separate thread, because a busy or starting server may respond
//! late.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::time::{Duration, Instant, SystemTime};

use error::Error;
use pq::Client;
use recording::SettingRow;
use rustix::fs::{FileType, Mode, OFlags};
use segment::Segment;
use view::settings::{value_with_unit, SettingChange, HIDDEN};
use view::vacuum::Condition;

use crate::backoff::Backoff;
use crate::condition_queries;
use crate::segment_source::SegmentSource;
use crate::server::{self, Access};

/// The settings of one reading.
#[derive(Debug, Default)]
pub struct SettingsReading {
    /// The settings.
    pub rows: Vec<SettingRow>,
    /// Why the settings could not be read by SQL.
    pub note: Option<String>,
    /// The configuration files; `None`: the settings could not be read by SQL.
    pub configuration: Option<ConfigurationState>,
    /// The changes since the reading before, if the settings were read by SQL both times.
    pub changes: Vec<SettingChange>,
    /// Hashes of values that are not in the rows, by name. They only show that a value has changed.
    hidden: HashMap<String, u64>,
}

/// What the server says about its configuration files.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfigurationState {
    /// When the server last loaded them, seconds since 1970.
    pub loaded: f64,
    /// The server's clock at this reading.
    pub read: f64,
    /// Settings whose value in the files needs a restart.
    pub pending_restart: usize,
    /// Lines that the server cannot apply; `None`: only roles with access to pg_file_settings see them.
    pub unapplied: Option<usize>,
}

/// How often to read the settings.
pub const EVERY: Duration = Duration::from_secs(60);
/// After this time, a server is asked again whose configuration files were changed.
const SOON: Duration = Duration::from_secs(5);

/// Reads the settings of a server, again and again.
#[derive(Debug)]
pub struct SettingsWatch {
    ask: Sender<()>,
    /// Whether the last request has no answer yet.
    waiting: bool,
    /// When [`SettingsWatch::poll`] last asked.
    polled: Option<Instant>,
    answers: Receiver<SettingsReading>,
    /// The data directory; `None`: it is on another machine.
    data_directory: Option<PathBuf>,
    /// The configuration file, if the server has named one outside the data directory.
    configuration_file: Option<PathBuf>,
    /// When the configuration files were last changed, as of the last request.
    changed: Option<Vec<Option<SystemTime>>>,
    /// When to ask again, because they were changed and not loaded yet.
    soon: Option<Instant>,
    /// Settings reported so far, by name.
    known: HashMap<String, (String, Option<u64>)>,
    /// The last settings that were read by SQL, and when their configuration was loaded.
    compared: Option<SettingsReading>,
    /// Asking a server that refuses adds a line to its log.
    backoff: Backoff,
}

const FILES: [&str; 2] = ["postgresql.conf", "postgresql.auto.conf"];

/// Parts of the names of server settings whose values may be, or contain, a password. Recordings may be stored where
/// other people can read them. The server's library hides the same values in statements
/// (`pg_tally/statement/statement_text.c`).
const SECRET: [&str; 6] = ["command", "conninfo", "pass", "secret", "token", "key"];

/// Whether the value of a setting must not be recorded or shown. Only texts can be secret. The purpose of settings of other
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
    let value = if is_secret(name, value, kind) { HIDDEN } else { value };
    SettingRow {
        group: "server".into(),
        name: name.into(),
        value: value.into(),
        unit: unit.into(),
        source: source.into(),
        ..SettingRow::default()
    }
}

impl SettingsWatch {
    /// Starts the thread for the server of `target`, or of the segment.
    pub fn start(
        target: Option<String>,
        place: &SegmentSource,
        data_directory: Option<PathBuf>,
    ) -> Option<SettingsWatch> {
        let (ask, questions) = channel();
        let (answer, answers) = channel();
        let place = place.clone();
        let data = data_directory.clone();
        let work = move || {
            while questions.recv().is_ok() {
                let client = match &target {
                    Some(target) => server::connect_target(Some(target)),
                    None => place.connect(),
                };
                if answer.send(find_out(client, data.as_deref())).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("settings".to_string()).spawn(work).ok()?;
        Some(SettingsWatch {
            ask,
            waiting: false,
            polled: None,
            answers,
            data_directory,
            configuration_file: None,
            changed: None,
            soon: None,
            known: HashMap::new(),
            compared: None,
            backoff: Backoff::default(),
        })
    }

    /// Starts the thread for the server of this segment, which was opened at this place.
    pub fn of_segment(place: &SegmentSource, segment: &Segment) -> Option<SettingsWatch> {
        let data = PathBuf::from(&segment.header().host);
        let is_here = matches!(place, SegmentSource::File(_)) && data.is_absolute();
        SettingsWatch::start(None, place, is_here.then_some(data))
    }

    /// Requests the settings, unless the server has refused lately and its configuration files have not changed since the last
    /// request. Files alone do not tell when they are loaded. `anyway`: the server has just started.
    pub fn ask(&mut self, anyway: bool) {
        let changed = Some(self.file_times());
        if self.waiting {
            return;
        }
        if anyway || self.backoff.is_due(Instant::now()) || changed != self.changed {
            (self.changed, self.soon) = (changed, None);
            // This fails if the thread has ended.
            self.waiting = self.ask.send(()).is_ok();
        }
    }

    /// When the configuration files were last changed, those on this machine.
    fn file_times(&self) -> Vec<Option<SystemTime>> {
        let Some(data) = &self.data_directory else { return Vec::new() };
        let files = FILES.iter().map(|name| data.join(name));
        files
            .chain(self.configuration_file.clone())
            .map(|path| std::fs::metadata(path).ok()?.modified().ok())
            .collect()
    }

    /// Requests the settings each minute, and once the configuration files have changed; then returns the readings since the last
    /// call.
    pub fn poll(&mut self, now: Instant) -> Vec<SettingsReading> {
        let is_due =
            self.polled.is_none_or(|polled| now.saturating_duration_since(polled) >= EVERY)
                || self.soon.is_some_and(|soon| now >= soon)
                || self.changed.as_ref().is_some_and(|changed| *changed != self.file_times());
        if is_due {
            self.ask(self.polled.is_none());
            self.polled = Some(now);
        }
        self.news()
    }

    /// The server was restarted: the next [`SettingsWatch::poll`] asks it at once, and reports what has changed since.
    pub fn restarted(&mut self) {
        self.polled = None;
    }

    /// Readings since the last call, with only the settings that changed.
    pub fn news(&mut self) -> Vec<SettingsReading> {
        let answers: Vec<SettingsReading> = self.answers.try_iter().collect();
        self.waiting &= answers.is_empty();
        answers.into_iter().map(|answer| self.take_in(answer)).collect()
    }

    fn take_in(&mut self, mut answer: SettingsReading) -> SettingsReading {
        if answer.note.is_some() {
            self.backoff.note_refusal(Instant::now());
        } else {
            self.backoff.note_answer();
            let before = self.compared.take();
            answer.changes = before.map_or_else(Vec::new, |before| answer.changes_since(&before));
            self.soon = self.when_to_look_for_a_load(answer.configuration);
            self.learn_file(&answer.rows);
            self.compared = Some(SettingsReading {
                rows: answer.rows.clone(),
                hidden: answer.hidden.clone(),
                configuration: answer.configuration,
                ..SettingsReading::default()
            });
        }
        let hidden = &answer.hidden;
        answer.rows.retain(|row| {
            let value = (format!("{} {}", row.value, row.unit), hidden.get(&*row.name).copied());
            self.known.insert(row.name.to_string(), value.clone()) != Some(value)
        });
        answer
    }
}

impl SettingsWatch {
    /// Learns where the server's configuration file is, unless it is in the data directory.
    fn learn_file(&mut self, rows: &[SettingRow]) {
        let named = rows.iter().find(|row| &*row.name == "config_file");
        let named = named.map(|row| PathBuf::from(&*row.value));
        let data = self.data_directory.as_deref();
        let named = named.filter(|path| data.is_some() && path.parent() != data);
        if named != self.configuration_file {
            self.configuration_file = named;
            self.changed = Some(self.file_times());
        }
    }

    /// Whoever changes a file usually has the server load it soon: when to ask again, if it was changed within the last minute and
    /// not loaded since. Both times are of this machine.
    fn when_to_look_for_a_load(&self, server: Option<ConfigurationState>) -> Option<Instant> {
        let newest = self.file_times().into_iter().flatten().max()?;
        let is_recent = newest.elapsed().is_ok_and(|age| age < EVERY);
        let changed = newest.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs_f64();
        (is_recent && changed > server?.loaded).then(|| Instant::now() + SOON)
    }
}

impl SettingsReading {
    /// What has changed since an earlier reading by SQL. Settings that only one of them has are left out: an extension or a right
    /// may have been added.
    pub fn changes_since(&self, before: &SettingsReading) -> Vec<SettingChange> {
        let Some(now) = self.configuration else { return Vec::new() };
        // A change of a role's or a database's settings is loaded by no file.
        let was_loaded = before.configuration.is_some_and(|before| before.loaded < now.loaded);
        let time = if was_loaded { now.loaded } else { now.read };
        let known: HashMap<&str, &SettingRow> =
            before.rows.iter().map(|row| (&*row.name, row)).collect();
        let changed = self.rows.iter().filter_map(|row| {
            let was = known.get(&*row.name)?;
            let same = (&was.value, &was.unit) == (&row.value, &row.unit)
                && before.hidden.get(&*row.name) == self.hidden.get(&*row.name);
            (!same).then(|| SettingChange {
                time,
                name: row.name.to_string(),
                before: value_with_unit(&was.value, &was.unit),
                after: value_with_unit(&row.value, &row.unit),
            })
        });
        changed.collect()
    }

    /// The same as conditions, by their age.
    pub fn changes_as_conditions(&self, before: &SettingsReading) -> Vec<Condition> {
        let now = self.configuration.map_or(0.0, |configuration| configuration.read);
        let changes = self.changes_since(before).into_iter();
        changes.map(|change| change.into_condition(now)).collect()
    }
}

fn find_out(client: Result<Client, Error>, data: Option<&Path>) -> SettingsReading {
    match client.and_then(|mut client| by_sql(&mut client)) {
        Ok(reading) => reading,
        Err(error) => {
            let (rows, read) = data.map(from_files).unwrap_or_default();
            let read = if read.is_empty() {
                "its configuration files are not readable either"
            } else {
                "read from its configuration files instead"
            };
            let note = format!("could not query the server's settings ({error}); {read}");
            SettingsReading { rows, note: Some(note), ..SettingsReading::default() }
        }
    }
}

/// The settings of a segment's server.
///
/// # Errors
///
/// There is no connection to it, or it refuses.
pub fn read(segment: &Segment) -> Result<SettingsReading, Error> {
    by_sql(&mut Access::require(segment)?.connect(None)?)
}

/// All settings, of those that our session has set the value that others have; when the configuration was loaded, and the time. A
/// session loads a changed configuration between two statements, so this is one.
const SETTINGS: &str = "/* tally */
    select name, case source when 'session' then reset_val else setting end, coalesce(unit, ''), source, vartype, pending_restart,
           extract(epoch from pg_conf_load_time())::float8, extract(epoch from clock_timestamp())::float8
    from pg_settings order by name";

fn by_sql(client: &mut Client) -> Result<SettingsReading, Error> {
    let mut reading = SettingsReading::default();
    let settings = client.query(SETTINGS, &[])?;
    for setting in &settings {
        let source = match setting.get::<&str>(3)? {
            "default" => "sql: default".to_string(),
            source => format!("sql: {source}"),
        };
        let (name, value) = (setting.get::<&str>(0)?, setting.get::<&str>(1)?);
        let row = row(name, value, Some(setting.get(4)?), setting.get(2)?, &source);
        if &*row.value != value {
            let mut hasher = DefaultHasher::new();
            value.hash(&mut hasher);
            reading.hidden.insert(name.to_string(), hasher.finish());
        }
        reading.rows.push(row);
    }
    if let Some(first) = settings.first() {
        let waits = |row: &&pq::Row| row.get::<bool>(5).unwrap_or(false);
        reading.configuration = Some(ConfigurationState {
            loaded: first.get(6)?,
            read: first.get(7)?,
            pending_restart: settings.iter().filter(waits).count(),
            // To read the files marks settings in this session as if they had been loaded, so that is later.
            unapplied: unapplied(client).map(|lines| lines.len()),
        });
    }
    let version = client.query_one("/* tally */ select version(), 'tally'", &[])?;
    reading.rows.push(row("version", version.get(0)?, Some("string"), "", "sql"));
    Ok(reading)
}

// ---------------------------------------------------------------- conditions

/// Settings that wait for a restart, and a load of the configuration within the last hour, unless it was that of the server's
/// start. The columns are those of [`condition_queries::conditions`].
pub(crate) const CONFIGURATION: [&str; 2] = [
    "/* tally */
    select 'pending-restart', name, null::text, '', 0::int8, 0::int8, null::float8
    from pg_settings where pending_restart order by name limit 10",
    "/* tally */
    select 'configuration-load', '', null::text, '', 0::int8, 0::int8,
           extract(epoch from clock_timestamp() - pg_conf_load_time())::float8
    where pg_conf_load_time() > pg_postmaster_start_time() and pg_conf_load_time() > clock_timestamp() - interval '1 hour'",
];

/// Whether this role may read the files by SQL; otherwise a query would only add an error to the server's log.
const MAY_READ_FILES: &str = "/* tally */
    select has_table_privilege('pg_file_settings', 'select') and has_function_privilege('pg_show_all_file_settings()', 'execute')";
/// Lines that the server cannot apply, without their values, which may be secret.
const UNAPPLIED: &str = "/* tally */
    select 'configuration-error', coalesce(name, ''), null::text, coalesce(sourcefile || ':' || sourceline || ': ', '') || error,
           0::int8, 0::int8, null::float8
    from pg_file_settings where error is not null order by seqno limit 100";
/// Those lines that only need a restart have this error, too. Reading the files marks their settings in this session.
const NOT_NOW: &str = "setting could not be applied";
const WAITING: &str = "/* tally */ select lower(name) from pg_settings where pending_restart";
/// Maximum number of lines to show.
const LINES: usize = 10;

/// All queries, for a test that every version of the server accepts them.
pub(crate) fn queries() -> impl Iterator<Item = &'static str> {
    CONFIGURATION.into_iter().chain([SETTINGS, MAY_READ_FILES, UNAPPLIED, WAITING])
}

/// Lines of the configuration files that the server cannot apply; `None`: this role may not see them.
fn unapplied(client: &mut Client) -> Option<Vec<Condition>> {
    let may = client.query_one(MAY_READ_FILES, &[]).ok()?.get::<bool>(0).ok()?;
    if !may {
        return None;
    }
    let rows = client.query(UNAPPLIED, &[]).ok()?;
    let waiting = client.query(WAITING, &[]).ok()?;
    let waiting: Vec<String> = waiting.iter().filter_map(|row| row.get(0).ok()).collect();
    let mut lines: Vec<Condition> = rows.iter().filter_map(condition_queries::condition).collect();
    lines.retain(|line| {
        !line.state.ends_with(NOT_NOW) || !waiting.contains(&line.name.to_lowercase())
    });
    lines.truncate(LINES);
    Some(lines)
}

/// The conditions of the configuration.
pub(crate) fn conditions(client: &mut Client) -> Vec<Condition> {
    let mut all = condition_queries::conditions(client, &CONFIGURATION);
    all.extend(unapplied(client).unwrap_or_default());
    all
}

// ---------------------------------------------------------------- configuration files

/// Maximum number of bytes to read of a file.
const LONGEST: u64 = 16 << 20;

/// The text of a file in the data directory. The owner may have put a pipe or a device there, which is found out without opening it,
/// or a link to a file that only we may read. Nor can the owner exchange file or directory meanwhile.
fn text_of(data: &Path, name: &str) -> Option<String> {
    let place = OFlags::PATH | OFlags::CLOEXEC;
    let folder = rustix::fs::open(data, place | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let found = rustix::fs::openat(&folder, name, place, Mode::empty()).ok()?;
    let owner = rustix::fs::fstat(&folder).ok()?.st_uid;
    let file = rustix::fs::fstat(&found).ok()?;
    let is_file = FileType::from_raw_mode(file.st_mode) == FileType::RegularFile;
    let is_theirs = file.st_uid == owner || file.st_mode & 0o004 != 0;
    if !is_file || !is_theirs {
        return None;
    }
    let mut text = String::new();
    let file = File::open(format!("/proc/self/fd/{}", found.as_raw_fd())).ok()?;
    file.take(LONGEST).read_to_string(&mut text).ok()?;
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

    fn reading(loaded: f64, read: f64, settings: &[(&str, &str, &str)]) -> SettingsReading {
        let mut reading = SettingsReading {
            configuration: Some(ConfigurationState {
                loaded,
                read,
                pending_restart: 0,
                unapplied: None,
            }),
            ..SettingsReading::default()
        };
        for (name, value, unit) in settings {
            let row = row(name, value, Some("string"), unit, "sql: configuration file");
            if &*row.value != *value {
                reading.hidden.insert(name.to_string(), value.len() as u64);
            }
            reading.rows.push(row);
        }
        reading
    }

    #[test]
    fn a_change_has_the_time_of_the_load_or_else_of_the_reading() {
        let first = [("work_mem", "4096", "kB"), ("port", "5432", "")];
        let before = reading(10.0, 100.0, &first);
        let work_mem = |value| [("work_mem", value, "kB"), ("added", "1", "")];
        let loaded = reading(130.0, 160.0, &work_mem("65536"));
        let expected = SettingChange {
            time: 130.0,
            name: "work_mem".into(),
            before: "4MB".into(),
            after: "64MB".into(),
        };
        assert_eq!(loaded.changes_since(&before), std::slice::from_ref(&expected));
        // ALTER ROLE ... SET loads no file.
        let of_role = reading(10.0, 160.0, &work_mem("65536"));
        assert_eq!(of_role.changes_since(&before), [SettingChange { time: 160.0, ..expected }]);
        assert_eq!(before.changes_since(&before), []);
    }

    #[test]
    fn a_secret_that_changes_is_named_without_its_values() {
        let conninfo = |value| reading(1.0, 2.0, &[("primary_conninfo", value, "")]);
        let changes = conninfo("host=a password=SECRET").changes_since(&conninfo("host=b"));
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].words(), "primary_conninfo: (not recorded)");
    }

    #[test]
    fn what_a_watch_has_reported_is_no_news() {
        let place = SegmentSource::Server(pq::Conninfo::default());
        let mut watch = SettingsWatch::start(None, &place, None).unwrap();
        let settings = |value| [("port", "5432", ""), ("work_mem", value, "kB")];
        let first = watch.take_in(reading(1.0, 2.0, &settings("4096")));
        assert_eq!((first.rows.len(), first.changes.len()), (2, 0));
        let same = watch.take_in(reading(1.0, 62.0, &settings("4096")));
        assert_eq!((same.rows.len(), same.changes.len()), (0, 0));
        // While the server refuses, its files are read; they have other units.
        let refused = SettingsReading { note: Some("no".into()), ..SettingsReading::default() };
        assert_eq!(watch.take_in(refused).changes, []);
        assert!(!watch.backoff.is_due(Instant::now()));
        let changed = watch.take_in(reading(100.0, 122.0, &settings("65536")));
        assert_eq!((changed.rows.len(), changed.changes.len()), (1, 1));
        assert!(watch.backoff.is_due(Instant::now()));
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join(FILES[0]);
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        assert_eq!(from_files(folder.path()).1, [""; 0]);
    }

    #[test]
    fn a_link_leads_only_to_a_file_that_the_owner_of_the_directory_may_read() {
        use std::os::unix::fs::{chown, symlink, PermissionsExt};

        let folder = tempfile::tempdir().unwrap();
        let (data, linked) = (folder.path().join("data"), folder.path().join("linked"));
        std::fs::create_dir(&data).unwrap();
        std::fs::write(&linked, "a = 1\n").unwrap();
        symlink(&linked, data.join(FILES[0])).unwrap();
        let found_with_mode = |mode: u32| {
            std::fs::set_permissions(&linked, std::fs::Permissions::from_mode(mode)).unwrap();
            from_files(&data).0.len()
        };
        assert_eq!(found_with_mode(0o600), 1);
        if rustix::process::geteuid().is_root() {
            chown(&data, Some(65_534), None).unwrap();
            assert_eq!([0o600, 0o604].map(found_with_mode), [0, 1]);
        }
        symlink("/dev/null", data.join(FILES[1])).unwrap();
        assert!(!from_files(&data).1.contains(&FILES[1]));
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
