// SPDX-License-Identifier: PostgreSQL
// Tables and findings of a selected part of the time, on the report that the command made.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { plotBox, show, startBrowser, until } from "./browser.mjs";
import { load } from "./load.mjs";

const { sumWithin, tableWithin } = await load("tables/part.ts");
const golden = (name) => readFile(new URL(`../../crates/report/src/golden/${name}`, import.meta.url), "utf8");
const report = JSON.parse(await golden("report.json"));
const body = await golden("body.html");
const { from, to } = report.measured;

let browser;
before(async () => {
    browser = await startBrowser();
});
after(() => browser?.close());

test("a negative number stands for so many zeros, and zeros at the end are missing", () => {
    const series = [0, 1.5, -3, 2];
    assert.equal(sumWithin(series, 0, 100), 3.5);
    assert.equal(sumWithin(series, 1, 2), 1.5);
    assert.equal(sumWithin(series, 2, 5), 0);
    assert.equal(sumWithin(series, 5, 6), 2);
});

test("tables of all parts of the time are those of the whole time", () => {
    let compared = 0;
    for (const [id, of] of Object.entries(report.parts.tables)) {
        const table = report.tables.find((one) => one.id === id);
        const all = tableWithin(table, report, to, { from, to }).table;
        assert.equal(all.rows.length, table.rows.length, id);
        all.rows.forEach((row, i) =>
            row.forEach((value, column) => {
                const given = table.rows[i][column];
                if (of.columns[column] === null || typeof given !== "number") return;
                // The values of points have six digits.
                assert.ok(Math.abs(value - given) <= 2e-5 * Math.abs(given) + 1e-12, `${id} ${of.columns[column]}: ${value} for ${given}`);
                compared++;
            }),
        );
    }
    assert.ok(compared > 200, String(compared));
});

test("rows with a time are those of the part", () => {
    const table = report.tables.find(({ id }) => id === "checkpoints");
    const ended = table.columns.findIndex(({ key }) => key === "ended");
    const { table: part, whole } = tableWithin(table, report, to, { from: from + 200, to: from + 400 });
    assert.equal(whole, null);
    assert.deepEqual(part.rows.map((row) => row[ended]), [from + 310]);
    const settings = report.tables.find(({ id }) => id === "settings");
    assert.equal(tableWithin(settings, report, to, { from, to: from + 9 }).table, settings);
});

test("selecting a part changes all tables and the findings, and All brings the whole time back", async () => {
    const page = await browser.open(report, {}, body);
    await show(page, "#chart-activity", "canvas");
    const tables = () =>
        page.evaluate(() =>
            Object.fromEntries(
                [...document.querySelectorAll("table[data-table]")].map((it) => [it.dataset.table, [...it.tBodies[0].rows].map((row) => row.innerText)]),
            ),
        );
    const before = await tables();
    const box = await plotBox(page, "chart-activity");
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width * 0.5, y);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.58, y, { steps: 4 });
    await page.mouse.up();
    await page.locator("#rankings .span", { hasText: "Selected" }).waitFor();
    await until(() => page.evaluate(() => document.documentElement.classList.contains("part")));
    const part = await tables();
    for (const id of Object.keys(report.parts.tables)) assert.notDeepEqual(part[id], before[id], id);
    assert.deepEqual(part.settings, before.settings, "which belong to no time");
    const head = (id) => page.locator(`.table:has(#table-${id}) .head h3`).innerText();
    assert.match(await head("ledger"), /\(\d+(\.\d)?\ss\)$/);
    assert.match(await head("devices"), /\(whole time\)$/);
    const note = page.locator(".table:has(#table-devices) .note.of-whole");
    assert.match(await note.innerText(), /^Of the whole time: .+\.$/);
    const missing = await page.locator(".table:has(#table-ledger) .note.of-whole").innerText();
    assert.match(missing, /^Known for the whole time only: .*p99.*Max\.$/);
    // The gap was later.
    const finding = (text) => page.locator("#findings > ul > li", { hasText: text });
    assert.ok(await finding("There is a gap").isHidden());

    assert.equal(await finding("Most time went to").getAttribute("class"), "note of-whole");
    // Findings about the whole time are shown on request.
    assert.ok(await finding("Most time went to").isHidden());
    const more = page.locator("#findings .more");
    assert.match(await more.innerText(), /Show the \d+ findings about the whole time$/);
    await more.getByRole("button").click();
    assert.match(await more.innerText(), /Hide the \d+ findings about the whole time$/);
    assert.match(await finding("Most time went to").evaluate((it) => getComputedStyle(it.querySelector(".what"), "::after").content), /whole time/);
    await more.getByRole("button").click();
    assert.ok(await finding("Most time went to").isHidden());
    // The first column of the ledger is the largest one of the part.
    const seconds = report.tables.find(({ id }) => id === "ledger").columns.findIndex(({ key }) => key === "seconds");
    const shown = await page.locator("#table-ledger tbody tr").evaluateAll((rows, at) => rows.map((row) => row.cells[at].textContent), seconds);
    const value = (text) => parseFloat(text) * (text.includes("ms") ? 1e-3 : text.includes("min") ? 60 : 1);
    assert.deepEqual(shown, [...shown].sort((a, b) => value(b) - value(a)));
    await page.locator(".toolbar button", { hasText: "All" }).click();
    await until(() => page.evaluate(() => !document.documentElement.classList.contains("part")));
    assert.deepEqual(await tables(), before);
    assert.ok(await finding("There is a gap").isVisible());
    assert.ok(await finding("Most time went to").isVisible());
    assert.ok(await more.isHidden());
    assert.deepEqual(page.seen, { requests: [], violations: [], errors: [] });
    await page.context().close();
});
