// SPDX-License-Identifier: PostgreSQL
/** Small pictures for cells: a histogram, and a bar divided by class of activity. */
import { drawn } from "../dom";
import type { Detail, Table } from "../model";
import type { ActivityClass } from "../look/palette";
import { figure, percent, whole } from "../units";

export type Histogram = Detail["histogram"];

export interface Span {
    readonly low: number;
    readonly high: number;
}

/** Where a bar ends; one without an end is drawn an octave wide. */
const endOf = ([from, to]: Histogram[number]): number => to ?? from * 2;

/** From the fastest to the slowest of all rows, so that their histograms can be compared. */
export function spanOf(histograms: readonly Histogram[]): Span {
    let low = Infinity;
    let high = 0;
    for (const histogram of histograms) {
        low = Math.min(low, histogram[0]?.[0] || Infinity);
        const last = histogram[histogram.length - 1];
        if (last) high = Math.max(high, endOf(last));
    }
    if (low >= high) return { low: 1e-6, high: 1 };
    // Less than a decade would make a broad block of a single bar.
    const pad = Math.sqrt(Math.max(10 / (high / low), 1));
    return { low: low / pad, high: high * pad };
}

/** Bars over a logarithmic scale of time, the tallest as high as the picture. */
export function histogramPath(histogram: Histogram, { low, high }: Span, width: number, height: number): string {
    const scale = width / Math.log(high / low);
    const x = (seconds: number): number => Math.log(Math.max(seconds, low) / low) * scale;
    const density = (bar: Histogram[number]): number => bar[2] / Math.max(x(endOf(bar)) - x(bar[0]), 1e-6);
    const most = Math.max(0, ...histogram.map(density));
    let path = "";
    for (const bar of histogram) {
        if (bar[2] === 0) continue;
        // The rarest is the most interesting: it stays visible.
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
    const said =
        first && last
            ? `${whole(all)} from ${figure(first[0], "seconds")} to ${figure(endOf(last), "seconds")}`
            : "nothing";
    return drawn(
        "svg",
        { class: "spark", width: String(WIDE), height: String(HIGH), viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": said },
        drawn("title", {}, said),
        drawn("path", { d: histogramPath(histogram, span, WIDE, HIGH) }),
    );
}

/** The columns that hold a row's parts by class, as the command names them. */
const PARTS: readonly ActivityClass[] = ["cpu", "io", "lwlock", "lock", "client", "ipc", "other"];

/** Where a table has a row's parts, by class; none if it has no such columns. */
export function partColumns(table: Table): { class: ActivityClass; column: number }[] {
    return PARTS.map((one) => ({
        class: one,
        column: table.columns.findIndex(({ key, unit }) => key === `${one}_share` && unit === "share"),
    })).filter(({ column }) => column >= 0);
}

/** A bar as wide as the whole, each part as wide as its share. */
export function splitbar(parts: readonly { class: ActivityClass; share: number }[]): SVGElement {
    let at = 0;
    const said = parts
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
        { class: "split", width: String(WIDE), height: String(HIGH), viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": said },
        drawn("title", {}, said),
        ...bars,
    );
}
