// SPDX-License-Identifier: PostgreSQL
// Tests the page in a real browser: themes, printing, widths, and what it must not do.
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { test } from "node:test";
import { pixel, show } from "./browser.mjs";
import { example, HOSTILE } from "./example.mjs";
import { load } from "./load.mjs";
import { onPage, open, report } from "./on-page.mjs";

const { shade } = await load("look/palette.ts");

const ground = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);

for (const [scheme, other] of [
    ["light", "dark"],
    ["dark", "light"],
]) {
    onPage(
        `the ${scheme} theme follows the system, and the reader may choose the other`,
        async (page) => {
            await show(page, "#chart-activity", "canvas");
            const grounds = { light: "rgb(250, 250, 248)", dark: "rgb(17, 20, 23)" };
            assert.equal(await ground(page), grounds[scheme]);
            assert.equal(await pixel(page, "chart-activity", 0.389, 0.985), shade("cpu", 0, 1, scheme));
            const choose = page.locator(".toolbar button", { hasText: "Theme" });
            while (!(await choose.innerText()).match(new RegExp(other, "i"))) await choose.click();
            await page.evaluate(() => new Promise(requestAnimationFrame));
            assert.equal(await ground(page), grounds[other]);
            assert.equal(await pixel(page, "chart-activity", 0.389, 0.985), shade("cpu", 0, 1, other));
        },
        { colorScheme: scheme },
    );
}

for (const scheme of ["light", "dark"]) {
    onPage(
        `text can be read in the ${scheme} theme`,
        async (page) => {
            const contrasts = await page.evaluate(() => {
                const parse = (css) =>
                    css
                        .match(/[\d.]+/g)
                        .slice(0, 3)
                        .map(Number);
                const luminance = (rgb) => {
                    const [r, g, b] = rgb.map((v) =>
                        v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4,
                    );
                    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
                };
                const probe = document.createElement("p");
                document.body.append(probe);
                const of = (name) => {
                    probe.style.color = `var(--${name})`;
                    return luminance(parse(getComputedStyle(probe).color));
                };
                return ["ink", "ink-2", "accent", "warning", "good"].flatMap((ink) =>
                    ["ground", "panel", "sunken"].map((paper) => {
                        const [a, b] = [of(ink), of(paper)].sort((x, y) => y - x);
                        return { what: `${ink} on ${paper}`, contrast: (a + 0.05) / (b + 0.05) };
                    }),
                );
            });
            for (const { what, contrast } of contrasts)
                assert.ok(contrast >= 4.5, `${what}: ${contrast.toFixed(2)}`);
        },
        { colorScheme: scheme },
    );
}

onPage(
    "paper has the tables and the charts, in light colours",
    async (page) => {
        await page.emulateMedia({ media: "print", colorScheme: "dark" });
        const pdf = await page.pdf({ format: "A4" });
        assert.ok(pdf.length > 20_000);
        assert.match(pdf.toString("latin1"), /\/Type\s*\/Page\b/);
        // The print layout: every chart is drawn, and nothing is wider than the paper.
        assert.equal(await page.locator("figure.chart canvas").count(), report.charts.length);
        assert.ok(await page.locator("#table-waits tbody tr").first().isVisible());
        assert.ok(await page.locator(".toolbar").isHidden());
        assert.equal(await ground(page), "rgb(255, 255, 255)");
    },
    { colorScheme: "dark" },
);

onPage(
    "without JavaScript the tables are there",
    async (page) => {
        assert.equal(await page.locator("#table-statements tbody tr").count(), 40);
        assert.ok(await page.locator("#table-waits").isVisible());
        assert.ok((await page.locator("#table-statements tbody tr").nth(2).innerText()).includes(HOSTILE));
        assert.ok(await page.locator("#chart-activity .without-script").isVisible());
        assert.equal(await page.locator(".toolbar").count(), 0);
    },
    { javaScriptEnabled: false },
);

test("a page that draws nothing over time has no range", async () => {
    const sections = report.sections.map((it) => ({ ...it, charts: [], heatmaps: [] }));
    const page = await open({ ...report, sections, charts: [], heatmaps: [] });
    await page.locator(".toolbar").waitFor();
    assert.equal(await page.locator(".range").count(), 0);
    assert.equal(await page.locator(".toolbar button", { hasText: "All" }).count(), 0);
    assert.equal(await page.locator(".toolbar button", { hasText: "Theme" }).count(), 1);
    await page.context().close();
});

