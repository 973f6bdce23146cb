// SPDX-License-Identifier: PostgreSQL
/**
 * A chart's points as its plot has them: where each begins, and one more instant at which the last
 * one ends. A value holds from its point to the next one; null is a gap.
 */
import type { Axis, Chart } from "../model";
import type { Range } from "../view";

export type Values = (number | null)[];

export interface Points {
    /** Beginnings, and the end of the last. */
    readonly edges: number[];
    /** How much of each was measured. */
    readonly seconds: readonly number[];
    /** Of each series, as many as there are points. */
    readonly values: readonly (readonly (number | null)[])[];
}

export function pointsOf(chart: Chart, axis: Axis, end: number): Points {
    const edges = axis.time.slice();
    const last = edges[edges.length - 1];
    if (last !== undefined) edges.push(Math.max(end, last + 1e-3));
    return { edges, seconds: axis.seconds, values: chart.series.map((series) => series.values) };
}

/** The point that holds `time`, or -1. */
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

/** The points that a range touches: from the first one up to, not including, the last. */
export function pointsIn(edges: readonly number[], range: Range): [from: number, to: number] {
    const from = Math.max(0, pointAt(edges, Math.max(range.from, edges[0] ?? 0)));
    const last = pointAt(edges, Math.min(range.to, edges[edges.length - 1] ?? 0));
    const touches = last >= 0 && (edges[last] ?? 0) < range.to;
    return [from, Math.max(from, touches ? last + 1 : last)];
}

export interface Summary {
    /** The mean over what was measured, each point weighing as long as it is; null if nothing was. */
    readonly mean: number | null;
    readonly max: number | null;
}

/** What a series was in a range. */
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

/** Each of the shown series on top of those before it; null where all of them are. */
export function stacked(values: readonly (readonly (number | null)[])[], shown: readonly boolean[]): Values[] {
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
