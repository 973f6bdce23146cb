// SPDX-License-Identifier: PostgreSQL
// Traces: the messages and rows that are made of the lines, and the page in a real browser.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startBrowser } from "./browser.mjs";
import { HOSTILE } from "./example.mjs";
import { load } from "./load.mjs";

const { messagesOf } = await load("waterfall/model.ts");
const { rowsOf } = await load("waterfall/rows.ts");
const { stepOf } = await load("waterfall/draw.ts");

const MS = 1e6;
const line = (what, ns, length_ns, more = {}) => ({ pid: 7, what, ns, length_ns, ...more });
const read = (ns, length, more = {}) =>
    line("wait", ns, length, { phase: "execute", activity: "IO:DataFileRead", operation: "read", file: "base/5/16384", ...more });

/** A query of 10 ms that reads twice in a node of its plan; then its worker, and a short message. */
const lines = [
    line("trace", 0, null, { time: 1e9 }),
    line("statement", 0.1 * MS, null, { query: HOSTILE, queryid: 42, depth: 0 }),
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
