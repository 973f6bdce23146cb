// SPDX-License-Identifier: PostgreSQL
// Opens the page of a fleet of crates/tally/tests/fleet_page.rs, and prints as JSON what it saw. Usage: node fleet.mjs ADDRESS [PICTURE]
import { show, startBrowser } from "./browser.mjs";

const [address, picture] = process.argv.slice(2);
const browser = await startBrowser();
try {
    const page = await browser.visit(address);
    await page.locator("#chart-sessions").waitFor();
    await show(page, "#chart-sessions", "canvas");
    const hosts = await page.locator("#table-hosts tbody tr").count();
    const legend = await page.locator("#chart-sessions .legend tbody tr").allInnerTexts();
    const answered = () => page.locator("#table-questions tbody tr").first().innerText();
    const first = await answered();
    while ((await answered()) === first) await new Promise((done) => setTimeout(done, 100));
    if (picture) await page.screenshot({ path: picture, fullPage: true });
    // The cells of a live page link as those of the first one.
    await page.locator("#table-hosts").getByRole("link", { name: "one" }).click();
    await page.waitForURL(/host=one/);
    await page.locator("#table-hosts").waitFor();
    const title = await page.locator("h1").innerText();
    const narrowed = await page.locator("#table-hosts tbody tr").count();
    await page.getByRole("link", { name: "All hosts" }).click();
    await page.locator("#table-hosts").getByRole("link", { name: "two" }).waitFor();
    const back = await page.locator("h1").innerText();
    const { requests, violations, errors } = page.seen;
    console.log(
        JSON.stringify({
            hosts,
            legend: legend.map((row) => row.trim().split(/\t/)[0].trim()).sort(),
            updated: true,
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
