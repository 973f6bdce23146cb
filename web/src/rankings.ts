// SPDX-License-Identifier: PostgreSQL
/**
 * What took the most time in the range in view: activities, statements and sessions beside each other.
 */
import { instant, iso } from "./clock";
import { copyButton } from "./copy";
import { button, element } from "./dom";
import type { ActivityClass } from "./look/palette";
import type { Axis, Report } from "./model";
import { pointsOf, selectedPart } from "./span";
import { addressOf } from "./statement/known";
import { duration, figure, percent } from "./units";
import type { Range, View } from "./view";

/** A list is of a longer time than what is open if it is by this factor, because it has fewer points. */
const LONGER = 1.5;
/** Number of rows shown. */
const SHOWN = 8;

interface Row {
    readonly name: string;
    readonly class: ActivityClass | null;
    readonly statement?: string | undefined;
    /** Seconds in each point. */
    readonly seconds: readonly number[];
}

export interface List {
    readonly id: string;
    readonly section: string;
    readonly title: string;
    /** The points, or null if the rows have one figure, of the whole time. */
    readonly axis: Axis | null;
    readonly rows: readonly Row[];
}

export interface RankedRow {
    readonly name: string;
    readonly class: ActivityClass | null;
    readonly statement?: string | undefined;
    readonly seconds: number;
}

/** The lists of a report: activities from their chart, the others from the rankings or, without one, the table. */
export function listsOf(report: Report): List[] {
    const chart = report.charts.find(({ id }) => id === "activity");
    const axis = chart && report.axes[chart.axis];
    const lists: List[] = [];
    if (chart && axis) {
        const rows = chart.series.map(({ name, class: kind, values }) => ({
            name,
            class: kind,
            seconds: values.map((value, i) => (value ?? 0) * (axis.seconds[i] ?? 0)),
        }));
        lists.push({ id: "activities", section: "waits", title: "Waits and CPU", axis, rows });
    }
    for (const [id, title, table, name] of [
        ["statements", "Statements", "statements", "query"],
        ["sessions", "Sessions", "active_sessions", "application"],
    ] as const) {
        const ranking = report.rankings?.find((one) => one.id === id);
        const list = ranking ?? ofTable(report, [id, title], table, name);
        if (list) lists.push(list);
    }
    return lists;
}

/** A name, with a link to the statement's page. */
const linked = (name: string, statement: string | undefined): HTMLElement | string =>
    statement === undefined ? name : element("a", { href: addressOf(statement) }, name);

function ofTable(report: Report, [section, title]: readonly [string, string], id: string, name: string): List | null {
    const table = report.tables.find((one) => one.id === id);
    if (!table) return null;
    const [names, times] = [name, id === "statements" ? "seconds" : "busy_seconds"].map((key) =>
        table.columns.findIndex((column) => column.key === key),
    ) as [number, number];
    const rows = table.rows.map((row, i) => ({
        name: String(row[names] ?? ""),
        class: table.classes?.[i] ?? null,
        statement: table.details?.[i]?.statement,
        seconds: [Number(row[times] ?? 0)],
    }));
    return { id: section, section, title, axis: null, rows };
}

/** The rows with time in a range, most first, and the measured seconds; null if they are those of the whole time. */
export function sumsOf({ axis, rows }: List, end: number, range: Range): { sums: RankedRow[]; measured: number | null } {
    const [from, to] = axis ? pointsOf(axis, end, range) : [0, 1];
    const total = (seconds: readonly number[]): number => {
        let sum = 0;
        for (let i = from; i < to; i++) sum += seconds[i] ?? 0;
        return sum;
    };
    const sums = rows.map(({ name, class: kind, statement, seconds }) => ({ name, class: kind, statement, seconds: total(seconds) }));
    sums.sort((a, b) => b.seconds - a.seconds);
    return { sums: sums.filter(({ seconds }) => seconds > 0), measured: axis ? total(axis.seconds) : null };
}

export class Rankings {
    private lists: List[];
    private readonly span = element("p", { class: "span" });
    private readonly command = element("p", { class: "command" });
    private readonly tables = element("div", { class: "lists" });
    private pending = false;

    constructor(
        host: HTMLElement,
        private report: Report,
        private readonly view: View,
    ) {
        this.lists = listsOf(report);
        host.replaceChildren(this.span, this.command, this.tables);
        for (const what of ["range", "moment", "zone", "data"] as const) view.on(what, () => this.soon());
        this.write();
    }

