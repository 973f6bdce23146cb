// SPDX-License-Identifier: PostgreSQL
// Tests the trees of a flame graph exactly, and their page in a browser.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startBrowser } from "./browser.mjs";
import { load } from "./load.mjs";
import { difference, profile } from "./profiles.mjs";

const { halfWidth, timeByColour, treeOf } = await load("flame/tree.ts");
const { CLASSES, inkOn, shade } = await load("look/palette.ts");

/** All nodes: path, origin, class, seconds, samples. */
function nodes(options) {
    const found = {};
    const walk = (node, path) => {
        const name = [...path, node.name].join(" / ");
        found[name] = [node.from, node.kind, Number(node.seconds.toFixed(6)), node.samples];
        for (const below of node.children.values()) walk(below, [...path, node.name]);
    };
    const tree = treeOf(profile, { idle: false, inverted: false, ...options });
    for (const below of tree.children.values()) walk(below, []);
    return [Number(tree.seconds.toFixed(6)), found];
}

test("time on CPUs is that of the samples, below their accounts", () => {
    assert.deepEqual(nodes({ part: "cpu", grouping: "phase" }), [
        2.3,
        {
            execute: ["phase", "plain", 0.3, 3],
            "execute / cpu": ["activity", "cpu", 0.3, 3],
            "execute / cpu / main": ["postgres", "cpu", 0.3, 3],
            "execute / cpu / main / read": ["kernel", "cpu", 0.1, 1],
            "unknown account": ["phase", "plain", 0.4, 4],
            "unknown account / unknown account": ["activity", "other", 0.4, 4],
            "unknown account / unknown account / ext4": ["kernel [ext4]", "other", 0.4, 4],
            pgbench: ["process", "other", 1.6, 16],
            "pgbench / main": ["postgres", "other", 1.6, 16],
        },
    ]);
});

test("off-CPU time is that of the sessions without that of the samples", () => {
    const waiting = "waiting for a CPU, or blocked without a wait event";
    assert.deepEqual(nodes({ part: "off", grouping: "statement" }), [
        1.4,
        {
            "select 1": ["statement", "plain", 1.4, 3],
            "select 1 / execute": ["phase", "plain", 1.4, 3],
            "select 1 / execute / cpu": ["activity", "cpu", 0.9, 2],
            [`select 1 / execute / cpu / ${waiting}`]: ["not on a CPU", "cpu", 0.9, 2],
            "select 1 / execute / IO:DataFileRead": ["activity", "io", 0.5, 1],
        },
    ]);
});

test("idle sessions are added on request, and a wait without accounts above it has its event's name", () => {
    const [all, found] = nodes({ part: "off", grouping: "function", idle: true });
    assert.equal(all, 2.1);
    assert.deepEqual(found["IO:DataFileRead"], ["activity", "io", 0.5, 1]);
    assert.deepEqual(found["Client:ClientRead"], ["activity", "client", 0.7, 1]);
    const [, byActivity] = nodes({ part: "off", grouping: "activity", idle: true });
    assert.deepEqual(byActivity["IO:DataFileRead / execute"], ["phase", "plain", 0.5, 1]);
});

test("an inverted tree begins with the innermost function, and has the same time", () => {
    const [all, found] = nodes({ part: "cpu", grouping: "phase", inverted: true });
    assert.equal(all, 2.3);
    assert.deepEqual(found["read / main / cpu / execute"], ["phase", "plain", 0.1, 1]);
    assert.deepEqual(found["main / cpu / execute"], ["phase", "plain", 0.2, 2]);
    assert.deepEqual(found["ext4"], ["kernel [ext4]", "other", 0.4, 4]);
});

test("the legend's times are those of the innermost frames, and add up to the whole", () => {
    for (const inverted of [false, true]) {
        const tree = treeOf(profile, { part: "cpu", grouping: "phase", idle: false, inverted });
        const times = [...timeByColour(tree, inverted)].map(([colour, seconds]) => [colour, Number(seconds.toFixed(6))]);
        assert.deepEqual(times.sort(), [["cpu", 0.2], ["cpu-2", 0.1], ["other", 1.6], ["other-2", 0.4]]);
    }
});

test("functions of the kernel are marked", () => {
    const below = treeOf(profile, { part: "cpu", grouping: "function", idle: false, inverted: false }).children;
    const kernel = [...below.values()].map(({ name, kernel }) => [name, kernel]);
    assert.deepEqual(kernel.filter(([name]) => name === "ext4"), [["ext4", true]]);
    assert.deepEqual(kernel.filter(([name]) => name === "main"), [["main", false]]);
});

test("a profile without instants, and a process that is not listed, have their samples", () => {
    const odd = { ...profile, quality: { instants: 0 }, processes: [], stacks: profile.stacks.slice(0, 1), sessions: [{ ...profile.sessions[2], samples: 1 }] };
    const times = ["cpu", "off"].map((part) => {
        const tree = treeOf(odd, { part, grouping: "phase", idle: false, inverted: false });
        return [...tree.children.values()].map(({ name, seconds }) => [name, seconds]);
    });
    assert.deepEqual(times, [[["execute", 0.1]], [["execute", 4]]]);
});

