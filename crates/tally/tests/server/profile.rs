// SPDX-License-Identifier: PostgreSQL
//! `tally profile` assigns CPU time and waits to the right function, account and statement, in agreement with the
//! ledger.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command as Program, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support;
use crate::support::json_reference;
use crate::support::verify::{Claim, Trial};
use crate::support::{
    complaint, eventually, output, plain, segment, shared, start, tally, while_working, Load,
};
use flate2::read::GzDecoder;
use scratch::StopMode;
use serde_json::Value;

/// One C function of the server, for about half a second.
const FUNCTION: &str = "/* function */ select count(hashtext(t.x)) from \
     (select repeat(repeat('x', 1000), 1000) x offset 0) t, generate_series(1, 1000)";
/// One function of libc, memcmp.
const LIBC: &str = "/* libc */ do $$ declare x text := repeat(repeat('x', 1000), 1000) || 'a'; \
     y text := repeat(repeat('x', 1000), 1000) || 'b'; n int := 0; \
     begin for i in 1..3000 loop if x < y collate \"C\" then n := n + 1; end if; end loop; end $$";
/// The kernel, which copies a file of this many bytes from its page cache repeatedly.
const KERNEL: &str =
    "/* kernel */ select count(length(pg_read_binary_file('profiled', 0, 4194304))) \
     from generate_series(1, 300)";
const FILE: usize = 4 << 20;
/// Partly the kernel; how much depends on the machine.
const TINY: &str = "/* tiny */ select 1 a, 2 b";
/// Waits for a lock nearly all the time.
const LOCK: &str =
    "set lock_timeout = '200ms'; do $$ begin perform pg_advisory_xact_lock(1); exception \
     when lock_not_available then null; end $$";

struct Profile(Value);

impl Profile {
    fn rows(&self, list: &str) -> &Vec<Value> {
        self.0[list].as_array().unwrap()
    }

    /// The text of the statement of a stack.
    fn query(&self, stack: &Value) -> &str {
        stack["statement"].as_u64().map_or("", |index| {
            self.0["statements"][index as usize]["query"].as_str().unwrap_or_default()
        })
    }

    /// File and name of the innermost function.
    fn innermost(&self, stack: &Value) -> (&str, &str) {
        let symbol = &self.0["symbols"][stack["frames"][0].as_u64().unwrap() as usize];
        let image = symbol["image"].as_str().unwrap();
        (image.rsplit('/').next().unwrap(), symbol["name"].as_str().unwrap())
    }

    /// Number of samples of the server's processes with such a stack.
    fn samples(&self, wanted: impl Fn(&Value) -> bool) -> f64 {
        let ours = |stack: &&Value| {
            self.0["processes"][stack["process"].as_u64().unwrap() as usize]["server"] == true
        };
        let wanted = self.rows("stacks").iter().filter(ours).filter(|stack| wanted(stack));
        wanted.map(|stack| stack["samples"].as_f64().unwrap()).sum()
    }

    fn account(&self, activity: &str) -> &Value {
        let found = self.rows("ledger").iter().find(|account| account["activity"] == activity);
        found.unwrap_or_else(|| panic!("{activity}: {:#}", self.0["ledger"]))
    }
}

