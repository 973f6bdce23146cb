// SPDX-License-Identifier: PostgreSQL
//! An arm's server: created, filled, and verified to be what the arm describes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use scratch::{Builder, Cluster, Load};
use segment::{Segment, SegmentPath};

use super::cell::Proof;
use super::clock_source::ClockSource;
use super::file::{Arm, ArmLevel};
use super::plan::StudyPlan;
use super::storage::{check_free_space, move_wal};
use super::views;
use crate::engine::background::last_lines;
use crate::engine::file_systems::{FileSystem, USUAL_BYTES};
use crate::engine::words::Words;
use error::Error;
use live::instrumented;

/// Result of [`ArmServer::open`].
pub enum Opened {
    /// The running server.
    ArmServer(Box<ArmServer>),
    /// Why the arm cannot run on this machine.
    LeftOut(String),
}

/// The server of an arm. Fields are dropped in this order.
#[derive(Debug)]
pub struct ArmServer {
    /// The server's cluster.
    pub cluster: Cluster,
    /// `None` if pg_tally is not loaded.
    pub segment: Option<SegmentPath>,
    /// Words that commands and scripts may contain in braces.
    pub words: Words,
    /// Evidence that the server is what the arm describes.
    pub proof: Proof,
    _file_systems: Vec<FileSystem>,
    _clock_source: Option<ClockSource>,
    _after: After,
}

/// Inputs that are the same for all arms.
#[derive(Debug, Clone)]
pub struct StudyInputs {
    /// Directory of the study's file.
    pub folder: PathBuf,
    /// Whether the user permits changing the kernel's clock source.
    pub may_set_clock_source: bool,
}

/// Runs a command when it is dropped.
#[derive(Debug, Default)]
struct After(Option<Vec<String>>);

impl Drop for After {
    fn drop(&mut self) {
        if let Some([program, arguments @ ..]) = self.0.as_deref() {
            let _ = Command::new(program).args(arguments).output();
        }
    }
}

impl ArmServer {
    /// Creates and starts the arm's server.
    pub fn open(plan: &StudyPlan, arm: &Arm, here: &StudyInputs) -> Result<Opened, Error> {
        let mut words = Words::default();
        words.set("study", here.folder.display());
        words.set("tally", std::env::current_exe()?.display());
        let after = After(arm.after.as_ref().map(|command| words.fill_all(command)));
        if let Some(Err(why)) = arm.before.as_ref().map(|command| run(&words.fill_all(command))) {
            return Ok(Opened::LeftOut(why));
        }
        let set = |name: &String| ClockSource::set(name, here.may_set_clock_source);
        let clock_source = match arm.clock_source.as_ref().map(set).transpose() {
            Ok(clock_source) => clock_source,
            Err(why) => return Ok(Opened::LeftOut(why)),
        };
        if let Some(why) = missing_extension(plan, arm) {
            return Ok(Opened::LeftOut(why));
        }
        let mut file_systems = Vec::new();
        let mut make =
            |kind: &Option<String>, size: &Option<String>, directory: &Option<String>| {
                location(kind.as_deref(), size.as_deref(), directory.as_deref(), &mut file_systems)
            };
        let data = match make(&arm.file_system, &arm.file_system_size, &arm.directory)? {
            Ok(data) => data,
            Err(why) => return Ok(Opened::LeftOut(why)),
        };
        let wal = match make(&arm.wal_file_system, &arm.wal_file_system_size, &arm.wal_directory)? {
            Ok(wal) => wal,
            Err(why) => return Ok(Opened::LeftOut(why)),
        };
        let parent = data.clone().unwrap_or_else(std::env::temp_dir);
        check_free_space(&parent, plan.study.server.scale)?;

        let named = |error: Error| match error.cause::<scratch::Error>() {
            Some(cause) => Error::Failed(format!("arm \"{}\": {cause}", arm.name)),
            None => error,
        };
        let (mut cluster, segment) = create(plan, arm, data).map_err(named)?;
        if let Some(wal) = wal {
            move_wal(&mut cluster, &wal)?;
        }
        cluster.start().map_err(|error| named(error.into()))?;
        if let Some(segment) = &segment {
            instrumented::check(&cluster, segment)?;
        }
        fill_tables(plan, arm, &cluster).map_err(named)?;
        if let (Some(path), Some(level)) = (&segment, plan.level(arm).of_segment()) {
            segment::set_level(path, level)?;
        }
        words.set("pid", cluster.postmaster_pid()?);
        words.set("host", cluster.host().display());
        words.set("port", cluster.port());
        words.set("data", cluster.data_dir().display());
        words.set("postgres", cluster.binaries().program("postgres").display());
        words.set("log", cluster.log_path().display());
        words.set("dir", cluster.host().display());
        if let Some(segment) = &segment {
            words.set("segment", segment.path().display());
        }
        let mut server = Self {
            cluster,
            segment,
            words,
            proof: Proof::default(),
            _file_systems: file_systems,
            _clock_source: clock_source,
            _after: after,
        };
        server.prove(plan, arm)?;
        Ok(Opened::ArmServer(Box::new(server)))
    }

