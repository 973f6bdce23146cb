// SPDX-License-Identifier: PostgreSQL
/**
 * The page of a statement, in place of the report while the address names it: its history, the range in view in figures, plans
 * over time, distribution, time by activity, and SQL to run.
 */
import { drawChart, type Drawing } from "../charts/figure";
import { instant } from "../clock";
import { copyButton } from "../copy";
import { button, element } from "../dom";
import type { ActivityClass } from "../look/palette";
import type { Detail, Report, StatementHistory, Table } from "../model";
import { activitiesOf, histogramOf, planOf } from "../tables/detail";
import { cell, count, duration, figure, percent, whole } from "../units";
import type { View } from "../view";
import { chartsOf, SECTION, spansOf, sumsIn } from "./history";
import { addressOf, knownStatements, mergedDetail, namedBy, type KnownStatement } from "./known";

/** Columns of the table of statements that the page shows elsewhere. */
const SHOWN_ELSEWHERE = /^(query|calls|per_second|seconds|share|per_call_seconds|.*_share)$/;
/** Number of plans that are drawn over time, those used last. */
const PLANS = 12;

export class StatementPage {
    private root: HTMLElement | null = null;
    private statements: Map<string, KnownStatement>;
    private shown: string | null = null;
    private drawings = new Map<HTMLElement, { drawing: Drawing; id: string }>();
    /** Where the report was left; null if the page began here. */
    private left: number | null = null;
    private life = new AbortController();

    constructor(
        private report: Report,
        private readonly view: View,
        private readonly classes: ReadonlyMap<string, ActivityClass>,
    ) {
        this.statements = knownStatements(report);
        addEventListener("hashchange", () => this.follow(true));
        addEventListener("keydown", (event) => {
            const typing = event.target instanceof HTMLElement && event.target.closest("input, select, [role=application]");
            if (event.key === "Escape" && this.shown !== null && !typing && !event.defaultPrevented) this.back();
        });
        this.follow(false);
    }

    private get history(): StatementHistory | undefined {
        return this.report.histories?.statements.find(({ statement }) => statement === this.shown);
    }

    /** Shows what the address names. */
    private follow(moved: boolean): void {
        const key = namedBy(location.hash);
        if (key !== null && this.statements.has(key)) {
            if (this.shown === null) this.left = moved ? scrollY : null;
            this.open(key);
            return;
        }
        if (this.shown === null) return;
        this.close();
        const target = document.getElementById(location.hash.slice(1));
        if (target) target.scrollIntoView();
        else scrollTo(0, this.left ?? 0);
    }

    private back(): void {
        if (this.left !== null) history.back();
        else location.hash = "#statements";
    }

    private close(): void {
        this.life.abort();
        for (const { drawing } of this.drawings.values()) drawing.remove();
        this.drawings.clear();
        this.root?.remove();
        this.root = null;
        this.shown = null;
        document.documentElement.classList.remove("one-statement");
    }

    private open(key: string): void {
        this.close();
        this.shown = key;
        this.life = new AbortController();
        document.documentElement.classList.add("one-statement");
        this.root = element("section", { id: SECTION });
        document.getElementById("head")?.before(this.root);
        this.write();
        scrollTo(0, 0);
        const title = this.root.querySelector("h1");
        title?.setAttribute("tabindex", "-1");
        title?.focus({ preventScroll: true });
        for (const what of ["range", "moment", "zone"] as const) this.view.on(what, () => this.writeRange(), this.life.signal);
    }

    /** A newer report of the same server. */
    update(report: Report): void {
        this.report = report;
        this.statements = knownStatements(report);
        if (this.shown === null || !this.statements.has(this.shown)) return;
        const { history, view } = this;
        const charts = history && report.histories && chartsOf(report, report.histories, history);
        for (const [host, { drawing, id }] of [...this.drawings]) {
            if (!charts || drawing.update(charts)) continue;
            drawing.remove();
            this.drawings.delete(host);
            const again = drawChart(host, id, charts, view);
            if (again) this.drawings.set(host, { drawing: again, id });
        }
        this.writeRange();
        // What is selected stays selected.
        if (getSelection()?.type !== "Range") this.writeWhole();
    }