#[test]
fn a_profile_has_the_same_samples_in_every_format_and_exact_times_of_accounts() {
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let mut holder = cluster.connect().unwrap();
    holder.batch_execute("select pg_advisory_lock(1)").unwrap();
    let function = support::again(&cluster, FUNCTION);
    let waits = |_: &AtomicBool| {
        cluster.connect().unwrap().batch_execute("select pg_advisory_xact_lock(1)").unwrap();
    };
    let files = ["own.json", "page.html", "it.pb.gz", "firefox.json.gz"]
        .map(|name| folder.path().join(name));
    while_working(&[&function as &Load, &waits], || {
        // Continues until the end of this scope, in any case.
        let mut holder = holder;
        eventually("a session waits for the lock", || {
            let sql = "select count(*) from pg_stat_activity where wait_event = 'advisory'";
            holder.query_one(sql, &[]).unwrap().get::<_, i64>(0) == 1
        });
        let mut profile = Profile(Value::Null);
        let mut longest = 0.0;
        // A sampler that gets no CPU takes no samples.
        eventually("a function is sampled, and a wait", || {
            let began = Instant::now();
            let mut command = tally();
            command
                .args(["profile", "--json", "--for", "1", "--hertz", "499"])
                .arg(segment(&cluster));
            for file in &files {
                command.arg("-o").arg(file);
            }
            profile = Profile(serde_json::from_str(&output(&mut command)).unwrap());
            longest = began.elapsed().as_secs_f64();
            let of_function = profile.samples(|stack| profile.query(stack).contains("function */"));
            of_function > 0.0 && profile.account("Lock:advisory")["samples"].as_f64() > Some(0.0)
        });
        // One session waits for the lock all the time.
        let lock = profile.account("Lock:advisory");
        let seconds = lock["seconds"].as_f64().unwrap();
        assert!((1.0..longest).contains(&seconds), "{lock} in {longest} s");
        // Every sample of the server is in a stack.
        let quality = &profile.0["quality"];
        assert_eq!(quality["cpu_samples"].as_f64(), Some(profile.samples(|_| true)), "{quality}");
        assert_files(&files, &profile);
        assert_documented(&profile.0);
    });
}

/// Properties that must hold for a profile, by name.
type Checks = Vec<(&'static str, bool)>;

fn trial(checks: &Checks, result: String) -> Trial {
    let failed: Vec<&str> = checks.iter().filter(|check| !check.1).map(|check| check.0).collect();
    let why =
        if failed.is_empty() { String::new() } else { format!("; not {}", failed.join(", ")) };
    Trial { holds: failed.is_empty(), result: result + &why, half_width: "-".into() }
}

#[test]
#[ignore = "verify: CPU time and waits are put where they belong"]
fn verify_cpu_time_and_waits() {
    Claim {
        text: "samples of CPU time and waits are of the functions and accounts that work and wait",
        alarm: 0.02,
        n: 2,
        m: 3,
    }
    .check(|_| cpu_time_and_waits());
}

fn cpu_time_and_waits() -> Trial {
    let cluster = shared();
    let mut holder = cluster.connect().unwrap();
    holder.batch_execute("select pg_advisory_lock(1)").unwrap();
    let (function, libc) = (support::again(&cluster, FUNCTION), support::again(&cluster, LIBC));
    let (tiny, lock) = (support::again(&cluster, TINY), support::again(&cluster, LOCK));
    let file = cluster.data_dir().join("profiled");
    std::fs::write(&file, vec![0; FILE]).unwrap();
    let kernel = support::again(&cluster, KERNEL);
    // Processes that end while they are sampled.
    let connections = |stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            cluster.connect().unwrap().batch_execute("select 2").unwrap();
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let load: [&Load; 6] = [&function, &libc, &kernel, &tiny, &lock, &connections];
    let profile = while_working(&load, || {
        std::thread::sleep(Duration::from_secs(1));
        let mut command = tally();
        command.args(["profile", "--json", "--for", "6", "--hertz", "499"]).arg(segment(&cluster));
        Profile(serde_json::from_str(&output(&mut command)).unwrap())
    });
    drop(holder);
    std::fs::remove_file(file).unwrap();

    let mut checks = Checks::new();
    // The share of a statement's samples in the code that the statement exercises.
    let mut share = |text: &'static str, min: f64, is_there: &dyn Fn(&Value) -> bool| {
        let within = |value: &Value| profile.query(value).contains(text);
        let all = profile.samples(within);
        let there = profile.samples(|stack| within(stack) && is_there(stack));
        checks.push((text, all > 100.0 && there > min * all));
        format!("{text} {there} of {all}")
    };
    let in_kernel = |value: &Value| profile.innermost(value).0 == "kernel";
    let in_libc = |value: &Value| profile.innermost(value).0.starts_with("libc.so");
    let in_hash = |value: &Value| profile.innermost(value) == ("postgres", "hash_bytes");
    let result = [
        share("function */", 0.8, &in_hash),
        share("libc */", 0.8, &in_libc),
        share("kernel */", 0.8, &in_kernel),
        share("tiny */", 0.0, &in_kernel),
    ]
    .join(", ");

    // A session waits for the lock all the time, and takes no CPU for it.
    let lock = profile.account("Lock:advisory");
    let get = |row: &Value, key: &str| row[key].as_f64().unwrap();
    checks.push(("lock", get(lock, "sampled_seconds") > 4.0));
    checks.push(("lock's CPU", get(lock, "cpu_samples") < 0.1 * get(lock, "samples")));
    // Samples compared with the exact ledger: 2.5 half-widths of 95 % are 5 standard errors; the rest is the
    // possible lag of the running account at the boundaries of a command.
    let commands = get(&profile.0, "commands");
    let close = |row: &Value| {
        let error = (get(row, "sampled_seconds") - get(row, "seconds")).abs();
        error <= 2.5 * get(row, "half_width_seconds") + 2e-6 * commands
    };
    checks.push(("ledger", profile.rows("ledger").iter().all(close)));
    // As root, the account of every sample is known, because samplers preempt the processes that they sample.
    let quality = &profile.0["quality"];
    let all = get(quality, "cpu_samples");
    checks.push(("first", quality["first"] == true));
    let known = get(quality, "account_known") / (all - get(quality, "no_slot"));
    checks.push(("accounts", known > 0.98));
    // The kernel keeps copies of stacks for less than a tenth of a second: if a sampler gets no CPU for longer, some are lost.
    checks.push(("lost", get(quality, "lost") <= 0.1 * all));
    trial(&checks, result)
}