    /// Verifies that the server is what the arm describes.
    fn prove(&mut self, plan: &StudyPlan, arm: &Arm) -> Result<(), Error> {
        let mut client = self.cluster.client()?;
        let failed = |what: String| Error::Failed(format!("arm \"{}\": {what}", arm.name));
        for (name, value) in plan.settings(arm) {
            let row = client.query_opt(
                "select coalesce(applied, false), coalesce(error, ''), current_setting(name, true) \
                 from pg_file_settings where lower(name) = lower($1) order by seqno desc limit 1",
                &[&name],
            )?;
            let shown = match row {
                Some(row) if row.get(0)? => row.get::<Option<String>>(2)?,
                _ => None,
            };
            match shown {
                Some(shown) => self.proof.settings.insert(name, shown),
                None => {
                    return Err(failed(format!("setting {name} = {value} did not take effect")))
                }
            };
        }
        let preloaded: String = client.query_one("show shared_preload_libraries", &[])?.get(0)?;
        for name in plan.extensions(arm) {
            let version = client
                .query_opt("select extversion from pg_extension where extname = $1", &[&name])?
                .map(|row| row.get::<String>(0))
                .transpose()?;
            let loaded = preloaded.split(',').any(|library| library.trim() == name);
            match (version, loaded) {
                (Some(version), _) => self.proof.extensions.insert(name, version),
                (None, true) => self.proof.extensions.insert(name, "preloaded".into()),
                (None, false) => return Err(failed(format!("library {name} is not loaded"))),
            };
        }
        if let Some(path) = &self.segment {
            self.proof.level = Some(Segment::open(path)?.level()?.to_string());
            let kept: i32 = client
                .query_one("select current_setting('pg_tally.max_statements')::int", &[])?
                .get(0)?;
            self.proof.statements = Some(kept > 0);
        }
        self.check_level(plan, arm)
    }

    /// Fails unless the level is still the arm's.
    pub fn check_level(&self, plan: &StudyPlan, arm: &Arm) -> Result<(), Error> {
        let (Some(path), Some(wanted)) = (&self.segment, plan.level(arm).of_segment()) else {
            return Ok(());
        };
        let found = Segment::open(path)?.level()?;
        if found == wanted || plan.level(arm) == ArmLevel::Any {
            return Ok(());
        }
        Err(Error::Failed(format!(
            "arm \"{}\": the level is {found}, not {wanted}; another process changed it",
            arm.name
        )))
    }
}

fn create(
    plan: &StudyPlan,
    arm: &Arm,
    parent: Option<PathBuf>,
) -> Result<(Cluster, Option<SegmentPath>), Error> {
    let most = plan.points.iter().map(|point| point.clients).max().unwrap_or(1);
    let mut builder: Builder = Cluster::builder()
        .fsync(plan.study.server.fsync)
        .setting("max_connections", &(most + 20).to_string());
    if let Some(parent) = parent {
        builder = builder.directory(parent);
    }
    for (name, value) in plan.settings(arm) {
        builder = builder.setting(&name, &value);
    }
    let libraries: Vec<String> =
        plan.extensions(arm).into_iter().filter(|name| has_library(name)).collect();
    if plan.level(arm) == ArmLevel::None {
        if !libraries.is_empty() {
            builder = builder.setting("shared_preload_libraries", &libraries.join(", "));
        }
        return Ok((builder.create()?, None));
    }
    if !plan.statements(arm) {
        builder = builder.setting("pg_tally.max_statements", "0");
    }
    let (cluster, segment) = instrumented::create(builder, &libraries)?;
    Ok((cluster, Some(segment)))
}

