// SPDX-License-Identifier: PostgreSQL
// Measures the run time of the page's scripts on a report of a day: 2,000 points of 14 activities, throughput
// per second, 500 statements; and how long the page takes to answer the selection of a part of it. Usage: npm run time
import { startBrowser, show } from "./browser.mjs";
import { example } from "./example.mjs";

const OPENED = 20;
/** Parts of the day that are selected, one after the other, by their first and last share of its width. */
const PARTS = Array.from({ length: 20 }, (_, i) => [0.04 * i + 0.02, 0.04 * i + 0.06 + 0.009 * i]);
/** The 95 % interval of a median of 20 reaches from the 6th to the 15th of them in order. */
const [LOW, HIGH] = [5, 14];
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

/** Drags over a part of the chart. Returns the time from releasing the button until the next frame but one has been painted, ms. */
async function select(page, [from, to]) {
    const box = await page.locator("#chart-activity .u-over").boundingBox();
    const y = box.y + box.height / 2;
    await page.evaluate(() => {
        window.answered = new Promise((done) => {
            const released = () => {
                const begin = performance.now();
                const painted = new MessageChannel();
                painted.port1.onmessage = () => done(performance.now() - begin);
                requestAnimationFrame(() => requestAnimationFrame(() => painted.port2.postMessage(0)));
            };
            addEventListener("mouseup", released, { once: true, capture: true });
        });
    });
    await page.mouse.move(box.x + from * box.width, y);
    await page.mouse.down();
    await page.mouse.move(box.x + to * box.width, y, { steps: 3 });
    await page.mouse.up();
    const took = await page.evaluate(() => window.answered);
    if (!(await page.evaluate(() => document.documentElement.classList.contains("part")))) throw new Error("nothing was selected");
    await page.mouse.dblclick(box.x + box.width / 2, y);
    return took;
}

const page = await browser.open(day);
await show(page, "#chart-activity", "canvas");
await page.evaluate(() => scrollTo(0, 0));
const answers = [];
for (const part of PARTS) answers.push(await select(page, part));
await browser.close();
answers.sort((a, b) => a - b);
const median = (answers[9] + answers[10]) / 2;
const answerHalf = (answers[HIGH] - answers[LOW]) / 2;
console.log(
    `a selection is answered: median ${median.toFixed(0)} ms ± ${answerHalf.toFixed(0)} (${answers[0].toFixed(0)} .. ${answers[19].toFixed(0)})`,
);
for (const [what, all] of Object.entries(times)) {
    const mean = all.reduce((a, b) => a + b) / all.length;
    const spread = Math.sqrt(all.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (all.length - 1));
    const half = (T * spread) / Math.sqrt(all.length);
    console.log(
        `${what}: ${mean.toFixed(0)} ms ± ${half.toFixed(0)} (${Math.min(...all).toFixed(0)} .. ${Math.max(...all).toFixed(0)})`,
    );
}
