// SPDX-License-Identifier: PostgreSQL
// Tests traces: the messages and rows made from the lines, and the page in a real browser.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startBrowser } from "./browser.mjs";
import { HOSTILE } from "./example.mjs";
import { load } from "./load.mjs";

const { beganAt, classOf, messagesOf } = await load("waterfall/model.ts");
const { rowsOf, spansOf } = await load("waterfall/rows.ts");
const { stepOf } = await load("waterfall/draw.ts");

const MS = 1e6;
const line = (what, ns, length_ns, more = {}) => ({ pid: 7, what, ns, length_ns, ...more });
const read = (ns, length, more = {}) =>
    line("wait", ns, length, { phase: "execute", activity: "IO:DataFileRead", operation: "read", file: "base/5/16384", ...more });

/** A query of 10 ms that reads twice in a plan node; then its worker, and a short message. */
const lines = [
    line("trace", 0, null, { time: 1e9 }),
    line("statement", 0.1 * MS, null, { query: HOSTILE, queryid: "42", depth: 0 }),
    line("begin", 0.2 * MS, null, { name: "start", depth: 0 }),
    line("node", 0.3 * MS, null, { node: 0, name: "Aggregate" }),
    line("node", 0.3 * MS, null, { node: 1, parent: 0, name: "Seq Scan on t" }),
    line("step", 0.2 * MS, 0.2 * MS, { name: "start", depth: 0, rows: 0, failed: false }),
    line("begin", 0.5 * MS, null, { name: "run", depth: 0 }),
    line("cpu", 0.5 * MS, 0.5 * MS, { phase: "execute" }),
    read(1 * MS, 2 * MS, { node: 1 }),
    line("cpu", 3 * MS, 1 * MS, { phase: "execute" }),
    read(4 * MS, 3 * MS, { node: 1 }),
    line("step", 0.5 * MS, 8.5 * MS, { name: "run", depth: 0, rows: 1, failed: false }),
    line("begin", 9 * MS, null, { name: "end", depth: 0 }),
    line("node end", 9 * MS, null, { node: 1, rows: 5000, calls: 5001, cpu_ns: 1 * MS, cpu_half_width_ns: 0.2 * MS }),
    line("step", 9 * MS, 0.5 * MS, { name: "end", depth: 0, rows: 0, failed: false }),
    line("message", 0, 10 * MS, { message: "Query" }),
    line("wait", 10 * MS, 5 * MS, { phase: "idle", activity: "Client:ClientRead" }),
    { ...line("trace", 1 * MS, null, { leader_pid: 7 }), pid: 8 },
    { ...read(2 * MS, 1 * MS), pid: 8 },
    { ...line("sums", undefined, undefined), pid: 8 },
    line("cpu", 15 * MS, 0.1 * MS, { phase: "execute" }),
    line("message", 15 * MS, 0.2 * MS, { message: "Sync" }),
    line("sums", undefined, undefined),
];
const trace = { left_out: 0, lines };

test("messages have their lines and their workers; waiting for the client is between them", () => {
    const messages = messagesOf(trace);
    assert.deepEqual(
        messages.map(({ pid, kind, start, end }) => [pid, kind, start, end]),
        [
            [7, "Query", 0, 10 * MS],
            [7, "Sync", 15 * MS, 15.2 * MS],
        ],
    );
    assert.equal(messages[0].query, HOSTILE);
    assert.deepEqual(
        messages[0].workers.map(({ pid, start, end }) => [pid, start, end]),
        [[8, 2 * MS, 3 * MS]],
    );
});

test("steps consist of their parts, waits that repeat are one row, nodes have their waits", () => {
    const rows = rowsOf(messagesOf(trace)[0]);
    const row = (name) => rows.find((it) => it.name.includes(name));
    assert.deepEqual(
        rows.map(({ name, depth }) => [name, depth]).filter(([name]) => name !== HOSTILE),
        [
            ["start", 0],
            ["run", 0],
            ["IO:DataFileRead", 1],
            ["end", 0],
            ["[1] Seq Scan on t", 2],
            ["worker 8", 0],
            ["IO:DataFileRead", 1],
        ],
    );
    assert.deepEqual([row("run").length, row("run").detail], [8.5 * MS, "1 rows"]);
    assert.deepEqual(
        row("run").spans.map(({ kind, length }) => [kind, length / MS]),
        [
            ["cpu", 0.5],
            ["io", 2],
            ["cpu", 1],
            ["io", 3],
        ],
    );
    const wait = row("IO:DataFileRead");
    assert.deepEqual([wait.length / MS, wait.total / MS, wait.detail], [6, 5, "read base/5/16384, node 1"]);
    const node = row("Seq Scan");
    assert.equal(node.total, 5 * MS);
    assert.match(node.detail.replace(/\u00a0/g, " "), /5,000 rows, 5,001 calls, 2 waits 5 ms, cpu 1 ms ± 200 us/);
});