fn fill_tables(plan: &StudyPlan, arm: &Arm, cluster: &Cluster) -> Result<(), Error> {
    let server = &plan.study.server;
    if server.scale > 0 {
        cluster.fill(&Load::TpcB, server.scale)?;
    }
    for name in plan.extensions(arm).iter().filter(|name| has_control(name)) {
        cluster.psql(&format!("create extension if not exists \"{name}\" cascade"))?;
    }
    if plan.level(arm) != ArmLevel::None {
        views::create(cluster)?;
    }
    if let Some(setup) = &server.setup {
        cluster.psql(setup)?;
    }
    cluster.psql("checkpoint")?;
    Ok(())
}

/// The directory for the arm's files, or why the arm cannot run. Adds a file system created for it to
/// `made`.
fn location(
    kind: Option<&str>,
    size: Option<&str>,
    directory: Option<&str>,
    made: &mut Vec<FileSystem>,
) -> Result<Result<Option<PathBuf>, String>, Error> {
    if let Some(kind) = kind {
        let bytes = match size {
            Some(text) => command::size(text)
                .map_err(|why| Error::Usage(format!("\"{text}\" is not a size: {why}")))?,
            None => USUAL_BYTES,
        };
        return Ok(FileSystem::make(kind, bytes, &std::env::temp_dir()).map(|file_system| {
            let path = file_system.path().to_path_buf();
            made.push(file_system);
            Some(path)
        }));
    }
    match directory.map(Path::new) {
        Some(directory) if !directory.is_dir() => {
            Ok(Err(format!("{} is not a directory", directory.display())))
        }
        directory => Ok(Ok(directory.map(Path::to_path_buf))),
    }
}

/// Runs a command until it ends. The error has its last lines.
fn run(command: &[String]) -> Result<(), String> {
    let [program, arguments @ ..] = command else { return Ok(()) };
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(format!("{program}: {}", last_lines(&errors, 2)))
        }
        Err(error) => Err(format!("{program}: {error}")),
    }
}

/// A message that names an extension of the arm that this machine lacks; `None` if it has all.
pub fn missing_extension(plan: &StudyPlan, arm: &Arm) -> Option<String> {
    let installed = |name: &String| has_library(name) || has_control(name);
    let missing = plan.extensions(arm).into_iter().find(|name| !installed(name))?;
    Some(format!("extension {missing} is not installed"))
}

fn has_library(name: &str) -> bool {
    in_installation("--pkglibdir", &format!("{name}.so"))
}

fn has_control(name: &str) -> bool {
    in_installation("--sharedir", &format!("extension/{name}.control"))
}

fn in_installation(option: &str, file: &str) -> bool {
    scratch::Binaries::find()
        .ok()
        .and_then(|binaries| binaries.config(option))
        .is_some_and(|folder| Path::new(&folder).join(file).exists())
}

/// The settings among these that change only when a server or a session starts, with their context in
/// pg_settings.
pub fn fixed_settings(
    cluster: &Cluster,
    names: &[&String],
) -> Result<BTreeMap<String, String>, Error> {
    let mut client = cluster.client()?;
    let names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let rows = client.query(
        "select lower(name), context from pg_settings \
         where lower(name) = any($1) and context in ('postmaster', 'internal', 'backend', \
         'superuser-backend')",
        &[&names],
    )?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_shows_its_last_lines() {
        let command = ["sh", "-c", "echo no luck >&2; exit 3"].map(String::from);
        assert!(run(&command).unwrap_err().contains("no luck"));
        assert!(run(&["/no/such/program".to_string()]).is_err());
    }
}
