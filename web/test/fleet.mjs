// SPDX-License-Identifier: PostgreSQL
// For crates/tally/tests/server/fleet_page.rs: opens the page of a fleet, and prints its findings as JSON.
// Usage: node fleet.mjs ADDRESS [PICTURE]
import { show, startBrowser, until } from "./browser.mjs";

const [address, picture] = process.argv.slice(2);
const browser = await startBrowser();
try {
    const page = await browser.visit(address);
    await page.locator("#chart-sessions").waitFor();
    const read = (selector) => page.evaluate((of) => [...document.querySelectorAll(of)].map((it) => it.innerText), selector);
    /** Waits until this chart is drawn, and returns the texts of these elements, of which there is at least one. */
    const some = (selector, chart) =>
        until(async () => {
            if (chart) await show(page, chart, "canvas");
            const texts = await read(selector);
            return texts.length > 0 && texts;
        });
    const hosts = (await some("#table-hosts tbody tr")).length;
    const legend = await some("#chart-sessions .legend tbody tr", "#chart-sessions");
    const answered = async () => (await some("#table-questions tbody tr"))[0];
    const first = await answered();
    // The page takes the next results without being loaded again, and keeps what it has.
    await page.evaluate(() => (window.isTheSame = true));
    await until(async () => (await answered()) !== first);
    const kept = await page.evaluate(() => window.isTheSame === true && document.querySelector("#chart-sessions canvas") !== null);
    if (picture) await page.screenshot({ path: picture, fullPage: true });
    // The cells of a live page have the same links as those of the first one.
    await page.locator("#table-hosts").getByRole("link", { name: "one" }).click();
    await page.waitForURL(/host=one/);
    await page.locator("#table-hosts").waitFor();
    const title = await page.locator("h1").innerText();
    const narrowed = (await some("#table-hosts tbody tr")).length;
    await page.getByRole("link", { name: "All hosts" }).click();
    await page.locator("#table-hosts").getByRole("link", { name: "two" }).waitFor();
    const back = await page.locator("h1").innerText();
    const { requests, violations, errors } = page.seen;
    console.log(
        JSON.stringify({
            hosts,
            legend: legend.map((row) => row.trim().split(/\t/)[0].trim()).sort(),
            kept,
            title,
            narrowed,
            back,
            requests,
            violations,
            errors,
        }),
    );
} finally {
    await browser.close();
}
