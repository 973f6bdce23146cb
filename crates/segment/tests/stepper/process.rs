// SPDX-License-Identifier: PostgreSQL
//! Writers that are stopped between any two stores: libtally's (`libtally/test/stepper.c`) and the Java agent's
//! (`client/java/src/test/java/org/pgtally/test/Stepper.java`).

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Where a writer has stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// How many stops there were before.
    pub number: u64,
    /// What the scenario has begun to record, and what it has recorded.
    pub begun: u64,
    pub done: u64,
    pub name: String,
}

impl Stop {
    /// The scenario is at its end.
    pub fn is_end(&self) -> bool {
        self.name == "end"
    }
}

/// One process that runs scenarios, one at a time, each in a child of its own.
pub struct Stepper {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pid: Option<i32>,
}

/// What `make -C libtally` has built.
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
    // Byte Buddy lies in the agent alone, under another name.
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

    /// Start a scenario on that segment.
    pub fn start(&mut self, scenario: &str, segment: &Path) -> Stop {
        assert!(self.pid.is_none(), "a scenario runs already");
        writeln!(self.input, "{scenario} {}", segment.display()).unwrap();
        let line = self.line();
        let pid = line.strip_prefix("ready ").and_then(|pid| pid.parse().ok());
        self.pid = Some(pid.unwrap_or_else(|| panic!("the stepper says {line:?}")));
        self.stop()
    }

    /// Go on for so many stops, or with 0 to the end.
    pub fn go(&mut self, stops: u64) -> Stop {
        writeln!(self.input, "{stops}").unwrap();
        self.stop()
    }

    /// Let the process end, which has come to the end of its scenario.
    pub fn finish(&mut self) {
        writeln!(self.input).unwrap();
        assert_eq!(self.line(), "over 0");
        self.pid = None;
    }

    /// Kill the process where it is.
    pub fn kill(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.pid.take().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        assert_eq!(self.line(), "over 265");
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        // A scenario's process dies with its parent.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
