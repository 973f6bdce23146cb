// SPDX-License-Identifier: PostgreSQL
//! TARGET on the command line, and the segment that it leads to.
//!
//! TARGET is a segment's path, a server's data directory, a connection string or URI, or nothing if
//! exactly one server with pg_tally runs on this machine.
//!
//! The segment's required owner follows from TARGET: for a data directory or a connection, it is the
//! owner of the data directory; otherwise see [`segment::SegmentPath`].

use std::path::{Path, PathBuf};

use pq::Conninfo;
use segment::segment_path::{client_of, name_of as named};
use segment::{Level, Segment, SegmentPath, ToSegmentPath};

use crate::default_server;
use crate::ended_clients;
pub use crate::local_server::{segment_path_in, DEFAULT_FOLDER};
use crate::postmaster_file::PostmasterFile;
use crate::reach::Reach;
pub use crate::sampled::{Budget, SampleRate};
pub use crate::segment_source::SegmentSource;
pub use crate::spec::Spec;
use error::Error;

/// Open the segment that TARGET leads to.
pub fn open(target: Option<&str>) -> Result<Segment, Error> {
    source(target)?.open()
}

/// The place of the segment that TARGET leads to.
pub fn source(target: Option<&str>) -> Result<SegmentSource, Error> {
    match Spec::parse(target)? {
        Spec::Segment(path) => Ok(SegmentSource::File(path.to_segment_path())),
        Spec::DataDirectory(data) => of_data_directory(&data).map(SegmentSource::File),
        Spec::Connection(conninfo) => of_connection(conninfo, None),
        Spec::Only => only().map(SegmentSource::File),
    }
}

/// The same for a view that samples can make, too: of a server that does not load pg_tally or, if a rate is given, of any
/// server to which a connection leads. A budget limits what samples cost the server.
pub fn source_or_samples(
    target: Option<&str>,
    rate: Option<SampleRate>,
    budget: Option<Budget>,
) -> Result<SegmentSource, Error> {
    match (Spec::parse(target)?, rate) {
        (Spec::Connection(conninfo), Some(rate)) => {
            Ok(SegmentSource::Samples(conninfo, rate.within(budget)))
        }
        (Spec::Connection(conninfo), None) => {
            of_connection(conninfo, Some(SampleRate::default().within(budget)))
        }
        (_, Some(_)) => Err(Error::Usage(
            "--samples requires a connection to the server: -h, -p, -d, or a connection string"
                .into(),
        )),
        (_, None) => source(target),
    }
}

fn of_data_directory(data: &Path) -> Result<SegmentPath, Error> {
    let usual = segment_path_in(Path::new(DEFAULT_FOLDER), data)?;
    if usual.is_owners() {
        return Ok(usual);
    }
    // pg_tally.directory may name another directory.
    if let Some(place) = opened_by_server(data, &usual) {
        return Ok(place);
    }
    // It has another owner; opening it reports that.
    if usual.path().symlink_metadata().is_ok() {
        return Ok(usual);
    }
    let what = data.display();
    Err(Error::Failed(if !data.join("PG_VERSION").exists() && readable(data) {
        format!("{what}: not a data directory (it has no PG_VERSION)")
    } else if PostmasterFile::read(data).is_none() && readable(data) {
        format!("{what}: no server runs there")
    } else {
        format!(
            "{what}: its server has no segment ({} does not exist); run `tally enable {what}` to enable \
             pg_tally",
            usual.path().display()
        )
    }))
}

/// A file of that name in another folder that the server has mapped or open.
fn opened_by_server(data: &Path, usual: &SegmentPath) -> Option<SegmentPath> {
    let name = usual.path().file_name()?.to_str()?;
    let process = PathBuf::from(format!("/proc/{}", PostmasterFile::read(data)?.pid));
    let maps = std::fs::read_to_string(process.join("maps")).unwrap_or_default();
    let mapped = maps.lines().filter_map(|line| line.splitn(6, ' ').nth(5));
    let mapped = mapped.map(|path| PathBuf::from(path.trim_start()));
    let open = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let open = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    // The kernel may know it by the name under which it was created.
    mapped
        .chain(open)
        .filter(|path| {
            path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name))
        })
        .find_map(|path| segment_path_in(path.parent()?, data).ok().filter(SegmentPath::is_owners))
}

