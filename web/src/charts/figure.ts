// SPDX-License-Identifier: PostgreSQL
/** A chart in its place in the page: title, buttons, plot, legend. */
import { element } from "../dom";
import type { Axis, Chart, Report } from "../model";
import type { View } from "../view";
import { behind } from "./behind";
import { Curves } from "./curves";
import { Legend } from "./legend";
import type { Landmarks } from "./marks";
import { pointsIn } from "./points";

export function axisOf(report: Report, chart: Chart): Axis {
    return report.axes[chart.axis] ?? { time: [], seconds: [] };
}

/** The title's line, with the tools at its end. */
export function headOf(host: HTMLElement, title: string, tools: HTMLElement): void {
    const caption = host.querySelector("figcaption") ?? element("figcaption", {}, title);
    host.prepend(element("div", { class: "head" }, caption, tools));
    host.querySelector(".without-script")?.remove();
}

/** Draws a chart into its figure. */
export function drawChart(host: HTMLElement, chart: Chart, report: Report, view: View, landmarks: Landmarks): Curves {
    const canvas = element("div", { class: "plot" });
    const body = element("div", { class: `body ${chart.kind}` }, canvas);
    host.append(body);
    const curves = new Curves(canvas, chart, axisOf(report, chart), view, landmarks);
    body.append(new Legend(chart, curves, view).root);
    const tools = behind(
        host,
        {
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
        },
        view,
    );
    headOf(host, chart.title, tools);
    return curves;
}
