// SPDX-License-Identifier: PostgreSQL
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { bytes, cell, count, duration, estimate, figure, numeric, relative, tick, whole } = await load("units.ts");
const clock = await load("clock.ts");
const { ticks } = clock;
const { when } = await load("charts/when.ts");
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

test("an estimate has its sign and half of its interval, a share only its sign", () => {
    // The cases of crates/view/src/measured.rs.
    const cases = [
        [12.34, 0.8, "~12.3 s ± 0.80"],
        [0.25, 0.12, "~250 ms ± 120"],
        [0.1, 0.25, "~100 ms ± 250"],
        [0, 0.2, "~0 ms ± 200"],
        [186, 6, "~3.10 min ± 0.10"],
    ];
    for (const [seconds, half, text] of cases) assert.equal(plain(estimate(seconds, half, "seconds")), text);
    assert.equal(estimate(2, 0.5, "sessions"), "~2.00 ± 0.50");
    assert.equal(plain(estimate(0.123, 0.01, "share")), "~12.3 %");
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

test("a change is a percentage, and a factor from three times on", () => {
    // The cases of crates/view/src/measured.rs.
    for (const [change, text] of [
        [0.01234, "+1.2 %"],
        [-0.04, "-4.0 %"],
        [1.85, "+185.0 %"],
        [11.3, "12.3 times"],
        [1_023.711, "1,025 times"],
        [5e7, "more than 10,000 times"],
        [-0.9997, "-99.97 %"],
        [-1, "-100.0 %"],
    ]) {
        assert.equal(plain(relative(change)), text);
        assert.equal(plain(figure(change, "change")), text);
    }
});

test("units change where three digits round up", () => {
    for (const [seconds, text] of [
        [999.4e-9, "999 ns"],
        [999.5e-9, "1.00 us"],
        [999.4e-6, "999 us"],
        [999.5e-6, "1.00 ms"],
        [0.9994, "999 ms"],
        [0.9995, "1.00 s"],
        [9.994, "9.99 s"],
        [9.995, "10.0 s"],
        [99.94, "99.9 s"],
        [99.95, "100 s"],
        [119.4, "119 s"],
        [119.5, "1.99 min"],
        [7169, "119 min"],
        [7170, "1.99 h"],
        [171_900, "47.8 h"],
        [172_000, "1.99 d"],
        [-2.5, "-2.50 s"],
        [-12.34, "-12.3 s"],
    ]) {
        assert.equal(plain(duration(seconds)), text);
    }
    for (const [n, text] of [
        [999.4, "999"],
        [999.5, "1.00k"],
        [1000, "1k"],
        [999_400, "999k"],
        [999_500, "1.00M"],
        [999.4e6, "999M"],
        [999.5e6, "1.00G"],
    ]) {
        assert.equal(count(n), text);
    }
    for (const [n, text] of [
        [0, "0 B"],
        [999.4, "999 B"],
        [999.5, "0.98 kB"],
        [1_000_000, "977 kB"],
        [999.6 * 2 ** 20, "0.98 GB"],
        [999.6 * 2 ** 30, "0.98 TB"],
        [2 ** 20, "1 MB"],
        [1.5 * 2 ** 30, "1.50 GB"],
        [2 ** 41, "2 TB"],
    ]) {
        assert.equal(plain(bytes(n)), text);
    }
});

test("each unit has its own text", () => {
    for (const [unit, text] of [
        ["seconds", "12.5 s"],
        ["count", "12.5"],
        ["number", "12.5"],
        ["per_second", "12.5/s"],
        ["sessions", "12.50"],
        ["bytes", "12.5 B"],
        ["bytes_per_second", "12.5 B/s"],
        ["share", "1250.0 %"],
        ["id", "12.5"],
    ]) {
        assert.equal(plain(figure(12.5, unit)), text);
    }
    assert.equal(cell(1234, "count", "UTC"), "1,234");
    assert.equal(cell("<b>", "text", "UTC"), "<b>");
    assert.equal(figure(undefined, "count"), "–");
    assert.equal(duration(2.5), "2.50\u00a0s", "a figure and its unit stay in one line");
    const units = ["text", "id", "time", "count", "seconds", "share"];
    assert.deepEqual(units.filter(numeric), ["time", "count", "seconds", "share"]);
});

test("a missing figure is a dash in a chart and empty in a table", () => {
    assert.equal(figure(null, "seconds"), "–");
    assert.equal(figure(NaN, "seconds"), "–");
    assert.equal(figure(Infinity, "sessions"), "–");
    assert.equal(count(NaN), "–");
    assert.equal(cell(null, "seconds", "UTC"), "");
    assert.equal(plain(cell(0.2334, "share", "UTC")), "23.3 %");
    assert.equal(cell(1795255200, "time", "UTC"), "2026-11-21 10:00:00");
});

/** Calls `run` with the time zone of the process set to `zone`. */
function inZone(zone, run) {
    const before = process.env.TZ;
    process.env.TZ = zone;
    try {
        run();
    } finally {
        if (before === undefined) delete process.env.TZ;
        else process.env.TZ = before;
    }
}

test("an offset has the sign and the minutes of its zone", () => {
    for (const [zone, text, ahead] of [
        ["Etc/UTC", "UTC", 0],
        ["Asia/Kolkata", "UTC+5:30", 19_800],
        ["Asia/Tokyo", "UTC+9", 32_400],
        ["America/St_Johns", "UTC−3:30", -12_600],
        ["America/New_York", "UTC−5", -18_000],
    ])
        inZone(zone, () => {
            assert.equal(clock.offset(1795255200), text);
            assert.equal(clock.offsetSeconds(1795255200) + 0, ahead);
        });
});

test("an offset is that of the season", () => {
    inZone("Europe/Berlin", () => {
        assert.equal(clock.offset(Date.parse("2026-07-01T12:00:00Z") / 1000), "UTC+2");
        assert.equal(clock.offset(Date.parse("2026-12-01T12:00:00Z") / 1000), "UTC+1");
    });
});

test("an instant is shown in the chosen zone, then in the other", () => {
    inZone("Asia/Kolkata", () => {
        assert.deepEqual(when(1795255200.25, 1, "UTC"), { title: "10:00:00 UTC", subtitle: "15:30:00 UTC+5:30" });
        assert.deepEqual(when(1795255200.25, 1, "local"), { title: "15:30:00 UTC+5:30", subtitle: "10:00:00 UTC" });
    });
    inZone("Etc/UTC", () => {
        assert.deepEqual(when(1795255200.25, 0.5, "UTC"), { title: "10:00:00.2 UTC", subtitle: "2026-11-21" });
    });
    assert.equal(plain(when(125, 1, "elapsed").title), "2:05 min");
    inZone("Asia/Kolkata", () => assert.equal(cell(1795255200, "time", "local"), "2026-11-21 15:30:00"));
});

test("instants have the digits that are asked for", () => {
    const at = 1795255205.257;
    assert.equal(clock.date(at, "UTC"), "2026-11-21");
    assert.equal(clock.date(at, "elapsed"), "");
    assert.equal(clock.clock(at, "UTC"), "10:00");
    assert.equal(clock.seconds(at, "UTC"), "10:00:05");
    assert.equal(clock.fine(at, "UTC"), "10:00:05.2");
    assert.equal(clock.milliseconds(at, "UTC"), "10:00:05.257");
    assert.equal(clock.instant(at, "UTC"), "2026-11-21 10:00:05");
    assert.equal(clock.iso(at), "2026-11-21T10:00:05.257Z");
});

test("times since the beginning change their unit at two minutes and at two hours", () => {
    for (const [time, text] of [
        [2.54, "2.5 s"],
        [119.4, "119.4 s"],
        [119.5, "2:00 min"],
        [3599, "59:59 min"],
        [7199, "119:59 min"],
        [7200, "2:00:00 h"],
        [7261, "2:01:01 h"],
    ])
        assert.equal(plain(clock.elapsed(time)), text);
});

test("labels of ticks are as fine as their distance", () => {
    const day = "2026-11-21";
    for (const [increment, text] of [
        [86_400, day],
        [86_399, `10:00\n${day}`],
        [60, `10:00\n${day}`],
        [59, `10:00:00\n${day}`],
        [1, `10:00:00\n${day}`],
        [0.5, `10:00:00.0\n${day}`],
    ])
        assert.deepEqual(ticks([1795255200], increment, "UTC"), [text]);
    assert.deepEqual(ticks([60, 120], 60, "elapsed").map(plain), ["60 s", "2:00 min"]);
});

test("ticks have no superfluous digits", () => {
    assert.equal(tick(0.30000000000000004, "sessions"), "0.3");
    assert.equal(tick(1.2345, "sessions"), "1.2345");
    assert.equal(tick(10.000000000000002, "count"), "10");
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
