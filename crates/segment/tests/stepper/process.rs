// SPDX-License-Identifier: PostgreSQL
//! Writers that are stopped between any two stores: libtally's (`libtally/test/stepper.c`) and the Java agent's
//! (`client/java/src/test/java/org/pgtally/test/Stepper.java`).

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Where a writer has stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// Number of earlier stops.
    pub number: u64,
    /// Number of records that the scenario has begun, and that it has completed.
    pub begun: u64,
    pub done: u64,
    pub name: String,
}

impl Stop {
    /// Whether the scenario is at its end.
    pub fn is_end(&self) -> bool {
        self.name == "end"
    }
}

/// A process that runs scenarios, one at a time, each in a separate child process.
pub struct Stepper {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pid: Option<i32>,
}

/// The program that `make -C libtally` builds.
fn program() -> PathBuf {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/libtally");
    std::env::var_os("PGTALLY_STEPPER").map_or_else(|| build.join("stepper"), PathBuf::from)
}

/// A program of the agent's tests; `None`: the agent was not built.
pub fn java(program: &str) -> Option<Command> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../client/java/target");
    let classes = ["test-classes", "classes", "lib/*"].map(|folder| built.join(folder));
    if !classes[0].join(program.replace('.', "/") + ".class").exists() {
        let required = std::env::var_os("PGTALLY_JAVA_REQUIRED").is_some();
        assert!(!required, "no {}", classes[0].display());
        eprintln!("left out: {} is missing (make agent)", classes[0].display());
        return None;
    }
    // The agent contains Byte Buddy under another name, so it is needed separately.
    let path = classes.map(|path| path.display().to_string()).join(":");
    let mut command = Command::new("java");
    command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", &path, program]);
    Some(command)
}

impl Stepper {
    pub fn new() -> Stepper {
        Stepper::run(&mut Command::new(program()), "make -C libtally")
    }

    /// The Java agent's writers, which stop in methods of this pattern; `None`: the agent was not built.
    pub fn java(stops: &str) -> Option<Stepper> {
        Some(Stepper::run(java("org.pgtally.test.Stepper")?.arg(stops), "make agent"))
    }

    fn run(command: &mut Command, make: &str) -> Stepper {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}; run {make}"));
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Stepper { process, input, output, pid: None }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_string()
    }

    fn stop(&mut self) -> Stop {
        let line = self.line();
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        let ["stop", numbers @ .., name] = &words[..] else {
            panic!("the writer says {line:?}");
        };
        let n = |at: usize| numbers[at].parse().unwrap();
        Stop { number: n(0), begun: n(1), done: n(2), name: (*name).to_string() }
    }

    /// Start a scenario on this segment.
    pub fn start(&mut self, scenario: &str, segment: &Path) -> Stop {
        assert!(self.pid.is_none(), "a scenario runs already");
        writeln!(self.input, "{scenario} {}", segment.display()).unwrap();
        let line = self.line();
        let pid = line.strip_prefix("ready ").and_then(|pid| pid.parse().ok());
        self.pid = Some(pid.unwrap_or_else(|| panic!("the stepper says {line:?}")));
        self.stop()
    }

    /// Continue for this many stops, or with 0 to the end.
    pub fn go(&mut self, stops: u64) -> Stop {
        writeln!(self.input, "{stops}").unwrap();
        self.stop()
    }

    /// Let the process end after the end of its scenario.
    pub fn finish(&mut self) {
        writeln!(self.input).unwrap();
        assert_eq!(self.line(), "over 0");
        self.pid = None;
    }

    /// Kill the process at its current stop.
    pub fn kill(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.pid.take().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        assert_eq!(self.line(), "over 265");
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        // The process of a scenario dies with its parent.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