test("an activity has its class", () => {
    for (const [what, activity, kind] of [
        ["cpu", "IO:DataFileRead", "cpu"],
        ["wait", "cpu", "cpu"],
        ["wait", "IO:DataFileRead", "io"],
        ["wait", "LWLock:WALWrite", "lwlock"],
        ["wait", "Lock:tuple", "lock"],
        ["wait", "BufferPin:BufferPin", "other"],
        ["wait", "Client:ClientRead", "client"],
        ["wait", "IPC:MessageQueueSend", "ipc"],
        ["wait", "Timeout:PgSleep", "other"],
        ["wait", "other", "other"],
        ["wait", undefined, "other"],
    ])
        assert.equal(classOf({ what, activity }), kind, `${what} ${activity}`);
});

test("a trace began before its first line by that line's time", () => {
    const at = (lines) => beganAt({ left_out: 0, lines });
    assert.equal(at([line("cpu", 0, 1), line("trace", 2.5e9, null, { time: 100 })]), 97.5);
    assert.equal(at([line("trace", 2.5e9, null)]), 0);
});

test("what a process without messages does ends with its wait, and idle time alone is no message", () => {
    const idle = { phase: "idle", activity: "Client:ClientRead" };
    const of = (...lines) => messagesOf({ left_out: 0, lines }).map(({ start, end, lines }) => [start, end, lines.length]);
    assert.deepEqual(of(line("cpu", 5, 3, { phase: "other" }), line("wait", 20, 1, { activity: "IO:WALSync" })), [[5, 21, 2]]);
    assert.deepEqual(of(line("cpu", 5, 3, { phase: "idle" }), line("wait", 8, 9, idle), line("sums")), []);
    assert.deepEqual(of(line("cpu", 5, 3, { phase: "idle in transaction" }), line("cpu", 8, 2, { phase: "execute" })), [[5, 10, 2]]);
    // A wait of length zero ends nothing.
    assert.deepEqual(of(line("cpu", 5, 3, { phase: "execute" }), line("wait", 8, 0, idle), line("cpu", 8, 1, { phase: "execute" })), [[5, 9, 3]]);
    assert.deepEqual(of(line("cpu", 5, 3, { phase: "execute" }), line("wait", 8, 1, idle), line("cpu", 9, 1, { phase: "execute" })), [
        [5, 8, 1],
        [9, 10, 1],
    ]);
});

test("a message that is not in the trace as a whole says so, and a background process has none", () => {
    const idle = { phase: "idle", activity: "Client:ClientRead" };
    const kinds = (...lines) => messagesOf({ left_out: 0, lines }).map(({ kind }) => kind);
    const work = (ns, phase) => line("cpu", ns, 3, { phase });
    assert.deepEqual(kinds(work(5, "execute"), line("wait", 8, 1, idle), work(9, "execute"), line("message", 9, 3, { message: "Query" })), [
        "begun before the trace",
        "Query",
    ]);
    assert.deepEqual(kinds(work(5, "execute"), line("message", 5, 3, { message: "Query" }), work(9, "execute"), line("sums")), [
        "Query",
        "not ended",
    ]);
    assert.deepEqual(kinds(work(5, "background"), line("sums")), [""]);
    assert.deepEqual(kinds(line("trace", 0, null, { leader_pid: 9 }), work(5, "execute"), line("sums")), [""]);
});

test("a message has the parameters of its executions, and those that are not whole say so", () => {
    const values = [{ number: 1, value: "it's" }, { number: 2, value: null }, { number: 3, value: "ab", bytes: 900 }, { number: 4, bytes: 5000 }, { number: 5 }];
    const lines = [
        line("begin", 0, null, { name: "start", depth: 0 }),
        line("parameters", 1, null, { depth: 0, parameters: values }),
        line("parameters", 2, null, { depth: 1, parameters: [{ number: 1, value: "" }] }),
        line("message", 0, 9, { message: "Execute" }),
    ];
    const [message] = messagesOf({ left_out: 0, lines });
    assert.deepEqual(message.parameters, [
        "$1 = 'it''s', $2 = NULL, $3 = 'ab...' (900 bytes), $4 = (not shown: 5000 bytes), $5 = (not shown)",
        "$1 = ''",
    ]);
});