for (const width of [360, 768, 1440]) {
    onPage(
        `a finding does not cover its link in a window of ${width} pixels`,
        async (page) => {
            const covered = await page.evaluate(() => {
                const parts = (item) => [item.querySelector(":scope > a"), item.querySelector(":scope > span")];
                const findings = [...document.querySelectorAll("#findings > ul > li")].map(parts);
                const pairs = findings.filter(([link]) => link).map((both) => both.map((part) => part.getBoundingClientRect()));
                const overlap = ([a, b]) =>
                    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
                return [pairs.length, pairs.filter(overlap).length];
            });
            assert.deepEqual(covered, [3, 0]);
        },
        { viewport: { width, height: 800 } },
    );
}

for (const width of [360, 768, 1440, 2560]) {
    onPage(
        `nothing is wider than a window of ${width} pixels`,
        async (page) => {
            for (const { id } of report.sections) await show(page, `#${id}`);
            const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
            assert.ok(wide <= 0, `${wide} pixels too wide`);
            await page.locator("#table-statements button.opener").first().click();
            assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
        },
        { viewport: { width, height: 800 } },
    );
}

test("the policy stops foreign scripts and requests", async () => {
    const page = await open(report);
    await page.evaluate(() => {
        const script = document.createElement("script");
        script.textContent = "window.ran = 3";
        document.body.append(script);
        const image = new Image();
        image.src = "https://example.com/x.png";
        document.body.setAttribute("onclick", "window.ran = 4");
        document.body.click();
    });
    assert.equal(await page.evaluate(() => window.ran), undefined);
    assert.deepEqual(page.seen.requests, []);
    assert.ok(page.seen.violations.length >= 3, page.seen.violations.join());
    await page.context().close();
});

const broken = { ...report, version: 99 };

test("a report of a newer version shows a message and leaves the tables unchanged", async () => {
    const page = await open(broken);
    assert.match(
        await page.locator(".complaint").innerText(),
        /version 99; this page supports versions up to 1/,
    );
    assert.equal(await page.locator("#table-statements tbody tr").count(), 40);
    await page.context().close();
});

// 24 hours at 1 Hz: 2,000 points of 14 activities, throughput per second, 500 statements.
const day = example({ points: 2000, step: 43.2, statements: 500, fine: 86_400 });

test("a day's report is drawn quickly", async () => {
    const page = await open(day);
    const took = await page.evaluate(
        () =>
            performance.getEntriesByName("pgtally-ready")[0].startTime -
            performance.getEntriesByName("pgtally-begin")[0].startTime,
    );
    await show(page, "#chart-activity", "canvas");
    // No time limit, because other processes may use the CPU; docs/results.md has the figures.
    console.log(
        `script until interactive: ${took.toFixed(0)} ms; with the charts in sight: ${(await page.scriptTime()).toFixed(0)} ms`,
    );
    await show(page, "#chart-throughput", "canvas");
    // With many points per pixel, the line is the mean, on a pale band from 3.0k/s to 3.5k/s; the scale ends 6 % above.
    const at = (perSecond) => pixel(page, "chart-throughput", 0.3, 1 - perSecond / (3500 * 1.06));
    const line = shade("io", 0, 1, "light");
    assert.equal(await at(3250), line);
    for (const perSecond of [3060, 3440])
        assert.ok(![line, "#ffffff", "none"].includes(await at(perSecond)), String(perSecond));
    for (const perSecond of [2900, 3600])
        assert.ok(["#ffffff", "none"].includes(await at(perSecond)), String(perSecond));
    await show(page, "#table-statements");
    assert.equal(await page.locator("#table-statements tbody tr").count(), 15);
    assert.deepEqual(page.seen, { requests: [], violations: [], errors: [] });
    await page.context().close();
});

test("a page without data is smaller than 300 kB", async () => {
    for (const name of ["report", "flame", "waterfall"]) {
        const { size } = await stat(new URL(`../../build/web/${name}.html`, import.meta.url));
        assert.ok(size < 300_000, `${name}.html has ${size} bytes`);
    }
});
