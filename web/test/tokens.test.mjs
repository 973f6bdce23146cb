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
