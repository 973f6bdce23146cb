// SPDX-License-Identifier: PostgreSQL
//! `tally study` on real servers: its output, how it resumes, and errors in study files.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{complaint, eventually, output, tally};
use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

/// A study of two arms that takes seconds.
pub const SMALL: &str = r#"
name = "small"
title = "Small <b>"
question = "Does it run?"
[server]
scale = 0
setup = "create table done (n int)"
[[arm]]
name = "on"
[[arm]]
name = "off"
settings = { track_activities = "off" }
[workload]
script = "insert into done values (1);"
clients = [2]
[gate]
foreign = 100000
steal = 100
[measure]
seconds = 1
warm_up = 0
repeats = 2
again = false
[[read]]
name = "tps"
of = "throughput"
[[read]]
name = "cpu"
of = "cpu"
[[read]]
name = "commits"
interval = "commits.count"
[[read]]
name = "rows"
sql = "select count(*) from done"
[[read]]
name = "each"
value = "rows / commits"
[compare]
reads = ["tps"]
[[table]]
reads = ["tps", "cpu", "commits", "rows", "each"]
[[table]]
read = "tps"
show = "change"
[[chart]]
kind = "bars"
reads = ["tps"]
[[listing]]
title = "Rows"
sql = "select 'a row' as what, 1 as number"
"#;

struct Workspace {
    folder: TempDir,
}

