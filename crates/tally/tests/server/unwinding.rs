// SPDX-License-Identifier: PostgreSQL
//! `tally profile` finds complete stacks of code without frame pointers, as perf does with DWARF; it reports the
//! files without names, and what it may not sample.

use crate::support;
use crate::support::verify::{Claim, Trial};
use crate::support::{as_user, segment, shared, tally, while_working, Load};
use scratch::{Binaries, Cluster};
use serde_json::Value;
use std::collections::HashMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command as Program;

/// A directory that the server's user can read.
fn folder() -> tempfile::TempDir {
    let mode = std::fs::Permissions::from_mode(0o755);
    tempfile::Builder::new().permissions(mode).tempdir().unwrap()
}

/// The library, with the names of its functions or without.
fn built(folder: &Path, name: &str, more: &[&str]) -> PathBuf {
    let library = folder.join(name);
    let include = Binaries::find().unwrap().config("--includedir-server").unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/unwinding.c");
    let output = Program::new("cc")
        .args(["-O2", "-fomit-frame-pointer", "-fPIC", "-shared", "-I", &include, source, "-o"])
        .arg(&library)
        .args(more)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

fn declare(cluster: &Cluster, name: &str, library: &Path) {
    let sql = format!(
        "create function {name}(int) returns int language c as '{}', 'burn_sort'",
        library.display()
    );
    cluster.connect().unwrap().batch_execute(&sql).unwrap();
}

struct Profile(Value);

impl Profile {
    fn take(cluster: &Cluster, seconds: &str, unwind: &str) -> Profile {
        let mut command = tally();
        command.args(["profile", "--json", "--for", seconds, "--hertz", "299"]);
        command.args(["--unwind", unwind]).arg(segment(cluster));
        Profile(serde_json::from_str(&support::output(&mut command)).unwrap())
    }

    /// Stacks of a statement, innermost first, each with its samples; names of functions of these files, others as "".
    fn stacks(&self, of: &str, files: &[&str]) -> HashMap<Vec<String>, f64> {
        let mut found = HashMap::new();
        for stack in self.0["stacks"].as_array().unwrap() {
            let Some(statement) = stack["statement"].as_u64() else { continue };
            let text = &self.0["statements"][statement as usize]["query"];
            if !text.as_str().unwrap_or_default().contains(of) {
                continue;
            }
            let frames = stack["frames"].as_array().unwrap().iter().map(|frame| {
                let symbol = &self.0["symbols"][frame.as_u64().unwrap() as usize];
                let image = symbol["image"].as_str().unwrap().rsplit('/').next().unwrap();
                let known = files.contains(&image);
                if known {
                    symbol["name"].as_str().unwrap().to_string()
                } else {
                    String::new()
                }
            });
            *found.entry(frames.collect()).or_default() += stack["samples"].as_f64().unwrap();
        }
        found
    }
}

fn sum(stacks: &HashMap<Vec<String>, f64>, wanted: impl Fn(&[String]) -> bool) -> f64 {
    stacks.iter().filter(|stack| wanted(stack.0)).map(|stack| stack.1).sum()
}

/// Whether these functions are in the stack in this order, the innermost first.
fn leads(stack: &[String], through: &[&str]) -> bool {
    let mut frames = stack.iter();
    through.iter().all(|name| frames.any(|frame| frame == name))
}

/// Stacks that perf unwound of a process, in the same form.
fn by_perf(data: &Path, pid: i32, files: &[&str]) -> HashMap<Vec<String>, f64> {
    let mut command = Program::new("perf");
    command.args(["script", "--no-inline", "-F", "pid,ip,sym,dso", "-i"]).arg(data);
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let mut found = HashMap::new();
    for sample in text.split("\n\n") {
        let mut lines = sample.lines().filter(|line| !line.trim().is_empty());
        if lines.next().and_then(|line| line.trim().parse().ok()) != Some(pid) {
            continue;
        }
        // 55d0c0ffee burn_compare (/tmp/x/named.so)
        let frames = lines.filter_map(|line| {
            let (rest, file) = line.trim().trim_end_matches(')').rsplit_once(" (")?;
            let file = file.rsplit('/').next()?;
            let name = rest.split_whitespace().nth(1)?.split('+').next()?;
            let kernel = file.starts_with("[kernel");
            (!kernel).then(|| if files.contains(&file) { name.to_string() } else { String::new() })
        });
        *found.entry(frames.collect()).or_default() += 1.0;
    }
    found
}

/// From the comparison through libc's sort to the server's start.
const WHOLE: [&str; 7] =
    ["burn_compare", "", "burn_middle", "burn_sort", "PostgresMain", "main", ""];
/// Files whose functions' names are compared.
const FILES: [&str; 2] = ["named.so", "postgres"];

fn compares(stack: &[String]) -> bool {
    stack.first().is_some_and(|name| name == "burn_compare")
}

/// Runs `check` while one session is in the library with names, whose pid it gets, and one in the library without.
fn while_sorting<T>(cluster: &Cluster, folder: &Path, check: impl FnOnce(i32) -> T) -> T {
    declare(cluster, "named", &built(folder, "named.so", &[]));
    declare(cluster, "stripped", &built(folder, "stripped.so", &["-s"]));
    let named = support::again(cluster, "/* named */ select named(100)");
    let stripped = support::again(cluster, "/* stripped */ select stripped(100)");
    while_working(&[&named as &Load, &stripped], || {
        let sql = "select pid from pg_stat_activity where query like '/* named */%'";
        let mut client = cluster.connect().unwrap();
        let mut pid = None;
        support::eventually("the load runs", || {
            pid = client.query_opt(sql, &[]).unwrap().map(|row| row.get::<_, i32>(0));
            pid.is_some()
        });
        let maps = format!("/proc/{}/maps", pid.unwrap());
        support::eventually("the library is loaded", || {
            std::fs::read_to_string(&maps).unwrap().contains("named.so")
        });
        check(pid.unwrap())
    })
}

#[test]
fn stacks_of_code_without_frame_pointers_are_whole() {
    let cluster = shared();
    let folder = folder();
    while_sorting(&cluster, folder.path(), |_| {
        // A profile in which a function was sampled: of a session that gets no CPU there is none.
        let sampled = |unwind: &str, holds: &dyn Fn(&Profile) -> bool| {
            let mut profile = Profile(Value::Null);
            support::eventually("the functions are sampled", || {
                profile = Profile::take(&cluster, "1", unwind);
                holds(&profile)
            });
            profile
        };
        let is_stripped =
            |stack: &[String]| stack.iter().any(|name| name.starts_with("stripped.so+0x"));
        let found = sampled("auto", &|profile| {
            let named = profile.stacks("/* named */", &FILES);
            let stripped = profile.stacks("/* stripped */", &["stripped.so", "postgres"]);
            sum(&named, |stack| compares(stack) && leads(stack, &WHOLE)) > 0.0
                && sum(&stripped, is_stripped) > 0.0
        });
        assert!(found.0["quality"]["unwound_stacks"].as_f64() > Some(0.0));
        // Frame pointers alone miss the callers of functions without one.
        let by_pointer = sampled("frame-pointer", &|profile| {
            sum(&profile.stacks("/* named */", &FILES), compares) > 0.0
        });
        let pointed = by_pointer.stacks("/* named */", &FILES);
        assert_eq!(
            sum(&pointed, |stack| compares(stack) && leads(stack, &WHOLE)),
            0.0,
            "{pointed:?}"
        );
        assert_eq!(by_pointer.0["quality"]["unwound_stacks"], 0);
        // A stripped library: exported functions have names, others an address, and the file is reported.
        let stacks = found.stacks("/* stripped */", &["stripped.so", "postgres"]);
        let exported = |stack: &[String]| leads(stack, &["burn_sort", "PostgresMain", "main"]);
        assert!(sum(&stacks, |stack| is_stripped(stack) && exported(stack)) > 0.0, "{stacks:?}");
        let files = found.0["quality"]["stripped"].to_string();
        assert!(files.contains("/stripped.so") && !files.contains("/named.so"), "{files}");
    });
}

#[test]
#[ignore = "verify: stacks of code without frame pointers are whole, as perf's"]
fn verify_whole_stacks() {
    Claim {
        text: "98 % of stacks of code without frame pointers are whole, and perf's most frequent one has its share",
        alarm: 0.02,
        n: 2,
        m: 3,
    }
    .check(|_| whole_stacks());
}

fn whole_stacks() -> Trial {
    let cluster = shared();
    let folder = folder();
    let data = folder.path().join("perf.data");
    let (found, pid) = while_sorting(&cluster, folder.path(), |pid| {
        let mut perf = Program::new("perf")
            .args(["record", "-q", "-e", "cpu-clock", "-F", "97", "--call-graph", "dwarf,16384"])
            .args(["-p", &pid.to_string(), "-o"])
            .arg(&data)
            .args(["--", "sleep", "4"])
            .spawn()
            .unwrap_or_else(|error| panic!("perf (package linux-perf): {error}"));
        let found = Profile::take(&cluster, "4", "auto");
        assert!(perf.wait().unwrap().success());
        (found, pid)
    });
    let stacks = found.stacks("/* named */", &FILES);
    let all = sum(&stacks, compares);
    let complete = sum(&stacks, |stack| compares(stack) && leads(stack, &WHOLE));
    let stripped = found.stacks("/* stripped */", &["stripped.so", "postgres"]);
    let exported = sum(&stripped, |stack| leads(stack, &["burn_sort", "PostgresMain", "main"]));
    let addresses =
        sum(&stripped, |stack| stack.iter().any(|name| name.starts_with("stripped.so+0x")));
    // The kernel keeps copies of stacks for a tenth of a second: if the sampler gets no CPU for longer, some are lost.
    let of = |key: &str| found.0["quality"][key].as_f64().unwrap();
    let kept = of("lost") <= 0.1 * (of("cpu_samples") + of("other_samples"));

    // The stack that perf finds most often is ours, frame by frame, and has the same share.
    let theirs = by_perf(&data, pid, &FILES);
    let most = theirs.iter().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
    let (of_theirs, of_ours) = (sum(&theirs, |_| true), sum(&stacks, |_| true));
    let (there, here) = (most.1 / of_theirs, sum(&stacks, |stack| stack == &most.0[..]) / of_ours);
    let error = (there * (1.0 - there) * (1.0 / of_theirs + 1.0 / of_ours)).sqrt();
    Trial {
        holds: all > 50.0
            && complete >= 0.98 * all
            && addresses > 50.0
            && exported >= 0.95 * addresses
            && kept
            && leads(most.0, &WHOLE)
            && of_theirs > 30.0
            && (here - there).abs() < 5.0 * error + 0.03,
        result: format!(
            "{complete} of {all} whole, {exported} of {addresses} stripped, shares {here:.3} and {there:.3}"
        ),
        half_width: format!("{:.3}", 1.96 * error),
    }
}

#[test]
fn missing_permission_is_reported_with_its_setting() {
    if !rustix::process::geteuid().is_root() {
        println!("not tested: only root can run as another user");
        return;
    }
    let cluster = shared();
    let owner = cluster.data_dir().metadata().unwrap();
    let segment = segment(&cluster);
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let paranoid: i32 = paranoid.trim().parse().unwrap();

    // Another user may not even read the segment.
    let output = as_user(65534, 65534, &["profile", "--for", "0.2"], &segment);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("no permission to read it") && error.contains("as root"), "{error}");

    if paranoid < 1 {
        println!(
            "not tested: kernel.perf_event_paranoid is {paranoid}, so all may sample the machine"
        );
        return;
    }
    let whole = ["profile", "--for", "0.2", "--system"];
    let output = as_user(owner.uid(), owner.gid(), &whole, &segment);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    let setting = format!("kernel.perf_event_paranoid is {paranoid}");
    assert!(error.contains(&setting) && error.contains("as root"), "{error}");

    // The server's user may sample its processes, without the kernel's part at 2.
    if paranoid != 2 {
        return;
    }
    let load = support::again(&cluster, "select count(*) from generate_series(1, 100000)");
    let own = ["profile", "--for", "1", "--hertz", "199"];
    let output = while_working(&[&load], || {
        support::eventually("the load runs", || !cluster.backend_pids().unwrap().is_empty());
        as_user(owner.uid(), owner.gid(), &own, &segment)
    });
    let text = String::from_utf8_lossy(&output.stdout);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("without time in the kernel, which this user may not sample"), "{text}");
    assert!(text.contains("postgres"), "{text}");
}
