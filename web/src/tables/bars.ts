// SPDX-License-Identifier: PostgreSQL
/** Small pictures in cells: a histogram, and a bar divided by class of activity. */
import { drawn } from "../dom";
import type { Detail, Table } from "../model";
import type { ActivityClass } from "../look/palette";
import { figure, percent, whole } from "../units";

export type Histogram = Detail["histogram"];

export interface Span {
    readonly low: number;
    readonly high: number;
}

/** The end of a bar; an open-ended one is drawn up to twice its start. */
const endOf = ([from, to]: Histogram[number]): number => to ?? from * 2;

/** From the fastest to the slowest in all rows, so that histograms can be compared. */
export function spanOf(histograms: readonly Histogram[]): Span {
    let low = Infinity;
    let high = 0;
    for (const histogram of histograms) {
        low = Math.min(low, histogram[0]?.[0] || Infinity);
        const last = histogram[histogram.length - 1];
        if (last) high = Math.max(high, endOf(last));
    }
    if (low >= high) return { low: 1e-6, high: 1 };
    // At least a decade, or a single bar would fill the picture.
    const pad = Math.sqrt(Math.max(10 / (high / low), 1));
    return { low: low / pad, high: high * pad };
}

/** Bars on a logarithmic time scale; the tallest has the height of the picture. */
export function histogramPath(
    histogram: Histogram,
    { low, high }: Span,
    width: number,
    height: number,
): string {
    const scale = width / Math.log(high / low);
    const x = (seconds: number): number => Math.log(Math.max(seconds, low) / low) * scale;
    const density = (bar: Histogram[number]): number => bar[2] / Math.max(x(endOf(bar)) - x(bar[0]), 1e-6);
    const most = Math.max(0, ...histogram.map(density));
    let path = "";
    for (const bar of histogram) {
        if (bar[2] === 0) continue;
        // Rare executions matter most, so their bars stay visible.
        const tall = Math.max((density(bar) / most) * height, 0.75);
        const [a, b] = [x(bar[0]), x(endOf(bar))].map((at) => at.toFixed(1));
        path += `M${a} ${height}V${(height - tall).toFixed(1)}H${b}V${height}Z`;
    }
    return path;
}

const WIDE = 108;
const HIGH = 18;

export function sparkbar(histogram: Histogram, span: Span): SVGElement {
    const all = histogram.reduce((sum, [, , count]) => sum + count, 0);
    const last = histogram[histogram.length - 1];
    const first = histogram[0];
    const label =
        first && last
            ? `${whole(all)} from ${figure(first[0], "seconds")} to ${figure(endOf(last), "seconds")}`
            : "nothing";
    return drawn(
        "svg",
        {
            class: "spark",
            width: String(WIDE),
            height: String(HIGH),
            viewBox: `0 0 ${WIDE} ${HIGH}`,
            role: "img",
            "aria-label": label,
        },
        drawn("title", {}, label),
        drawn("path", { d: histogramPath(histogram, span, WIDE, HIGH) }),
    );
}

/** The classes into which the command splits a row's time, one column each. */
const PARTS: readonly ActivityClass[] = ["cpu", "io", "lwlock", "lock", "client", "ipc", "other"];

/** The columns with shares by class; empty if the table has none. */
export function partColumns(table: Table): { class: ActivityClass; column: number }[] {
    return PARTS.map((one) => ({
        class: one,
        column: table.columns.findIndex(({ key, unit }) => key === `${one}_share` && unit === "share"),
    })).filter(({ column }) => column >= 0);
}

/** A bar divided by share. */
export function splitbar(parts: readonly { class: ActivityClass; share: number }[]): SVGElement {
    let at = 0;
    const label = parts
        .filter(({ share }) => share >= 0.0005)
        .map((part) => `${part.class} ${percent(part.share)}`)
        .join(", ");
    const bars = parts.map((part) => {
        const bar = drawn("rect", {
            class: part.class,
            x: (at * WIDE).toFixed(2),
            y: "3",
            width: Math.max(part.share * WIDE - 0.5, 0).toFixed(2),
            height: "12",
        });
        at += part.share;
        return bar;
    });
    return drawn(
        "svg",
        {
            class: "split",
            width: String(WIDE),
            height: String(HIGH),
            viewBox: `0 0 ${WIDE} ${HIGH}`,
            role: "img",
            "aria-label": label,
        },
        drawn("title", {}, label),
        ...bars,
    );
}
