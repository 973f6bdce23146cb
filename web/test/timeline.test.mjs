// SPDX-License-Identifier: PostgreSQL
// Tests the sessions of a trace over time: tracks, sums of a range, the axis, plans, and the page in a real browser.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startBrowser } from "./browser.mjs";
import { HOSTILE } from "./example.mjs";
import { load } from "./load.mjs";
import { MS, cpu, idle, line, trace } from "./traces.mjs";

const { messagesOf } = await load("waterfall/model.ts");
const { sumsIn, ticksOf, tracksOf } = await load("waterfall/timeline.ts");
const { plansOf, timeOf } = await load("waterfall/plan.ts");
const { fitting } = await load("waterfall/lanes.ts");

const messages = messagesOf(trace);
const tracks = tracksOf(trace, messages);
const spans = (bars) => bars.map(({ start, end, name }) => [Math.round(start * 1e3), Math.round(end * 1e3), name]);

test("a track has its transaction, messages, phases, waits, the client's turns and plan nodes; workers are below", () => {
    assert.deepEqual(tracks.map(({ pid, leader }) => [pid, leader]), [
        [7, null],
        [8, 7],
    ]);
    const [session, worker] = tracks;
    assert.deepEqual(spans(session.transaction), [[0, 14, "transaction"]]);
    assert.deepEqual(spans(session.message), [
        [0, 1, "BEGIN"],
        [4, 14, HOSTILE],
        [20, 21, "Sync"],
    ]);
    assert.deepEqual(spans(session.phase), [
        [0, 1, "execute"],
        [4, 5, "parse"],
        [5, 14, "execute"],
        [20, 21, "execute"],
    ]);
    assert.deepEqual(
        session.activity.map(({ start, class: kind, idle, statement }) => [Math.round(start * 1e3), kind, idle, statement]),
        [
            [0, "cpu", false, "BEGIN"],
            [1, "client", true, ""],
            [4, "lwlock", false, HOSTILE],
            [5, "cpu", false, HOSTILE],
            [7, "io", false, HOSTILE],
            [11, "io", false, HOSTILE],
            [12, "cpu", false, HOSTILE],
            [14, "client", true, ""],
            [20, "cpu", false, ""],
        ],
    );
    assert.deepEqual(spans(session.node), [[7, 12, "[1] Parallel Seq Scan on t"]]);
    assert.deepEqual(spans(worker.message), [[6, 11, "worker of 7"]]);
    assert.equal(worker.message[0].message, messages[1]);
    assert.deepEqual(spans(worker.node), [[6, 11, "[1] Parallel Seq Scan on t"]]);
});

test("sums are of the range, cut at its ends, and add up to the time in messages", () => {
    const all = sumsIn(tracks, 0, 0.021);
    const ms = (list) => list.map(({ name, seconds, count }) => [name, Math.round(seconds * 1e6) / 1e3, count]);
    assert.deepEqual(ms(all.activities), [
        ["IO:DataFileRead", 10, 3],
        ["cpu", 6, 4],
        ["LWLock:ProcArray", 1, 1],
    ]);
    assert.deepEqual(ms(all.statements)[0], [HOSTILE, 15, 6]);
    assert.deepEqual(ms(all.statements).slice(1).sort(), [
        ["(no statement)", 1, 1],
        ["BEGIN", 1, 1],
    ]);
    assert.deepEqual(ms(all.objects), [
        ["t", 9, 2],
        ["u", 1, 1],
    ]);
    assert.deepEqual(ms(all.nodes), [["[1] Parallel Seq Scan on t", 10, 3]]);
    const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-9, `${a} and ${b}`);
    near(all.busy, 0.017);
    near(all.idle, 0.009);
    near(all.inTransaction, 0.003);
    const part = sumsIn(tracks, 0.003, 0.008);
    near(part.busy, 0.001 + 0.002 + 0.001 + 0.002);
    near(part.idle, 0.001);
    near(part.activities.reduce((sum, { seconds }) => sum + seconds, 0), part.busy);
    assert.deepEqual(sumsIn(tracks, 0.03, 0.04).activities, []);
});

