// SPDX-License-Identifier: PostgreSQL
// Tests the live page with a server that returns a newer report at each request.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { inView, show, startBrowser, template, until } from "./browser.mjs";
import { example, statementKey } from "./example.mjs";
import { fill } from "./fill.mjs";

const reportOf = (seconds) => ({
    ...example({ points: seconds, step: 1, statements: 12 }),
    live: { url: "report.json" },
});
let browser;
let server;
/** The server's answer: a report, or null for an error. */
let answer;
let asked = 0;

before(async () => {
    // Like `tally serve`: the page may only connect to its own server.
    const page = (await readFile(template, "utf8")).replace(
        "default-src 'none'",
        "default-src 'none'; connect-src 'self'",
    );
    server = createServer((request, response) => {
        const [path, query] = request.url.split("?");
        if (path !== "/report.json") return response.end(fill(page, reportOf(60)));
        asked++;
        response.statusCode = answer ? 200 : 503;
        const sent = query === "parts" ? answer : { ...answer, parts: undefined };
        return response.end(answer ? JSON.stringify(sent) : "");
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    browser = await startBrowser();
});
after(async () => {
    await browser?.close();
    server?.close();
});

test("a live page grows, shows when its server does not answer, and resumes", async () => {
    answer = reportOf(60);
    const page = await browser.visit(`http://127.0.0.1:${server.address().port}/`);
    assert.match(await inView(page), /11:00:00 – 11:01:00/);
    await show(page, "#chart-activity", "canvas");
    await show(page, "#table-waits");
    const time = page.locator("#table-waits tbody tr").first().locator("td").first();
    const before = await time.innerText();

    answer = reportOf(90);
    await until(async () => /11:00:00 – 11:01:30/.test(await inView(page)));
    assert.notEqual(await time.innerText(), before, "the table has the newer figures");
    const points = page.locator("#chart-activity .scroll tbody tr");
    await page.locator("#chart-activity").getByRole("button", { name: "Table" }).click();
    assert.equal(await points.count(), 90);

    // It says that it is live, and of when; a paused page stays as it is.
    const live = page.locator(".live");
    assert.match(await live.innerText(), /^live, 11:01:30$/);
    await page.getByRole("button", { name: "Pause" }).click();
    assert.match(await live.innerText(), /^paused, 11:01:30$/);
    const asked1 = asked;
    answer = reportOf(100);
    await until(() => asked > asked1 + 1);
    assert.equal(await points.count(), 90);
    await page.getByRole("button", { name: "Resume" }).click();
    await until(async () => (await points.count()) === 100);
    assert.match(await live.innerText(), /^live, 11:01:40$/);
    await page.getByLabel("Time shown").selectOption("last 5 min");
    assert.match(await inView(page), /11:00:00 – 11:01:40/);

    // A zoomed view is kept while the recording grows.
    await page.locator("#chart-activity .plot").focus();
    await page.keyboard.press("+");
    const zoomed = await inView(page);
    await page.keyboard.press("Shift+ArrowLeft");
    assert.notEqual(await inView(page), zoomed);
    const kept = await inView(page);
    const count = asked;
    answer = reportOf(120);
    await until(() => asked > count + 1);
    assert.equal(await inView(page), kept);
    // While a part is selected, the page requests the tables over time.
    const heading = page.locator(".table:has(#table-waits) .head h3");
    await until(async () => /\(\d+\ss\)$/.test(await heading.innerText()));
    await page.locator(".toolbar button", { hasText: "All" }).click();
    await until(async () => !/\)$/.test(await heading.innerText()));

    // Newer sentences have their statements and commands as code, as those of the command.
    const sql = "CREATE INDEX ON t (a)";
    const verdict = 'No index on "S".t: "select "A" from t" (query ID -7) reads, most of it by "x" (query ID 8).';
    answer = reportOf(120);
    answer.verdict = { weight: "warning", text: verdict };
    answer.findings[0].remedy = { text: `In database shop: ${sql}.`, sql: [`${sql};`], confidence: "likely" };
    const code = (selector) => page.locator(`${selector} code`).allInnerTexts();
    await until(async () => (await page.locator("#verdict").innerText()) === verdict);
    assert.deepEqual(await code("#verdict"), ['"select "A" from t"', '"x"']);
    assert.equal(await page.locator("#verdict a").getAttribute("href"), `#statement-${statementKey(1)}`);
    assert.equal(await page.locator("#advice").innerText(), `What to do: In database shop: ${sql}.`);
    assert.deepEqual(await code("#advice"), [sql]);
    assert.deepEqual(await code("#findings .remedy"), [sql]);
    assert.equal(await page.locator("#head h1").innerText(), answer.title);

    answer = null;
    await until(async () => (await page.locator(".complaint").count()) === 1);
    assert.match(await live.innerText(), /^no data since 11:02:00$/);
    assert.match(await page.locator(".complaint").innerText(), /No data from the server: 503/);
    assert.ok(await page.locator("#chart-activity canvas").isVisible());

    // The server returns with a new activity: the chart is drawn again.
    answer = reportOf(150);
    answer.charts[0].series[13].name = "IO:SLRURead";
    await until(async () => (await page.locator(".complaint").count()) === 0);
    await until(async () => /IO:SLRURead/.test(await page.locator("#chart-activity .legend").innerText()));
    assert.match(await inView(page), /11:00:00 – 11:02:30/);
    assert.equal(await page.locator("#chart-activity canvas").count(), 1);
    assert.deepEqual(page.seen.requests, []);
    assert.deepEqual(page.seen.violations, []);
    // The browser reports no other error.
    assert.ok(
        page.seen.errors.every((error) => /503/.test(error)),
        page.seen.errors.join(),
    );
    await page.context().close();
});

test("the time shown stays true while the history grows, and names no length that is not shown", async () => {
    answer = reportOf(90);
    const page = await browser.visit(`http://127.0.0.1:${server.address().port}/`);
    const span = page.getByLabel("Time shown");
    const chosen = () => span.evaluate((it) => it.selectedOptions[0].textContent);
    await until(async () => /11:00:00 – 11:01:30/.test(await inView(page)));
    await span.selectOption("last 5 min");
    assert.match(await inView(page), /11:00:00 – 11:01:30/);

    // The history becomes longer than what was chosen.
    answer = reportOf(400);
    await until(async () => /11:01:40 – 11:06:40/.test(await inView(page)));
    assert.equal(await chosen(), "last 5 min");
    answer = reportOf(500);
    await until(async () => /11:03:20 – 11:08:20/.test(await inView(page)));
    assert.equal(await chosen(), "last 5 min");

    await show(page, "#chart-activity", "canvas");
    await page.locator("#chart-activity .plot").focus();
    await page.keyboard.press("Shift+ArrowLeft");
    assert.equal(await chosen(), "selected part");
    await page.locator(".toolbar button", { hasText: "All" }).click();
    assert.equal(await chosen(), "all");
    answer = reportOf(520);
    await until(async () => /11:00:00 – 11:08:40/.test(await inView(page)));
    assert.equal(await chosen(), "all");
    assert.deepEqual(page.seen, { requests: [], violations: [], errors: [] });
    await page.context().close();
});

test("the page of a statement stays open and follows its server", async () => {
    answer = reportOf(60);
    const page = await browser.visit(`http://127.0.0.1:${server.address().port}/#statement-${statementKey(0)}`);
    const calls = page.locator('#statement-range dt:text-is("Calls") + dd');
    await page.locator("#statement canvas").first().waitFor();
    const before = await calls.innerText();
    answer = reportOf(90);
    await until(async () => /11:00:00 – 11:01:30/.test(await inView(page)));
    await until(async () => (await calls.innerText()) !== before);
    assert.equal(await page.locator("#statement figure canvas").count(), 3);
    assert.ok(await page.locator("#head").isHidden());
    assert.deepEqual(page.seen, { requests: [], violations: [], errors: [] });
    await page.context().close();
});
