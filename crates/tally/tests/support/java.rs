// SPDX-License-Identifier: PostgreSQL
//! Java programs of client/java, with the agent, which tests drive step by step.

use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{line_of, output, tally};

/// A Java, the agent and the programs.
#[derive(Debug, Clone)]
pub struct Java {
    pub program: PathBuf,
    /// With the oldest driver that the agent supports, instead of the newest.
    pub old_driver: bool,
}

fn built() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../client/java/target")
}

/// The agent.
pub fn agent() -> PathBuf {
    built().join("pgtally-agent.jar")
}

/// OpenTelemetry's agent.
pub fn opentelemetry() -> PathBuf {
    let files = std::fs::read_dir(built().join("opentelemetry")).into_iter().flatten().flatten();
    files.map(|file| file.path()).next().expect("OpenTelemetry's agent is missing (make agent)")
}

/// async-profiler's library for this machine, unpacked into this folder; `None`: there is none for it.
pub fn async_profiler(folder: &Path) -> Option<PathBuf> {
    let machine = match std::env::consts::ARCH {
        "x86_64" => "linux-x64",
        "aarch64" => "linux-arm64",
        _ => return None,
    };
    let files = std::fs::read_dir(built().join("async-profiler")).into_iter().flatten().flatten();
    let jar = files.map(|file| file.path()).next().expect("async-profiler is missing (make agent)");
    let mut unpack = Command::new("jar");
    assert!(unpack.current_dir(folder).arg("xf").arg(jar).arg("libs").status().unwrap().success());
    let mut libraries =
        std::fs::read_dir(folder.join("libs")).unwrap().flatten().map(|file| file.path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    libraries.find(|path| {
        name(path).starts_with("libasyncProfiler-")
            && name(path).ends_with(&format!("{machine}.so"))
    })
}

fn classes() -> PathBuf {
    built().join("test-classes")
}

/// Java in the path, if the agent has been built. Without it, the test is skipped unless PGTALLY_JAVA_REQUIRED is
/// set.
pub fn java() -> Option<Java> {
    let java = Java { program: "java".into(), old_driver: false };
    if agent().exists() && java.version().is_some() {
        return Some(java);
    }
    assert!(std::env::var_os("PGTALLY_JAVA_REQUIRED").is_none(), "no Java, or no {:?}", agent());
    eprintln!("left out: Java or {} is missing (make agent)", agent().display());
    None
}

/// Java in the path, and the newest other one on this machine.
pub fn all() -> Vec<Java> {
    let Some(first) = java() else { return Vec::new() };
    let folders = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let others =
        folders.map(|folder| Java { program: folder.path().join("bin/java"), old_driver: false });
    let newest = others
        .filter_map(|driver| Some((driver.version()?, driver)))
        .max_by_key(|(version, _)| *version);
    let newest =
        newest.filter(|(version, _)| Some(*version) > first.version()).map(|(_, driver)| driver);
    std::iter::once(first).chain(newest).collect()
}

impl Java {
    /// Its major version.
    pub fn version(&self) -> Option<u32> {
        let output = Command::new(&self.program).arg("-version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.split('"').nth(1)?.split(['.', '-']).next()?.parse().ok()
    }

    /// Starts a program with the agent and these options, and waits until it is ready.
    pub fn start(&self, options: &str, program: &[&str]) -> Running {
        self.start_by(Command::new(&self.program), options, program)
    }

    /// Attaches the agent to a running program.
    pub fn attach(&self, to: &Running, options: &str) {
        let pid = to.child.id().to_string();
        let mut command = Command::new(&self.program);
        assert!(command.arg("-jar").arg(agent()).args([&pid, options]).status().unwrap().success());
    }

    /// Starts a program with these arguments of the virtual machine.
    pub fn spawn(&self, arguments: &[&str], program: &[&str], folder: TempDir) -> Running {
        self.spawn_by(Command::new(&self.program), arguments, program, folder)
    }

    /// The same as [`Java::start`], with a monotonic clock that is ahead by this many seconds, as on another
    /// machine.
    pub fn start_elsewhere(&self, ahead: u32, options: &str, program: &[&str]) -> Running {
        let mut command = elsewhere(ahead);
        command.arg(&self.program);
        self.start_by(command, options, program)
    }

    fn start_by(&self, command: Command, options: &str, program: &[&str]) -> Running {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let segment = folder.path().join("segment");
        let agent =
            format!("-javaagent:{}=file={},{options}", agent().display(), segment.display());
        let mut running = self.spawn_by(command, &[&agent], program, folder);
        running.until("ready");
        running
    }

    fn spawn_by(
        &self,
        mut command: Command,
        arguments: &[&str],
        program: &[&str],
        folder: TempDir,
    ) -> Running {
        let libraries =
            ["old", "lib"].map(|folder| built().join(folder).join("*").display().to_string());
        let libraries = &libraries[usize::from(!self.old_driver)..];
        let path = format!("{}:{}", classes().display(), libraries.join(":"));
        let mut child = command
            .args(["-Xverify:all", "-cp", &path])
            .args(arguments)
            .args(program)
            .env("PGPASSWORD", scratch::password())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Running { child, input, lines, folder }
    }
}

/// Runs the added command in a time namespace whose monotonic clock is ahead by this many seconds. Requires root.
pub fn elsewhere(ahead: u32) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--time", "--fork", "--kill-child", "--monotonic", &ahead.to_string()]);
    command
}

/// A running program.
#[derive(Debug)]
pub struct Running {
    pub child: Child,
    input: ChildStdin,
    lines: BufReader<ChildStdout>,
    folder: TempDir,
}

impl Running {
    /// The path of its segment.
    pub fn segment(&self) -> PathBuf {
        self.folder.path().join("segment")
    }

    /// Waits for this line of its output; returns those before it.
    pub fn until(&mut self, wanted: &str) -> Vec<String> {
        let mut before = Vec::new();
        loop {
            match self.line(wanted) {
                line if line == wanted => return before,
                line => before.push(line),
            }
        }
    }

    fn line(&mut self, wanted: &str) -> String {
        let line = line_of(&mut self.lines);
        assert!(!line.is_empty(), "it ended before \"{wanted}\": {}", self.errors());
        line.trim_end().to_string()
    }

    /// Lets it go on.
    pub fn go(&mut self) {
        self.input.write_all(b"\n").unwrap();
    }

    /// Lets it continue to its last step.
    pub fn finish(&mut self) -> Vec<String> {
        self.go();
        self.until("done")
    }

    /// The output of `tally calls --json`.
    pub fn calls(&self) -> Value {
        let text = output(tally().args(["calls", "--json"]).arg(self.segment()));
        serde_json::from_str(&text).unwrap()
    }

    /// The output of `tally methods --json`.
    pub fn methods(&self) -> Value {
        let text = output(tally().args(["methods", "--json"]).arg(self.segment()));
        serde_json::from_str(&text).unwrap()
    }

    /// The CPU time of its main thread so far, as the kernel charged it, seconds.
    pub fn cpu_time(&self) -> f64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let main = tasks.flatten().map(|entry| entry.path()).filter(|task| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "java")
        });
        let seconds = main.map(|task| {
            let text = std::fs::read_to_string(task.join("schedstat")).unwrap();
            text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
        });
        seconds.sum()
    }

    /// Lets it end, which must succeed; returns its standard error.
    pub fn end(mut self) -> String {
        self.go();
        let status = self.child.wait().unwrap();
        let errors = self.errors();
        assert!(status.success(), "{status}: {errors}");
        errors
    }

    /// Lets it end; returns the folder of its segment.
    pub fn ended(mut self) -> TempDir {
        self.go();
        assert!(self.child.wait().unwrap().success());
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut errors, &mut text);
        }
        text
    }
}

