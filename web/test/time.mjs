// SPDX-License-Identifier: PostgreSQL
// Measures the run time of the page's scripts on a report of a day: 2,000 points of 14 activities, throughput
// per second, 500 statements. Usage: npm run time
import { startBrowser, show } from "./browser.mjs";
import { example } from "./example.mjs";

const OPENED = 20;
/** Student's t for 95 % and 19 degrees of freedom. */
const T = 2.093;

const day = example({ points: 2000, step: 43.2, statements: 500, fine: 86_400 });
const browser = await startBrowser();
const times = { "until interactive": [], "with the charts in sight": [], "with all charts": [] };
for (let i = 0; i < OPENED; i++) {
    const page = await browser.open(day);
    await show(page, "#chart-activity", "canvas");
    times["until interactive"].push(
        await page.evaluate(() => {
            const [begin, ready] = ["pgtally-begin", "pgtally-ready"].map(
                (name) => performance.getEntriesByName(name)[0].startTime,
            );
            return ready - begin;
        }),
    );
    times["with the charts in sight"].push(await page.scriptTime());
    for (const { id } of day.sections) await show(page, `#${id}`);
    times["with all charts"].push(await page.scriptTime());
    await page.context().close();
}
await browser.close();
for (const [what, all] of Object.entries(times)) {
    const mean = all.reduce((a, b) => a + b) / all.length;
    const spread = Math.sqrt(all.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (all.length - 1));
    const half = (T * spread) / Math.sqrt(all.length);
    console.log(
        `${what}: ${mean.toFixed(0)} ms ± ${half.toFixed(0)} (${Math.min(...all).toFixed(0)} .. ${Math.max(...all).toFixed(0)})`,
    );
}
