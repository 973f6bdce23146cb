// SPDX-License-Identifier: PostgreSQL
//! Reads a log from a position to its end, over rotation.
//!
//! The server's collector, or logrotate, closes a file and continues in another one: under a new name, or
//! under the same name while the former file is renamed or truncated. The reader leaves a file only after it
//! has seen the successor *and* has then read the file to its end once more, because the last messages may
//! have been written between the two. If several files have appeared meanwhile, they are read in order of
//! their last change.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use crate::entry::{time_us, LogEntry, MOST_OF_A_MESSAGE};
use crate::formats::{self, LogFormat};
use crate::prefix::Prefix;

/// Most bytes to read at a time; the rest is read at the next call.
const MOST_OF_A_READING: usize = 8 << 20;
/// Most files that came between two readings.
const MOST_FILES: usize = 1000;
/// Most bytes of `current_logfiles`.
const MOST_OF_A_LIST: u64 = 64 << 10;

/// Where the log is.
#[derive(Debug, Clone)]
pub enum LogPlace {
    /// In this file, and in those that come under its name after it.
    File(PathBuf),
    /// Where the collector of the server with this data directory writes this format, or else any.
    Collector(PathBuf, Option<LogFormat>),
}

/// How far a log was read: `offset` bytes of the file with this inode.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    /// Path of the file when it was read.
    pub file: String,
    /// Its inode number, which stays the same if it is renamed.
    pub inode: u64,
    /// Bytes of it that were read.
    pub offset: u64,
}

/// What a reading has found.
#[derive(Debug, Default)]
pub struct LogReading {
    /// The messages, in the order of the log.
    pub entries: Vec<LogEntry>,
    /// How far it was read; `None`: nothing is open.
    pub position: Option<Position>,
    /// Messages that could not be understood.
    pub unknown: u64,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// When a file was created, as far as the file system knows it: an inode number is used again.
type Born = Option<std::time::SystemTime>;

/// An open file of the log.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    inode: u64,
    born: Born,
    /// Up to where messages were returned.
    offset: u64,
    /// What was read after that.
    rest: Vec<u8>,
    format: Option<LogFormat>,
    /// Whether everything up to the next beginning of a message is to be passed over, because reading began within one.
    seeking: bool,
}

/// Follows a log.
#[derive(Debug)]
pub struct LogFollower {
    place: LogPlace,
    /// Users whose files are read: a log directory may belong to the server's user, who could put another file there.
    owners: Vec<u32>,
    zone: TimeZone,
    prefix: Option<Prefix>,
    resumed: Option<Position>,
    begun: bool,
    open: Option<Open>,
    /// The files after the open one, the next one first.
    queue: Vec<PathBuf>,
    /// Files that have been read.
    read: BTreeSet<(u64, Born)>,
    said: BTreeSet<String>,
}

impl LogFollower {
    /// Follows the log at `place` from its end, reading only files that belong to one of `owners`.
    pub fn new(place: LogPlace, owners: Vec<u32>) -> LogFollower {
        LogFollower {
            place,
            owners,
            zone: TimeZone::system(),
            prefix: None,
            resumed: None,
            begun: false,
            open: None,
            queue: Vec::new(),
            read: BTreeSet::new(),
            said: BTreeSet::new(),
        }
    }

    /// Continues after this position instead.
    pub fn resume(&mut self, position: Position) {
        self.resumed = Some(position);
    }

    /// The server's `log_timezone`; until it is set, that of this machine.
    pub fn set_zone(&mut self, name: &str) {
        if let Ok(zone) = TimeZone::get(name) {
            self.zone = zone;
        }
    }

    /// The server's `log_line_prefix`.
    pub fn set_prefix(&mut self, text: &str) {
        self.prefix = Some(Prefix::parse(text));
    }

    /// Reads what has come since the last call, up to a limit. With `last`, an unfinished message counts as complete.
    pub fn read(&mut self, last: bool) -> LogReading {
        let mut reading = LogReading::default();
        let mut budget = MOST_OF_A_READING;
        if let Err(note) = self.advance(&mut reading, &mut budget, last) {
            self.note(&mut reading, note);
        }
        reading.position = self.open.as_ref().map(|open| Position {
            file: open.path.to_string_lossy().into_owned(),
            inode: open.inode,
            offset: open.offset,
        });
        reading
    }

    /// Says each thing once.
    fn note(&mut self, reading: &mut LogReading, text: String) {
        if self.said.insert(text.clone()) {
            reading.notes.push(text);
        }
    }

