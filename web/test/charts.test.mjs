// SPDX-License-Identifier: PostgreSQL
// Charts in a real browser: pixels, zoom, tooltips, legends, keys.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inView, pixel, plotBox, show } from "./browser.mjs";
import { example, valueAt } from "./example.mjs";
import { load } from "./load.mjs";
import { onPage, open, report } from "./on-page.mjs";

const { shade } = await load("look/palette.ts");
const { drawOver } = await load("charts/marks.ts");
const units = await load("units.ts");

/** The horizontal position of point `i` in a plot that shows everything. */
const across = (i) => (i + 0.5) / 600;
/** The height of the stack up to and including `last`, at point `i`. */
const stackedTo = (last, i) =>
    Array.from({ length: last + 1 }, (_, s) => valueAt(s, i)).reduce((a, b) => a + b, 0);

onPage("a stack's areas have their colours where their values are", async (page) => {
    await show(page, "#chart-activity", "canvas");
    // The curves are flat there, without marks; the scale ends 6 % above the maximum sum.
    const at = 233;
    const most = Math.max(8, ...report.axes.main.seconds.map((s, i) => (s ? stackedTo(13, i) : 0)));
    const down = (value) => 1 - value / (most * 1.06);
    for (const [series, kind, index, members] of [
        [0, "cpu", 0, 1],
        [1, "io", 0, 4],
        [2, "lwlock", 0, 3],
        [3, "lock", 0, 2],
    ]) {
        const middle = stackedTo(series, at) - valueAt(series, at) / 2;
        assert.equal(
            await pixel(page, "chart-activity", across(at), down(middle)),
            shade(kind, index, members, "light"),
        );
    }
    const above = await pixel(page, "chart-activity", across(at), down(stackedTo(13, at) + 0.6));
    assert.notEqual(above, shade("other", 1, 2, "light"), "nothing is drawn above the sum");
});

test("a step that begins before the range in view is seen whole", async () => {
    const few = example({ points: 10, step: 1 });
    // As in a recording, whose times are rounded.
    few.measured.from += 0.0004;
    few.charts.find(({ id }) => id === "activity").series[0].values[0] = 100;
    const page = await open(few);
    await show(page, "#chart-activity", "canvas");
    assert.equal(await pixel(page, "chart-activity", 0.05, 0.5), shade("cpu", 0, 1, "light"));
    assert.equal(await pixel(page, "chart-activity", 0.05, 0.02), "none", "the scale ends above it");
    await page.context().close();
});

onPage("a gap has no curve and shows its reason", async (page) => {
    await show(page, "#chart-activity", "canvas");
    const colours = new Set();
    for (let down = 0.3; down < 0.99; down += 0.01)
        colours.add(await pixel(page, "chart-activity", across(375), down));
    for (const kind of ["cpu", "io", "lwlock", "lock"])
        assert.ok(!colours.has(shade(kind, 0, 4, "light")), kind);
    const box = await plotBox(page, "chart-activity");
    await page.mouse.move(box.x + across(375) * box.width, box.y + 60);
    assert.match(
        await page.locator("#chart-activity .tooltip").innerText(),
        /not measured: the server was down/,
    );
});

onPage("lines are drawn where their values are, and not in the gap", async (page) => {
    await show(page, "#chart-read_handle", "canvas");
    const green = shade("cpu", 0, 1, "light");
    const find = (part) =>
        page.evaluate(
            ([part, green]) => {
                const canvas = document.querySelector("#chart-read_handle canvas");
                const over = document.querySelector("#chart-read_handle .u-over");
                const x = Math.round(over.offsetLeft + part * over.clientWidth);
                const column = canvas.getContext("2d").getImageData(x, 0, 3, canvas.height).data;
                const wanted = [1, 3, 5].map((at) => parseInt(green.slice(at, at + 2), 16));
                const rows = [];
                for (let i = 0; i < column.length; i += 4) {
                    if (wanted.every((v, k) => Math.abs(column[i + k] - v) < 30))
                        rows.push(Math.floor(i / 12) - over.offsetTop);
                }
                return { rows, height: over.clientHeight };
            },
            [part, green],
        );
    const at = 233;
    const { rows, height } = await find(across(at));
    const most = Math.max(...report.charts[2].series.flatMap((s) => s.values)) * 1.06;
    const wanted = height * (1 - valueAt(0, at) / most);
    assert.ok(
        rows.some((row) => Math.abs(row - wanted) <= 3),
        `the line is at ${rows}, not at ${wanted}`,
    );
    assert.deepEqual((await find(across(375))).rows, []);
});

