// SPDX-License-Identifier: PostgreSQL
// Tests the page of a statement in a real browser: links to it, its figures for a selected span, keyboard, narrow windows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { show } from "./browser.mjs";
import { BEGIN, callsAt, example, HOSTILE, statementKey } from "./example.mjs";
import { load } from "./load.mjs";
import { onPage, open, report } from "./on-page.mjs";

const { spansOf } = await load("statement/history.ts");

test("a plan is drawn while it was noted or, without executions, from first to last", () => {
    const axis = { time: [0, 10, 20, 30], seconds: [10, 10, 10, 10] };
    const plan = { plan: "1", first: 3, last: 33 };
    assert.deepEqual(spansOf({ ...plan, noted: [1, 2, 0, 1] }, axis, 40), [
        { from: 0, to: 20 },
        { from: 30, to: 40 },
    ]);
    assert.deepEqual(spansOf(plan, axis, 40), [{ from: 3, to: 33 }]);
});

const section = (page) => page.locator("#statement");
const fact = (page, name) => page.locator(`#statement-range dt:text-is("${name}") + dd`).innerText();

/** The same as the page shows, with its spaces. */
const plain = (text) => text.replace(/\u00a0/g, " ");

function sums(i, from, to) {
    const { axis, statements } = report.histories;
    const inside = axis.time.flatMap((time, point) => (time + 5 >= from && time + 5 < to ? [point] : []));
    const calls = inside.reduce((sum, point) => sum + statements[i].calls[point], 0);
    return { calls, inside };
}

onPage("a statement's page is linked from the table, the first screen and the findings, and Esc goes back", async (page) => {
    await show(page, "#table-statements");
    await page.locator("#table-statements tbody tr").nth(2).getByRole("link", { name: "history" }).press("Enter");
    assert.equal(await section(page).locator("pre code").first().innerText(), HOSTILE);
    assert.ok(await page.locator("#head").isHidden());
    assert.ok(await page.locator("#table-waits").isHidden());
    assert.ok(await page.locator(".toolbar").isVisible());
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), "H1");
    await page.keyboard.press("Escape");
    await page.locator("#head").waitFor();
    assert.equal(await section(page).count(), 0);
    for (const link of ["#findings a.statement-link", "#ranking-statements a[href^='#statement-']"]) {
        await page.locator(link).first().press("Enter");
        await section(page).waitFor();
        await page.goBack();
        await section(page).waitFor({ state: "detached" });
        assert.ok(await page.locator("#head").isVisible(), link);
    }
});

onPage("its figures are those of the selected span", async (page) => {
    await page.evaluate((key) => (location.hash = `#statement-${key}`), statementKey(1));
    await section(page).locator("figure canvas").first().waitFor();
    const whole = sums(1, BEGIN, BEGIN + 600);
    assert.equal(plain(await fact(page, "Calls")).split(",").slice(0, -1).join(","), whole.calls.toLocaleString("en-US"));
    // The end of the brush moves to the left: one percent of the time for each key.
    const grip = page.locator(".grip.to");
    for (let i = 0; i < 50; i++) await grip.press("ArrowLeft");
    const { from, to } = await page.evaluate(() => {
        const [from, to] = [...document.querySelectorAll(".grip")].map((grip) => Number(grip.getAttribute("aria-valuenow")));
        return { from, to };
    });
    assert.ok(to < BEGIN + 560, String(to - BEGIN));
    const part = sums(1, from, to);
    assert.ok(part.calls < whole.calls);
    assert.equal(plain(await fact(page, "Calls")).split(",").slice(0, -1).join(","), part.calls.toLocaleString("en-US"));
    assert.equal(part.inside.reduce((sum, point) => sum + (report.histories.axis.seconds[point] ? callsAt(1, point) : 0), 0), part.calls);
    // Before the lock, a call takes half a millisecond, and 0.5 ms is also its legend's mean.
    if (to <= BEGIN + 450) assert.match(plain(await fact(page, "Mean")), /^500 us a call$/);
});

onPage("it shows plans over time, distribution, activities and SQL to run", async (page) => {
    await page.evaluate((key) => (location.hash = `#statement-${key}`), statementKey(0));
    await section(page).locator("figure canvas").first().waitFor();
    assert.equal(await section(page).locator("figure.chart").count(), 3);
    const plans = section(page).locator(".plans li");
    assert.deepEqual(await plans.locator(".name").allInnerTexts(), ["Plan 71", "Plan 72"]);
    const boxes = await plans.locator("i:visible").evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().left));
    assert.ok(Math.max(...boxes) > Math.min(...boxes));
    assert.match(await plans.nth(1).innerText(), /new 2026-11-21 11:07/);
    assert.match(await section(page).locator("#statement-whole").innerText(), /executions, by duration/);
    assert.match(await section(page).locator("#statement-whole").innerText(), /IO:WALSync\s+commit/);
    assert.match(await section(page).locator("#statement-example").innerText(), /PREPARE example AS\s+UPDATE t0/);
    // The legend's mean counts each call: 0.5 ms on the CPU, and 1 ms of lock in the last quarter.
    const legend = plain(await section(page).locator("#chart-statement-split .legend").innerText());
    const { calls } = report.histories.statements[0];
    const total = (values) => values.reduce((sum, value) => sum + value, 0);
    const lock = (1000 * total(calls.slice(45))) / total(calls);
    assert.match(legend, new RegExp(`Lock\\s+${lock.toFixed(0)} us\\s+[\\d.]+ %\\s+CPU\\s+500 us`));
});