    private write(): void {
        const { root, shown, statements, history, report, view } = this;
        const known = statements.get(shown ?? "");
        if (!root || !known) return;
        const keys = [...statements.keys()];
        const at = keys.indexOf(known.statement);
        const detail = mergedDetail(known);
        const other = (by: number, label: string): HTMLElement => {
            const key = keys[at + by];
            if (key === undefined) return element("span", { class: "none", "aria-disabled": "true" }, label);
            const title = `The statement with ${by < 0 ? "more" : "less"} time`;
            const link = element("a", { href: addressOf(key), title }, label);
            link.addEventListener("click", (event) => {
                if (event.ctrlKey || event.metaKey || event.shiftKey) return;
                event.preventDefault();
                // The report stays one step back.
                location.replace(addressOf(key));
            });
            return link;
        };
        const code = element("code", {}, detail.text ?? "The statement text is unknown.");
        const charts = history && report.histories && chartsOf(report, report.histories, history);
        const figures = (charts?.charts ?? [])
            .filter(({ series }) => series.length > 0)
            .map(({ id, title }) =>
                element("figure", { class: "chart", id: `chart-${id}`, "data-chart": id }, element("figcaption", {}, title)),
            );
        root.replaceChildren(
            element(
                "nav",
                { "aria-label": "Statements" },
                button("← Report", "Back to the report (Esc)", () => this.back()),
                element("span", {}, other(-1, "← Previous"), " ", other(1, "Next →")),
            ),
            element("h1", {}, `Statement ${known.statement.split(".")[0]}`, element("small", {}, whereOf(known))),
            element("pre", { class: "sql", tabindex: "0" }, code, detail.text === null ? "" : copyButton(code)),
            detail.cut ? element("p", { class: "note" }, "Truncated: the segment keeps only the beginning of the text.") : "",
            element("dl", { class: "facts", id: "statement-range" }),
            ...(charts
                ? figures
                : [
                      element(
                          "p",
                          { class: "note" },
                          "The report has no history of this statement, only of the " +
                              `${report.histories?.statements.length ?? 0} statements with the most time.`,
                      ),
                  ]),
            element("div", { id: "statement-executions" }),
            element("div", { id: "statement-plans" }),
            element("div", { id: "statement-whole" }),
            detail.example ? exampleBox(detail.example) : "",
        );
        // Charts take their width from their place in the page.
        for (const host of root.querySelectorAll<HTMLElement>("figure.chart")) {
            const id = host.dataset["chart"] ?? "";
            const drawing = charts && drawChart(host, id, charts, view);
            if (drawing) this.drawings.set(host, { drawing, id });
        }
        this.writeRange();
        this.writeWhole();
    }

    /** What depends on the range in view. */
    private writeRange(): void {
        const { root, history, report, view } = this;
        const facts = root?.querySelector("#statement-range");
        const { zone, moment } = view;
        const range = moment ?? view.range;
        const { axis } = report.histories ?? {};
        if (facts && history && axis) {
            const sums = sumsIn(history, axis, view.whole.to, range);
            const all = (report.histories?.statements ?? []).reduce(
                (sum, one) => sum + sumsIn(one, axis, view.whole.to, range).seconds,
                0,
            );
            const times = `${instant(range.from, zone)} – ${instant(range.to, zone)}`;
            const of = moment ? `open: ${times}` : view.zoomed ? `selected: ${times}` : "the whole time";
            const fact = (name: string, text: string): HTMLElement[] => [
                element("dt", {}, name),
                element("dd", {}, text),
            ];
            facts.replaceChildren(
                ...fact("Calls", `${whole(sums.calls)}${sums.measured > 0 ? `, ${count(sums.calls / sums.measured)}/s` : ""}`),
                ...fact("Mean", sums.calls > 0 ? `${duration(sums.seconds / sums.calls)} a call` : figure(null, "seconds")),
                ...fact("Highest p99", figure(sums.p99, "seconds")),
                ...fact("Time", `${duration(sums.seconds)}${all > 0 ? `, ${percent(sums.seconds / all)}` : ""}`),
                ...fact("Period", of),
            );
        }
        this.writeExecutions();
        this.writePlans();
    }

    /** The slowest executions with their parameters, if the recording has them. */
    private writeExecutions(): void {
        const { root, statements, shown, view } = this;
        const known = statements.get(shown ?? "");
        const box = root?.querySelector("#statement-executions");
        if (!known || !box) return;
        const executions = mergedDetail(known).slow_executions ?? [];
        if (executions.length === 0) {
            box.replaceChildren();
            return;
        }
        const head = ["Duration", "Ended", "Parameters"].map((title, i) =>
            element("th", { scope: "col", class: i === 0 ? "num" : "text" }, title),
        );
        const rows = executions.map(([ended, seconds, parameters]) =>
            element(
                "tr",
                {},
                element("td", { class: "num" }, figure(seconds, "seconds")),
                element("td", { class: "time" }, instant(ended, view.zone)),
                element("td", {}, element("code", {}, parameters)),
            ),
        );
        const table = element(
            "table",
            {},
            element("thead", {}, element("tr", {}, ...head)),
            element("tbody", {}, ...rows),
        );
        box.replaceChildren(element("h2", {}, "Slowest executions"), element("div", { class: "detail" }, table));
    }

