// SPDX-License-Identifier: PostgreSQL
/** Draws messages as bars, and one of them as a waterfall: names on the left, time from left to right. */
import { element } from "../dom";
import { duration } from "../units";
import type { Message } from "./model";
import { rowsOf, spansOf, type Row, type Span } from "./rows";

/** Maximum number of rows in a waterfall; omitted rows are counted. */
const MOST_ROWS = 500;
/** Number of parts of a bar that can be distinguished. */
const MOST_PARTS = 300;
/** Approximate number of labels on the axis. */
const LABELS = 6;

const time = (ns: number): string => duration(ns / 1e9);

function piece(kind: string, from: number, to: number): HTMLElement {
    const bar = element("i", { class: `of-${kind}` });
    bar.style.left = `${from * 100}%`;
    bar.style.width = `${Math.max(to - from, 0) * 100}%`;
    return bar;
}

/**
 * Parts in position, on a scale from `start` over `length` ns. Parts too narrow to be seen are combined into one, in the colour
 * of the kind that takes most of the time.
 */
function parts(spans: readonly Span[], start: number, length: number): HTMLElement[] {
    const drawn: HTMLElement[] = [];
    const cell = spans.length > MOST_PARTS ? length / MOST_PARTS : 0;
    let sums = new Map<string, number>();
    let [from, until] = [0, 0];
    const put = (): void => {
        const [most] = [...sums].sort((a, b) => b[1] - a[1]);
        if (most !== undefined) drawn.push(piece(most[0], (from - start) / length, (until - start) / length));
    };
    for (const span of spans) {
        const end = span.start + span.length;
        const continues = sums.size === 1 && sums.has(span.kind) && span.start - until <= cell / 2;
        if (!continues && (sums.size === 0 || end - from > cell)) {
            put();
            sums = new Map();
            from = span.start;
        }
        sums.set(span.kind, (sums.get(span.kind) ?? 0) + span.length);
        until = end;
    }
    put();
    return drawn;
}

/** The parts of a message, as wide as its share of the longest message. */
export function bar(message: Message, longest: number): HTMLElement {
    const length = Math.max(message.end - message.start, 1);
    const fill = element("div", { class: "whole" }, ...parts(spansOf(message), message.start, length));
    fill.style.width = `${(100 * length) / Math.max(longest, 1)}%`;
    return element("div", { class: "track" }, fill);
}

/** Round steps of an axis: 1, 2 or 5 times a power of ten. */
export function stepOf(length: number): number {
    const raw = length / LABELS;
    const power = 10 ** Math.floor(Math.log10(raw));
    return ([1, 2, 5, 10].find((n) => n * power >= raw) ?? 10) * power;
}

function axis(length: number): HTMLElement {
    const axis = element("div", { class: "axis", "aria-hidden": "true" });
    const step = stepOf(length);
    for (let at = 0; at < length * 0.96; at += step) {
        const label = element("span", {}, time(at));
        label.style.left = `${(100 * at) / length}%`;
        axis.append(label);
    }
    return axis;
}

function rowOf(row: Row, start: number, length: number): HTMLElement {
    const name = element(
        "div",
        { class: "name", title: `${row.name} ${row.detail}`.trim() },
        element("b", {}, row.name),
        row.detail === "" ? null : ` ${row.detail}`,
    );
    name.style.paddingLeft = `${row.depth}em`;
    const took = row.total ?? row.length;
    const track = element("div", { class: "track" });
    if (row.length !== null) track.append(piece("whole", (row.start - start) / length, (row.start + row.length - start) / length));
    track.append(...parts(row.spans, start, length));
    if (row.length === null && row.spans.length === 0) {
        const mark = element("u");
        mark.style.left = `${(100 * (row.start - start)) / length}%`;
        track.append(mark);
    }
    return element(
        "div",
        { class: row.failed ? "row failed" : "row", role: "row" },
        name,
        element("div", { class: "at" }, time(Math.max(row.start - start, 0))),
        element("div", { class: "took" }, took === null ? "" : time(took)),
        track,
    );
}

/** The waterfall of a message. */
export function waterfall(message: Message): HTMLElement {
    const length = Math.max(message.end - message.start, 1);
    const rows = rowsOf(message);
    const head = element(
        "div",
        { class: "row head", role: "row" },
        element("div", { class: "name" }, "what"),
        element("div", { class: "at" }, "from"),
        element("div", { class: "took" }, "time"),
        axis(length),
    );
    const left = rows.length - MOST_ROWS;
    return element(
        "div",
        { class: "waterfall", role: "table", "aria-label": "Waterfall of the message" },
        head,
        ...rows.slice(0, MOST_ROWS).map((row) => rowOf(row, message.start, length)),
        left > 0 ? element("p", { class: "note" }, `${left} more rows not shown.`) : null,
    );
}