/// An additional agent that looks into the current code of classes.
#[derive(Debug)]
pub struct CodeReader {
    jar: PathBuf,
}

impl CodeReader {
    /// Makes its file in this directory.
    pub fn new(folder: &Path) -> CodeReader {
        let jar = folder.join("bytes.jar");
        let manifest = folder.join("manifest");
        let agent = "Agent-Class: org.pgtally.test.Bytes\nMain-Class: org.pgtally.test.Bytes\n\
                     Can-Retransform-Classes: true\n";
        std::fs::write(&manifest, agent).unwrap();
        let mut command = Command::new("jar");
        command.arg("cfm").args([&jar, &manifest]).arg("-C").arg(classes()).arg("org/pgtally/test");
        assert!(command.status().unwrap().success());
        CodeReader { jar }
    }

    /// Whether the code of this class contains the text.
    pub fn finds(&self, running: &mut Running, class: &str, text: &str) -> bool {
        let pid = running.child.id().to_string();
        let jar = self.jar.display().to_string();
        let argument = format!("{class}@{text}");
        let mut command = Command::new("jcmd");
        command.args([&pid, "JVMTI.agent_load", &jar, &argument]).stdout(Stdio::null());
        assert!(command.status().unwrap().success());
        loop {
            match running.line(text).strip_prefix(text).map(str::trim) {
                Some("true") => return true,
                Some("false") => return false,
                _ => {}
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A method's row.
pub fn row<'v>(json: &'v Value, method: &str) -> &'v Value {
    let rows = json["methods"].as_array().unwrap();
    rows.iter().find(|row| row["method"] == method).unwrap_or(&Value::Null)
}