    private writePlans(): void {
        const { root, history, report, view } = this;
        const box = root?.querySelector("#statement-plans");
        const { axis } = report.histories ?? {};
        const plans = (history?.plans ?? []).slice(-PLANS);
        if (!box || !axis || plans.length === 0) {
            box?.replaceChildren();
            return;
        }
        const { from, to } = view.range;
        const part = (time: number): number => ((Math.min(Math.max(time, from), to) - from) / (to - from)) * 100;
        const rows = plans.map((plan, i) => {
            const spans = spansOf(plan, axis, view.whole.to).map((span) => {
                const bar = element("i", {
                    title: `${instant(span.from, view.zone)} – ${instant(span.to, view.zone)}`,
                });
                bar.style.left = `${part(span.from)}%`;
                bar.style.width = `${Math.max(part(span.to) - part(span.from), 0)}%`;
                bar.hidden = span.to < from || span.from > to;
                return bar;
            });
            const since = i === 0 ? "first noted" : "new";
            return element(
                "li",
                {},
                element("span", { class: "name" }, `Plan ${plan.plan}`),
                element("span", { class: "since" }, `${since} ${instant(plan.first, view.zone)}`),
                element("span", { class: "track" }, ...spans),
            );
        });
        box.replaceChildren(
            element("h2", {}, plans.length > 1 ? "Plans over time" : "Plan over time"),
            element("ol", { class: "plans" }, ...rows),
        );
    }

    /** What is known only of the whole time. */
    private writeWhole(): void {
        const { root, statements, shown, classes, report, view } = this;
        const known = statements.get(shown ?? "");
        const box = root?.querySelector("#statement-whole");
        if (!known || !box) return;
        const detail = mergedDetail(known);
        const table = report.tables.find(({ details }) => details?.some((one) => one?.statement === shown));
        const plans = detail.plans.map(planOf);
        box.replaceChildren(
            element("h2", {}, "The whole time"),
            table ? applications(table, known, view) : "",
            element("div", { class: "detail" }, histogramOf(detail) ?? "", activitiesOf(detail, classes) ?? "", ...plans),
        );
    }
}

/** "database shop, user app". */
function whereOf({ rows, statement }: KnownStatement): string {
    const cells = rows[0]?.cells;
    const parts = ["database", "user"].flatMap((key) => {
        const value = cells?.get(key);
        return value ? [`${key} ${value}`] : [];
    });
    if (statement.endsWith(".nested")) parts.push("executed by other statements");
    return parts.join(", ");
}

/** The other figures of its row, or of its row for each application. */
function applications(table: Table, { rows }: KnownStatement, view: View): HTMLElement {
    const columns = table.columns.filter(
        ({ key }) => !SHOWN_ELSEWHERE.test(key) && !(rows.length === 1 && /^(database|user|queryid)$/.test(key)),
    );
    const shown = rows.length > 1 ? table.columns.filter(({ key }) => /^(application|calls|seconds)$/.test(key)) : columns;
    const text = (row: (typeof rows)[number], key: string, unit: (typeof table.columns)[number]["unit"]): string =>
        cell(row.cells.get(key) ?? null, unit, view.zone);
    if (rows.length === 1) {
        const pairs = shown.flatMap(({ key, title, unit, help }) => {
            const value = rows[0] ? text(rows[0], key, unit) : "";
            return value === "" ? [] : [element("dt", help ? { title: help } : {}, title), element("dd", {}, value)];
        });
        return element("dl", { class: "facts" }, ...pairs);
    }
    const kind = (key: string): string => (key === "application" ? "text" : "num");
    return element(
        "div",
        { class: "table" },
        element(
            "table",
            {},
            element(
                "thead",
                {},
                element("tr", {}, ...shown.map(({ key, title }) => element("th", { scope: "col", class: kind(key) }, title))),
            ),
            element(
                "tbody",
                {},
                ...rows.map((row) =>
                    element("tr", {}, ...shown.map(({ key, unit }) => element("td", { class: kind(key) }, text(row, key, unit)))),
                ),
            ),
        ),
    );
}

function exampleBox({ commands, unavailable }: NonNullable<Detail["example"]>): HTMLElement {
    const code = element("code", {}, commands ?? "");
    return element(
        "div",
        { id: "statement-example" },
        element("h2", {}, "Its plan, in psql"),
        commands === undefined
            ? element("p", { class: "note" }, unavailable ?? "")
            : element("pre", { class: "sql", tabindex: "0" }, code, copyButton(code)),
    );
}
