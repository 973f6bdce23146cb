// SPDX-License-Identifier: PostgreSQL
/** A heat map: time to the right, latency upwards on a logarithmic scale, counts as lightness. */
import type uPlot from "uplot";
import { element } from "../dom";
import type { Ink } from "../look/ink";
import { ramp } from "../look/palette";
import type { Heatmap } from "../model";
import { count, duration, figure, tick } from "../units";
import type { Range, View } from "../view";
import { AXIS_WIDTH, FONT } from "./axes";
import type { Landmarks } from "./marks";
import { KEYS, Plot } from "./plot";
import { pointAt, pointsIn, rangeAt } from "./points";
import type { Content } from "./tooltip";
import { when } from "./when";

const HEIGHT = 280;
/** Minimum width of a cell in canvas pixels; narrower columns are drawn as one. */
const MIN_WIDTH = 2;

/** Counts by row. */
type Counts = Map<number, number>;

export class Heat {
    /** The legend of the colours. */
    readonly key = element("div", { class: "key" });
    private edges: number[];
    private readonly plot: Plot;

    constructor(
        host: HTMLElement,
        private map: Heatmap,
        private readonly view: View,
        landmarks: Landmarks,
        until: AbortSignal,
    ) {
        this.edges = edgesOf(map);
        this.plot = new Plot(
            host,
            view,
            landmarks,
            {
                height: HEIGHT,
                series: [{ scale: "y", paths: () => null, points: { show: false } }],
                yScale: { distr: 3, log: 10, range: () => this.span() },
                yAxis: (ink) => ({
                    scale: "y",
                    stroke: () => ink().faint,
                    font: FONT,
                    size: AXIS_WIDTH,
                    gap: 6,
                    splits: () => decades(...this.span()),
                    values: (_u, splits) => splits.map((value) => tick(value, map.unit)),
                    grid: { stroke: () => ink().grid, width: 1 },
                    ticks: { show: false },
                }),
                data: () => [this.edges, new Array<null>(this.edges.length).fill(null)],
                ground: (u, ink) => this.draw(u, ink),
                describe: (time, top) => this.describe(time, top),
                step: (time, by) => {
                    const at = Math.min(Math.max(pointAt(this.edges, time) + by, 0), this.edges.length - 2);
                    return (this.edges[at] ?? time) + this.map.step_seconds / 2;
                },
                point: (time) => rangeAt(this.edges, time),
            },
            `${map.title}. The arrow keys move from column to column. ${KEYS}`,
            until,
        );
    }

    /** The range of latencies that occur. */
    private span(): [low: number, high: number] {
        const { bounds, columns } = this.map;
        let lowest = bounds.length - 1;
        let highest = 0;
        for (const column of columns) {
            const first = column?.[0];
            if (!column || first === undefined) continue;
            lowest = Math.min(lowest, first);
            highest = Math.max(highest, first + column.length - 1);
        }
        const low = bounds[Math.min(lowest, bounds.length - 2)] ?? 1e-6;
        const high = bounds[Math.min(highest, bounds.length - 1)] ?? 1;
        return [low, Math.max(high, low * 10)];
    }

    /** The columns of a range added up, row by row. */
    private sum(from: number, to: number): Counts {
        const counts: Counts = new Map();
        for (let i = from; i < to; i++) {
            const column = this.map.columns[i];
            const first = column?.[0];
            if (!column || first === undefined) continue;
            for (let k = 1; k < column.length; k++) {
                const n = column[k] ?? 0;
                if (n > 0) counts.set(first + k - 1, (counts.get(first + k - 1) ?? 0) + n);
            }
        }
        return counts;
    }

