// SPDX-License-Identifier: PostgreSQL
// Checks that every page takes its colours and sizes of type from one file.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const source = fileURLToPath(new URL("../src/", import.meta.url));
const tokens = "look/tokens.css";

async function sheets() {
    const names = (await readdir(source, { recursive: true })).filter((name) => name.endsWith(".css"));
    return Promise.all(names.sort().map(async (name) => [name, await readFile(source + name, "utf8")]));
}

test("colours and type are defined in one file", async () => {
    const found = [];
    for (const [name, text] of await sheets()) {
        // Paper has a white ground and smaller type.
        if (name === tokens || name === "look/print.css") continue;
        for (const [line] of text.matchAll(/^.*(#[0-9a-f]{3,8}\b|rgb\(|hsl\(|font-size: [\d.]+(?!em)[a-z]+).*$/gm))
            if (!/^\s*#/.test(line)) found.push(`${name}: ${line.trim()}`);
    }
    assert.deepEqual(found, []);
});

test("every token that a sheet uses is defined", async () => {
    const all = await sheets();
    const defined = new Set(all.flatMap(([, text]) => [...text.matchAll(/(--[\w-]+):/g)].map(([, name]) => name)));
    const classes = ["cpu", "io", "lwlock", "lock", "client", "ipc", "other"];
    for (const one of classes.flatMap((one) => [one, `${one}-2`])) defined.add(`--${one}`).add(`--on-${one}`);
    // Set by scripts.
    for (const one of ["--part", "--a", "--b"]) defined.add(one);
    const used = all.flatMap(([name, text]) => [...text.matchAll(/var\((--[\w-]+)/g)].map(([, token]) => [name, token]));
    assert.deepEqual(used.filter(([, token]) => !defined.has(token)), []);
});

test("every token is used", async () => {
    const texts = await Promise.all(
        (await readdir(source, { recursive: true })).filter((name) => /\.(css|ts)$/.test(name)).map((name) => readFile(source + name, "utf8")),
    );
    const names = [...(await readFile(source + tokens, "utf8")).matchAll(/(--[\w-]+):/g)].map(([, name]) => name);
    const used = (name) => texts.some((text) => text.includes(`var(${name})`) || text.includes(`token("${name.slice(2)}")`));
    assert.deepEqual([...new Set(names)].filter((name) => !used(name)), []);
});

/** The relative luminance of WCAG 2.2. */
function luminance(hex) {
    const [r, g, b] = [1, 3, 5]
        .map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
        .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
}

const GROUNDS = ["ground", "panel", "sunken", "hover"];

test("text has a contrast of 4.5 on every ground in both themes, and lines that mean something one of 3", async () => {
    const text = await readFile(source + tokens, "utf8");
    const themes = [...text.matchAll(/:root[^{]*\{([^}]*)\}/g)].map(([, body]) =>
        Object.fromEntries([...body.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, colour]) => [name, colour])),
    );
    assert.equal(themes.length, 2);
    const low = [];
    for (const [at, theme] of themes.entries())
        for (const ground of GROUNDS)
            for (const [names, least] of [
                [["ink", "ink-2", "accent", "warning", "good", "checkpoint"], 4.5],
                [["ink-3"], 3],
            ])
                for (const name of names) {
                    const found = contrast(theme[name], theme[ground]);
                    if (found < least) low.push(`${["light", "dark"][at]}: ${name} on ${ground} ${found.toFixed(2)}`);
                }
    // Text stands on bars, too.
    for (const [at, theme] of themes.entries())
        for (const bar of ["bar", "more", "less"]) {
            const found = contrast(theme.ink, theme[bar]);
            if (found < 4.5) low.push(`${["light", "dark"][at]}: ink on ${bar} ${found.toFixed(2)}`);
        }
    assert.deepEqual(low, []);
});

test("the ink of lines is not that of text", async () => {
    const found = [];
    for (const [name, text] of await sheets())
        for (const [line] of text.matchAll(/^\s*color: var\(--(ink-3|line|grid|hatch)\).*$/gm)) found.push(`${name}: ${line.trim()}`);
    assert.deepEqual(found, []);
});