/// Every key of the JSON is in docs/reference-json.md.
fn assert_documented(profile: &Value) {
    let lists = ["ledger", "statements", "processes", "symbols", "stacks", "sessions"];
    let objects = [profile, &profile["quality"]];
    for object in objects.into_iter().chain(lists.iter().map(|list| &profile[*list][0])) {
        json_reference::assert_documented(json_reference::PAGE, object.as_object().unwrap().keys());
    }
}

/// The files have the same samples.
fn assert_files(files: &[PathBuf; 4], profile: &Profile) {
    let [own, page, pprof, firefox] = files;
    let text = std::fs::read_to_string(own).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), profile.0);
    let page = std::fs::read_to_string(page).unwrap();
    // The function with the most samples, whichever it is.
    let of_server = |value: &&Value| profile.samples(|other| other == *value) > 0.0;
    let most = profile.rows("stacks").iter().filter(of_server);
    let most = most
        .max_by(|a, b| a["samples"].as_f64().unwrap().total_cmp(&b["samples"].as_f64().unwrap()));
    let (_, name) = profile.innermost(most.unwrap());
    assert!(page.contains(name) && page.contains("Lock:advisory"), "{name}: {} bytes", page.len());
    let unpack = |path: &PathBuf| {
        let mut bytes = Vec::new();
        let mut from = GzDecoder::new(std::fs::File::open(path).unwrap());
        std::io::Read::read_to_end(&mut from, &mut bytes).unwrap();
        bytes
    };
    let pprof = unpack(pprof);
    let found = pprof.windows(name.len()).any(|window| window == name.as_bytes());
    assert!(found, "{name}: {} bytes", pprof.len());
    let firefox: Value = serde_json::from_slice(&unpack(firefox)).unwrap();
    let threads = firefox["threads"].as_array().unwrap();
    let samples: u64 =
        threads.iter().map(|thread| thread["samples"]["length"].as_u64().unwrap()).sum();
    assert_eq!(profile.0["quality"]["cpu_samples"].as_u64(), Some(samples));
    let waits =
        threads.iter().any(|thread| thread["stringArray"].to_string().contains("Lock:advisory"));
    assert!(waits, "no thread waits for the lock");

    let mut diff = tally();
    diff.args(["profile", "diff", "--json"]).arg(own).arg(own);
    let same: Value = serde_json::from_str(&output(&mut diff)).unwrap();
    // The server itself may have committed in that second, and perhaps no command has ended.
    let any = |what: &str| profile.0[what].as_f64() > Some(0.0);
    let per = match (any("transactions"), any("commands")) {
        (true, _) => "transaction",
        (false, true) => "command",
        (false, false) => "second",
    };
    assert_eq!(same["per"], per);
    let beyond = |value: &Value| value["beyond_chance"] == true;
    assert!(!same["functions"].as_array().unwrap().iter().any(beyond), "{same:#}");
}