impl Workspace {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn study(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("study.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// The command that runs a study.
    fn run(&self, text: &str) -> assert_cmd::Command {
        let mut command = tally();
        command.args(["study", "run"]).arg(self.study(text)).arg("-o").arg(self.out());
        command
    }

    fn results(&self) -> Value {
        let text = std::fs::read_to_string(self.out().join("results.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn cells(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.out().join("cells.jsonl")).unwrap_or_default();
        text.lines().map(String::from).collect()
    }
}

fn figure(results: &Value, arm: &str, read: &str) -> f64 {
    let all = results["figures"].as_array().unwrap();
    let found = all.iter().find(|f| f["arm"] == arm && f["read"] == read);
    found.unwrap_or_else(|| panic!("no {read} of {arm}"))["mean"].as_f64().unwrap()
}

#[test]
fn a_study_writes_tables_and_a_page_and_its_reads_agree() {
    let place = Workspace::new();
    let text = output(&mut place.run(SMALL));
    assert!(text.contains("tps") && text.contains("report.html"), "{text}");
    let results = place.results();
    assert_eq!(results["cells"], 4);
    for arm in ["on", "off"] {
        assert!(figure(&results, arm, "cpu") > 0.0 && figure(&results, arm, "tps") > 0.0);
        // A quotient of two reads, in each cell.
        let each = figure(&results, arm, "each");
        let cells = place.cells().into_iter().filter_map(|line| {
            let cell: Value = serde_json::from_str(&line).unwrap();
            let read = |name: &str| cell["values"][name].as_f64().unwrap();
            (cell["arm"] == arm).then(|| read("rows") / read("commits"))
        });
        let quotients: Vec<f64> = cells.collect();
        let mean = quotients.iter().sum::<f64>() / quotients.len() as f64;
        assert!((each / mean - 1.0).abs() < 1e-9, "{each} {quotients:?}");
    }
    let page = std::fs::read_to_string(place.out().join("report.html")).unwrap();
    assert!(page.contains("default-src 'none'") && page.contains("Small &lt;b&gt;"));
    assert!(page.contains("<svg") && page.contains("block,arm,clients") && page.contains("a row"));
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
    let table = std::fs::read_to_string(place.out().join("table-1.csv")).unwrap();
    assert_eq!(table.lines().count(), 3, "{table}");
    let cell: Value = serde_json::from_str(&place.cells()[0]).unwrap();
    assert_eq!(cell["proof"]["level"], "waits");

    // The results can be recomputed from the cells, and a second run has nothing left to do.
    std::fs::remove_file(place.out().join("results.json")).unwrap();
    let again = output(tally().args(["study", "report"]).arg(place.out()));
    assert_eq!(again, text);
    assert_eq!(output(&mut place.run(SMALL)), text);
    assert_eq!(place.results(), results);

    // Another variant or file is another run.
    for (study, variant) in [(SMALL, "--quick"), (&SMALL.replace("repeats = 2", "repeats = 3"), "")]
    {
        let mut command = place.run(study);
        command.args(Some(variant).filter(|variant| !variant.is_empty()));
        let message = complaint(&mut command, 1);
        assert!(message.contains("a different run") && message.contains("-o"), "{message}");
    }

    // A line cut short by a kill is not a complete cell.
    let (path, cells) = (place.out().join("cells.jsonl"), place.cells());
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    output(&mut place.run(SMALL));
    let after = place.cells();
    assert_eq!((after.len(), &after[..3]), (4, &cells[..3]));
    assert_ne!(after[3], cells[3]);
}

#[test]
fn a_number_of_transactions_is_run_to_its_end_and_counted() {
    let place = Workspace::new();
    let study = SMALL
        .replace(
            "clients = [2]",
            "clients = [2]\ntransactions = 2000\noptions = [\"-R\", \"2000\"]",
        )
        .replace(
            "[[table]]\nreads",
            "[[read]]\nname = \"all\"\nsql = \"select count(*) from done\"\n\
                  when = \"end\"\n[[read]]\nname = \"run\"\nof = \"seconds\"\n[[table]]\nreads",
        )
        .replace("repeats = 2", "repeats = 1");
    output(&mut place.run(&study));
    let results = place.results();
    // Each of the two clients makes them, and each makes one row.
    assert_eq!(figure(&results, "on", "all"), 4000.0);
    assert!(figure(&results, "on", "run") > 0.0);
}

#[test]
fn arms_take_turns_on_live_backends() {
    let place = Workspace::new();
    let study = SMALL
        .replace("[workload]", "[workload]\ncommands = 1")
        .replace("[measure]", "[measure]\ndesign = \"toggle\"\nslice = \"250ms\"")
        .replace("again = false", "")
        // A server that starts at level off: its processes have not registered their kinds.
        .replace("name = \"on\"", "name = \"on\"\nlevel = \"off\"");
    let start = study.find("[[read]]\nname = \"commits\"").unwrap();
    let end = study.find("[compare]").unwrap();
    let study = format!("{}{}", &study[..start], &study[end..])
        .replace(", \"commits\", \"rows\", \"each\"", "")
        .replace("repeats = 2", "repeats = 3")
        .replace(
            "[workload]",
            "[[arm]]\nname = \"statements\"\nextensions = [\"pg_stat_statements\"]\n\
             settings = { \"pg_stat_statements.track\" = \"top\" }\n\
             [[arm]]\nname = \"missing\"\nextensions = [\"no_such_extension\"]\n\
             settings = { \"no_such_extension.on\" = \"on\" }\n[workload]",
        );
    output(&mut place.run(&study));
    let results = place.results();
    let arms = results["arms"].as_array().unwrap();
    let missing = arms.iter().find(|arm| arm["name"] == "missing").unwrap();
    let why = missing["left_out"].as_str().unwrap();
    assert!(why.contains("no_such_extension is not installed"), "{why}");
    assert_eq!(results["cells"], 12);
    for arm in ["on", "off", "on-again", "statements"] {
        assert!(figure(&results, arm, "cpu") > 0.0 && figure(&results, arm, "tps") > 0.0);
    }
    for line in place.cells() {
        let cell: Value = serde_json::from_str(&line).unwrap();
        let proof = &cell["proof"];
        assert!(
            proof["extensions"]["pg_stat_statements"].is_string(),
            "loaded in every arm: {proof}"
        );
        let at_work = cell["arm"] == "statements";
        assert_eq!(proof["settings"]["pg_stat_statements.track"] == "top", at_work);
    }
    let placebo = results["comparisons"].as_array().unwrap();
    assert!(placebo.iter().any(|comparison| comparison["verdict"] == "placebo"));
    let page = std::fs::read_to_string(place.out().join("report.html")).unwrap();
    for line in page.lines().filter(|line| line.starts_with("<li class=\"resolved\">")) {
        assert!(!line.contains("inconclusive") && !line.contains("(A/A)<"), "{line}");
    }

    // A setting that needs a restart cannot be toggled.
    let other = Workspace::new();
    let fixed = study.replace("track_activities = \"off\"", "shared_buffers = \"8MB\"");
    let message = complaint(&mut other.run(&fixed), 2);
    assert!(message.contains("shared_buffers") && message.contains("restart"), "{message}");
}

#[test]
fn the_built_in_studies_are_listed_shown_and_valid() {
    let all: Value =
        serde_json::from_str(&output(tally().args(["study", "list", "--json"]))).unwrap();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 9);
    for study in all {
        let name = study["name"].as_str().unwrap();
        let quick = study["quick"]["expected_seconds"].as_f64().unwrap();
        assert!(quick < 600.0, "{name} takes {quick} s");
        let shown = output(tally().args(["study", "show", name]));
        assert!(shown.contains(study["title"].as_str().unwrap()), "{shown}");
        let readme = format!("../../studies/{name}/README.md");
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(&readme).exists(), "{readme}");
    }
}

/// They need the Java agent of this repository, so they are not built in.
#[test]
fn the_studies_of_java_clients_are_valid() {
    for name in ["jdbc-methods", "client-gc"] {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(name);
        let shown = output(tally().args(["study", "show"]).arg(&place));
        assert!(shown.contains("throughput"), "{shown}");
        assert!(place.join("README.md").exists());
    }
}

#[test]
fn an_error_in_a_study_file_is_reported_with_its_position() {
    let place = Workspace::new();
    for (study, words) in [
        (SMALL.replace("seconds = 1", "secunds = 1"), &["secunds", "line 20"][..]),
        (
            SMALL.replace("[compare]", "[compare]\nbase = \"none\""),
            &["arm \"none\" does not exist"],
        ),
        (SMALL.replace("of = \"cpu\"", "of = \"cup\""), &["cup", "line"]),
        (SMALL.replace("commits.count", "commits["), &["commits", "]"]),
        (SMALL.replace("rows / commits", "rows / nothing"), &["nothing"]),
        ("name = ".into(), &["line 1"]),
        (String::new(), &["missing field"]),
    ] {
        let message = complaint(&mut place.run(&study), 2);
        assert!(words.iter().all(|word| message.contains(word)), "{words:?}: {message}");
    }
    let message = complaint(tally().args(["study", "run", "no-such-study"]), 2);
    assert!(message.contains("no-such-study") && message.contains("commit-delay"), "{message}");
    let message = complaint(tally().args(["study", "report"]).arg(place.folder.path()), 1);
    assert!(message.contains("directory of a run"), "{message}");
}

#[test]
fn a_server_that_does_not_start_shows_its_log() {
    let place = Workspace::new();
    let study = SMALL.replace("track_activities = \"off\"", "shared_buffers = \"many\"");
    let message = complaint(&mut place.run(&study), 1);
    assert!(message.contains("arm \"off\"") && message.contains("shared_buffers"), "{message}");
}

#[test]
fn a_field_that_no_interval_has_is_named() {
    let place = Workspace::new();
    let message = complaint(&mut place.run(&SMALL.replace("commits.count", "commits.number")), 1);
    assert!(message.contains("read \"commits\"") && message.contains("flushes"), "{message}");
}

#[test]
fn too_little_disk_space_is_reported_before_anything_is_made() {
    let place = Workspace::new();
    let message = complaint(&mut place.run(&SMALL.replace("scale = 0", "scale = 100000")), 1);
    assert!(message.contains("MB free") && message.contains("TMPDIR"), "{message}");
}

#[test]
fn an_unwritable_directory_is_named() {
    let place = Workspace::new();
    let mut command = tally();
    command.args(["study", "run"]).arg(place.study(SMALL)).args(["-o", "/proc/no/such"]);
    let message = complaint(&mut command, 1);
    assert!(message.contains("/proc/no/such"), "{message}");
}

#[test]
fn an_unavailable_arm_is_left_out_and_reported() {
    let place = Workspace::new();
    let study = SMALL.replace("repeats = 2", "repeats = 1").replace(
        "[workload]",
        "[[arm]]\nname = \"missing\"\n[arm.instrument]\ncommand = [\"/no/such/program\"]\n\
         [[arm]]\nname = \"refused\"\n[arm.instrument]\ncommand = [\"sh\", \"-c\", \"echo not for you; exit 1\"]\n\
         ready = \"looking\"\n\
         [[arm]]\nname = \"extension\"\nextensions = [\"no_such_extension\"]\n\
         [[arm]]\nname = \"before\"\nbefore = [\"sh\", \"-c\", \"echo no luck >&2; exit 1\"]\n\
         [[arm]]\nname = \"watched\"\n[arm.instrument]\n\
         command = [\"sh\", \"-c\", \"trap 'echo held 42; exit' INT; echo looking; while :; do sleep 0.1; done\"]\n\
         ready = \"looking\"\n[workload]",
    );
    let study = study.replace("[compare]", "[[read]]\nname = \"held\"\nline = \"held\"\n[compare]");
    let assert = place.run(&study).assert().success();
    let message = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    for words in ["\"missing\"", "not installed", "not for you", "no_such_extension", "no luck"] {
        assert!(message.contains(words), "{words}: {message}");
    }
    let results = place.results();
    let left_out = results["arms"].as_array().unwrap().iter().filter(|a| !a["left_out"].is_null());
    assert_eq!(left_out.count(), 4);
    assert_eq!(results["cells"], 3);
    assert_eq!(figure(&results, "watched", "held"), 42.0);
}

/// A test's own directory for servers, which shows whether any files remain.
fn server_directory() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let servers = tempfile::Builder::new().prefix("st.").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(servers.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    servers
}

/// Starts `tally study run`, to be interrupted.
fn run_in_the_background(
    place: &Workspace,
    study: &Path,
    servers: &TempDir,
    stderr: Stdio,
) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin("tally"))
        .args(["study", "run"])
        .arg(study)
        .arg("-o")
        .arg(place.out())
        .env("TMPDIR", servers.path())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .unwrap()
}