fn readable(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok()
}

/// The server's segment if it is a file that we may open; otherwise it is read through the connection. A server that does
/// not load pg_tally is sampled at this rate, if one is given.
fn of_connection(conninfo: Conninfo, samples: Option<SampleRate>) -> Result<SegmentSource, Error> {
    Ok(match (Reach::find(&conninfo)?, samples) {
        (Reach::File(path), _) => SegmentSource::File(path),
        (Reach::Nothing { .. }, Some(rate)) => SegmentSource::Samples(conninfo, rate),
        (Reach::Nothing { data: Some(data) }, None) => {
            return Err(not_enabled(&format!(
                "the server in {} does not have pg_tally",
                data.display()
            )));
        }
        (Reach::Connection | Reach::Nothing { .. }, _) => SegmentSource::Server(conninfo),
    })
}

/// The error of a server, or of a machine, that has no pg_tally.
fn not_enabled(what: &str) -> Error {
    Error::Failed(format!(
        "{what}; run `tally enable`, or try `tally demo`, which starts a scratch server"
    ))
}

/// A file that may be a segment.
#[derive(Debug)]
pub struct SegmentCandidate {
    /// Where it is.
    pub path: PathBuf,
    /// The segment, or why it cannot be read.
    pub segment: Result<Segment, segment::Error>,
}

/// All files in a folder that are named like a server's segment, by name.
pub fn in_folder(folder: &Path) -> Vec<SegmentCandidate> {
    files_in(folder, |name| named(name).is_some())
}

/// All files in a folder that are named like a client's segment, by name.
pub fn clients_in(folder: &Path) -> Vec<SegmentCandidate> {
    files_in(folder, |name| client_of(name).is_some())
}

fn files_in(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<SegmentCandidate> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(&wanted))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths.into_iter().map(|path| SegmentCandidate { segment: Segment::open(&path), path }).collect()
}

fn only() -> Result<SegmentPath, Error> {
    choose(in_folder(Path::new(DEFAULT_FOLDER)), DEFAULT_FOLDER)
}

fn choose(found: Vec<SegmentCandidate>, folder: &str) -> Result<SegmentPath, Error> {
    let mut running: Vec<(PathBuf, SegmentPath, String, u32)> = Vec::new();
    let mut unreadable = Vec::new();
    // Where psql would connect to.
    let mut psqls = None;
    for SegmentCandidate { path, segment } in found {
        match segment {
            // A server that is not visible (another PID namespace) may well be running.
            Ok(segment) if segment.server_runs() != Some(false) => {
                let header = segment.header();
                if default_server::is(&header.socket_dir, header.server_port) {
                    psqls = Some(with_data_directory(&segment));
                }
                let (host, port) = (header.host.clone(), header.server_port);
                running.push((path, with_data_directory(&segment), host, port));
            }
            Ok(_) => {}
            Err(error) => unreadable.push(format!("\n  {error}")),
        }
    }
    if let Some(place) = psqls {
        return Ok(place);
    }
    match running.as_slice() {
        [(_, place, ..)] => Ok(place.clone()),
        [] if unreadable.is_empty() => Err(not_enabled(&format!(
            "no server with pg_tally runs on this machine ({folder} has no segment of a running server)"
        ))),
        [] => Err(Error::Failed(format!(
            "could not read any segment in {folder}:{}",
            unreadable.concat()
        ))),
        several => {
            let list: String = several
                .iter()
                .map(|(path, _, host, port)| format!("\n  -p {port}  {host}  ({})", path.display()))
                .collect();
            Err(Error::Usage(format!(
                "several servers with pg_tally run on this machine; name one by its port or data directory:{list}"
            )))
        }
    }
}