    private draw(u: uPlot, ink: Ink): void {
        const { ctx, bbox } = u;
        const { edges, map, view } = this;
        const [first, last] = pointsIn(edges, view.range);
        // Groups of columns, each at least MIN_WIDTH wide.
        const groups: { left: number; right: number; counts: Counts; columns: number }[] = [];
        let most = 0;
        for (let i = first; i < last;) {
            const left = Math.round(u.valToPos(edges[i] ?? 0, "x", true));
            let next = i + 1;
            let right = left;
            while (next <= last) {
                right = Math.round(u.valToPos(edges[next] ?? 0, "x", true));
                if (right - left >= MIN_WIDTH) break;
                next++;
            }
            const counts = this.sum(i, next);
            const columns = next - i;
            for (const n of counts.values()) most = Math.max(most, n / columns);
            groups.push({ left, right, counts, columns });
            i = next;
        }
        const colours = ramp(ink.theme);
        const rows = map.bounds.map((bound) => Math.round(u.valToPos(bound, "y", true)));
        const scale = Math.log1p(most);
        ctx.save();
        ctx.beginPath();
        ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
        ctx.clip();
        for (const { left, right, counts, columns } of groups) {
            for (const [row, n] of counts) {
                const bottom = rows[row] ?? 0;
                const top = rows[row + 1] ?? bottom - 1;
                // Logarithmic, because counts differ by orders of magnitude.
                const strength = scale > 0 ? Math.log1p(n / columns) / scale : 0;
                ctx.fillStyle = colours[Math.round(strength * (colours.length - 1))] ?? ink.text;
                ctx.fillRect(left, top, Math.max(right - left, 1), Math.max(bottom - top, 1));
            }
        }
        ctx.restore();
        this.writeKey(colours, most);
    }

    /** From one to the maximum of a cell. */
    private writeKey(colours: readonly string[], most: number): void {
        const strip = element("i", {});
        const stops = colours.filter((_, i) => i % 9 === 0);
        strip.style.background = `linear-gradient(90deg, ${stops.join(", ")})`;
        this.key.replaceChildren("1", strip, `${count(most)} in ${duration(this.map.step_seconds)}`);
    }

    private describe(time: number, top: number): Content | null {
        const { edges, map } = this;
        const at = pointAt(edges, time);
        const begin = edges[at];
        if (at < 0 || begin === undefined) return null;
        const counts = this.sum(at, at + 1);
        const all = [...counts.values()].reduce((sum, n) => sum + n, 0);
        const lines: { name: string; value: string; colour: string | null }[] = [];
        const row = this.rowAt(top);
        const [low, high] = [map.bounds[row], map.bounds[row + 1]];
        if (low !== undefined && high !== undefined) {
            lines.push({
                name: `${figure(low, map.unit)} to ${figure(high, map.unit)}`,
                value: count(counts.get(row) ?? 0),
                colour: null,
            });
        }
        for (const [name, part] of [
            ["median up to", 0.5],
            ["99 % up to", 0.99],
        ] as const) {
            if (all > 0)
                lines.push({
                    name,
                    value: figure(quantile(counts, all, part, map.bounds), map.unit),
                    colour: null,
                });
        }
        return {
            ...when(begin, map.step_seconds, this.view.zone),
            lines,
            total: count(all),
            notes: [],
        };
    }

    private rowAt(top: number): number {
        return pointAt(this.map.bounds, this.plot.u.posToVal(top, "y"));
    }

    /** The rows that become columns of the table. */
    figures(range: Range, rows: readonly number[]): { time: number; values: (number | null)[] }[] {
        const [from, to] = pointsIn(this.edges, range);
        return this.edges.slice(from, to).map((time, i) => {
            const nothing = this.map.columns[from + i] === null;
            const counts = this.sum(from + i, from + i + 1);
            return { time, values: rows.map((row) => (nothing ? null : (counts.get(row) ?? 0))) };
        });
    }

    /** The rows with counts. */
    rows(): number[] {
        return [...this.sum(0, this.map.columns.length).keys()].sort((a, b) => a - b);
    }

    update(map: Heatmap, landmarks: Landmarks): void {
        this.map = map;
        this.edges = edgesOf(map);
        this.plot.refresh(landmarks);
    }
}

function edgesOf({ time, step_seconds }: Heatmap): number[] {
    const last = time[time.length - 1];
    return last === undefined ? [] : [...time, last + step_seconds];
}

function decades(low: number, high: number): number[] {
    const found: number[] = [];
    for (let power = Math.ceil(Math.log10(low) - 1e-9); 10 ** power <= high; power++) found.push(10 ** power);
    return found;
}

/** The upper bound of the row that contains the quantile. */
function quantile(counts: Counts, all: number, part: number, bounds: readonly number[]): number {
    let sum = 0;
    for (const [row, n] of [...counts].sort(([a], [b]) => a - b)) {
        sum += n;
        if (sum >= all * part) return bounds[row + 1] ?? NaN;
    }
    return NaN;
}