test("messages of a pipeline are no transaction, and a gap at an end has one message", () => {
    const of = (...lines) => {
        const trace = { left_out: 0, lines };
        return spans(tracksOf(trace, messagesOf(trace))[0].transaction);
    };
    const message = (ms) => [cpu(7, ms, 1), line(7, "message", ms, 1, { message: "Query" })];
    assert.deepEqual(of(...message(0), ...message(1), idle(7, 2, 1), ...message(3)), []);
    assert.deepEqual(of(idle(7, 0, 1, "idle in transaction"), ...message(1)), [[0, 2, "transaction"]]);
    const open = (ms) => idle(7, ms, 1, "idle in transaction");
    assert.deepEqual(of(...message(0), open(1), ...message(2), open(3), ...message(4), idle(7, 5, 1), ...message(6), open(7)), [
        [0, 5, "transaction"],
        [6, 8, "transaction"],
    ]);
});

test("a plan is a tree with rows, calls, waits and CPU time, workers' included", () => {
    const [plan, ...others] = plansOf(messages[1]);
    assert.deepEqual(others, []);
    assert.deepEqual(
        plan.map(({ number, name, depth, rows, calls }) => [number, name, depth, rows, calls]),
        [
            [0, "Gather", 0, 30, 31],
            [1, "Parallel Seq Scan on t", 1, 30, 32],
        ],
    );
    assert.deepEqual(plan[1].cpu, { ns: 2 * MS, half: 0.5 * MS });
    assert.equal(timeOf(plan[1]), 12 * MS);
    assert.deepEqual(plan[1].waits.get("IO:DataFileRead"), { class: "io", ns: 10 * MS, count: 3 });
    assert.deepEqual(plansOf(messages[0]), []);
    const circle = (node, parent) => line(7, "node", 0, null, { node, parent, name: "n" });
    const damaged = { lines: [line(7, "node", 0, null, { node: 0, name: "root" }), circle(1, 2), circle(2, 1), circle(3, 3)], workers: [] };
    assert.deepEqual(plansOf(damaged)[0].map(({ number }) => number), [0]);
});

test("ticks are round, and their labels count from a round instant so that they differ", () => {
    const rounded = ({ base, digits, ticks }) => [Number(base.toPrecision(12)), digits, ticks.map((tick) => Number(tick.toPrecision(6)))];
    assert.deepEqual(rounded(ticksOf(0, 0.021, 6)), [0, 1, [0, 0.005, 0.01, 0.015, 0.02]]);
    assert.deepEqual(rounded(ticksOf(5.00012, 5.00022, 4)), [5.0001, 4, [0.00005, 0.0001]]);
    for (const [from, to] of [
        [0, 1e-6],
        [3599.9999, 3600.0003],
        [0.2, 7.3],
    ]) {
        const { base, ticks } = ticksOf(from, to, 8);
        assert.ok(ticks.length >= 3 && ticks.length <= 10, `${from} ${ticks}`);
        assert.ok(ticks.every((tick) => base + tick >= from - 1e-9 && base + tick <= to + 1e-9));
        assert.equal(new Set(ticks.map((tick) => tick.toPrecision(3))).size, ticks.length);
    }
});

let browser;
let folder;
before(async () => {
    folder = await mkdtemp(join(tmpdir(), "pgtally-web-"));
    browser = await startBrowser();
});
after(async () => {
    await browser?.close();
    await rm(folder, { recursive: true, force: true });
});

async function open(options = {}) {
    const template = fileURLToPath(new URL("../../build/web/waterfall.html", import.meta.url));
    const data = JSON.stringify(trace).replace(/</g, "\\u003c");
    const filled = (await readFile(template, "utf8"))
        .replace("<!--pgtally:title-->", () => "Trace")
        .replace("<!--pgtally:body-->", () => '<h1>Trace</h1><div id="traced"></div><pre></pre>')
        .replace("<!--pgtally:data-->", () => data);
    const file = join(folder, "trace.html");
    await writeFile(file, filled);
    return browser.visit(pathToFileURL(file).href, options);
}

