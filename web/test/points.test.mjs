// SPDX-License-Identifier: PostgreSQL
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { pointAt, pointsIn, pointsOf, stacked, summary } = await load("charts/points.ts");
const { View } = await load("view.ts");
const { asGiven, matches, ordered } = await load("tables/order.ts");
const { histogramPath, partColumns, spanOf, sparkbar, splitbar } = await load("tables/bars.ts");
const { csv, json, withHalfWidths } = await load("tables/export.ts");

const edges = [0, 1, 2, 4, 5];
const points = { edges, seconds: [1, 1, 2, 0], values: [[1, 3, 6, null]] };

test("an instant belongs to the point that contains it", () => {
    assert.deepEqual(
        [0, 0.99, 1, 3.9, 4, 5, 5.1, -0.1].map((t) => pointAt(edges, t)),
        [0, 0, 1, 2, 3, 3, -1, -1],
    );
    assert.deepEqual(pointsIn(edges, { from: 0, to: 5 }), [0, 4]);
    assert.deepEqual(pointsIn(edges, { from: 1, to: 2 }), [1, 2]);
    assert.deepEqual(pointsIn(edges, { from: 1.5, to: 2.5 }), [1, 3]);
});

test("a mean weights each point by its measured time", () => {
    assert.deepEqual(summary(points, 0, { from: 0, to: 5 }), { mean: (1 + 3 + 12) / 4, max: 6 });
    assert.deepEqual(summary(points, 0, { from: 4, to: 5 }), { mean: null, max: null });
    const missing = { edges: [0, 1, 2], seconds: [1, 1], values: [[null, 4]] };
    assert.deepEqual(summary(missing, 0, { from: 0, to: 2 }), { mean: 4, max: 4 }, "time without a value does not count");
});

test("a stack adds what is shown and keeps gaps", () => {
    const values = [
        [1, 2, null],
        [10, 20, null],
        [100, 200, null],
    ];
    assert.deepEqual(stacked(values, [true, true, true]), [
        [1, 2, null],
        [11, 22, null],
        [111, 222, null],
    ]);
    assert.deepEqual(stacked(values, [true, false, true]), [
        [1, 2, null],
        [1, 2, null],
        [101, 202, null],
    ]);
});

test("a view stays within the recording and follows it when it grows", () => {
    const view = new View({ from: 0, to: 100 }, 1, "UTC", "light");
    view.zoom(90, 130);
    assert.deepEqual(view.range, { from: 60, to: 100 });
    view.zoom(50, 50.1);
    assert.equal(view.range.to - view.range.from, 4);
    view.reset();
    view.grow({ from: 10, to: 110 });
    assert.deepEqual(view.range, { from: 10, to: 110 });
    view.zoom(90, 110);
    view.grow({ from: 20, to: 120 });
    assert.deepEqual(view.range, { from: 100, to: 120 }, "a view of the end stays at the end");
    view.zoom(30, 50);
    view.grow({ from: 40, to: 140 });
    assert.deepEqual(view.range, { from: 40, to: 60 }, "what it showed is no longer recorded");
});

test("the last point lasts to the end of the recording", () => {
    const of = (end) => pointsOf({ series: [{ values: [3] }] }, { time: [10], seconds: [1] }, end);
    assert.deepEqual(of(12), { edges: [10, 12], seconds: [1], values: [[3]] });
    assert.deepEqual(of(10).edges, [10, 10.001]);
    assert.deepEqual(pointsOf({ series: [] }, { time: [], seconds: [] }, 9).edges, []);
});

test("a view moves by shares of its width and widens around its middle", () => {
    const view = new View({ from: 0, to: 100 }, 1, "UTC", "light");
    assert.equal(view.zoomed, false);
    view.zoom(40, 60);
    assert.equal(view.zoomed, true);
    view.pan(0.5);
    assert.deepEqual(view.range, { from: 50, to: 70 });
    view.pan(-1);
    assert.deepEqual(view.range, { from: 30, to: 50 });
    view.scale(2);
    assert.deepEqual(view.range, { from: 20, to: 60 });
    view.scale(0.25);
    assert.deepEqual(view.range, { from: 35, to: 45 });
    const fine = new View({ from: 10, to: 110 }, 2, "UTC", "light");
    fine.zoom(50, 51);
    assert.deepEqual(fine.range, { from: 46.5, to: 54.5 }, "four points of two seconds");
    const short = new View({ from: 10, to: 13 }, 1, "UTC", "light");
    short.zoom(11, 12);
    assert.deepEqual(short.range, { from: 10, to: 13 }, "the recording has fewer points than the narrowest view");
});

