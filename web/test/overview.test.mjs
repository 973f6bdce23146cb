// SPDX-License-Identifier: PostgreSQL
// The first screen: the verdict, the chart, what took the most time in the selected part, the findings.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inView, plotBox, show } from "./browser.mjs";
import { BEGIN, example, valueAt } from "./example.mjs";
import { load } from "./load.mjs";
import { onPage, open, report } from "./on-page.mjs";

const { listsOf, sumsOf } = await load("rankings.ts");
const { figure } = await load("units.ts");

const lists = listsOf(report);
const end = report.measured.to;
const by = (id) => lists.find((list) => list.id === id);
const near = (a, b) => assert.ok(Math.abs(a - b) <= 1e-9 * Math.max(a, b), `${a} and ${b}`);

test("the time of a part is that of the points whose middle is in it", () => {
    assert.deepEqual(lists.map(({ id }) => id), ["activities", "statements", "sessions"]);
    const range = { from: BEGIN + 100, to: BEGIN + 110 };
    const { sums, measured } = sumsOf(by("activities"), end, range);
    near(measured, 10);
    const cpu = sums.find(({ name }) => name === "cpu");
    near(cpu.seconds, Array.from({ length: 10 }, (_, i) => valueAt(0, 100 + i)).reduce((a, b) => a + b));
    assert.ok(sums.every((sum, i) => i === 0 || sums[i - 1].seconds >= sum.seconds), "most time first");
    // A point that is in the range with less than half does not count, one with more does.
    near(sumsOf(by("activities"), end, { from: BEGIN + 100.6, to: BEGIN + 110.4 }).measured, 9);
    near(sumsOf(by("activities"), end, { from: BEGIN + 100.4, to: BEGIN + 110.6 }).measured, 11);
});

test("the parts add up to the whole, with nothing in a gap", () => {
    for (const list of lists) {
        const all = sumsOf(list, end, { from: BEGIN, to: end });
        const parts = [0, 150, 420, 600].map((at) => BEGIN + at);
        const measured = [0, 1, 2].map((i) => sumsOf(list, end, { from: parts[i], to: parts[i + 1] }).measured);
        near(measured.reduce((a, b) => a + b), all.measured);
        near(all.measured, 570);
    }
    const gap = sumsOf(by("statements"), end, { from: report.gaps[0].from, to: report.gaps[0].to });
    assert.deepEqual(gap, { sums: [], measured: 0 });
});

test("statements that a report has no history of are those of the whole time", () => {
    const sessions = {
        ...report.tables[0],
        id: "active_sessions",
        title: "Active sessions",
        columns: [{ key: "application" }, { key: "busy_seconds" }],
        rows: [["shop", 3]],
        classes: undefined,
        details: undefined,
    };
    const without = listsOf({ ...report, rankings: [], tables: [...report.tables, sessions] });
    const statements = without.find(({ id }) => id === "statements");
    assert.equal(statements.axis, null);
    const { sums, measured } = sumsOf(statements, end, { from: BEGIN, to: BEGIN + 1 });
    assert.equal(measured, null);
    assert.equal(sums[0].seconds, 900);
    assert.deepEqual(without.map(({ title }) => title), ["Waits and CPU", "Statements", "Sessions"]);
});

onPage("the first screen has the verdict, the chart and the lists, in this order", async (page) => {
    await show(page, "#chart-activity", "canvas");
    await page.evaluate(() => scrollTo(0, 0));
    const tops = await page.evaluate(() =>
        ["#verdict", "#chart-activity .u-over", "#ranking-activities", "#findings"].map(
            (selector) => document.querySelector(selector).getBoundingClientRect().top,
        ),
    );
    assert.deepEqual(tops, [...tops].sort((a, b) => a - b));
    assert.ok(tops[2] < 800, `the lists begin on the first screen: ${tops[2]}`);
    const lefts = await page.locator("table.ranking").evaluateAll((all) => all.map((one) => one.getBoundingClientRect()));
    assert.equal(lefts.length, 3);
    assert.ok(lefts.every(({ top }) => top === lefts[0].top), "beside each other");
    assert.match(await page.locator("#chart-activity .mark-key").innerText(), /checkpoint\s*slow operation\s*new plan of a statement\s*server start or end\s*change of level\s*not measured/);
});

