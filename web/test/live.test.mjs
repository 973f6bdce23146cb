// SPDX-License-Identifier: PostgreSQL
// The page while it is live: a server that has a newer report each time it is asked.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { inView, show, startBrowser, template } from "./browser.mjs";
import { example } from "./example.mjs";
import { fill } from "./fill.mjs";

const live = (seconds) => ({ ...example({ points: seconds, step: 1, statements: 12 }), live: { url: "report.json" } });
let browser;
let server;
/** What the server answers with: a report, or null for an error. */
let answer;
let asked = 0;

before(async () => {
    // As `tally serve` does it: only the page may ask, and only where it came from.
    const page = (await readFile(template, "utf8")).replace("default-src 'none'", "default-src 'none'; connect-src 'self'");
    server = createServer((request, response) => {
        if (request.url !== "/report.json") return response.end(fill(page, live(60)));
        asked++;
        response.statusCode = answer ? 200 : 503;
        return response.end(answer ? JSON.stringify(answer) : "");
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    browser = await startBrowser();
});
after(async () => {
    await browser?.close();
    server?.close();
});

/** Waits until `holds` does; how long is the test runner's business. */
async function until(holds) {
    while (!(await holds())) await new Promise((done) => setTimeout(done, 50));
}

test("a live page grows, says when its server is silent, and goes on", async () => {
    answer = live(60);
    const page = await browser.visit(`http://127.0.0.1:${server.address().port}/`);
    assert.match(await inView(page), /11:00:00 – 11:01:00/);
    await show(page, "#chart-activity", "canvas");
    await show(page, "#table-waits");
    const time = page.locator("#table-waits tbody tr").first().locator("td").first();
    const before = await time.innerText();

    answer = live(90);
    await until(async () => /11:00:00 – 11:01:30/.test(await inView(page)));
    assert.notEqual(await time.innerText(), before, "the table has the newer figures");
    const points = page.locator("#chart-activity .scroll tbody tr");
    await page.locator("#chart-activity").getByRole("button", { name: "Table" }).click();
    assert.equal(await points.count(), 90);

    // What is zoomed into stays in view while more comes.
    await page.locator("#chart-activity .plot").focus();
    await page.keyboard.press("+");
    const zoomed = await inView(page);
    await page.keyboard.press("Shift+ArrowLeft");
    assert.notEqual(await inView(page), zoomed);
    const kept = await inView(page);
    const count = asked;
    answer = live(120);
    await until(() => asked > count + 1);
    assert.equal(await inView(page), kept);
    await page.locator(".toolbar button", { hasText: "All" }).click();

    answer = null;
    await until(async () => (await page.locator(".complaint").count()) === 1);
    assert.match(await page.locator(".complaint").innerText(), /No news from the server: 503/);
    assert.ok(await page.locator("#chart-activity canvas").isVisible());

    // It comes back with an activity that was not there before: the chart is drawn anew.
    answer = live(150);
    answer.charts[0].series[13].name = "IO:SLRURead";
    await until(async () => (await page.locator(".complaint").count()) === 0);
    await until(async () => /IO:SLRURead/.test(await page.locator("#chart-activity .legend").innerText()));
    assert.match(await inView(page), /11:00:00 – 11:02:30/);
    assert.equal(await page.locator("#chart-activity canvas").count(), 1);
    assert.deepEqual(page.seen.requests, []);
    assert.deepEqual(page.seen.violations, []);
    // The refusal itself is all that the browser complains of.
    assert.ok(page.seen.errors.every((error) => /503/.test(error)), page.seen.errors.join());
    await page.context().close();
});
