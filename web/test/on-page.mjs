// SPDX-License-Identifier: PostgreSQL
// Runs tests on the example's page, and checks after each that the page did nothing that is forbidden.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startBrowser } from "./browser.mjs";
import { example } from "./example.mjs";

export const report = example();
let browser;

before(async () => {
    browser = await startBrowser();
});
after(() => browser?.close());

/** Opens any other page. */
export const open = (...what) => browser.open(...what);

/** Opens the example's page and passes it to `use`. */
export function onPage(name, use, options = {}) {
    test(name, async () => {
        const page = await browser.open(report, options);
        await use(page);
        assert.deepEqual(page.seen, { requests: [], violations: [], errors: [] });
        assert.equal(await page.evaluate(() => window.ran), undefined, "a statement's text ran");
        await page.context().close();
    });
}