onPage("dragging in the chart selects a part, and the lists are of that part", async (page) => {
    await show(page, "#chart-activity", "canvas");
    const box = await plotBox(page, "chart-activity");
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width * 0.8, y);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.9, y, { steps: 4 });
    await page.mouse.up();
    await page.locator("#rankings .span", { hasText: "Selected" }).waitFor();
    assert.match(await inView(page), /11:0(7:59|8:00) – 11:0(8:59|9:00)/);
    const shown = async (id) =>
        page.locator(`#ranking-${id} tbody tr:has(th)`).evaluateAll((rows) =>
            rows.map((row) => [row.querySelector("span").textContent, row.cells[1].textContent]),
        );
    const range = await page.evaluate(() => document.querySelector("#rankings .command code").textContent.match(/\d{4}-\S+Z/g));
    const [from, to] = range.map((time) => Date.parse(time) / 1000);
    // The mouse was between points; a report of this time has whole ones.
    const { time } = report.axes.main;
    assert.ok(time.includes(from) && time.includes(to), `${from} ${to}`);
    for (const id of ["activities", "statements", "sessions"]) {
        const { sums, measured } = sumsOf(by(id), end, { from, to });
        const expected = sums.slice(0, 8).map(({ name, seconds }) => [name, figure(seconds / measured, "sessions")]);
        assert.deepEqual(await shown(id), expected, id);
    }
    assert.equal((await shown("statements"))[0][0], "SELECT late FROM t", "which has most time only there");
    await page.locator(".toolbar button", { hasText: "All" }).click();
    await page.locator("#rankings .span", { hasText: "The whole time" }).waitFor();
    assert.notEqual((await shown("statements"))[0][0], "SELECT late FROM t");
});

onPage("a click in the chart opens that second: who did what then", async (page) => {
    await show(page, "#chart-activity", "canvas");
    const box = await plotBox(page, "chart-activity");
    const y = box.y + box.height / 2;
    const x = box.x + box.width * 0.5025;
    const span = page.locator("#rankings .span");
    const before = await inView(page);
    await page.mouse.click(x, y);
    await span.filter({ hasText: "Open: " }).waitFor();
    assert.match(await span.innerText(), /^Open: \S+ 11:05:0\d, 1\ss$/);
    assert.equal(await inView(page), before, "the charts stay");
    const at = Number((await span.innerText()).match(/11:05:(\d\d)/)[1]) + 300;
    const range = { from: BEGIN + at, to: BEGIN + at + 1 };
    const rows = page.locator("#ranking-activities tbody tr:has(th)");
    const { sums, measured } = sumsOf(by("activities"), end, range);
    near(measured, 1);
    assert.equal(await rows.first().locator("span").innerText(), sums[0].name);
    assert.equal(await rows.first().locator("td").first().innerText(), figure(sums[0].seconds, "sessions"));

    // The keys open the next one, and close it.
    await page.locator("#chart-activity .plot").focus();
    await page.mouse.move(0, 0);
    for (const key of ["ArrowRight", "ArrowRight", "ArrowRight", "Enter"]) await page.keyboard.press(key);
    await span.filter({ hasText: `11:05:${String(at - 300 + 1).padStart(2, "0")}` }).waitFor();
    for (const key of ["Escape", "Escape"]) await page.keyboard.press(key);
    await span.filter({ hasText: "The whole time" }).waitFor();
    await page.mouse.click(x, y);
    await page.locator("#rankings").getByRole("button", { name: "Close" }).click();
    await span.filter({ hasText: "The whole time" }).waitFor();
});

test("a moment shorter than the points of a list is that of its point", () => {
    const coarse = { id: "x", section: "x", title: "X", axis: { time: [0, 10, 20], seconds: [10, 10, 5] }, rows: [] };
    assert.equal(sumsOf(coarse, 25, { from: 12, to: 13 }).measured, 10);
    assert.equal(sumsOf(coarse, 25, { from: 21, to: 22 }).measured, 5);
    assert.equal(sumsOf(coarse, 25, { from: 4, to: 16 }).measured, 20);
});

onPage("the chart is sliced by wait, by statement or by session", async (page) => {
    await show(page, "#chart-activity", "canvas");
    const choice = page.getByLabel("Slice the chart by");
    const names = () => page.locator("#chart-activity .legend tbody button").allInnerTexts();
    for (const id of ["statements", "sessions"]) {
        await choice.selectOption(id);
        const { rows, axis } = report.rankings.find((one) => one.id === id);
        const [largest] = rows;
        const shown = (await names()).reverse();
        assert.equal(shown[0], largest.name);
        assert.equal(shown.length, Math.min(rows.length, 9));
        // The mean of the whole time.
        const sum = (all) => all.reduce((a, b) => a + b);
        const mean = figure(sum(largest.seconds) / sum(axis.seconds), "sessions");
        assert.equal(await page.locator("#chart-activity .legend tbody tr").last().locator("td").first().innerText(), mean);
        assert.equal(await page.locator("#chart-activity canvas").count(), 1);
    }
    await choice.selectOption("waits");
    assert.ok((await names()).includes("cpu"));
});

