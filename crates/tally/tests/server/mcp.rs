// SPDX-License-Identifier: PostgreSQL
//! `tally mcp`, asked by the client of the protocol's own SDK: the same answers as on the command line, nothing but
//! reading, and errors that say what is wrong.

use std::process::Stdio;

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService, ServiceExt};
use rustix::process::Signal;
use scratch::Cluster;
use serde_json::{json, Value};

use crate::support::pty::Pty;
use crate::support::recorder::Recorder;
use crate::support::row_lock::{server, session, UPDATE};
use crate::support::{eventually, output, plain, segment, start, tally, CONNECTION};

/// `tally mcp`, and the client that asks it.
struct Assistant {
    client: RunningService<RoleClient, ()>,
    process: tokio::process::Child,
}

impl Assistant {
    async fn start(cluster: &Cluster, options: &[&str]) -> Assistant {
        let mut command = tokio::process::Command::new(assert_cmd::cargo::cargo_bin("tally"));
        for name in CONNECTION {
            command.env_remove(name);
        }
        let mut process = command
            .arg("mcp")
            .args(options)
            .arg(segment(cluster))
            .env("PGUSER", cluster.user())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pipes = (process.stdout.take().unwrap(), process.stdin.take().unwrap());
        Assistant { client: ().serve(pipes).await.unwrap(), process }
    }

    async fn call(&self, tool: &'static str, given: Value) -> CallToolResult {
        let Value::Object(given) = given else { panic!("{given}") };
        let request = CallToolRequestParams::new(tool).with_arguments(given);
        self.client.peer().call_tool(request).await.unwrap()
    }

    /// What a tool answers.
    async fn ask(&self, tool: &'static str, given: Value) -> Value {
        let result = self.call(tool, given).await;
        assert_ne!(result.is_error, Some(true), "{result:?}");
        let structured = result.structured_content.clone().unwrap();
        let text = result.content[0].as_text().unwrap().text.clone();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), structured);
        structured
    }

    /// The message of a call that fails.
    async fn error(&self, tool: &'static str, given: Value) -> String {
        let result = self.call(tool, given).await;
        assert_eq!(result.is_error, Some(true), "{result:?}");
        result.content[0].as_text().unwrap().text.clone()
    }

    /// Ends the session as a client does, by closing the pipes; the process must end by itself.
    async fn end(mut self) {
        self.client.cancel().await.unwrap();
        assert!(self.process.wait().await.unwrap().success());
    }
}

fn block_on<O>(future: impl std::future::Future<Output = O>) -> O {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn an_assistant_is_answered_as_the_command_line_is() {
    let cluster = server();
    let (mut root, root_pid) = session(&cluster, "forgetful");
    root.batch_execute("begin; update orders set v = 7 where id = 1").unwrap();
    let waits = std::thread::spawn({
        let (mut client, _) = session(&cluster, "waiter");
        move || client.batch_execute(UPDATE)
    });
    let blocking = || -> Value {
        let mut command = tally();
        command.env("PGUSER", cluster.user()).args(["blocking", "--json"]);
        serde_json::from_str(&output(command.arg(segment(&cluster)))).unwrap()
    };
    eventually("a session is blocked", || blocking()["blocked"] == 1);

    block_on(async {
        let assistant = Assistant::start(&cluster, &[]).await;
        let info = assistant.client.peer_info().unwrap();
        assert!(info.instructions.as_ref().unwrap().contains("as data"));
        let tools = assistant.client.peer().list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["doctor", "top", "blocking", "statements", "plans", "events", "status"]);
        let reads = |tool: &rmcp::model::Tool| {
            tool.annotations.as_ref().and_then(|notes| notes.read_only_hint)
        };
        assert!(tools.iter().all(|tool| reads(tool) == Some(true)));

        let (found, same) = (assistant.ask("blocking", json!({})).await, blocking());
        for field in ["pid", "application", "query", "waiters"] {
            assert_eq!(found["roots"][0][field], same["roots"][0][field], "{field}");
        }
        assert_eq!(found["roots"][0]["pid"], root_pid);

        let doctor = assistant.ask("doctor", json!({ "seconds": 2 })).await;
        let first = &doctor["diagnoses"][0];
        assert_eq!(first["rule"], "locks", "{doctor}");
        assert!(first["text"].as_str().unwrap().contains(&root_pid.to_string()), "{first}");

        let top =
            assistant.ask("top", json!({ "seconds": 1, "fields": ["ledger"], "rows": 2 })).await;
        assert_eq!(top["ledger"].as_array().unwrap().len(), 2);
        assert!(top["left_out"]["ledger"].as_u64().unwrap() > 0, "{top}");
        assert_eq!([&top["sessions"], &top["level"]], [&Value::Null, &json!("waits")]);

        let statements = assistant.ask("statements", json!({ "sort": "calls", "rows": 200 })).await;
        let rows = statements["rows"].as_array().unwrap();
        let created = rows.iter().find(|row| {
            row["query"].as_str().is_some_and(|text| text.starts_with("create table orders"))
        });
        let id = created.expect("the table's creation is a statement")["queryid"].clone();
        let one = assistant.ask("plans", json!({ "queryid": id })).await;
        assert_eq!([&one["rows"][0]["queryid"], &one["rows"][0]["calls"]], [&id, &json!(1)]);

        let status = assistant.ask("status", json!({})).await;
        assert!(status.is_object());
        assert!(assistant.ask("events", json!({})).await["events"].is_array());
        assistant.end().await;
    });
    root.batch_execute("rollback").unwrap();
    waits.join().unwrap().unwrap();
}

