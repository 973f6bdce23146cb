// SPDX-License-Identifier: PostgreSQL
/**
 * The page: finds the elements that the command has written for charts, heat maps and tables, and draws
 * into them.
 */
import { axisOf, drawChart, drawHeat, landmarksOf, type Drawing } from "./charts/figure";
import { Overview, type Outline } from "./charts/overview";
import { drawPairs } from "./charts/pairs";
import { pointsOf, stacked } from "./charts/points";
import { SLICED, sliceChoice, sliced, WAITS } from "./charts/slices";
import { whenSeen } from "./dom";
import { addCopyButtons, selectFindings, unfoldForPrint } from "./findings";
import { reload, rewrite } from "./live";
import { LiveState } from "./live-state";
import type { ActivityClass } from "./look/palette";
import { applyPatterns } from "./look/patterns";
import { current, followTheme } from "./look/theme";
import type { Report } from "./model";
import { Rankings } from "./rankings";
import { selectedPart } from "./span";
import { keysByText } from "./statement/known";
import { StatementPage } from "./statement/page";
import { Grid } from "./tables/grid";
import { tableWithin } from "./tables/part";
import { toolbar } from "./toolbar";
import { View, type Range } from "./view";
import { traced } from "./waterfall/traced";

function wholeOf({ measured, axes, elapsed }: Report): Range {
    const { time = [], seconds = [] } = axes["main"] ?? {};
    const end = (time[time.length - 1] ?? 0) + (seconds[seconds.length - 1] ?? 0);
    const { from, to } = elapsed ? { from: 0, to: end } : measured;
    return { from, to: Math.max(to, from + 1e-3) };
}

/** The total of the first stack, for the brush. */
function outlineOf(report: Report): Outline | null {
    const chart = report.charts.find(({ kind }) => kind === "stack") ?? report.charts[0];
    if (!chart) return null;
    const { edges, values } = pointsOf(chart, axisOf(report, chart), wholeOf(report).to);
    const tops = stacked(
        values,
        values.map(() => true),
    );
    return { edges, values: tops[tops.length - 1] ?? [] };
}

/** The classes of activities, from the tables that list activities. */
function classesOf(report: Report): Map<string, ActivityClass> {
    const classes = new Map<string, ActivityClass>([["cpu", "cpu"]]);
    for (const table of report.tables) {
        const column = table.columns.findIndex(({ key }) => key === "activity");
        if (column < 0 || !table.classes) continue;
        table.rows.forEach((row, i) => {
            const kind = table.classes?.[i];
            if (kind) classes.set(String(row[column]), kind);
        });
    }
    return classes;
}

type Draw = typeof drawChart;

export class Page {
    private readonly view: View;
    private readonly overview: Overview | null;
    private readonly drawings = new Map<HTMLElement, { drawing: Drawing; draw: Draw; id: string }>();
    private readonly grids = new Map<string, Grid>();
    private readonly rankings: Rankings | null;
    private readonly live: LiveState | null;
    private readonly statement: StatementPage;
    private keys: ReadonlyMap<string, string>;
    /** What the areas of the main chart are. */
    private slice = WAITS;
    private pending = false;
    /** The newest report of a paused page. */
    private waiting: Report | null = null;

    constructor(private report: Report) {
        document.documentElement.classList.add("scripted");
        const times = report.axes["main"]?.time ?? [];
        const step = (times[1] ?? 1) - (times[0] ?? 0);
        this.view = new View(wholeOf(report), step, report.elapsed ? "elapsed" : "local", current());
        followTheme(this.view);
        applyPatterns();
        const outline = outlineOf(report);
        this.overview = outline && new Overview(this.view, outline, landmarksOf(report));
        const overTime = report.charts.length > 0 || report.heatmaps.length > 0;
        this.live = report.live && new LiveState(this.view, report.made.time, () => this.resume());
        document.body.prepend(toolbar(this.view, this.overview?.root ?? null, overTime, this.live?.root ?? null));
        const lists = document.getElementById("rankings");
        this.rankings = lists && new Rankings(lists, report, this.view);
        addCopyButtons();
        unfoldForPrint();
        // Draw tables at once, because they become shorter; charts, whose size is fixed, when they become visible.
        const classes = classesOf(report);
        this.keys = keysByText(report);
        this.forEachHost("table[data-table]", "table", (host, id) => this.drawTable(host, id, classes));
        this.forEachHost("figure.chart", "chart", (host, id) => {
            whenSeen(host, () => this.draw(host, id, drawChart));
        });
        this.forEachHost("figure.pairs", "pairs", (host, id) => drawPairs(host, id, report));
        if (report.trace) document.getElementById("traced")?.replaceChildren(traced(report.trace, (view) => this.view.on("theme", (theme) => view.setTheme(theme))));
        this.forEachHost("figure.heatmap", "heatmap", (host, id) => {
            whenSeen(host, () => this.draw(host, id, drawHeat));
        });
        this.statement = new StatementPage(report, this.view, classes);
        for (const what of ["range", "moment", "data"] as const) this.view.on(what, () => this.selectSoon());
    }