/** Two frames: the page has drawn what has changed. */
const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

for (const colorScheme of ["light", "dark"]) {
    test(`sessions are drawn over time, a range and a message can be selected (${colorScheme})`, async () => {
        const page = await open({ colorScheme });
        const lanes = page.locator(".lanes");
        await drawn(page);
        assert.match(await page.locator(".sums > p").innerText(), /^The whole trace, 21(\.0)?\sms: 17(\.0)?\sms in messages; 9(\.00)?\sms between messages, waiting for the client, 3(\.00)?\sms of it in a transaction\.$/);
        assert.match(await page.locator(".sums table").first().innerText(), /IO:DataFileRead\s+10(\.0)?\sms\s+58\.8\s%/);
        // The session's activities are its fourth row: an I/O wait from 7 to 11 of 21 ms.
        const box = await lanes.boundingBox();
        const [x, y] = [box.x + (box.width * 9) / 21, box.y + 18 + 3 * 17 + 8];
        const [colour, expected] = await page.evaluate(
            ([x, y]) => {
                const canvas = document.querySelector(".lanes canvas");
                const { left, top } = canvas.getBoundingClientRect();
                const [r, g, b] = canvas.getContext("2d").getImageData(x - left + 40, y - top + 6, 1, 1).data;
                const hex = "#" + [r, g, b].map((v) => v.toString(16).padStart(2, "0")).join("");
                return [hex, getComputedStyle(document.documentElement).getPropertyValue("--io").trim()];
            },
            [x, y],
        );
        assert.equal(colour, expected);
        await page.mouse.move(x, y);
        const tip = page.locator(".timeline .tooltip");
        await tip.waitFor();
        assert.match(await tip.innerText(), /IO:DataFileRead[\s\S]*4(\.00)?\sms, 40\.0\s% of the message[\s\S]*execute, t, node \[1\] Parallel Seq Scan on t/);
        await page.mouse.click(x, y);
        await page.locator(".selected .plan").waitFor();
        assert.match(await page.locator(".selected h2").innerText(), /^Query of process 7, 10(\.0)?\sms, 1 parallel worker$/);
        assert.match(await page.locator(".selected .plan tbody tr").nth(1).innerText(), /Parallel Seq Scan on t\s+12(\.0)?\sms\s+30\s+32\s+IO:DataFileRead/);

        // A range: the sums are of it.
        await page.mouse.move(box.x + (box.width * 4) / 21, y);
        await page.mouse.down();
        await page.mouse.move(box.x + (box.width * 14) / 21, y, { steps: 4 });
        await page.mouse.up();
        await drawn(page);
        assert.match(await page.locator(".sums > p").innerText(), /^Selected, (10(\.\d)?|9\.9\d)\sms/);
        await lanes.focus();
        await page.keyboard.press("Escape");
        await drawn(page);
        assert.match(await page.locator(".sums > p").innerText(), /^The whole trace/);
        // From message to message, and into it.
        await page.keyboard.press("ArrowLeft");
        assert.match(await page.locator(".selected h2").innerText(), /^Query of process 7, 1(\.00)?\sms$/);
        await page.keyboard.press("ArrowRight");
        await page.keyboard.press("Enter");
        await drawn(page);
        assert.match(await page.locator(".sums > p").innerText(), /^Selected, 11(\.0)?\sms/);
        assert.equal(await page.evaluate(() => window.ran), undefined);
        assert.deepEqual(page.seen, { requests: [], violations: [], errors: [] });
        await page.context().close();
    });
}

test("a name in a bar is not cut within a letter", () => {
    const pen = { measureText: (text) => ({ width: 6 * [...text].length }) };
    assert.equal(fitting(pen, "transaction", 66), "transaction");
    assert.equal(fitting(pen, "transaction", 60), "transacti…");
    assert.equal(fitting(pen, "a b c", 24), "a b…");
    assert.equal(fitting(pen, "transaction", 18), "tr…");
    assert.equal(fitting(pen, "transaction", 17), "");
    assert.equal(fitting(pen, "", 0), "");
});
