// SPDX-License-Identifier: PostgreSQL
// Opens the live page of crates/tally/tests/serve.rs while a load runs, and prints as JSON what it saw. Usage: node serving.mjs ADDRESS [PICTURE]
import { inView, pixel, show, startBrowser } from "./browser.mjs";

const [address, picture] = process.argv.slice(2);
const browser = await startBrowser();
try {
    const page = await browser.visit(address);
    const until = async (holds) => {
        while (!(await holds())) await new Promise((done) => setTimeout(done, 100));
    };
    // The first page may be empty; it reloads by itself.
    await page.locator("#chart-throughput").waitFor({ timeout: 60_000 });
    await show(page, "#chart-throughput", "canvas");
    const open = async () => {
        const rows = page.locator("#chart-throughput .scroll tbody tr");
        if ((await rows.count()) === 0) {
            await show(page, "#chart-throughput", "canvas");
            await page.locator("#chart-throughput").getByRole("button", { name: "Table" }).click();
        }
        return rows;
    };
    const first = await (await open()).count();
    const before = await inView(page);
    await until(async () => (await (await open()).count()) >= first + 5);
    const rate = (text) => parseFloat(text) * ({ k: 1e3, M: 1e6 }[/[kM]/.exec(text)?.[0]] ?? 1);
    const commits = [];
    for (const row of await (await open()).all()) commits.push(rate((await row.locator("td").allInnerTexts())[1] ?? "0"));
    await show(page, "#chart-activity", "canvas");
    const colours = new Set();
    for (let down = 0.05; down < 1; down += 0.1) colours.add(await pixel(page, "chart-activity", 0.7, down));
    if (picture) await page.screenshot({ path: picture });
    const { requests, violations, errors } = page.seen;
    console.log(
        JSON.stringify({ first, commits, moved: before !== (await inView(page)), colours: colours.size, requests, violations, errors }),
    );
} finally {
    await browser.close();
}
