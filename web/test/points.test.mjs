// SPDX-License-Identifier: PostgreSQL
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { pointAt, pointsIn, stacked, summary } = await load("charts/points.ts");
const { View } = await load("view.ts");
const { ordered } = await load("tables/order.ts");
const { csv, json } = await load("tables/export.ts");

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