/// Samples that perf took of these processes, by file and function.
fn by_perf(data: &Path, pids: &[i32]) -> HashMap<(String, String), f64> {
    let mut command = Program::new("perf");
    command.args(["script", "-F", "pid,ip,sym,dso", "-i"]).arg(data);
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let mut found = HashMap::new();
    for line in text.lines() {
        // 12345  55d0c0ffee hash_bytes (/usr/lib/postgresql/15/bin/postgres)
        let (rest, file) = line.trim().trim_end_matches(')').rsplit_once(" (").unwrap();
        let mut words = rest.split_whitespace();
        let pid = words.next().unwrap().parse().unwrap();
        if pids.contains(&pid) {
            let file = file.rsplit('/').next().unwrap().to_string();
            let name = words.nth(1).unwrap_or_default().to_string();
            *found.entry((file, name)).or_default() += 1.0;
        }
    }
    found
}

#[test]
#[ignore = "verify: shares of CPU time agree with perf record"]
fn verify_shares_of_functions() {
    Claim { text: "shares of CPU time agree with perf record", alarm: 0.02, n: 2, m: 3 }
        .check(|_| shares_of_functions());
}

fn shares_of_functions() -> Trial {
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("perf.data");
    let (function, libc) = (support::again(&cluster, FUNCTION), support::again(&cluster, LIBC));
    let tiny = support::again(&cluster, TINY);
    let load: [&Load; 3] = [&function, &libc, &tiny];
    let (profile, pids) = while_working(&load, || {
        std::thread::sleep(Duration::from_millis(500));
        let mut perf = Program::new("perf")
            .args(["record", "-q", "-a", "-e", "cpu-clock", "-F", "397", "-o"])
            .arg(&data)
            .args(["--", "sleep", "5"])
            .spawn()
            .unwrap_or_else(|error| panic!("perf (package linux-perf): {error}"));
        let mut command = tally();
        command.args(["profile", "--json", "--for", "5", "--hertz", "499"]).arg(segment(&cluster));
        let profile = Profile(serde_json::from_str(&output(&mut command)).unwrap());
        assert!(perf.wait().unwrap().success());
        let sql = "select pid from pg_stat_activity where query ~ '^/[*] (function|libc|tiny)' \
                   order by query ~ 'tiny'";
        let rows = cluster.connect().unwrap().query(sql, &[]).unwrap();
        let pids: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
        (profile, pids)
    });
    let [function, libc, tiny] = pids[..] else { panic!("sessions: {pids:?}") };
    let theirs = by_perf(&data, &[function, libc]);
    let is_load = |stack: &Value| {
        ["function */", "libc */"].iter().any(|of| profile.query(stack).contains(of))
    };
    let (of_theirs, of_ours) = (theirs.values().sum::<f64>(), profile.samples(is_load));
    let mut checks = Checks::new();
    let mut shares = Vec::new();
    checks.push(("enough samples", of_theirs > 300.0 && of_ours > 300.0));

    // The two do not sample at the same instants, nor do they start and end together.
    let mut agree = |(ours, of_ours): (f64, f64), (theirs, of_theirs): (f64, f64), what: &str| {
        let (here, there) = (ours / of_ours, theirs / of_theirs);
        let error = (there * (1.0 - there) * (1.0 / of_ours + 1.0 / of_theirs)).sqrt();
        shares.push(format!("{what} {here:.3} and {there:.3}"));
        (here - there).abs() < 5.0 * error + 0.03
    };
    // The kernel's modules have names of their own, in brackets too.
    let is_kernel = |file: &str| file.starts_with('[') && !["[vdso]", "[unknown]"].contains(&file);
    // Those with more than 2 % of perf's samples.
    let mut compared = 0;
    for ((file, name), count) in theirs.iter().filter(|(_, count)| **count > 0.02 * of_theirs) {
        if is_kernel(file) || name == "[unknown]" {
            continue;
        }
        let same = |stack: &Value| {
            is_load(stack) && profile.innermost(stack) == (file.as_str(), name.as_str())
        };
        checks.push((
            "shares",
            agree((profile.samples(same), of_ours), (*count, of_theirs), &format!("{file} {name}")),
        ));
        compared += 1;
    }
    checks.push(("enough functions", compared >= 2));

    // The kernel's share of the third session, including the time between its tiny statements.
    let theirs = by_perf(&data, &[tiny]);
    let kernel = theirs.iter().filter(|((file, _), _)| is_kernel(file));
    let (kernel, of_theirs) =
        (kernel.map(|function| function.1).sum(), theirs.values().sum::<f64>());
    let is_tiny = |stack: &Value| {
        let process = &profile.rows("processes")[stack["process"].as_u64().unwrap() as usize];
        process["name"] == "client backend" && !is_load(stack)
    };
    let of_ours = profile.samples(is_tiny);
    let in_kernel = |value: &Value| is_tiny(value) && profile.innermost(value).0 == "kernel";
    checks.push(("enough samples of the kernel", of_theirs > 50.0 && of_ours > 50.0));
    checks.push((
        "the kernel's share",
        agree((profile.samples(in_kernel), of_ours), (kernel, of_theirs), "kernel"),
    ));
    trial(&checks, shares.join(", "))
}

