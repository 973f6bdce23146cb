// SPDX-License-Identifier: PostgreSQL
/**
 * The names of a chart's curves with their figures, at the cursor's instant or for the range in view. A click hides a
 * curve, a double click shows only that curve.
 */
import { date, seconds as clockSeconds } from "../clock";
import { button, element } from "../dom";
import type { Chart } from "../model";
import { figure, percent } from "../units";
import type { View } from "../view";
import type { Curves } from "./curves";
import { pointAt, summary } from "./points";

interface Entry {
    readonly row: HTMLElement;
    readonly toggle: HTMLButtonElement;
    readonly dot: HTMLElement;
    readonly first: HTMLElement;
    readonly second: HTMLElement;
}

export class Legend {
    readonly root: HTMLTableElement;
    private readonly head = element("th", { scope: "col", class: "num" });
    private readonly second: HTMLElement;
    private readonly entries: Entry[];
    private pending = false;

    constructor(
        private readonly chart: Chart,
        private readonly curves: Curves,
        private readonly view: View,
        until: AbortSignal,
    ) {
        this.entries = chart.series.map((series, i) => this.entry(series.name, i));
        this.second = element("th", { scope: "col", class: "num" });
        // In the order of the stack, from its top.
        const rows = this.entries.map((entry) => entry.row);
        if (chart.kind === "stack") rows.reverse();
        this.root = element(
            "table",
            { class: "legend" },
            element("thead", {}, element("tr", {}, element("th", { scope: "col" }), this.head, this.second)),
            element("tbody", {}, ...rows),
        );
        for (const what of ["range", "point", "theme", "zone", "data"] as const) {
            view.on(what, () => this.soon(), until);
        }
        this.write();
    }

    private entry(name: string, series: number): Entry {
        const kind = this.chart.series[series]?.class;
        const dot = element("i", { class: kind ? `dot as-${kind}` : "dot" });
        const toggle = button(
            "",
            "Click to hide or show; double-click to show only this one.",
            () => {
                this.curves.toggle(series);
                this.write();
            },
            "entry",
        );
        toggle.append(dot, name);
        toggle.addEventListener("dblclick", () => {
            // The two clicks of the double click have hidden and shown it again.
            this.curves.only(series);
            this.write();
        });
        const first = element("td", { class: "num" });
        const second = element("td", { class: "num" });
        const row = element("tr", {}, element("th", { scope: "row" }, toggle), first, second);
        for (const event of ["mouseenter", "focusin"])
            row.addEventListener(event, () => this.curves.focus(series));
        for (const event of ["mouseleave", "focusout"])
            row.addEventListener(event, () => this.curves.focus(null));
        return { row, toggle, dot, first, second };
    }

    /** At most once a frame. */
    private soon(): void {
        if (this.pending) return;
        this.pending = true;
        requestAnimationFrame(() => {
            this.pending = false;
            this.write();
        });
    }

    private write(): void {
        const { chart, curves, view } = this;
        const stack = chart.kind === "stack";
        const at = view.point === null ? -1 : pointAt(curves.points.edges, view.point);
        const begin = curves.points.edges[at];
        const pointed = begin !== undefined && at >= 0;
        // Means of durations and shares cannot be averaged, so only the maximum is shown for them.
        const averaged = chart.averaged ?? (chart.unit !== "seconds" && chart.unit !== "share");
        this.head.textContent = pointed ? clockSeconds(begin, view.zone) : averaged ? "mean" : "";
        if (pointed) this.head.title = date(begin, view.zone);
        else this.head.removeAttribute("title");
        this.second.textContent = stack ? "share" : "max";
        const summaries = chart.series.map((_, i) => summary(curves.points, i, view.range));
        const values = summaries.map(({ mean }, i) =>
            pointed ? (curves.points.values[i]?.[at] ?? null) : averaged ? mean : null,
        );
        const sum = values.reduce<number>(
            (total, value, i) => total + (curves.shown[i] ? (value ?? 0) : 0),
            0,
        );
        this.entries.forEach((entry, i) => {
            const on = curves.shown[i] ?? true;
            const value = values[i] ?? null;
            entry.toggle.setAttribute("aria-pressed", String(on));
            entry.row.classList.toggle("off", !on);
            entry.dot.style.backgroundColor = curves.colourOf(i);
            entry.first.textContent = pointed || averaged ? figure(value, chart.unit) : "";
            entry.second.textContent = !stack
                ? figure(summaries[i]?.max, chart.unit)
                : on && sum > 0
                  ? percent((value ?? 0) / sum)
                  : "";
        });
    }
}
