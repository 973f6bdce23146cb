// SPDX-License-Identifier: PostgreSQL
// Tests the page of a comparison in a real browser: time since the start of each side, colours of the sides, pairs of bars.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inView, pixel, show } from "./browser.mjs";
import { example } from "./example.mjs";
import { load } from "./load.mjs";
import { open } from "./on-page.mjs";

const { shade } = await load("look/palette.ts");
const { marks } = await load("charts/pairs.ts");
const { elapsed } = await load("clock.ts");

const SECONDS = 40;

/** Two sides of 40 s; B's latency is 12 times A's. */
function comparison() {
    const axis = { time: Array.from({ length: SECONDS }, (_, i) => i), seconds: new Array(SECONDS).fill(1) };
    const line = (name, side, value) => ({
        name,
        class: null,
        shade: 0,
        side,
        values: new Array(SECONDS).fill(value),
    });
    const bar = (value, half_width) => ({ value, half_width });
    return {
        ...example({ points: 10, statements: 1 }),
        elapsed: true,
        axes: { main: axis, fine: { time: [], seconds: [] } },
        charts: [
            {
                id: "rate",
                section: "course",
                title: "Commits",
                note: null,
                kind: "lines",
                axis: "main",
                unit: "per_second",
                reference: null,
                series: [line("A", "a", 50), line("B", "b", 100)],
            },
        ],
        pairs: [
            {
                id: "means",
                title: "Mean time of a call",
                note: null,
                unit: "seconds",
                rows: [
                    { name: "select <i>1</i>", a: bar(0.001, null), b: bar(0.012, 0.002) },
                    { name: "new", a: null, b: bar(0.5, 0.1) },
                ],
            },
        ],
        heatmaps: [],
        tables: [],
        texts: [],
        marks: [],
        gaps: [],
        sections: [
            { id: "course", title: "Over time", charts: ["rate"], pairs: ["means"], heatmaps: [], tables: [], texts: [] },
        ],
        findings: [],
    };
}

for (const scheme of ["light", "dark"]) {
    test(`both sides are drawn from their beginning on, in colours of their own (${scheme})`, async () => {
        const page = await open(comparison(), { colorScheme: scheme });
        await show(page, "#chart-rate", "canvas");
        assert.match(await inView(page), /^0\u00a0s – 40\u00a0s/);
        assert.equal(await page.locator(".toolbar button", { hasText: /Local|UTC/ }).count(), 0);
        // Lines are 1.5 pixels wide: search for their colours around their positions; the axis ends at 106.
        const colours = async (value) => {
            const found = [];
            for (let by = -0.012; by <= 0.012; by += 0.003)
                found.push(await pixel(page, "chart-rate", 0.5, 1 - value / 106 + by));
            return found;
        };
        assert.ok((await colours(50)).includes(shade("lwlock", 0, 1, scheme)), await colours(50));
        assert.ok((await colours(100)).includes(shade("io", 0, 1, scheme)), await colours(100));
        await page.locator("#chart-rate .u-over").hover({ position: { x: 100, y: 50 } });
        const box = page.locator("#chart-rate .tooltip");
        assert.match(await box.innerText(), /^\d+\u00a0s since the start\s+A\s+50\/s\s+B\s+100\/s/);
        assert.deepEqual(page.seen, { requests: [], violations: [], errors: [] });
        await page.context().close();
    });
}

test("each pair of bars has an axis with units, and the figures with their errors", async () => {
    const page = await open(comparison());
    await show(page, "#pairs-means", ".rows");
    const rows = page.locator("#pairs-means li");
    assert.equal(await rows.nth(0).locator("code").innerText(), "select <i>1</i>");
    const ticks = (row) => rows.nth(row).locator(".ticks span").allInnerTexts();
    assert.deepEqual(await ticks(0), ["0", "5\u00a0ms", "10\u00a0ms", "15\u00a0ms"]);
    assert.deepEqual(await ticks(1), ["0", "200\u00a0ms", "400\u00a0ms", "600\u00a0ms"]);
    const wide = (row, what) => rows.nth(row).locator(what).evaluate((it) => it.getBoundingClientRect().width);
    const track = await wide(0, ".track >> nth=0");
    assert.ok(Math.abs((await wide(0, ".fill.b")) / track - 12 / 15) < 0.01);
    assert.ok(Math.abs((await wide(0, ".fill.a")) / track - 1 / 15) < 0.01);
    assert.ok(Math.abs((await wide(0, ".error")) / track - 4 / 15) < 0.01);
    assert.deepEqual(await rows.nth(0).locator(".reading").allInnerTexts(), [
        "1\u00a0ms",
        "12\u00a0ms ± 2\u00a0ms",
    ]);
    assert.equal(await rows.nth(1).locator(".fill").count(), 1, "nothing is drawn where there is none");
    assert.equal(await rows.nth(1).locator(".track").first().getAttribute("title"), "A: none");
    assert.deepEqual(page.seen, { requests: [], violations: [], errors: [] });
    await page.context().close();
});

test("an axis ends at its maximum or above, in steps of 1, 2 or 5", () => {
    assert.deepEqual(marks(0.014), [0, 0.005, 0.01, 0.015]);
    assert.deepEqual(marks(4), [0, 1, 2, 3, 4]);
    assert.deepEqual(marks(0), [0, 1]);
});

test("times since the beginning have units", () => {
    const plain = (time) => elapsed(time).replace("\u00a0", " ");
    assert.deepEqual([0, 2.5, 119, 125, 7325].map(plain), ["0 s", "2.5 s", "119 s", "2:05 min", "2:02:05 h"]);
});