test("the half-width is that of a count of independent samples", () => {
    assert.equal(halfWidth(100, 0.5), 9.8);
    assert.equal(halfWidth(0, 0.1), 0);
});

let browser;
before(async () => {
    browser = await startBrowser();
});
after(() => browser?.close());

const hexOf = (css) =>
    "#" +
    css
        .match(/\d+/g)
        .slice(0, 3)
        .map((v) => Number(v).toString(16).padStart(2, "0"))
        .join("");

/** Opens the page of the profile, as the command fills it. */
async function opened(options = {}, shown = profile) {
    const template = await readFile(fileURLToPath(new URL("../../build/web/flame.html", import.meta.url)), "utf8");
    const parts = {
        title: "Profile of PostgreSQL",
        body: '<h1>Profile of PostgreSQL</h1><div id="flames"></div><pre>the figures</pre>',
        data: JSON.stringify(shown).replace(/</g, "\\u003c"),
    };
    const file = join(tmpdir(), `pgtally-flame-${process.pid}.html`);
    await writeFile(file, template.replace(/<!--pgtally:([a-z]+)-->/g, (_, name) => parts[name]));
    return browser.visit(pathToFileURL(file).href, options);
}

const frame = (page, name) => page.locator(".frame").filter({ hasText: new RegExp(`^${name}$`) });
const colours = (locator) =>
    locator.evaluate((it) => {
        const { backgroundColor, color } = getComputedStyle(it);
        return [backgroundColor, color];
    });

for (const scheme of ["light", "dark"]) {
    test(`frames have the colours of their classes in the ${scheme} theme, with text that can be read`, async () => {
        const page = await opened({ colorScheme: scheme });
        for (const [name, kind, shadeOf] of [
            ["main", "cpu", 0],
            ["read", "cpu", 1],
            ["ext4", "other", 1],
            ["IO:DataFileRead", "io", 0],
        ]) {
            const expected = shade(kind, shadeOf, shadeOf + 1, scheme);
            const [fill, ink] = await colours(frame(page, name).last());
            assert.equal(hexOf(fill), expected, name);
            assert.equal(hexOf(ink), inkOn(expected), name);
        }
        await page.context().close();
    });
}

test("the page says the duration, the samples and the unit, and has a legend", async () => {
    const page = await opened();
    assert.match(await page.locator(".facts-line").innerText(), /Duration\s+4\ss[^]*Sampling\s+10 Hz/);
    const headings = await page.locator(".panel h2").allInnerTexts();
    assert.match(headings[0], /^Off CPU 1\.40\ss ± 1\.70\ss, 3 samples, one each 500\sms of a session$/);
    assert.match(headings[1], /^On CPU 2\.30\ss ± 940\sms, 23 samples, one each 100\sms of a CPU$/);
    const legends = await page.locator(".legend").allInnerTexts();
    assert.match(legends[0], /^CPU 900\sms\s+I\/O 500\sms$/);
    assert.match(legends[1], /^CPU 300\sms \(kernel 100\sms\)\s+Other 2\s?s \(kernel 400\sms\)$/);
    assert.deepEqual(page.seen, { requests: [], violations: [], errors: [] });
    await page.context().close();
});

test("search shows the total of what matches in both panels, and what does not match is pale", async () => {
    const page = await opened();
    await page.getByRole("searchbox").fill("read");
    assert.match(
        await page.locator(".matches").innerText(),
        /^matched: 600\sms, 16\.2\s% \(off CPU 500\sms, on CPU 100\sms\)$/,
    );
    assert.equal(hexOf((await colours(frame(page, "read")))[0]), shade("cpu", 1, 2, "light"));
    assert.notEqual(hexOf((await colours(frame(page, "main").first()))[0]), shade("cpu", 0, 1, "light"));
    await page.context().close();
});

test("the layout has the root on top, at the bottom, or the innermost function first", async () => {
    const page = await opened();
    const place = async (name) => (await frame(page, name).first().boundingBox()).y;
    assert.ok((await place("main")) < (await place("read")));
    await page.getByLabel("Layout").selectOption("flame");
    assert.ok((await place("main")) > (await place("read")));
    await page.getByLabel("Layout").selectOption("inverted");
    assert.equal(await frame(page, "read").first().getAttribute("aria-level"), "2");
    await page.context().close();
});

