// SPDX-License-Identifier: PostgreSQL
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { bytes, cell, count, duration, figure, tick, whole } = await load("units.ts");
const { ticks } = await load("clock.ts");
const plain = (text) => text.replace(/\u00a0/g, " ");

test("durations are written as the command writes them", () => {
    // The cases of crates/view/src/units.rs.
    const cases = [
        [0, "0"],
        [3.12e-7, "312 ns"],
        [9.996e-7, "1.00 us"],
        [4.3125e-6, "4.31 us"],
        [0.0123, "12.3 ms"],
        [0.5, "500 ms"],
        [0.9996, "1.00 s"],
        [61.2, "61.2 s"],
        [186, "3.10 min"],
        [7200, "2 h"],
        [864_000, "10 d"],
    ];
    for (const [seconds, text] of cases) assert.equal(plain(duration(seconds)), text);
});

test("counts and sizes are short, and small integers stay in full", () => {
    for (const [n, text] of [
        [0, "0"],
        [7, "7"],
        [0.25, "0.25"],
        [12_345, "12.3k"],
        [999_600, "1.00M"],
        [4.5e6, "4.50M"],
    ]) {
        assert.equal(count(n), text);
    }
    assert.equal(plain(bytes(1536)), "1.50 kB");
    assert.equal(plain(bytes(16 * 2 ** 20)), "16 MB");
    assert.equal(whole(1234567), "1,234,567");
    assert.equal(whole(-1234), "-1,234");
    assert.equal(whole(12), "12");
});

test("a missing figure is a dash in a chart and empty in a table", () => {
    assert.equal(figure(null, "seconds"), "–");
    assert.equal(figure(NaN, "seconds"), "–");
    assert.equal(cell(null, "seconds", "UTC"), "");
    assert.equal(plain(cell(0.2334, "share", "UTC")), "23.3 %");
    assert.equal(cell(1795255200, "time", "UTC"), "2026-11-21 10:00:00");
});

test("ticks have no superfluous digits", () => {
    assert.equal(tick(0.30000000000000004, "sessions"), "0.3");
    assert.equal(plain(tick(0.0020000000000000005, "seconds")), "2 ms");
    assert.equal(plain(tick(0, "bytes_per_second")), "0");
    assert.equal(plain(tick(0.0015, "seconds")), "1.50 ms");
    assert.equal(tick(20_000, "per_second"), "20k/s");
    assert.deepEqual(ticks([1795255200, 1795258800, 1795305600], 3600, "UTC"), [
        "10:00\n2026-11-21",
        "11:00",
        "00:00\n2026-11-22",
    ]);
});
