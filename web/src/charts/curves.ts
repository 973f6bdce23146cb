// SPDX-License-Identifier: PostgreSQL
/** A chart of curves over time: stacked areas or lines. */
import type uPlot from "uplot";
import { colour, paints, type Ink, type Paint } from "../look/ink";
import { patterned, patternsAreOn } from "../look/patterns";
import type { Axis, Chart } from "../model";
import { figure } from "../units";
import type { View } from "../view";
import { FONT, fromZero, valueAxis } from "./axes";
import type { Landmarks } from "./marks";
import { KEYS, Plot } from "./plot";
import { pointAt, pointsOf, rangeAt, stacked, type Points } from "./points";
import { areaPaths, linePaths } from "./steps";
import type { Content } from "./tooltip";
import { when } from "./when";

const TALL = 300;
const USUAL = 210;
/** If a reference line is higher than the curves by more than this factor, it would flatten them, so only its label is shown. */
const FAR = 2.5;
/** Maximum number of lines in a tooltip. */
const MAX_LINES = 8;

export class Curves {
    points: Points;
    readonly shown: boolean[];
    private readonly paints: Paint[];
    private readonly plot: Plot;
    /** The highlighted series; the others are faint. */
    private focused: number | null = null;

    constructor(
        host: HTMLElement,
        private chart: Chart,
        axis: Axis,
        private readonly view: View,
        landmarks: Landmarks,
        until: AbortSignal,
    ) {
        this.points = pointsOf(chart, axis, view.whole.to);
        this.shown = chart.series.map(() => true);
        this.paints = paints(chart.series);
        const stack = chart.kind === "stack";
        this.plot = new Plot(
            host,
            view,
            landmarks,
            {
                height: stack ? TALL : USUAL,
                series: this.order().map((series) => this.series(series)),
                yScale: { range: (u, min, max) => this.yRange(u, min, max) },
                yAxis: (ink) => valueAxis(chart, ink),
                data: () => this.data(),
                overlay: (u, ink) => this.drawReference(u, ink),
                describe: (time) => this.describe(time),
                step: (time, by) => this.step(time, by),
                point: (time) => rangeAt(this.points.edges, time),
            },
            `${chart.title}. The arrow keys move from point to point. ${KEYS}`,
            until,
        );
    }

    /** The plot draws a stack from the top, each area over the ones above it. */
    private order(): number[] {
        const order = this.chart.series.map((_, i) => i);
        return this.chart.kind === "stack" ? order.reverse() : order;
    }

    colourOf(series: number): string {
        const paint = this.paints[series];
        return paint ? colour(paint, this.view.theme) : "";
    }

    private series(index: number): uPlot.Series {
        const faint = (): boolean => this.focused !== null && this.focused !== index;
        const ink = (): string => this.colourOf(index) + (faint() ? "38" : "");
        if (this.chart.kind === "lines") {
            const pale = (): string => this.colourOf(index) + (faint() ? "1c" : "60");
            return {
                scale: "y",
                stroke: ink,
                fill: pale,
                width: 1.5,
                paths: linePaths,
                points: { show: false },
            };
        }
        // Colours are opaque, because each area covers the lower part of the one above it; faint areas are paler.
        return {
            scale: "y",
            fill: (u) => this.areaFill(u.ctx, index, faint()),
            stroke: () => (this.view.theme === "light" ? "#ffffffb0" : "#00000080"),
            width: 0.75,
            paths: areaPaths,
            points: { show: false },
        };
    }

    private areaFill(ctx: CanvasRenderingContext2D, index: number, faint: boolean): string {
        const own = this.colourOf(index);
        const kind = this.chart.series[index]?.class;
        if (faint) return mix(own, this.view.theme);
        // A canvas takes a pattern as it takes a colour, which uPlot's types do not say.
        return kind && patternsAreOn() ? (patterned(ctx, kind, own) as string) : own;
    }

    private data(): uPlot.AlignedData {
        const { values, edges } = this.points;
        const columns = this.chart.kind === "stack" ? stacked(values, this.shown) : values;
        return [
            edges,
            ...this.order().map((series) => {
                if (!this.shown[series]) return new Array<null>(edges.length).fill(null);
                return [...(columns[series] ?? []), null];
            }),
        ];
    }

    /** From zero to above the curves, and above the reference line unless it is far off. */
    private yRange(u: uPlot, min: number, max: number): uPlot.Range.MinMax {
        const reference = this.chart.reference?.value ?? 0;
        const most = Math.max(max, this.mostAtLeftEdge());
        return fromZero(u, min, reference > most * FAR ? most : Math.max(most, reference));
    }

