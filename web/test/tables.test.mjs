// SPDX-License-Identifier: PostgreSQL
// Tests tables in a real browser: sorting, filter, files, details of a statement.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { inView, show } from "./browser.mjs";
import { HOSTILE, valueAt } from "./example.mjs";
import { onPage, report } from "./on-page.mjs";

const firstCells = (page, table) =>
    page.locator(`#table-${table} tbody tr:not(.opened) > th`).allInnerTexts();

onPage("tables are sorted by click and by Enter, missing figures last", async (page) => {
    await show(page, "#table-waits");
    const head = page.locator('#table-waits th[data-key="p99_seconds"]');
    const given = await firstCells(page, "waits");
    assert.deepEqual(given.slice(0, 3), ["IO:WALSync", "LWLock:WALWrite", "Lock:transactionid"]);
    await head.locator("button").click();
    assert.equal(await head.getAttribute("aria-sort"), "descending");
    assert.equal((await firstCells(page, "waits")).at(-1), "IO:DataFileRead", "no percentile, so last");
    await head.locator("button").press("Enter");
    assert.equal(await head.getAttribute("aria-sort"), "ascending");
    const rising = await firstCells(page, "waits");
    assert.equal(rising.at(-1), "IO:DataFileRead", "still last");
    await page.locator('#table-waits th[data-key="activity"] button').press("Enter");
    assert.deepEqual(
        await firstCells(page, "waits"),
        [...given].sort((a, b) => a.localeCompare(b, "en")),
    );
});

onPage("tables are filtered, and all rows are shown on demand", async (page) => {
    await show(page, "#table-statements");
    assert.equal((await firstCells(page, "statements")).length, 15);
    await page.getByRole("button", { name: "Show all 40 rows" }).click();
    assert.equal((await firstCells(page, "statements")).length, 40);
    const filter = page.getByRole("searchbox", { name: "Filter Statements" });
    await filter.fill("T3 balance");
    assert.deepEqual(
        (await firstCells(page, "statements")).map((text) => text.match(/t\d+/)[0]),
        ["t30", "t31", "t32", "t33", "t34", "t35", "t36", "t37", "t38", "t39"],
    );
    assert.match(
        await page
            .locator(".shown")
            .allInnerTexts()
            .then((all) => all.join()),
        /10 of 40/,
    );
});

async function saved(page, table, label) {
    const [download] = await Promise.all([
        page.waitForEvent("download"),
        page
            .locator(".table", { has: page.locator(`#table-${table}`) })
            .getByRole("button", { name: label, exact: true })
            .click(),
    ]);
    return { name: download.suggestedFilename(), text: await readFile(await download.path(), "utf8") };
}

onPage("CSV and JSON have the raw figures, in the order shown", async (page) => {
    await show(page, "#table-statements");
    const { name, text } = await saved(page, "statements", "CSV");
    assert.equal(name, "statements.csv");
    const lines = text.split("\r\n");
    const { columns, rows } = report.tables[1];
    assert.equal(lines[0], columns.map(({ key }) => key).join(","));
    assert.equal(lines.length, rows.length + 2);
    assert.equal(lines[1], rows[0].join(","));
    assert.ok(text.includes(`"SELECT ""a"", 'two\nlines', $1",shop`), "quotes and line ends are kept");
    await page.locator('#table-statements th[data-key="calls"] button').click();
    await page.locator('#table-statements th[data-key="calls"] button').click();
    const objects = JSON.parse((await saved(page, "statements", "JSON")).text);
    assert.deepEqual(objects[0], Object.fromEntries(columns.map(({ key }, i) => [key, rows.at(-1)[i]])));
    const checkpoints = await saved(page, "checkpoints", "CSV");
    assert.match(checkpoints.text, /2026-11-21T10:01:00\.000Z,2026-11-21T10:02:00\.000Z,time,60,8183/);
});

onPage("a chart's figures are saved and shown as a table", async (page) => {
    await show(page, "#chart-activity", "canvas");
    const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.locator("#chart-activity").getByRole("button", { name: "CSV" }).click(),
    ]);
    const lines = (await readFile(await download.path(), "utf8")).split("\r\n");
    assert.equal(lines.length, 602);
    assert.ok(lines[1].startsWith(`2026-11-21T10:00:00.000Z,${valueAt(0, 0)},${valueAt(1, 0)},`));
    assert.match(lines[376], /^2026-11-21T10:06:15.000Z,,,/, "the gap is empty, not zero");
    const toggle = page.locator("#chart-activity").getByRole("button", { name: "Table" });
    await toggle.click();
    assert.equal(await page.locator("#chart-activity .scroll tbody tr").count(), 600);
    await toggle.press("Enter");
    assert.equal(await page.locator("#chart-activity .scroll").count(), 0);
});

onPage("a statement opens to its text, histogram, activities and plans; HTML in it is text", async (page) => {
    await show(page, "#table-statements");
    assert.ok((await firstCells(page, "statements"))[2].includes("<script>"));
    const opener = page.locator("#table-statements button.opener").nth(2);
    await opener.press("Enter");
    assert.equal(await opener.getAttribute("aria-expanded"), "true");
    const detail = page.locator("#table-statements .detail");
    assert.equal(await detail.locator("pre").first().innerText(), HOSTILE);
    assert.equal(await detail.locator(".plan figcaption").innerText(), "Plan 7: 3 executions noted");
    assert.equal(await detail.locator(".plan pre").innerText(), `Limit\n  Seq Scan on ${HOSTILE} [filter]`);
    assert.equal(await detail.locator("svg path").count(), 1);
    assert.match(await detail.innerText(), /IO:WALSync\s+commit\s+3\s+min/);
    assert.match(await detail.innerText(), /60\.0\s%/);
    await opener.press("Enter");
    assert.equal(await detail.count(), 0);
    // The menu offers the columns that the bars replace.
    const cpu = page.locator('#table-statements th[data-key="cpu_share"]');
    assert.ok(await cpu.isHidden());
    await page.locator(".columns summary").click();
    await page.locator(".columns label", { hasText: /^cpu$/ }).click();
    assert.ok(await cpu.isVisible());
});

onPage("instants are in local time or in UTC, in tables and in the bar", async (page) => {
    await show(page, "#table-checkpoints");
    assert.deepEqual((await firstCells(page, "checkpoints"))[0], "2026-11-21 11:01:00");
    await page.locator(".toolbar button", { hasText: "Local" }).click();
    assert.deepEqual((await firstCells(page, "checkpoints"))[0], "2026-11-21 10:01:00");
    assert.match(await inView(page), /^2026-11-21 10:00:00 – 10:10:00 UTC/);
});