onPage("nothing moves while the page is used", async (page) => {
    await show(page, "#chart-activity", "canvas");
    await page.evaluate(() => {
        window.shifts = 0;
        new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) window.shifts += entry.value;
        }).observe({ type: "layout-shift" });
    });
    const height = () => page.locator("#rankings .lists").evaluate((it) => it.offsetHeight);
    const before = await height();
    await page.locator("#chart-activity .plot").focus();
    for (const key of ["+", "+", "Shift+ArrowRight", "Escape"]) await page.keyboard.press(key);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    assert.equal(await height(), before);
    assert.ok((await page.evaluate(() => window.shifts)) < 0.05);
});

onPage(
    "a finding has its remedy at reading size, its commands can be copied, and its evidence is folded",
    async (page) => {
        await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
        const finding = page.locator("#findings li.warning").first();
        assert.ok(await finding.locator(".what").isVisible());
        const size = (selector) => finding.locator(selector).evaluate((it) => parseFloat(getComputedStyle(it).fontSize));
        assert.equal(await size(".remedy"), await size(".what"));
        assert.ok(await finding.locator("li", { hasText: "holds a lock" }).isHidden());
        await finding.locator("summary").click();
        assert.ok(await finding.locator("li", { hasText: "holds a lock" }).isVisible());
        // The button says so for two seconds only.
        const copied = finding.getByRole("button", { name: "Copied" }).waitFor();
        await finding.getByRole("button", { name: "Copy" }).click();
        await copied;
        assert.equal(
            await page.evaluate(() => navigator.clipboard.readText()),
            report.findings[0].remedy.sql[0],
        );
    },
);

onPage("paper has the evidence", async (page) => {
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.equal(await page.locator("#findings details:not([open])").count(), 0);
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    assert.equal(await page.locator("#findings details[open]").count(), 0);
});

test("lists of a day with 500 statements are summed in less script time than a page draws", async () => {
    const day = example({ points: 1500, step: 57.6, statements: 500 });
    const page = await open(day);
    await show(page, "#chart-activity", "canvas");
    await page.locator("#chart-activity .plot").focus();
    const before = await page.scriptTime();
    await page.keyboard.press("+");
    await page.locator("#rankings .span", { hasText: "Selected" }).waitFor();
    // No time limit, because other processes may use the CPU; docs/results.md has the figures.
    console.log(`script for a selection in a day: ${((await page.scriptTime()) - before).toFixed(0)} ms`);
    assert.equal(await page.locator("#ranking-statements tbody tr:has(th)").count(), 8);
    await page.context().close();
});

test("what to do is shown whole below the verdict, also in a narrow window", async () => {
    const long = "SELECT pg_terminate_backend(4304). ".repeat(12);
    const findings = example().findings.map((one) => (one.remedy ? { ...one, remedy: { ...one.remedy, text: long } } : one));
    const page = await open({ ...example(), findings }, { viewport: { width: 390, height: 844 } });
    const { inner, outer, text } = await page.locator("#advice").evaluate((it) => ({
        inner: it.scrollHeight,
        outer: it.clientHeight,
        text: it.innerText,
    }));
    assert.ok(text.includes(long.trim()));
    assert.ok(inner <= outer + 1, `${inner} of ${outer}`);
    await page.context().close();
});

test("in a narrow window, tables begin with figures, and no row is empty", async () => {
    const short = example();
    const activity = short.charts.find(({ id }) => id === "activity");
    activity.series = activity.series.slice(0, 3);
    const page = await open(short, { viewport: { width: 390, height: 844 } });
    await show(page, "#ranking-activities");
    assert.equal(await page.locator("#ranking-activities tbody tr").count(), 3);
    for (const part of [".span", ".command"]) {
        const { inner, outer, width } = await page.locator(`#rankings ${part}`).evaluate((it) => ({
            inner: it.scrollHeight,
            outer: it.clientHeight,
            width: it.scrollWidth - it.clientWidth,
        }));
        assert.ok(inner <= outer + 1 && width <= 0, `${part} is cut: ${inner} of ${outer}, ${width}`);
    }
    await show(page, "#table-statements");
    const time = page.locator('#table-statements th[data-key="seconds"]');
    const { x, width } = await time.boundingBox();
    assert.ok(x + width <= 390, `the time is out of sight, at ${x}`);
    assert.equal(await page.locator('#table-statements th[data-key="database"]').isVisible(), false);
    const menu = page.locator(".table", { has: page.locator("#table-statements") }).locator(".columns");
    await menu.locator("summary").click();
    const box = await menu.locator("> div").boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 390, `the menu is out of sight: ${JSON.stringify(box)}`);
    await menu.getByText("Database").click();
    assert.equal(await page.locator('#table-statements th[data-key="database"]').isVisible(), true);
    await page.context().close();
});