test("keys move from frame to frame and zoom, and nothing moves when a frame is pointed at", async () => {
    const page = await opened();
    await page.locator(".panel").nth(1).locator(".frame").first().focus();
    const focused = () => page.evaluate(() => document.activeElement.textContent);
    for (const [key, name] of [
        ["ArrowDown", "pgbench"],
        ["ArrowRight", "unknown account"],
        ["ArrowRight", "execute"],
        ["ArrowDown", "cpu"],
        ["ArrowUp", "execute"],
        ["Enter", "execute"],
    ]) {
        await page.keyboard.press(key);
        assert.equal(await focused(), name);
    }
    assert.match(await page.locator(".status").innerText(), /^execute \(phase\): 300\sms ± 339\sms, 13\.0\s% .* 3 samples$/);
    assert.equal(await frame(page, "execute").last().evaluate((it) => it.style.width), "100%");
    await page.keyboard.press("Escape");
    const height = () => page.evaluate(() => document.documentElement.scrollHeight);
    const before = await height();
    await frame(page, "pgbench").hover();
    assert.match(await page.locator(".status").innerText(), /^pgbench/);
    assert.equal(await height(), before);
    await page.context().close();
});

test("nothing on a narrow screen is wider than it", async () => {
    const page = await opened({ viewport: { width: 390, height: 844 } });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
    await page.context().close();
});

for (const scheme of ["light", "dark"]) {
    test(`what got slower is red and what got faster blue in the ${scheme} theme, and chance is neither`, async () => {
        const page = await opened({ colorScheme: scheme }, difference);
        const kind = (name) => frame(page, name).evaluate((it) => [...it.classList].find((one) => one.startsWith("of-")));
        const found = {};
        for (const name of ["slower", "alittle", "same", "faster", "gone", "new"]) found[name] = await kind(name);
        assert.deepEqual(found, {
            slower: "of-more-3",
            alittle: "of-more-1",
            same: "of-plain",
            faster: "of-less-2",
            gone: "of-less-3",
            new: "of-more-3",
        });
        const luminance = (css) => {
            const [r, g, b] = css
                .match(/[\d.]+/g)
                .slice(0, 3)
                .map((v) => (css.startsWith("color(") ? Number(v) : Number(v) / 255))
                .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        for (const name of Object.keys(found)) {
            const [high, low] = (await colours(frame(page, name))).map(luminance).sort((a, b) => b - a);
            assert.ok((high + 0.05) / (low + 0.05) >= 4.5, name);
        }
        assert.deepEqual(page.seen, { requests: [], violations: [], errors: [] });
        await page.context().close();
    });
}

test("a frame of a difference says both times with their errors, and whether chance explains it", async () => {
    const page = await opened({ viewport: { width: 390, height: 844 } }, difference);
    await frame(page, "slower").hover();
    assert.match(
        await page.locator(".status").innerText(),
        /^slower \(postgres\): A 20\sms ± 2\.77\sms, B 50\sms ± 4\.38\sms per transaction, \+30\.0\sms, 2\.50 times as much \(95 %: 2\.00 to 3\.1[23]\); beyond chance$/,
    );
    await frame(page, "gone").hover();
    assert.match(await page.locator(".status").innerText(), /−10\sms; beyond chance$/);
    await frame(page, "same").hover();
    assert.match(await page.locator(".status").innerText(), /within chance$/);
    // The width is the mean of both: 35 of 125.
    const width = await frame(page, "slower").evaluate((it) => parseFloat(it.style.width));
    assert.ok(Math.abs(width - 28) < 0.01, String(width));
    await page.getByLabel("Group by").selectOption("function");
    await page.getByLabel("Layout").selectOption("inverted");
    assert.equal(await frame(page, "leaf").count(), 1);
    await page.getByRole("searchbox").fill("leaf");
    assert.match(await page.locator(".matches").innerText(), /^matched: 100\.0\s%$/);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
    await page.context().close();
});

test("every class has an ink with a contrast of 4.5 in both themes", () => {
    const luminance = (colour) => {
        const [r, g, b] = [1, 3, 5]
            .map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
            .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    for (const theme of ["light", "dark"]) {
        for (const one of CLASSES) {
            for (const [index, members] of [[0, 1], [1, 2]]) {
                const fill = shade(one, index, members, theme);
                const [high, low] = [luminance(fill), luminance(inkOn(fill))].sort((a, b) => b - a);
                assert.ok((high + 0.05) / (low + 0.05) >= 4.5, `${one} ${index} ${theme}`);
            }
        }
    }
});

test("a name is written in full, shortened with an ellipsis, or not at all", async () => {
    const page = await opened();
    const frames = await page.locator(".frame").evaluateAll((all) =>
        all.map((one) => ({
            width: one.getBoundingClientRect().width,
            shown: getComputedStyle(one).fontSize !== "0px",
            overflow: getComputedStyle(one).textOverflow,
        })),
    );
    assert.ok(frames.some(({ width }) => width > 100));
    for (const { width, shown, overflow } of frames) {
        assert.equal(overflow, "ellipsis");
        if (Math.abs(width - 26) > 1) assert.equal(shown, width > 26, String(width));
    }
    await page.context().close();
});