/// The small study whose arms have this too: no cell has to end first.
fn in_both_arms(more: &str) -> String {
    let next = ["[[arm]]\nname = \"off\"", "[workload]"];
    next.iter().fold(SMALL.to_string(), |study, next| study.replace(next, &format!("{more}{next}")))
}

#[test]
fn a_signal_stops_the_servers_and_the_next_run_resumes() {
    let place = Workspace::new();
    // The servers have their own directory, which shows whether it is removed; other users may enter it.
    let servers = server_directory();
    let (cells, resume) = (place.out().join("cells.jsonl"), place.folder.path().join("resume"));
    // Once there is a cell, no server starts before the signal.
    let before = format!(
        "before = [\"sh\", \"-c\", \"[ ! -s {} ] || while [ ! -e {} ]; do sleep 0.05; done\"]",
        cells.display(),
        resume.display()
    );
    let study = place.study(
        &SMALL
            .replace("name = \"on\"", &format!("name = \"on\"\n{before}"))
            .replace(
                "name = \"off\"",
                &format!(
                    "name = \"off\"\n{before}\n[arm.instrument]\ncommand = [\"sleep\", \"1000\"]"
                ),
            )
            .replace("settings = { track", "[arm.settings]\ntrack")
            .replace("\"off\" }", "\"off\""),
    );
    let mut child = run_in_the_background(&place, &study, &servers, Stdio::piped());
    eventually("a cell is complete", || {
        assert!(child.try_wait().unwrap().is_none(), "it has ended without a cell");
        !place.cells().is_empty()
    });
    let first = place.cells()[0].clone();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    std::fs::write(&resume, "").unwrap();
    let status = child.wait().unwrap();
    let mut message = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut message).unwrap();
    assert_eq!(status.code(), Some(1), "{message}");
    assert!(message.contains("interrupted") && message.contains("to continue"), "{message}");
    assert_eq!(place.cells().len(), 1);
    // The copies for each server are removed shortly after the command ends.
    eventually("no files remain", || std::fs::read_dir(servers.path()).unwrap().count() == 0);
    assert!(place.out().join("report.html").exists());

    let mut command = tally();
    command.args(["study", "run"]).arg(&study).arg("-o").arg(place.out());
    output(&mut command);
    assert_eq!(place.cells()[0], first);
    assert_eq!(place.results()["cells"], 4);
}