test("a worker belongs to the message of its leader during which it began", () => {
    const worker = (pid, leader_pid, ns) => [
        { ...line("trace", 0, null, { leader_pid }), pid },
        { ...line("cpu", ns, 1, { phase: "execute" }), pid },
    ];
    const found = messagesOf({
        left_out: 0,
        lines: [
            line("message", 10, 10, { message: "Query" }),
            line("message", 30, 10, { message: "Query" }),
            ...worker(21, 7, 10),
            ...worker(22, 7, 20),
            ...worker(23, 7, 21),
            ...worker(24, 9, 35),
            ...worker(25, 7, 9),
        ],
    });
    assert.deepEqual(
        found.map(({ pid, start, workers }) => [pid, start, workers.map(({ pid }) => pid)]),
        [
            [25, 9, []],
            [7, 10, [21, 22]],
            [23, 21, []],
            [7, 30, []],
            [24, 35, []],
        ],
    );
});

test("an error ends all steps that are deeper, and waits are joined within a step alone", () => {
    const lock = (ns, more = {}) => line("wait", ns, 2, { activity: "Lock:tuple", lock: "tuple 7", mode: "Share", ...more });
    const rows = rowsOf({
        lines: [
            line("begin", 0, null, { name: "outer", depth: 0 }),
            lock(1, { blockers: [8, 9] }),
            line("begin", 3, null, { name: "inner", depth: 1 }),
            lock(4),
            lock(7),
            line("begin", 10, null, { name: "innermost", depth: 2 }),
            line("step", 0, 12, { depth: 0, rows: 0, failed: true }),
            line("wait", 13, 1, { activity: "IO:DataFileRead", operation: "read", file: "f" }),
            line("commit", 14, 5, { name: "flush" }),
            line("lost", 19, null, { records: 3 }),
            line("reset", 20, null),
        ],
        workers: [],
    });
    assert.deepEqual(
        rows.map(({ depth, name, detail, start, length, total, failed }) => [depth, name, detail, start, length, total, failed]),
        [
            [0, "outer", "failed", 0, 12, null, true],
            [1, "Lock:tuple", "Share tuple 7 blocked by 8, 9", 1, 2, null, false],
            [1, "inner", "", 3, null, null, false],
            [2, "Lock:tuple", "Share tuple 7", 4, 5, 4, false],
            [2, "innermost", "", 10, null, null, false],
            [0, "IO:DataFileRead", "read f", 13, 1, null, false],
            [0, "commit", "flush", 14, 5, null, false],
            [0, "3 records lost", "", 19, null, null, true],
            [0, "all totals were reset", "", 20, null, null, false],
        ],
    );
});

const fields = (row, names) => names.map((name) => row[name]);

test("waits are one row by event, object and node within a step, and a step consists of those of inner steps too", () => {
    const wait = (ns, more = {}) => line("wait", ns, 2, { activity: "IO:A", operation: "read", file: "f", ...more });
    const rows = rowsOf({
        lines: [
            line("begin", 0, null, { name: "outer", depth: 0 }),
            wait(1),
            wait(4),
            wait(7, { file: "g" }),
            wait(10, { activity: "IO:B" }),
            wait(13, { node: 1 }),
            line("begin", 16, null, { name: "inner", depth: 1 }),
            wait(17),
            line("step", 16, 4, { depth: 1, rows: 5000 }),
            wait(21),
            line("step", 0, 24, { depth: 0, rows: 1 }),
            // Its beginning was lost, and so were the names of the rest.
            line("step", 0, 24, { depth: 0 }),
            line("statement", 25, null),
            line("wait", 26, 1),
            line("begin", 27, null),
        ],
        workers: [],
    });
    assert.deepEqual(
        rows.map((row) => fields(row, ["depth", "name", "detail", "start", "length", "total", "failed"])),
        [
            [0, "outer", "1 rows", 0, 24, null, false],
            [1, "IO:A", "read f", 1, 5, 4, false],
            [1, "IO:A", "read g", 7, 2, null, false],
            [1, "IO:B", "read f", 10, 2, null, false],
            [1, "IO:A", "read f, node 1", 13, 2, null, false],
            [1, "inner", "5,000 rows", 16, 4, null, false],
            [2, "IO:A", "read f", 17, 2, null, false],
            [1, "IO:A", "read f", 21, 2, null, false],
            [0, "statement", "", 25, null, null, false],
            [0, "wait", "", 26, 1, null, false],
            [0, "step", "", 27, null, null, false],
        ],
    );
    assert.deepEqual(
        [0, 5].map((at) => rows[at].spans.map(({ start }) => start)),
        [[1, 4, 7, 10, 13, 17, 21], [17]],
    );
});

