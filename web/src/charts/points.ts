// SPDX-License-Identifier: PostgreSQL
/**
 * The points of a chart: the start of each, and the end of the last one. A value is valid from its point to the next;
 * null is a gap.
 */
import type { Axis, Chart } from "../model";
import type { Range } from "../view";

export type Values = (number | null)[];

export interface Points {
    /** The start of each point, and the end of the last. */
    readonly edges: number[];
    /** Measured seconds of each point. */
    readonly seconds: readonly number[];
    /** The values of each series, one per point. */
    readonly values: readonly (readonly (number | null)[])[];
}

export function pointsOf(chart: Chart, axis: Axis, end: number): Points {
    const edges = axis.time.slice();
    const last = edges[edges.length - 1];
    if (last !== undefined) edges.push(Math.max(end, last + 1e-3));
    return { edges, seconds: axis.seconds, values: chart.series.map((series) => series.values) };
}

/** The index of the point that contains `time`, or -1. */
export function pointAt(edges: readonly number[], time: number): number {
    const last = edges.length - 1;
    if (last < 1 || time < (edges[0] ?? 0) || time > (edges[last] ?? 0)) return -1;
    let low = 0;
    let high = last;
    while (high - low > 1) {
        const middle = (low + high) >> 1;
        if ((edges[middle] ?? 0) <= time) low = middle;
        else high = middle;
    }
    return low;
}

/** From when to when the point at `time` is; null if there is none. */
export function rangeAt(edges: readonly number[], time: number): Range | null {
    const at = pointAt(edges, time);
    const [from, to] = [edges[at], edges[at + 1]];
    return from === undefined || to === undefined ? null : { from, to };
}

/** The indexes of the points that overlap a range; `to` is exclusive. */
export function pointsIn(edges: readonly number[], range: Range): [from: number, to: number] {
    const from = Math.max(0, pointAt(edges, Math.max(range.from, edges[0] ?? 0)));
    const last = pointAt(edges, Math.min(range.to, edges[edges.length - 1] ?? 0));
    const touches = last >= 0 && (edges[last] ?? 0) < range.to;
    return [from, Math.max(from, touches ? last + 1 : last)];
}

export interface Summary {
    /** The mean, weighted by measured time; null if nothing was measured. */
    readonly mean: number | null;
    readonly max: number | null;
}

/** Mean and maximum of a series in a range. */
export function summary(points: Points, series: number, range: Range): Summary {
    const [from, to] = pointsIn(points.edges, range);
    const values = points.values[series] ?? [];
    let sum = 0;
    let weight = 0;
    let max: number | null = null;
    for (let i = from; i < to; i++) {
        const value = values[i];
        if (value === null || value === undefined) continue;
        const seconds = points.seconds[i] ?? 0;
        sum += value * seconds;
        weight += seconds;
        if (max === null || value > max) max = value;
    }
    return { mean: weight > 0 ? sum / weight : null, max };
}

/** Stacks the shown series in order; null if they are null. */
export function stacked(
    values: readonly (readonly (number | null)[])[],
    shown: readonly boolean[],
): Values[] {
    const length = values[0]?.length ?? 0;
    const below = new Array<number>(length).fill(0);
    return values.map((one, series) => {
        const tops: Values = new Array<number | null>(length);
        for (let i = 0; i < length; i++) {
            const value = one[i];
            if (value !== null && value !== undefined && shown[series]) below[i] = (below[i] ?? 0) + value;
            tops[i] = value === null || value === undefined ? null : (below[i] ?? 0);
        }
        return tops;
    });
}