#[test]
fn an_arms_file_system_is_removed_even_when_the_run_is_killed() {
    let place = Workspace::new();
    let servers = server_directory();
    let study = place.study(
        &in_both_arms("file_system = \"ext4\"\nfile_system_size = \"500MB\"\n")
            .replace("seconds = 1", "seconds = 60"),
    );
    let mounted = || {
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        mounts.contains(&*servers.path().to_string_lossy())
    };
    let mut child = run_in_the_background(&place, &study, &servers, Stdio::null());
    while !mounted() {
        if child.try_wait().unwrap().is_some() {
            return println!("not tested: a file system cannot be made here");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("no files remain", || {
        !mounted() && std::fs::read_dir(servers.path()).unwrap().count() == 0
    });
}

#[test]
fn an_instrument_ends_even_when_the_run_is_killed() {
    let place = Workspace::new();
    let servers = server_directory();
    // A sleep duration that no other process uses.
    let length = format!("{}", 100_000_000 + std::process::id());
    let study = place.study(
        &in_both_arms(&format!(
            "[arm.instrument]\ncommand = [\"sh\", \"-c\", \"while sleep {length}; do :; done & \
             echo ready; wait\"]\n\
             ready = \"ready\"\n"
        ))
        .replace("seconds = 1", "seconds = 60"),
    );
    let runs = || {
        let found = Command::new("pgrep").args(["-x", "-f", &format!("sleep {length}")]).output();
        !found.unwrap().stdout.is_empty()
    };
    let mut child = run_in_the_background(&place, &study, &servers, Stdio::null());
    eventually("the instrument runs", runs);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("it has ended", || !runs());
}

/// The first transaction fails as long as a file exists, and removes the file, so one cell fails once.
#[test]
fn a_run_goes_on_after_a_cell_whose_load_fails_and_measures_it_later() {
    let place = Workspace::new();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    let public = tempfile::tempdir().unwrap();
    std::fs::set_permissions(public.path(), everybody).unwrap();
    let flag = public.path().join("fails");
    let fail = || std::fs::write(&flag, "").unwrap();
    let script = format!(
        "copy (select 1) to program 'cat >/dev/null; ! rm {} 2>/dev/null'; insert into done values (1);",
        flag.display()
    );
    let once = SMALL
        .replace("insert into done values (1);", &script)
        .replace("clients = [2]", "clients = [1]");
    let never_again = once.replace("steal = 100\n", "steal = 100\nretries = 0\n");
    assert_ne!(once, never_again);

    fail();
    let output = place.run(&never_again).assert().code(1).get_output().clone();
    let complaint = String::from_utf8(output.stderr).unwrap();
    for part in
        ["failed: the load ended", "program \"cat", "failed cells: 1", "3 of 4 cells are complete"]
    {
        assert!(complaint.contains(part), "{part}: {complaint}");
    }
    assert_eq!((place.cells().len(), place.results()["cells"].as_u64()), (3, Some(3)));
    let tables = std::fs::read_to_string(place.out().join("tables.txt")).unwrap();
    assert!(tables.contains("failed: arm \"o"), "{tables}");
    output_of_the_rest(&place, &never_again);

    std::fs::remove_dir_all(place.out()).unwrap();
    fail();
    let output = place.run(&once).assert().success().get_output().clone();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("again: the load ended"), "{complaint}");
    assert_eq!(place.cells().len(), 4);
}

/// The same command measures what is missing, and no reason remains.
fn output_of_the_rest(place: &Workspace, study: &str) {
    let text = output(&mut place.run(study));
    assert!(!text.contains("failed"), "{text}");
    assert_eq!((place.cells().len(), place.results()["cells"].as_u64()), (4, Some(4)));
}

#[test]
fn a_run_whose_cells_all_fail_ends() {
    let place = Workspace::new();
    let broken = SMALL
        .replace("values (1);", "values (1 / 0);")
        .replace("steal = 100\n", "steal = 100\nretries = 0\n");
    let complaint = complaint(&mut place.run(&broken), 1);
    assert!(complaint.contains("division by zero"), "{complaint}");
    assert!(complaint.contains("3 cells in a row failed"), "{complaint}");
}