test("plan nodes are below their parents, from their first wait to their last, and of their own statement", () => {
    const node = (number, parent, name) => line("node", 1, null, { node: number, parent, name });
    const end = (number, more = {}) => line("node end", 30, null, { node: number, rows: 0, calls: 3, ...more });
    const wait = (ns, number) => line("wait", ns, 2, { activity: "IO:A", node: number });
    const rows = rowsOf({
        lines: [
            line("begin", 0, null, { name: "run", depth: 0 }),
            ...[node(0, undefined, "Sort"), node(1, 0, "Join"), node(2, 1, "Scan"), node(7, 7, "circle")],
            wait(4, 2),
            line("begin", 5, null, { name: "function", depth: 1 }),
            node(2, undefined, "Insert"),
            wait(6, 2),
            end(2, { cpu_ns: null }),
            line("step", 5, 4, { depth: 1 }),
            wait(10, 2),
            end(2, { name: "another", rows: 1200, cpu_ns: 0, cpu_half_width_ns: 2000 }),
            ...[end(1), end(7), end(8, { name: "unknown" }), end(9)],
        ],
        workers: [],
    });
    const nodes = rows.filter(({ name }) => name.startsWith("["));
    assert.deepEqual(
        nodes.map((row) => fields(row, ["depth", "name", "start", "length", "total"])),
        [
            [2, "[2] Insert", 6, 2, 2],
            [3, "[2] Scan", 4, 8, 4],
            [2, "[1] Join", 30, null, null],
            // A plan has no cycle, but a damaged trace may have one.
            [51, "[7] circle", 30, null, null],
            [1, "[8] unknown", 30, null, null],
            [1, "[9] node", 30, null, null],
        ],
    );
    assert.deepEqual(
        [0, 1, 2].map((at) => nodes[at].detail.replace(/\u00a0/g, " ")),
        ["0 rows, 3 calls, 1 waits 2 ns", "1,200 rows, 3 calls, 2 waits 4 ns, cpu 0 ± 2 us", "0 rows, 3 calls"],
    );
});

test("a worker is a row with its own parts, and its rows are below it", () => {
    const worker = { pid: 9, start: 20, end: 50, lines: [line("cpu", 20, 5), line("lost", 25, null, { records: 2 })] };
    const rows = rowsOf({ start: 0, lines: [], workers: [worker] });
    assert.deepEqual(
        rows.map((row) => fields(row, ["depth", "name", "start", "length", "spans"])),
        [
            [0, "worker 9", 20, 30, [{ start: 20, length: 5, kind: "cpu" }]],
            [1, "2 records lost", 25, null, []],
        ],
    );
});

test("a message's bar has its processor time and its waits", () => {
    const lines = [line("begin", 0, null), line("cpu", 1, 2), line("wait", 3, 4, { activity: "IO:WALSync" }), line("step", 0, 9)];
    assert.deepEqual(spansOf({ lines }), [
        { start: 1, length: 2, kind: "cpu" },
        { start: 3, length: 4, kind: "io" },
    ]);
});

test("axes have round steps", () => {
    assert.deepEqual([10 * MS, 7 * MS, 1234, 60].map(stepOf), [2 * MS, 2 * MS, 500, 10]);
});

test("a message opens into its waterfall, and texts are only shown", async () => {
    const template = fileURLToPath(new URL("../../build/web/waterfall.html", import.meta.url));
    const folder = await mkdtemp(join(tmpdir(), "pgtally-web-"));
    const browser = await startBrowser();
    try {
        const data = JSON.stringify(trace).replace(/</g, "\\u003c");
        const filled = (await readFile(template, "utf8"))
            .replace("<!--pgtally:title-->", () => "Trace")
            .replace("<!--pgtally:body-->", () => '<h1>Trace</h1><div id="traced"></div><pre></pre>')
            .replace("<!--pgtally:data-->", () => data);
        const file = join(folder, "trace.html");
        await writeFile(file, filled);
        const page = await browser.visit(pathToFileURL(file).href);
        const messages = page.locator(".message");
        assert.equal(await messages.count(), 2);
        assert.equal(await page.locator(".waterfall").count(), 0);
        await messages.first().locator("summary").click();
        await page.locator(".waterfall .row").nth(8).waitFor();
        const run = page.locator(".waterfall .row", { hasText: "run 1 rows" }).locator(".track");
        const box = await run.boundingBox();
        const bars = await run.locator("i.of-io").evaluateAll((all) => all.map((it) => it.getBoundingClientRect().width));
        // 2 and 3 of 10 ms.
        assert.deepEqual(bars.map((width) => Math.round((10 * width) / box.width)), [2, 3]);
        await page.locator("input[type=search]").fill("sync");
        assert.equal(await messages.count(), 1);
        await page.locator("input[type=search]").fill("");
        await page.locator("select").selectOption("longest");
        assert.match(await messages.first().innerText(), /Query/);
        assert.equal(await page.evaluate(() => window.ran), undefined);
        assert.deepEqual(page.seen, { requests: [], violations: [], errors: [] });
    } finally {
        await browser.close();
        await rm(folder, { recursive: true, force: true });
    }
});
