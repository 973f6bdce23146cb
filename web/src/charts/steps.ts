// SPDX-License-Identifier: PostgreSQL
/**
 * Draws curves as steps: each value holds until the next point, because it is a mean over that time; a gap stays empty.
 * If several points share a pixel, the line is their mean, over a pale bar from their minimum to their maximum.
 */
import type uPlot from "uplot";

interface Frame {
    /** Canvas pixels of a time and of a value. */
    x(time: number): number;
    y(value: number): number;
    bottom: number;
    perPixel: number;
}

function frame(u: uPlot, scale: string, from: number, to: number): Frame | undefined {
    const { left, top, width, height } = u.bbox;
    const { min: x0, max: x1 } = u.scales["x"] ?? {};
    const { min: y0, max: y1 } = u.scales[scale] ?? {};
    if (x0 === undefined || x1 === undefined || y0 === undefined || y1 === undefined) return undefined;
    const perTime = width / (x1 - x0);
    const perValue = height / (y1 - y0);
    return {
        x: (time) => left + (time - x0) * perTime,
        y: (value) => top + height - (value - y0) * perValue,
        bottom: top + height,
        perPixel: (to - from) / width,
    };
}

/** With more points per pixel than this, they are combined. */
const CROWDED = 2;

function lineOf(
    f: Frame,
    times: ArrayLike<number>,
    values: ArrayLike<number | null>,
    from: number,
    to: number,
): Path2D {
    const path = new Path2D();
    let drawing = false;
    for (let i = from; i <= to; i++) {
        const value = values[i];
        const begin = times[i];
        const end = times[i + 1];
        if (value === null || value === undefined || begin === undefined || end === undefined) {
            drawing = false;
            continue;
        }
        const y = f.y(value);
        if (drawing) path.lineTo(f.x(begin), y);
        else path.moveTo(f.x(begin), y);
        path.lineTo(f.x(end), y);
        drawing = true;
    }
    return path;
}

/** For each pixel, a bar from minimum to maximum of its points, and their mean as a line. */
function crowdOf(
    f: Frame,
    times: ArrayLike<number>,
    values: ArrayLike<number | null>,
    from: number,
    to: number,
): [mean: Path2D, spread: Path2D] {
    const mean = new Path2D();
    const spread = new Path2D();
    let column = NaN;
    let min = 0;
    let max = 0;
    let sum = 0;
    let points = 0;
    let drawing = false;
    const flush = (): void => {
        if (points === 0) return;
        const y = f.y(sum / points);
        if (drawing) mean.lineTo(column, y);
        else mean.moveTo(column, y);
        spread.rect(column, f.y(max), 1, f.y(min) - f.y(max));
        drawing = true;
        points = 0;
    };
    for (let i = from; i <= to; i++) {
        const value = values[i];
        const begin = times[i];
        if (value === null || value === undefined || begin === undefined) {
            flush();
            drawing = false;
            continue;
        }
        const x = Math.round(f.x(begin));
        if (x !== column || points === 0) {
            flush();
            column = x;
            min = max = value;
            sum = 0;
        }
        min = Math.min(min, value);
        max = Math.max(max, value);
        sum += value;
        points++;
    }
    flush();
    return [mean, spread];
}

/** For uPlot: the area under the steps. */
export function areaPaths(u: uPlot, series: number, first: number, last: number): uPlot.Series.Paths | null {
    const scale = u.series[series]?.scale ?? "y";
    const times = u.data[0];
    const values = u.data[series] as ArrayLike<number | null> | undefined;
    const f = frame(u, scale, first, last);
    if (!f || !values) return null;
    const from = Math.max(0, first - 1);
    const fill = new Path2D();
    let open = false;
    let edge = 0;
    const close = (): void => {
        if (open) {
            fill.lineTo(edge, f.bottom);
            fill.closePath();
        }
        open = false;
    };
    for (let i = from; i <= last; i++) {
        const value = values[i];
        const begin = times[i];
        const end = times[i + 1];
        if (value === null || value === undefined || begin === undefined || end === undefined) {
            close();
            continue;
        }
        const y = f.y(value);
        if (!open) fill.moveTo(f.x(begin), f.bottom);
        fill.lineTo(f.x(begin), y);
        edge = f.x(end);
        fill.lineTo(edge, y);
        open = true;
    }
    close();
    // Draw the upper edges of wide steps, so that areas are distinct even without colours.
    return {
        stroke: f.perPixel < 0.3 ? lineOf(f, times, values, from, last) : null,
        fill,
        clip: null,
        flags: 1,
    };
}

/** For uPlot: the steps as a line. */
export function linePaths(u: uPlot, series: number, first: number, last: number): uPlot.Series.Paths | null {
    const scale = u.series[series]?.scale ?? "y";
    const times = u.data[0];
    const values = u.data[series] as ArrayLike<number | null> | undefined;
    const f = frame(u, scale, first, last);
    if (!f || !values) return null;
    const from = Math.max(0, first - 1);
    if (f.perPixel <= CROWDED)
        return { stroke: lineOf(f, times, values, from, last), fill: null, clip: null, flags: 1 };
    const [mean, spread] = crowdOf(f, times, values, from, last);
    return { stroke: mean, fill: spread, clip: null, flags: 1 };
}