    fn advance(
        &mut self,
        reading: &mut LogReading,
        budget: &mut usize,
        last: bool,
    ) -> Result<(), String> {
        if self.open.is_none() && self.queue.is_empty() {
            self.begin(reading)?;
        }
        loop {
            if self.open.is_none() && !self.open_next(reading)? {
                return Ok(());
            }
            self.read_open(reading, budget, last)?;
            if *budget == 0 {
                return Ok(());
            }
            // What was written before its successor came is there now.
            if self.queue.is_empty() {
                self.queue = self.successors()?;
                if self.queue.is_empty() {
                    return Ok(());
                }
                self.read_open(reading, budget, true)?;
                if *budget == 0 {
                    return Ok(());
                }
            } else {
                self.read_open(reading, budget, true)?;
            }
            if let Some(open) = self.open.take() {
                self.read.insert((open.inode, open.born));
            }
        }
    }

    /// Finds the first file.
    fn begin(&mut self, reading: &mut LogReading) -> Result<(), String> {
        let current = self.current()?;
        let resumed = self.resumed.take();
        let is_first = !std::mem::replace(&mut self.begun, true);
        if let Some(position) = resumed {
            let folder = Path::new(&position.file).parent().unwrap_or(Path::new(".")).to_path_buf();
            let found = files_of(&folder).into_iter().find(|file| file.inode == position.inode);
            if let Some(found) = found {
                let mut open = self.open_file(&found.path)?;
                // Emptied meanwhile: everything in it is new.
                let size = open.file.metadata().map_or(0, |meta| meta.len());
                open.offset = if size < position.offset { 0 } else { position.offset };
                self.open = Some(open);
                return Ok(());
            }
            reading.notes.push(format!(
                "{} no longer exists: messages logged between the end of the previous recording and the beginning of {} are not recorded",
                position.file,
                current.display()
            ));
            self.queue = vec![current];
            return Ok(());
        }
        if is_first {
            let mut open = self.open_file(&current)?;
            open.offset = open.file.metadata().map_or(0, |meta| meta.len());
            open.seeking = true;
            self.open = Some(open);
        } else {
            self.queue = vec![current];
        }
        Ok(())
    }

    /// The file that the server writes now.
    fn current(&self) -> Result<PathBuf, String> {
        match &self.place {
            LogPlace::File(path) => Ok(path.clone()),
            LogPlace::Collector(data, wanted) => {
                let list = data.join("current_logfiles");
                let text = files::read_text(&list, MOST_OF_A_LIST).map_err(|error| {
                    let why = match error.kind() {
                        ErrorKind::NotFound => {
                            "the server collects no log (logging_collector)".to_string()
                        }
                        _ => error.to_string(),
                    };
                    format!("{}: {why}; name the log's file", list.display())
                })?;
                let mut formats: Vec<(LogFormat, &str)> = text
                    .lines()
                    .filter_map(|line| line.split_once(' '))
                    .filter_map(|(name, path)| Some((LogFormat::of_name(name)?, path)))
                    .collect();
                // The formats that leave nothing to guess come first.
                formats.sort_by_key(|(format, _)| match format {
                    LogFormat::Json => 0,
                    LogFormat::Csv => 1,
                    LogFormat::Stderr => 2,
                });
                let found = formats
                    .iter()
                    .find(|(format, _)| wanted.is_none_or(|wanted| wanted == *format));
                match (found, wanted) {
                    (Some((_, path)), _) => Ok(data.join(path)),
                    (None, Some(wanted)) => Err(format!(
                        "the server writes no {}; log_destination lists the formats that it writes",
                        wanted.name()
                    )),
                    (None, None) => Err(format!("{} names no log", list.display())),
                }
            }
        }
    }

    fn open_file(&self, path: &Path) -> Result<Open, String> {
        let named = |error: io::Error| format!("{}: {error}", path.display());
        let file = files::open(path).map_err(named)?;
        let meta = file.metadata().map_err(named)?;
        if !self.owners.contains(&meta.uid()) {
            return Err(format!(
                "{} belongs to user {}, not to the server's user; it is not read",
                path.display(),
                meta.uid()
            ));
        }
        let (inode, born) = (meta.ino(), meta.created().ok());
        Ok(Open {
            path: path.to_path_buf(),
            file,
            inode,
            born,
            offset: 0,
            rest: Vec::new(),
            format: None,
            seeking: false,
        })
    }

