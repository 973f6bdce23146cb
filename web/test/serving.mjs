// SPDX-License-Identifier: PostgreSQL
// For crates/tally/tests/server/serve.rs: opens the live page while a load runs, and prints its findings as JSON.
// Usage: node serving.mjs ADDRESS [PICTURE]
import { inView, pixel, show, startBrowser, steadily, until } from "./browser.mjs";

const [address, picture] = process.argv.slice(2);
const browser = await startBrowser();
try {
    const page = await browser.visit(address);
    await page.locator("#chart-throughput").waitFor();
    await show(page, "#chart-throughput", "canvas");
    const open = async () => {
        const rows = page.locator("#chart-throughput .scroll tbody tr");
        if ((await rows.count()) === 0) {
            await show(page, "#chart-throughput", "canvas");
            await page.locator("#chart-throughput").getByRole("button", { name: "Table" }).click();
        }
        return rows;
    };
    const rate = (text) => parseFloat(text) * ({ k: 1e3, M: 1e6 }[/[kM]/.exec(text)?.[0]] ?? 1);
    const readCommits = async () => {
        const rows = await open();
        const texts = await rows.evaluateAll((all) => all.map((row) => row.querySelectorAll("td")[1]?.innerText ?? "0"));
        return texts.map(rate);
    };
    const first = (await steadily(readCommits)).length;
    const before = await steadily(() => inView(page));
    let commits = [];
    await until(async () => {
        commits = await readCommits();
        return commits.length >= first + 5 && commits.slice(0, -1).some((rate) => rate > 0);
    });
    // Something is drawn, regardless of when the load began.
    const readColours = async () => {
        await show(page, "#chart-activity", "canvas");
        const colours = new Set();
        for (let across = 0.05; across < 1; across += 0.05)
            for (let down = 0.05; down < 1; down += 0.1) colours.add(await pixel(page, "chart-activity", across, down));
        return colours.size;
    };
    await until(async () => (await readColours()) > 1);
    await until(async () => before !== (await inView(page)));
    if (picture) await page.screenshot({ path: picture });
    const { requests, violations, errors } = page.seen;
    console.log(JSON.stringify({ commits, requests, violations, errors }));
} finally {
    await browser.close();
}