    /** The step in view that begins before the range, which uPlot leaves out of the maximum. */
    private mostAtLeftEdge(): number {
        const { edges, values } = this.points;
        const at = pointAt(edges, this.view.range.from);
        const shown = values.flatMap((one, series) => (at >= 0 && this.shown[series] ? [one[at] ?? 0] : []));
        return this.chart.kind === "stack" ? shown.reduce((sum, one) => sum + one, 0) : Math.max(0, ...shown);
    }

    private drawReference(u: uPlot, ink: Ink): void {
        const { reference } = this.chart;
        if (!reference) return;
        const { ctx, bbox } = u;
        const pixel = devicePixelRatio;
        const off = reference.value > (u.scales["y"]?.max ?? 0);
        const y = off ? bbox.top : Math.round(u.valToPos(reference.value, "y", true));
        const text = `${reference.value} ${reference.name}` + (off ? " ↑" : "");
        ctx.save();
        ctx.font = FONT.replace(/^\d+/, (size) => String(Number(size) * pixel));
        ctx.textAlign = "right";
        ctx.textBaseline = off ? "top" : "bottom";
        ctx.fillStyle = ctx.strokeStyle = ink.text;
        ctx.lineWidth = 1.5 * pixel;
        ctx.setLineDash([6 * pixel, 4 * pixel]);
        if (!off) {
            ctx.beginPath();
            ctx.moveTo(bbox.left, y);
            ctx.lineTo(bbox.left + bbox.width, y);
            ctx.stroke();
        }
        // Outlined in the background colour, because it may be over any colour.
        const width = ctx.measureText(text).width;
        const right = bbox.left + bbox.width - 6 * pixel;
        ctx.strokeStyle = ink.paper;
        ctx.setLineDash([]);
        ctx.lineWidth = 4 * pixel;
        ctx.lineJoin = "round";
        if (width < bbox.width) {
            ctx.strokeText(text, right, y + (off ? 4 : -3) * pixel);
            ctx.fillText(text, right, y + (off ? 4 : -3) * pixel);
        }
        ctx.restore();
    }

    private describe(time: number): Content | null {
        const { points, chart } = this;
        const at = pointAt(points.edges, time);
        if (at < 0) return null;
        const begin = points.edges[at] ?? time;
        const length = (points.edges[at + 1] ?? time) - begin;
        const stack = chart.kind === "stack";
        const values = chart.series
            .map((series, i) => ({ name: series.name, value: series.values[at] ?? null, i }))
            .filter(({ i }) => this.shown[i]);
        const present = values.filter((one): one is typeof one & { value: number } => one.value !== null);
        const lines = stack
            ? [...present].sort((a, b) => b.value - a.value).filter(({ value }) => value > 0)
            : present;
        const hidden = lines.length - MAX_LINES;
        const sum = present.reduce((total, { value }) => total + value, 0);
        return {
            ...when(begin, length, this.view.zone),
            lines: lines.slice(0, MAX_LINES).map(({ name, value, i }) => ({
                name,
                value: figure(value, chart.unit),
                colour: this.colourOf(i),
            })),
            total: stack && present.length > 1 ? figure(sum, chart.unit) : null,
            notes: hidden > 0 ? [`and ${hidden} more`] : [],
        };
    }

    private step(time: number, by: number): number {
        const { edges } = this.points;
        const last = edges.length - 2;
        const at = Math.min(Math.max(pointAt(edges, time) + by, 0), Math.max(last, 0));
        return ((edges[at] ?? time) + (edges[at + 1] ?? time)) / 2;
    }

    toggle(series: number): boolean {
        this.shown[series] = !this.shown[series];
        // The pointer is still over its name, but a hidden series cannot be highlighted.
        this.focused = this.shown[series] ? series : null;
        this.plot.refresh();
        return this.shown[series] ?? false;
    }

    /** Shows only this series, or all if it is already the only one. */
    only(series: number): void {
        const alone = this.shown.every((on, i) => on === (i === series));
        this.shown.forEach((_, i) => (this.shown[i] = alone || i === series));
        this.plot.refresh();
    }

    focus(series: number | null): void {
        if (series === this.focused || (series !== null && !this.shown[series])) return;
        this.focused = series;
        this.plot.u.redraw(false, false);
    }

    /** The recording has grown; the series are the same. */
    update(chart: Chart, axis: Axis, landmarks: Landmarks): void {
        this.chart = chart;
        this.points = pointsOf(chart, axis, this.view.whole.to);
        this.plot.refresh(landmarks);
    }
}

/** A quarter of the colour, three quarters of the background. */
function mix(hex: string, theme: "light" | "dark"): string {
    const ground = theme === "light" ? 255 : 24;
    const part = (at: number): string =>
        Math.round(ground + (parseInt(hex.slice(at, at + 2), 16) - ground) * 0.25)
            .toString(16)
            .padStart(2, "0");
    return "#" + part(1) + part(3) + part(5);
}