    /** Whether a part of the time is selected, so that the page needs the tables over time. */
    get selecting(): boolean {
        return this.view.zoomed || this.view.moment !== null;
    }

    /** At most once a frame. */
    private selectSoon(): void {
        if (this.pending) return;
        this.pending = true;
        requestAnimationFrame(() => {
            this.pending = false;
            this.select();
        });
    }

    /** Shows the tables and findings of the selected part. */
    private select(): void {
        const { report, view } = this;
        const part = selectedPart(report, view);
        document.documentElement.classList.toggle("part", part !== null);
        for (const table of report.tables) {
            const within = part && tableWithin(table, report, view.whole.to, part);
            this.grids.get(table.id)?.select(within, part ? `${part.from} ${part.to}` : "");
        }
        selectFindings(report, part);
    }

    private resume(): void {
        const { waiting } = this;
        this.waiting = null;
        if (waiting) this.update(waiting);
    }

    /** The server does not answer, or answers again. */
    setLost(lost: boolean): void {
        this.live?.setLost(lost);
    }

    private forEachHost(selector: string, key: string, draw: (host: HTMLElement, id: string) => void): void {
        for (const host of document.querySelectorAll<HTMLElement>(selector)) {
            const id = host.dataset[key];
            if (id !== undefined) draw(host, id);
        }
    }

    private draw(host: HTMLElement, id: string, draw: Draw): void {
        const drawing = draw(host, id, this.reportFor(id), this.view);
        if (!drawing) return;
        this.drawings.set(host, { drawing, draw, id });
        if (id !== SLICED) return;
        const choice = sliceChoice(this.report, this.slice, (by) => {
            this.slice = by;
            drawing.remove();
            this.draw(host, id, draw);
            host.querySelector("select")?.focus();
        });
        if (choice) host.querySelector(".head .tools")?.prepend(choice);
    }

    private reportFor(chart: string): Report {
        return chart === SLICED ? sliced(this.report, this.slice) : this.report;
    }

    private drawTable(host: HTMLElement, id: string, classes: ReadonlyMap<string, ActivityClass>): void {
        const table = this.report.tables.find((one) => one.id === id);
        if (table && host instanceof HTMLTableElement) {
            this.grids.set(id, new Grid(host, table, this.view, classes, () => this.keys));
        }
    }

    /** Shows a newer report of the same server. Charts not drawn yet will use it later. */
    update(report: Report): void {
        if (this.live?.paused) {
            this.waiting = report;
            return;
        }
        const before = this.report;
        this.report = report;
        this.keys = keysByText(report);
        this.rankings?.update(report);
        if (this.live) this.live.shows(report.made.time, wholeOf(report));
        else this.view.grow(wholeOf(report));
        const outline = outlineOf(report);
        if (outline) this.overview?.update(outline, landmarksOf(report));
        for (const [host, { drawing, draw, id }] of [...this.drawings]) {
            if (drawing.update(this.reportFor(id))) continue;
            drawing.remove();
            this.drawings.delete(host);
            this.draw(host, id, draw);
        }
        this.statement.update(report);
        this.view.dataChanged();
        for (const table of report.tables) this.grids.get(table.id)?.update(table);
        if (!rewrite(report, before)) reload(this.view.zoomed);
    }
}