onPage("a statement without a history says so, and the next one is a key away", async (page) => {
    await page.evaluate((key) => (location.hash = `#statement-${key}`), statementKey(9));
    await section(page).waitFor();
    await section(page).getByRole("link", { name: "Next" }).press("Enter");
    assert.match(await section(page).innerText(), /no history of this statement, only of the 10 statements/);
    assert.equal(await section(page).locator("figure.chart").count(), 0);
    assert.match(await section(page).locator("h1").innerText(), new RegExp(`^Statement ${statementKey(10).split(".")[0]}`));
    // Back leads to the report, not to the statement before.
    await page.getByRole("button", { name: "← Report" }).click();
    await page.locator("#head").waitFor();
    assert.equal(await section(page).count(), 0);
});

for (const width of [360, 390, 1280]) {
    onPage(
        `a statement's page is not wider than a window of ${width} pixels`,
        async (page) => {
            for (const i of [0, 2]) {
                await page.evaluate((key) => (location.hash = `#statement-${key}`), statementKey(i));
                await section(page).locator("figure canvas").first().waitFor();
                const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
                assert.ok(wide <= 0, `${wide} pixels too wide`);
            }
        },
        { viewport: { width, height: 844 } },
    );
}

test("the slowest executions have their parameters as text, and times in the selected zone", async () => {
    const report = example();
    const hostile = "$1 = '42', $2 = '<img src=x onerror=alert(1)>'";
    const { details } = report.tables.find(({ id }) => id === "statements");
    details[0].slow_executions = [
        [BEGIN + 60.5, 0.512, hostile],
        [BEGIN + 7, 0.0375, "$1 = NULL"],
    ];
    const page = await open(report, {}, undefined, `#statement-${statementKey(0)}`);
    const rows = section(page).locator("#statement-executions tbody tr");
    await rows.first().waitFor();
    const cells = async (i) => (await rows.nth(i).locator("td").allInnerTexts()).map(plain);
    assert.deepEqual(await cells(0), ["512 ms", "2026-11-21 11:01:00", hostile]);
    assert.deepEqual(await cells(1), ["37.5 ms", "2026-11-21 11:00:07", "$1 = NULL"]);
    assert.equal(await section(page).locator("img").count(), 0);
    await page.evaluate((key) => (location.hash = `#statement-${key}`), statementKey(1));
    await page.waitForFunction(() => !document.querySelector("#statement-executions tr"));
    await page.context().close();
});

test("a statement without commands for its plan says why", async () => {
    const report = example();
    for (const detail of report.tables.flatMap(({ details }) => details ?? []))
        if (detail) detail.example = { unavailable: "The text is truncated." };
    const page = await open(report, {}, undefined, `#statement-${statementKey(0)}`);
    await section(page).waitFor();
    assert.match(await section(page).locator("#statement-example").innerText(), /in psql\s+The text is truncated\.$/);
    assert.equal(await section(page).locator("#statement-example pre").count(), 0);
    await page.context().close();
});

test("a page that begins with a statement goes back to the table of statements", async () => {
    const page = await open(report, {}, undefined, `#statement-${statementKey(3)}`);
    await section(page).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("#table-statements").waitFor();
    assert.equal(await page.evaluate(() => location.hash), "#statements");
    await page.context().close();
});

test("the scale of a histogram stays beside it, and the tallest chart has the two others beside it", async () => {
    // The longest executions took a little more than a second, so the last mark is at the right edge.
    const report = example();
    for (const table of report.tables) {
        for (const detail of table.details ?? []) if (detail) detail.histogram = [[1e-4, 2e-4, 5], [0.9, 1.05, 2]];
    }
    const page = await open(report, {}, undefined, `#statement-${statementKey(0)}`);
    const box = (selector) => page.locator(selector).first().boundingBox();
    await page.locator("#chart-statement-calls .body").waitFor();
    const picture = await box("#statement .histogram svg");
    for (const mark of await page.locator("#statement .scale span").all()) {
        const { x, width } = await mark.boundingBox();
        assert.ok(x >= picture.x - 1 && x + width <= picture.x + picture.width + 1, await mark.innerText());
    }
    const [tallest, second, third] = await page
        .locator("#statement > figure.chart")
        .evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).map(({ left, top, bottom }) => ({ left, top, bottom })));
    assert.ok(second.left > tallest.left && third.left === second.left, "the others are at the right");
    assert.ok(third.top < tallest.bottom, "beside the tallest");
    await page.context().close();
});
