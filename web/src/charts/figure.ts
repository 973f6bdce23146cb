// SPDX-License-Identifier: PostgreSQL
/** A chart or heat map in its figure element: title, buttons, plot, legend. */
import { element } from "../dom";
import type { Axis, Chart, Heatmap, Report } from "../model";
import { figure } from "../units";
import type { View } from "../view";
import { behind, type Figures } from "./behind";
import { Curves } from "./curves";
import { Heat } from "./heat";
import { Legend } from "./legend";
import { markKey, type Landmarks } from "./marks";
import { pointsIn } from "./points";

export const landmarksOf = ({ marks, gaps }: Report): Landmarks => ({ marks, gaps });

export const axisOf = (report: Report, chart: Chart): Axis =>
    report.axes[chart.axis] ?? { time: [], seconds: [] };

/** A chart or heat map drawn in a figure element. */
export interface Drawing {
    /** Draws a newer report. Returns false if the shape differs, so that it must be removed and drawn again. */
    update(report: Report): boolean;
        remove(): void;
}

/** Adds title, tools and body to the figure. The returned function removes them. */
function mount(host: HTMLElement, title: string, body: HTMLElement, tools: HTMLElement): () => void {
    const caption = host.querySelector("figcaption") ?? element("figcaption", {}, title);
    const head = element("div", { class: "head" }, caption, tools);
    host.querySelector(".without-script")?.remove();
    host.prepend(head);
    return () => {
        body.remove();
        host.querySelector(".scroll")?.remove();
        head.replaceWith(caption);
    };
}

function figuresOf(chart: Chart, curves: Curves): Figures {
    return {
        name: chart.id,
        unit: chart.unit,
        columns: chart.series.map(({ name }) => name),
        rows: (range) => {
            const { edges, values } = curves.points;
            const [from, to] = pointsIn(edges, range);
            return edges.slice(from, to).map((time, i) => ({
                time,
                values: values.map((one) => one[from + i] ?? null),
            }));
        },
    };
}

/** The properties that must not change if a drawing is to be updated. */
const shapeOf = ({ kind, unit, series }: Chart): string =>
    JSON.stringify([kind, unit, series.map((one) => [one.name, one.class, one.shade])]);

export function drawChart(host: HTMLElement, id: string, report: Report, view: View): Drawing | null {
    const chartIn = (from: Report): Chart | undefined => from.charts.find((one) => one.id === id);
    const chart = chartIn(report);
    if (!chart) return null;
    const life = new AbortController();
    const canvas = element("div", { class: "plot" });
    const body = element("div", { class: `body ${chart.kind}` }, canvas);
    host.append(body);
    const curves = new Curves(canvas, chart, axisOf(report, chart), view, landmarksOf(report), life.signal);
    body.append(new Legend(chart, curves, view, life.signal).root);
    const key = chart.kind === "stack" ? markKey(landmarksOf(report)) : null;
    if (key) body.append(key);
    const unmount = mount(host, chart.title, body, behind(host, figuresOf(chart, curves), view, life.signal));
    return {
        update: (newer) => {
            const next = chartIn(newer);
            if (!next || shapeOf(next) !== shapeOf(chart)) return false;
            curves.update(next, axisOf(newer, next), landmarksOf(newer));
            return true;
        },
        remove: () => {
            life.abort();
            unmount();
        },
    };
}

export function drawHeat(host: HTMLElement, id: string, report: Report, view: View): Drawing | null {
    const mapIn = (from: Report): Heatmap | undefined => from.heatmaps.find((one) => one.id === id);
    const map = mapIn(report);
    if (!map) return null;
    const life = new AbortController();
    const canvas = element("div", { class: "plot" });
    const body = element("div", { class: "body heat" }, canvas);
    host.append(body);
    const heat = new Heat(canvas, map, view, landmarksOf(report), life.signal);
    body.append(heat.key);
    const rows = heat.rows();
    const figures: Figures = {
        name: id,
        unit: "count",
        columns: rows.map((row) => `up to ${figure(map.bounds[row + 1], map.unit)}`),
        rows: (range) => heat.figures(range, rows),
    };
    const unmount = mount(host, map.title, body, behind(host, figures, view, life.signal));
    return {
        update: (newer) => {
            const next = mapIn(newer);
            if (!next || next.bounds.length !== map.bounds.length) return false;
            heat.update(next, landmarksOf(newer));
            return heat.rows().join() === rows.join();
        },
        remove: () => {
            life.abort();
            unmount();
        },
    };
}