onPage("dragging zooms all charts and their tables, a double click shows everything", async (page) => {
    // Both are drawn already, so both must follow.
    await show(page, "#chart-read_handle", "canvas");
    await show(page, "#chart-activity", "canvas");
    const whole = await inView(page);
    assert.match(whole, /2026-11-21 11:00:00 – 11:10:00 UTC\+1/);
    assert.match(whole, /10:00:00 – 10:10:00 UTC/);
    const box = await plotBox(page, "chart-activity");
    await page.mouse.move(box.x + 0.25 * box.width, box.y + 100);
    await page.mouse.down();
    await page.mouse.move(box.x + 0.4 * box.width, box.y + 120, { steps: 4 });
    await page.mouse.up();
    assert.match(await inView(page), /11:02:(29|30) – 11:0(3:59|4:00)/);
    await page.mouse.move(box.x + 3, box.y + 50);
    assert.match(await page.locator("#chart-activity .tooltip").innerText(), /11:02:(29|30) UTC\+1/);
    await show(page, "#chart-read_handle", "canvas");
    // The other chart shows the same range, whose left edge is 150 s after the start.
    const other = await plotBox(page, "chart-read_handle");
    await page.mouse.move(other.x + 3, other.y + 50);
    assert.match(
        await page.locator("#chart-read_handle .tooltip").innerText(),
        /11:02:(29|30) UTC\+1\s+10:02:(29|30) UTC/,
    );
    await page.locator("#chart-read_handle button", { hasText: "Table" }).click();
    assert.match(await page.locator("#chart-read_handle caption").innerText(), /^9[0-2] points in view/);
    await page.mouse.dblclick(other.x + 100, other.y + 50);
    assert.equal(await inView(page), whole);
});

onPage("the brush zooms by mouse and by keys", async (page) => {
    const box = await page.locator(".overview").boundingBox();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 10);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.75, box.y + 12, { steps: 5 });
    await page.mouse.up();
    assert.match(await inView(page), /11:0(4:5[89]|5:0[0-2]) – 11:07:(2[7-9]|3[0-3])/);
    const grip = page.locator(".grip.from");
    await grip.focus();
    const before = Number(await grip.getAttribute("aria-valuenow"));
    await page.keyboard.press("ArrowRight");
    assert.equal(Number(await grip.getAttribute("aria-valuenow")), before + 6);
    await page.locator(".toolbar button", { hasText: "All" }).click();
    assert.match(await inView(page), /11:00:00 – 11:10:00/);
});

onPage("the tooltip shows the figures of its point, in all linked charts", async (page) => {
    await show(page, "#chart-activity", "canvas");
    const box = await plotBox(page, "chart-activity");
    await page.mouse.move(box.x + across(100) * box.width, box.y + 80);
    const tooltip = await page.locator("#chart-activity .tooltip").innerText();
    // A pixel is about a second wide.
    const [, local, utc] = tooltip.match(/^11:(\d\d:\d\d) UTC\+1\s+10:(\d\d:\d\d) UTC/);
    assert.equal(local, utc);
    const at = Number(local.slice(0, 2)) * 60 + Number(local.slice(3));
    assert.ok(Math.abs(at - 100) <= 1, local);
    assert.match(tooltip, new RegExp(`cpu\\s+${units.figure(valueAt(0, at), "sessions")}`));
    assert.match(tooltip, new RegExp(`all\\s+${units.figure(stackedTo(13, at), "sessions")}`));
    assert.match(tooltip, /checkpoint: 58 s/);
    // The legend of another chart shows the same time.
    const legend = page.locator("#chart-read_handle .legend");
    await show(page, "#chart-read_handle", "canvas");
    const other = await plotBox(page, "chart-read_handle");
    await page.mouse.move(other.x + across(300) * other.width, other.y + 80);
    await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    const clock = (await legend.innerText()).match(/11:(\d\d):(\d\d)/);
    const there = Number(clock[1]) * 60 + Number(clock[2]);
    assert.match(
        await legend.innerText(),
        new RegExp(`handle\\s+${units.figure(valueAt(0, there), "sessions")}`),
    );
    const commands = units.figure(valueAt(0, there) * 1000, "per_second");
    assert.ok((await page.locator("#chart-throughput .legend").innerText()).includes(commands));
});

