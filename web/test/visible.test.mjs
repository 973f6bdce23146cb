// SPDX-License-Identifier: PostgreSQL
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { load } from "./load.mjs";

const { parse, visible } = await load("visible.ts");

test("invisible characters are escaped", () => {
    assert.equal(visible("a\u202eb\u{e0041}\x1b\r\n\t"), "a\\u202Eb\\uDB40\\uDC41\\u001B\\u000D\n\t");
    assert.equal(visible("Grüße, שלום, 😀"), "Grüße, שלום, 😀");
});

test("texts of a report are escaped, and its figures stay", () => {
    const report = { text: "select '\u202e'", list: ["\u200b", 1.5, null], "<": "<" };
    const shown = { text: "select '\\u202E'", list: ["\\u200B", 1.5, null], "<": "<" };
    const json = JSON.stringify(report);
    assert.deepEqual(parse(json), shown);
    // In the form that the command writes into a page.
    const escaped = json.replace("\u202e", "\\u202E").replace("\u200b", "\\u200B").replaceAll("<", "\\u003c");
    assert.deepEqual(parse(escaped), shown);
    assert.deepEqual(parse('{"a": "\\u003cb>"}'), { a: "<b>" });
});

test("the command has the same list", async () => {
    const source = await readFile(new URL("../../crates/view/src/escape.rs", import.meta.url), "utf8");
    const table = /const UNSEEN: [^=]*= \[([^\]]*)\]/.exec(source)[1];
    const ranges = [...table.matchAll(/\((0x\w+), (0x\w+)\)/g)].map(([, from, to]) => [+from, +to]);
    assert.ok(ranges.length > 20);
    for (let code = 0xa0; code < 0x110000; code++) {
        if (code >= 0xd800 && code < 0xe000) continue;
        const letter = String.fromCodePoint(code);
        const listed = ranges.some(([from, to]) => from <= code && code <= to);
        assert.equal(visible(letter) !== letter, listed, code.toString(16));
    }
});