#[test]
fn an_assistant_can_set_nothing_but_a_tools_parameters() {
    let cluster = server();
    block_on(async {
        let assistant = Assistant::start(&cluster, &[]).await;
        let error = assistant.error("doctor", json!({ "target": "host=elsewhere" })).await;
        assert_eq!(error, "doctor has no parameter target");
        let error = assistant.error("plans", json!({ "queryid": "1 --json" })).await;
        assert_eq!(error, "queryid must be a query id, as a text");
        // The verb's own message.
        let error = assistant.error("statements", json!({ "sort": "--help" })).await;
        assert!(error.contains("--sort"), "{error}");
        let request = CallToolRequestParams::new("level");
        assert!(assistant.client.peer().call_tool(request).await.is_err(), "no such tool");
        assistant.end().await;
    });
}

#[test]
fn masked_texts_have_no_constants() {
    let cluster = start(plain().setting("shared_preload_libraries", "pg_tally"));
    cluster.psql("create table orders (id int)").unwrap();
    // Texts of utility statements keep their numbers.
    cluster.psql("alter table orders alter id set statistics 321").unwrap();
    let texts = |options: &'static [&'static str], mask: bool| {
        let answer = block_on(async {
            let assistant = Assistant::start(&cluster, options).await;
            let answer =
                assistant.ask("statements", json!({ "rows": 200, "mask_texts": mask })).await;
            assistant.end().await;
            answer
        });
        answer["rows"].to_string()
    };
    let plain = texts(&[], false);
    assert!(plain.contains("alter id set statistics 321"), "{plain}");
    for masked in [texts(&[], true), texts(&["--mask-texts"], false)] {
        let number = masked.contains("alter id set statistics 321");
        assert!(masked.contains("alter id set statistics ") && !number, "{masked}");
    }
}

#[test]
fn parameters_in_a_recording_are_masked_even_if_texts_are_not() {
    let settings = [
        ("shared_preload_libraries", "pg_tally"),
        ("pg_tally.plan_threshold", "0"),
        ("pg_tally.trace_parameters", "on"),
    ];
    let cluster = start(plain().settings(settings));
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let options = ["--interval", "100ms", "--detail", "200ms", "--parameters"];
    let recorder = Recorder::start(&cluster, &directory, &options);
    recorder.wait_for(2);
    let mut client = cluster.connect().unwrap();
    client.query("select 1 as told, $1::text", &[&"hunterzwei"]).unwrap();
    recorder.end(Signal::TERM);
    let report = block_on(async {
        let options = ["--recording", directory.to_str().unwrap()];
        let assistant = Assistant::start(&cluster, &options).await;
        let given = json!({ "fields": ["tables"], "rows": 200, "mask_texts": false });
        let report = assistant.ask("report", given).await.to_string();
        assistant.end().await;
        report
    });
    assert!(report.contains("as told") && report.contains("slow_executions"), "{report}");
    assert!(!report.contains("hunterzwei"), "{report}");
}

#[test]
fn on_a_terminal_it_says_who_starts_it() {
    let tally = assert_cmd::cargo::cargo_bin("tally");
    let mut terminal = Pty::run(100, 24, &[tally.to_str().unwrap(), "mcp"]);
    terminal.until("it says so", |bytes| {
        String::from_utf8_lossy(bytes).contains("on a terminal, use the verbs")
    });
}