#[test]
fn a_profile_ends_with_its_server() {
    let mut cluster = start(plain().setting("shared_preload_libraries", "pg_tally"));
    let mut command = Program::new(assert_cmd::cargo::cargo_bin("tally"))
        .args(["profile", "--for", "60", "--system"])
        .arg(segment(&cluster))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Its last thread starts with the clocks; a sampler for each processor, that one, and the first.
    let threads = std::thread::available_parallelism().unwrap().get() + 2;
    let tasks = format!("/proc/{}/task", command.id());
    while std::fs::read_dir(&tasks).unwrap().count() < threads {
        assert!(command.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    // Gives the profile something to sample.
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    assert!(Program::new("sh").args(["-c", busy]).status().unwrap().success());
    cluster.stop(StopMode::Fast).unwrap();
    let output = command.wait_with_output().unwrap();
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("the server stopped"), "{errors}");
    assert!(text.contains("CPU samples of the machine, by image"), "{text}");
}

#[test]
fn bad_input_is_reported_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let text = complaint(tally().args(["profile", "-o", "x.txt", "/nowhere"]), 2);
    assert!(text.contains("x.txt") && text.contains(".html"), "{text}");
    complaint(tally().args(["profile", "--hertz", "0"]), 2);
    complaint(tally().args(["profile", "--for", "nothing"]), 2);
    let text = complaint(tally().arg("profile").arg(folder.path()), 1);
    assert!(text.contains("not a data directory"), "{text}");
    let garbage = file("garbage.json", "{");
    let text = complaint(tally().args(["profile", "diff"]).arg(&garbage).arg(&garbage), 1);
    assert!(text.contains("garbage.json") && text.contains("tally profile -o"), "{text}");
    let other = file("other.json", "{\"format\": \"pgtally profile 99\"}");
    let text = complaint(tally().args(["profile", "diff"]).arg(&other).arg(&other), 1);
    assert!(text.contains("pgtally profile 99"), "{text}");
    complaint(tally().args(["profile", "diff"]).arg(&garbage), 2);
}