    update(report: Report): void {
        this.report = report;
        this.lists = listsOf(report);
        this.soon();
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
        this.writeSpan();
        this.tables.replaceChildren(...this.lists.map((list) => this.table(list)));
    }

    /** What is open, or else what is in view. */
    private range(): Range {
        return selectedPart(this.report, this.view) ?? this.view.range;
    }

    /** The time that the lists are of, and how to get everything else for it. */
    private writeSpan(): void {
        const { view, report } = this;
        const { from, to } = this.range();
        if (view.moment) {
            this.writeMoment(view.moment);
            return;
        }
        const times = `${instant(from, view.zone)} – ${instant(to, view.zone)}, ${duration(to - from)}`;
        if (!view.zoomed) {
            this.span.replaceChildren(element("b", {}, "The whole time: "), times);
            this.command.replaceChildren("Drag over a part of the chart to select it; click a moment to open it.");
            return;
        }
        this.span.replaceChildren(element("b", {}, "Selected: "), times);
        this.command.replaceChildren("Double-click the chart, or press Esc on it, for the whole time.");
        if (report.live || report.elapsed) return;
        const quoted = /^[\w/.:-]+$/.test(report.measured.recording)
            ? report.measured.recording
            : `'${report.measured.recording.replace(/'/g, "'\\''")}'`;
        const command = element("code", {}, `tally report ${quoted} --since ${iso(from)} --until ${iso(to)} -o part.html`);
        this.command.replaceChildren(copyButton(command), " All of this part: ", command);
    }

    /** A point of the chart: who did what then. */
    private writeMoment({ from, to }: Range): void {
        const { view } = this;
        this.span.replaceChildren(element("b", {}, "Open: "), `${instant(from, view.zone)}, ${duration(to - from)}`);
        const close = button("Close", "Close this moment, and show the range in view again", () => view.open(null));
        this.command.replaceChildren(close, " The arrow keys and Enter on the chart open the next one.");
    }

    private table(list: List): HTMLElement {
        const range = this.range();
        const { sums, measured } = sumsOf(list, this.view.whole.to, range);
        const all = sums.reduce((sum, { seconds }) => sum + seconds, 0);
        const most = sums[0]?.seconds ?? 0;
        const rows = sums.slice(0, SHOWN).map(({ name, class: kind, statement, seconds }) => {
            const bar = element("i", { class: kind ? `of-${kind}` : "of-none" });
            bar.style.width = `${(most > 0 ? seconds / most : 0) * 100}%`;
            const sign = this.report.measured.sampled ? "~" : "";
            const first = measured === null ? duration(seconds) : figure(seconds / Math.max(measured, 1e-9), "sessions");
            return element(
                "tr",
                {},
                element("th", { scope: "row", title: name }, element("span", {}, linked(name, statement)), bar),
                element("td", { class: "num" }, sign + first),
                element("td", { class: "num" }, sign + percent(all > 0 ? seconds / all : 0)),
            );
        });
        // As many rows with any figures as the list can have, so that nothing moves.
        const mostRows = Math.min(SHOWN, Math.max(list.rows.length, 1));
        if (rows.length === 0) rows.push(element("tr", {}, element("td", { colspan: "3", class: "none" }, "none")));
        while (rows.length < mostRows) rows.push(element("tr", {}, element("td", { colspan: "3" }, "\u00a0")));
        const [head, help] = measured === null ? ["time", "Time in calls"] : ["sessions", "Average active sessions"];
        const title = element("a", { href: `#${list.section}` }, list.title);
        const part = this.view.zoomed || this.view.moment !== null;
        const coarse = measured !== null && measured > LONGER * (range.to - range.from);
        const note = measured === null && part ? " (whole time)" : coarse ? ` (of ${duration(measured)})` : "";
        return element(
            "table",
            { class: "ranking", id: `ranking-${list.id}` },
            element("caption", {}, title, note),
            element(
                "thead",
                {},
                element(
                    "tr",
                    {},
                    element("th", { scope: "col" }, element("span", { class: "unseen" }, list.title)),
                    element("th", { scope: "col", class: "num", title: help }, head),
                    element("th", { scope: "col", class: "num" }, "share"),
                ),
            ),
            element("tbody", {}, ...rows),
        );
    }
}