    /// Opens the next file of the queue that can be read.
    fn open_next(&mut self, reading: &mut LogReading) -> Result<bool, String> {
        while !self.queue.is_empty() {
            let path = self.queue.remove(0);
            match self.open_file(&path) {
                Ok(open) => {
                    self.open = Some(open);
                    return Ok(true);
                }
                Err(note) => self.note(reading, note),
            }
        }
        Ok(false)
    }

    /// The files that come after the open one: those of its kind that were changed later, and the current one last.
    fn successors(&mut self) -> Result<Vec<PathBuf>, String> {
        let Some(open) = &self.open else { return Ok(Vec::new()) };
        let current = match self.current() {
            Ok(current) => current,
            // Between two files there may be none.
            Err(_) => return Ok(Vec::new()),
        };
        let now = match std::fs::symlink_metadata(&current) {
            Ok(meta) => meta.ino(),
            Err(_) => return Ok(Vec::new()),
        };
        if now == open.inode {
            return Ok(Vec::new());
        }
        let changed =
            open.file.metadata().map(|meta| (meta.mtime(), meta.mtime_nsec())).unwrap_or_default();
        let name = current.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = current.parent().unwrap_or(Path::new(".")).to_path_buf();
        let mut between: Vec<Listed> = files_of(&folder)
            .into_iter()
            .filter(|file| {
                let is_read =
                    file.inode == open.inode || self.read.contains(&(file.inode, file.born));
                let is_other = !is_read && file.inode != now;
                is_other && file.changed >= changed && self.is_of_this_log(&file.path, &name)
            })
            .collect();
        between.sort_by(|a, b| (a.changed, &a.path).cmp(&(b.changed, &b.path)));
        between.truncate(MOST_FILES);
        while self.read.len() > MOST_FILES {
            self.read.pop_first();
        }
        Ok(between.into_iter().map(|file| file.path).chain([current]).collect())
    }

    /// Whether a file has belonged to this log: a file with a suffix after its name, or one whose name differs from the
    /// current one's in numbers and names of days only, as `log_filename` makes them.
    fn is_of_this_log(&self, path: &Path, current: &str) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_packed = [".gz", ".xz", ".zst", ".bz2"].iter().any(|end| name.ends_with(end));
        match &self.place {
            LogPlace::File(_) => !is_packed && name.starts_with(current),
            LogPlace::Collector(..) => shape(&name) == shape(current),
        }
    }

    /// Reads the open file to its end, or to the limit.
    fn read_open(
        &mut self,
        reading: &mut LogReading,
        budget: &mut usize,
        last: bool,
    ) -> Result<(), String> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let named = |error: io::Error| format!("{}: {error}", open.path.display());
        let size = open.file.metadata().map_err(named)?.len();
        let read = open.offset + open.rest.len() as u64;
        if size < read {
            reading.notes.push(format!(
                "{} was truncated; messages written between the last reading and that moment are lost",
                open.path.display()
            ));
            (open.offset, open.seeking) = (0, false);
            open.rest.clear();
        }
        let from = open.offset + open.rest.len() as u64;
        open.file.seek(SeekFrom::Start(from)).map_err(named)?;
        // Without the prefix, nothing leaves `rest`.
        let room = (MOST_OF_A_READING + 2 * MOST_OF_A_MESSAGE).saturating_sub(open.rest.len());
        let most = room.min(*budget);
        let length = (&open.file).take(most as u64).read_to_end(&mut open.rest).map_err(named)?;
        *budget -= length;
        // If nothing has come since the last reading, an unfinished message of the format stderr is complete.
        let is_quiet = length == 0 && most > 0;
        split(open, &self.zone, self.prefix.as_ref(), last || is_quiet, reading)
    }
}

/// How the messages of a format are told apart.
enum Parser<'p> {
    /// A message is a record: a line, or with quotes around its texts as many lines as it takes until they are closed.
    Records(fn(&str, &TimeZone) -> Option<LogEntry>, bool),
    /// A message has lines that the prefix tells apart.
    Lines(&'p Prefix),
}

/// Whether a line looks like the beginning of a message in csvlog or jsonlog. Only used after the order of quotes was lost,
/// because the text of a message may have such lines, too.
fn begins(line: &str, zone: &TimeZone) -> bool {
    let first = line.split(',').next().unwrap_or_default();
    line.starts_with("{\"timestamp\":") || time_us(first, zone).is_some()
}