test("what has not changed is not announced", () => {
    const view = new View({ from: 0, to: 100 }, 1, "UTC", "light");
    const heard = [];
    for (const what of ["range", "point", "data", "zone", "theme"]) view.on(what, (value) => heard.push([what, value]));
    view.zoom(0, 100);
    view.zoom(0, 50);
    view.zoom(0, 50);
    view.pointAt(3);
    view.pointAt(3);
    view.pointAt(null);
    view.setZone("local");
    view.setTheme("dark");
    assert.deepEqual(heard, [
        ["range", { from: 0, to: 50 }],
        ["point", 3],
        ["point", null],
        ["zone", "local"],
        ["theme", "dark"],
    ]);
    assert.deepEqual([view.zone, view.theme, view.point], ["local", "dark", null]);
});

test("listeners are removed when aborted", () => {
    const view = new View({ from: 0, to: 100 }, 1, "UTC", "light");
    const end = new AbortController();
    let heard = 0;
    view.on("range", () => heard++, end.signal);
    view.zoom(0, 50);
    end.abort();
    view.zoom(0, 40);
    assert.equal(heard, 1);
});

test("rows are sorted by value, missing values last, equal ones in their order", () => {
    const rows = [
        ["b", 2],
        ["a", null],
        ["c", 2],
        ["a10", 10],
        ["a9", 1],
    ];
    assert.deepEqual(ordered(rows, { column: 1, down: true }), [3, 0, 2, 4, 1]);
    assert.deepEqual(ordered(rows, { column: 1, down: false }), [4, 0, 2, 3, 1]);
    assert.deepEqual(ordered(rows, { column: 0, down: false }), [1, 4, 3, 0, 2]);
    const numbers = [[1.5], [1.25], [-3], [1e-7], [null], [null]];
    assert.deepEqual(ordered(numbers, { column: 0, down: false }), [2, 3, 1, 0, 4, 5]);
    assert.deepEqual(ordered(numbers, { column: 0, down: true }), [0, 1, 3, 2, 4, 5]);
});

test("a table is sorted as the report says, in its values' direction", () => {
    const table = (rows, sort = "n", unit = "count") => ({ sort, columns: [{ key: "name", unit: "text" }, { key: "n", unit }], rows });
    const cases = [
        [table([["a", 1], ["b", 2]]), { column: 1, down: false }],
        [table([["a", 2], ["b", 1]]), { column: 1, down: true }],
        [table([["a", 2], ["b", 2]]), { column: 1, down: true }],
        [table([["a", null], ["b", 2]]), { column: 1, down: true }],
        [table([["b", 1], ["a", 1]], "name"), { column: 0, down: false }],
        [table([["a", 1]], "other"), null],
    ];
    for (const [given, way] of cases) assert.deepEqual(asGiven(given), way);
    assert.deepEqual(ordered(cases[0][0].rows, null), [0, 1]);
});

test("a filter finds rows with all its words, in texts alone", () => {
    const table = { columns: [{ unit: "text" }, { unit: "text" }, { unit: "count" }, { unit: "count" }] };
    const row = ["SELECT abalance", "bench", 17, "18"];
    for (const [wanted, found] of [
        ["", true],
        ["select", true],
        ["Bench SEL", true],
        ["select other", false],
        ["17", false],
        ["18", false],
    ])
        assert.equal(matches(row, table, wanted), found, wanted);
});

test("histograms of all rows share a scale of at least a decade, and their areas are counts", () => {
    const wide = [[0.001, 0.01, 4], [0.01, 0.1, 0], [0.1, null, 1]];
    assert.deepEqual(spanOf([wide, [], [[0.002, 0.004, 1]]]), { low: 0.001, high: 0.2 });
    const narrow = spanOf([[[1, 2, 9]]]);
    assert.deepEqual([narrow.low, narrow.high].map((s) => s.toFixed(4)), ["0.4472", "4.4721"]);
    assert.deepEqual(spanOf([[]]), { low: 1e-6, high: 1 });
    // Three decades over 30 pixels: both bars are equally wide, so both have 4 pixels of height per count.
    const path = histogramPath([[0.001, 0.01, 4], [0.01, 0.1, 0], [0.1, 1, 1]], { low: 0.001, high: 1 }, 30, 16);
    assert.equal(path, "M0.0 16V0.0H10.0V16ZM20.0 16V12.0H30.0V16Z");
    // The same count over twice the width: half the height. Rare values stay visible.
    const widths = histogramPath([[0.001, 0.01, 40], [0.01, 1, 40]], { low: 0.001, high: 1 }, 30, 16);
    assert.equal(widths, "M0.0 16V0.0H10.0V16ZM10.0 16V8.0H30.0V16Z");
    const rare = histogramPath([[0.001, 0.01, 4000], [0.01, 0.1, 1]], { low: 0.001, high: 1 }, 30, 16);
    assert.match(rare, /V15\.3H20\.0V16Z$/);
    // Times too short to measure begin at zero, which has no logarithm.
    const first = [[0, 0.01, 1]];
    assert.deepEqual(spanOf([first, [[0.002, 0.04, 1]]]), { low: 0.002, high: 0.04 });
    assert.equal(histogramPath(first, { low: 0.001, high: 1 }, 30, 16), "M0.0 16V0.0H10.0V16Z");
    assert.deepEqual(spanOf([[[2, 2, 1]]]), { low: 1e-6, high: 1 });
});

