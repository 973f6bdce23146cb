// SPDX-License-Identifier: PostgreSQL
// Tests the page as filled by the command: the golden report in the golden HTML. Checks that the script
// finds every row, cell and figure that the command writes.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { show, startBrowser } from "./browser.mjs";
import { load } from "./load.mjs";

const rust = new URL("../../crates/report/src/", import.meta.url);
const golden = (name) => readFile(new URL(`golden/${name}`, rust), "utf8");
const { cell } = await load("units.ts");
let body;
let report;
let browser;

before(async () => {
    body = await golden("body.html");
    report = JSON.parse(await golden("report.json"));
    browser = await startBrowser();
});
after(() => browser?.close());

test("everything that the command writes is found and drawn", async () => {
    const page = await browser.open(report, {}, body);
    for (const { id } of report.sections) await show(page, `#${id}`);
    const drawn = (kind) => page.locator(`figure.${kind}:has(canvas)`).count();
    assert.equal(await drawn("chart"), report.sections.flatMap(({ charts }) => charts).length);
    assert.equal(await drawn("heatmap"), report.sections.flatMap(({ heatmaps }) => heatmaps).length);
    assert.equal(await page.locator(".without-script").count(), 0);
    assert.equal(await page.locator(".complaint").count(), 0);
    assert.deepEqual(page.seen, { requests: [], violations: [], errors: [] });
    await page.context().close();
});

test("the page formats every figure as the command does", async () => {
    const page = await browser.open(report, { javaScriptEnabled: false }, body);
    let compared = 0;
    for (const table of report.tables) {
        const rows = await page
            .locator(`#table-${table.id} tbody tr`)
            .evaluateAll((all) => all.map((row) => [...row.cells].map((one) => one.textContent)));
        assert.equal(rows.length, table.rows.length, table.id);
        table.rows.forEach((row, i) =>
            row.forEach((value, j) => {
                const { key, unit } = table.columns[j];
                const ours = cell(value, unit, "UTC").replace(/\u00a0/g, " ");
                const theirs = unit === "time" ? rows[i][j].replace(/ UTC$/, "") : rows[i][j];
                assert.equal(ours, theirs, `${table.id}, row ${i}, ${key}: ${value}`);
                compared++;
            }),
        );
    }
    assert.ok(compared > 500, `${compared} figures`);
    await page.context().close();
});