onPage("the legend hides curves, and its shares are of the visible ones", async (page) => {
    await show(page, "#chart-activity", "canvas");
    const entry = (name) => page.locator("#chart-activity .legend button", { hasText: name });
    const row = (name) => page.locator("#chart-activity .legend tr", { hasText: name });
    const share = async (name) => (await row(name).innerText()).match(/([\d.]+)\s%/)?.[1];
    const before = Number(await share("IO:WALSync"));
    await entry(/^cpu$/).click();
    assert.equal(await entry(/^cpu$/).getAttribute("aria-pressed"), "false");
    assert.ok(Number(await share("IO:WALSync")) > before);
    // Without cpu the stack begins with the next series.
    assert.equal(await pixel(page, "chart-activity", across(233), 0.985), shade("io", 0, 4, "light"));
    await entry(/^cpu$/).click();
    // The other series are pale while the pointer is on its name.
    await page.mouse.move(0, 300);
    assert.equal(await pixel(page, "chart-activity", across(233), 0.985), shade("cpu", 0, 1, "light"));
    assert.equal(Number(await share("IO:WALSync")), before);
});

onPage("keys move along a chart, zoom and reset", async (page) => {
    await show(page, "#chart-activity", "canvas");
    await page.locator("#chart-activity .plot").focus();
    await page.keyboard.press("ArrowRight");
    const first = await page.locator("#chart-activity .tooltip .when").innerText();
    await page.keyboard.press("ArrowRight");
    const second = await page.locator("#chart-activity .tooltip .when").innerText();
    assert.notEqual(first, second);
    await page.keyboard.press("Escape");
    await page.keyboard.press("+");
    assert.match(await inView(page), /11:02:30 – 11:07:30/);
    await page.keyboard.press("Shift+ArrowRight");
    assert.match(await inView(page), /11:03:45 – 11:08:45/);
    await page.keyboard.press("0");
    assert.match(await inView(page), /11:00:00 – 11:10:00/);
});

onPage("a heat map is darkest where the counts are highest", async (page) => {
    await show(page, "#heatmap-latency", "canvas");
    const light = (colour) =>
        colour === "none" ? 255 : parseInt(colour.slice(1, 3), 16) + parseInt(colour.slice(3, 5), 16);
    const column = [];
    for (let down = 0.02; down < 1; down += 0.02)
        column.push(light(await pixel(page, "heatmap-latency", 0.305, down)));
    const darkest = column.indexOf(Math.min(...column)) / column.length;
    assert.ok(darkest > 0.4 && darkest < 0.85, `darkest at ${darkest}`);
    const box = await plotBox(page, "heatmap-latency");
    await page.mouse.move(box.x + 0.305 * box.width, box.y + darkest * box.height);
    const tooltip = await page.locator("#heatmap-latency .tooltip").innerText();
    const all = report.heatmaps[0].columns[18].slice(1).reduce((a, b) => a + b, 0);
    assert.match(tooltip, new RegExp(`all\\s+${units.count(all).replace(".", "\\.")}`));
    assert.match(tooltip, /median up to/);
});

onPage("no label of an axis is cut", async (page) => {
    await show(page, "#chart-activity", "canvas");
    await page.evaluate(() => {
        const { fillText } = CanvasRenderingContext2D.prototype;
        window.written = [];
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
            const { e } = this.getTransform();
            const width = this.measureText(text).width;
            const left = x - { left: 0, start: 0, center: width / 2, right: width, end: width }[this.textAlign] + e;
            const turned = this.getTransform().b !== 0;
            if (!turned && String(text) !== "") window.written.push([text, left, left + width, this.canvas.width]);
            fillText.call(this, text, x, y);
        };
    });
    // At some of these widths the last tick is at the right edge.
    for (let width = 1200; width < 1280; width += 8) {
        await page.setViewportSize({ width, height: 900 });
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    }
    const written = await page.evaluate(() => window.written);
    assert.ok(written.length > 50, "the charts were drawn again");
    const cut = written.filter(([, left, right, width]) => left < -1 || right > width + 1);
    assert.deepEqual(cut, []);
});

test("a mark is visible at the top however short it was", () => {
    globalThis.devicePixelRatio = 1;
    const bars = [];
    const pen = new Proxy({}, { get: (_, name) => (name === "fillRect" ? (...bar) => bars.push(bar) : () => {}), set: () => true });
    const u = { ctx: pen, bbox: { left: 60, top: 10, width: 800, height: 200 }, valToPos: (time) => 60 + time };
    const mark = (time, until) => ({ time, until, kind: "checkpoint", text: "" });
    drawOver(u, { marks: [mark(100, 100.02), mark(800, 800), mark(300, 400)], gaps: [] }, { checkpoint: "#000" });
    delete globalThis.devicePixelRatio;
    const [short, last, long] = bars;
    assert.ok(short[2] >= 6 && short[0] < 160 && short[0] + short[2] > 160, String(short));
    assert.ok(last[2] >= 6 && last[0] + last[2] <= 860, String(last));
    assert.deepEqual([long[0], long[2]], [360, 100]);
});