/** The drawing, in a document that records it: name, attributes, children. */
function drawing(draw) {
    globalThis.document = {
        createElementNS: (_, name) => {
            const it = { name, children: [], setAttribute: (key, value) => (it[key] = value) };
            it.append = (...all) => it.children.push(...all);
            return it;
        },
    };
    try {
        return draw();
    } finally {
        delete globalThis.document;
    }
}

test("small pictures say in words what they show", () => {
    const label = (svg) => {
        const title = svg.children[0];
        assert.deepEqual([title.name, title.children], ["title", [svg["aria-label"]]]);
        return svg["aria-label"].replace(/\u00a0/g, " ");
    };
    const span = { low: 0.001, high: 1 };
    const spark = drawing(() => sparkbar([[0.001, 0.01, 1200], [0.1, null, 34]], span));
    assert.equal(label(spark), "1,234 from 1 ms to 200 ms");
    assert.equal(label(drawing(() => sparkbar([], span))), "nothing");
    const shares = { cpu: 0.25, io: 0.5, lock: 0.001, client: 0.0004 };
    const parts = Object.entries(shares).map(([key, share]) => ({ class: key, share }));
    const split = drawing(() => splitbar(parts));
    assert.equal(label(split), "cpu 25.0 %, io 50.0 %, lock 0.1 %");
    // 108 pixels, with half a pixel between bars.
    assert.deepEqual(
        split.children.slice(1).map((it) => [it.class, it.x, it.width]),
        [
            ["cpu", "0.00", "26.50"],
            ["io", "27.00", "53.50"],
            ["lock", "81.00", "0.00"],
            ["client", "81.11", "0.00"],
        ],
    );
});

test("a bar's parts are the columns with shares", () => {
    const columns = [["io_share", "share"], ["cpu_share", "share"], ["lock_share", "seconds"]];
    assert.deepEqual(partColumns({ columns: columns.map(([key, unit]) => ({ key, unit })) }), [
        { class: "cpu", column: 1 },
        { class: "io", column: 0 },
    ]);
});

test("files keep every character and every digit", () => {
    const sheet = {
        name: "x",
        columns: [
            { key: "query", unit: "text" },
            { key: "n", unit: "seconds" },
            { key: "at", unit: "time" },
        ],
        rows: [
            ['say "a",\nb', 0.1 + 0.2, 1795255200.25],
            [null, null, null],
        ],
    };
    assert.equal(
        csv(sheet),
        'query,n,at\r\n"say ""a"",\nb",0.30000000000000004,2026-11-21T10:00:00.250Z\r\n,,\r\n',
    );
    assert.deepEqual(JSON.parse(json(sheet))[0], {
        query: 'say "a",\nb',
        n: 0.1 + 0.2,
        at: "2026-11-21T10:00:00.250Z",
    });
});

test("files have the half-widths of estimates", () => {
    const table = {
        id: "waits",
        columns: [
            { key: "activity", unit: "text" },
            { key: "seconds", unit: "seconds" },
        ],
        rows: [
            ["cpu", 1.5],
            ["Lock:tuple", 2.5],
        ],
        half_widths: { seconds: [null, 0.25] },
    };
    assert.equal(
        csv(withHalfWidths(table, [1, 0])),
        "activity,seconds,seconds_half_width\r\nLock:tuple,2.5,0.25\r\ncpu,1.5,\r\n",
    );
    const exact = { ...table, half_widths: undefined };
    assert.equal(csv(withHalfWidths(exact, [0])), "activity,seconds\r\ncpu,1.5\r\n");
});