/// Takes the complete messages from what was read of a file.
fn split(
    open: &mut Open,
    zone: &TimeZone,
    prefix: Option<&Prefix>,
    complete: bool,
    reading: &mut LogReading,
) -> Result<(), String> {
    let end = open.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if end == 0 && open.rest.len() <= MOST_OF_A_MESSAGE {
        return Ok(());
    }
    let format = match open.format {
        Some(format) => format,
        None => {
            let first = open.rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
            // logrotate adds a number.
            let name = open.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let named = |end: &str| name.ends_with(end) || name.contains(&format!("{end}."));
            let by_name = match () {
                () if named(".csv") => Some(LogFormat::Csv),
                () if named(".json") => Some(LogFormat::Json),
                () => None,
            };
            by_name.unwrap_or_else(|| LogFormat::of_line(&String::from_utf8_lossy(first)))
        }
    };
    let parser = match (format, prefix) {
        (LogFormat::Csv, _) => Parser::Records(formats::csv, true),
        (LogFormat::Json, _) => Parser::Records(formats::json, false),
        (LogFormat::Stderr, Some(prefix)) => Parser::Lines(prefix),
        (LogFormat::Stderr, None) => {
            return Err(format!(
                "{}: the server's log_line_prefix is not known, so its messages cannot be read yet",
                open.path.display()
            ))
        }
    };
    open.format = Some(format);
    let text = &open.rest[..end];
    let mut done = 0;
    // The beginning of the message that lines are added to, and the message.
    let mut begun: Option<(usize, LogEntry)> = None;
    let mut quotes = 0usize;
    let mut from = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let to = from + line.len();
        match &parser {
            Parser::Records(parse, quoted) => {
                if open.seeking {
                    if !begins(&String::from_utf8_lossy(line), zone) {
                        (done, from) = (to, to);
                        continue;
                    }
                    open.seeking = false;
                }
                quotes += line.iter().filter(|byte| **byte == b'"').count();
                let is_whole = !quoted || quotes.is_multiple_of(2);
                if is_whole || to - done > MOST_OF_A_MESSAGE {
                    let record = String::from_utf8_lossy(&text[done..to]);
                    match parse(record.trim_end_matches('\n'), zone) {
                        Some(entry) => reading.entries.push(entry),
                        None => (reading.unknown, open.seeking) = (reading.unknown + 1, true),
                    }
                    (done, quotes) = (to, 0);
                }
            }
            Parser::Lines(prefix) => {
                let text = String::from_utf8_lossy(line);
                let last = begun.as_mut().map(|(_, entry)| entry);
                let is_alone = last.is_none();
                match formats::stderr(text.trim_end_matches('\n'), prefix, zone, last) {
                    Some(entry) => {
                        if let Some((_, whole)) = begun.replace((from, entry)) {
                            reading.entries.push(whole);
                        }
                        (done, open.seeking) = (from, false);
                    }
                    None if is_alone => {
                        // Within a message that began before, or none at all.
                        reading.unknown += u64::from(!open.seeking);
                        (done, open.seeking) = (to, true);
                    }
                    None => {}
                }
            }
        }
        from = to;
    }
    if let Some((_, entry)) =
        begun.take_if(|(begin, _)| complete || end - *begin > MOST_OF_A_MESSAGE)
    {
        reading.entries.push(entry);
        done = end;
    }
    if done == 0 && open.rest.len() > 2 * MOST_OF_A_MESSAGE {
        // No end in sight.
        (reading.unknown, open.seeking) = (reading.unknown + 1, true);
        done = open.rest.len();
    }
    open.rest.drain(..done);
    open.offset += done as u64;
    Ok(())
}

/// A file in the log's directory.
struct Listed {
    path: PathBuf,
    inode: u64,
    born: Born,
    /// Seconds and nanoseconds.
    changed: (i64, i64),
}

/// The regular files of a directory.
fn files_of(folder: &Path) -> Vec<Listed> {
    let Ok(all) = std::fs::read_dir(folder) else { return Vec::new() };
    let listed = all.flatten().filter_map(|entry| {
        let meta = entry.path().symlink_metadata().ok().filter(|meta| meta.is_file())?;
        let changed = (meta.mtime(), meta.mtime_nsec());
        Some(Listed { path: entry.path(), inode: meta.ino(), born: meta.created().ok(), changed })
    });
    listed.collect()
}

/// A name with '#' for each number and each name of a day or month.
fn shape(name: &str) -> String {
    const NAMES: [&str; 19] = [
        "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun",
        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut out = String::new();
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let length = match NAMES.iter().find(|name| rest.starts_with(**name)) {
            Some(name) => name.len(),
            None => digits,
        };
        if length > 0 {
            out.push('#');
            rest = &rest[length..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

#[cfg(test)]
mod tests;