/// The segment's path with its data directory, if the directory that it names is that one here: a container's may have the
/// same name.
fn with_data_directory(segment: &Segment) -> SegmentPath {
    let place = segment.segment_path().clone();
    let data = Path::new(&segment.header().host);
    let named = place.path().parent().and_then(|folder| segment_path_in(folder, data).ok());
    match named {
        Some(named) if named.path() == place.path() => place.found_in(data),
        _ => place,
    }
}

/// The segment that TARGET leads to, a PID or a segment's path; without TARGET, that of the only running client.
pub fn open_client(target: Option<&str>) -> Result<Segment, Error> {
    if let Some(pid) = target.and_then(|target| target.parse().ok()) {
        return open_client_process(pid);
    }
    if target.is_some() {
        return open(target);
    }
    ended_clients::remove(Path::new(DEFAULT_FOLDER));
    let mut running: Vec<(PathBuf, Segment)> = clients_in(Path::new(DEFAULT_FOLDER))
        .into_iter()
        .filter_map(|found| Some((found.path, found.segment.ok()?)))
        .filter(|(_, segment)| segment.server_runs() != Some(false))
        .collect();
    match running.len() {
        1 => Ok(running.remove(0).1),
        0 => Err(Error::Failed(format!(
            "no measured client runs on this machine (no segment of a running client in {DEFAULT_FOLDER}); start a \
             Java process with -javaagent:pgtally-agent.jar, or a program that uses libpq with \
             LD_PRELOAD=libtally_pq.so"
        ))),
        _ => {
            let list: String = running
                .iter()
                .map(|(path, segment)| format!("\n  {}  {}", path.display(), segment.header().host))
                .collect();
            Err(Error::Usage(format!(
                "several measured clients run on this machine; specify one:{list}"
            )))
        }
    }
}

/// The segment of the client with this PID.
fn open_client_process(pid: i32) -> Result<Segment, Error> {
    let mut named: Vec<SegmentCandidate> = clients_in(Path::new(DEFAULT_FOLDER));
    named.retain(|found| {
        found.path.file_name().and_then(|name| client_of(name.to_str()?)) == Some(pid)
    });
    if let Some(found) = named.pop() {
        return Ok(found.segment?);
    }
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let why = if maps.contains("libtally_pq.so") {
        "libtally_pq.so is loaded, but has seen no libpq call: the process has made none, looks up libpq's functions itself \
         (psycopg 3 without its C part), is statically linked with libpq, or could not create a segment"
    } else {
        "it was started without -javaagent:pgtally-agent.jar and without LD_PRELOAD=libtally_pq.so"
    };
    Err(Error::Failed(format!("process {pid} has no segment in {DEFAULT_FOLDER}: {why}")))
}

/// Fails, with the remedy, if the segment's server has stopped or measures nothing.
pub fn need_measured(segment: &Segment) -> Result<(), Error> {
    if segment.server_runs() == Some(false) {
        return Err(Error::Failed(format!(
            "{}: its {} ({}) is no longer running",
            segment.path().display(),
            if segment.producer().is_client() { "process" } else { "server" },
            segment.header().host
        )));
    }
    if segment.level()? == Level::Off {
        return Err(Error::Failed(
            "nothing is measured at level off; set another level (tally level waits)".into(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_any_segment_names_the_remedy() {
        let empty = tempfile::tempdir().unwrap();
        let error = choose(in_folder(empty.path()), "there").unwrap_err().to_string();
        assert!(error.contains("tally enable"), "{error}");
    }

    #[test]
    fn unreadable_segments_are_named_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("pg_tally.1.2"), "nothing of the kind").unwrap();
        let error = choose(in_folder(folder.path()), "there").unwrap_err().to_string();
        assert!(error.contains("pg_tally.1.2"), "{error}");
    }
}
