// SPDX-License-Identifier: PostgreSQL
/**
 * Makes a table of the page sortable and searchable, and shortens it to its first rows. The command's
 * rows are used as they are; sorting, searching and saving use the raw values.
 */
import { button, element } from "../dom";
import type { Column, Detail, Table, Value } from "../model";
import type { ActivityClass } from "../look/palette";
import { addressOf as addressOfStatement } from "../statement/known";
import { cell, duration, estimate } from "../units";
import type { View } from "../view";
import { partColumns, spanOf, sparkbar, splitbar, type Span } from "./bars";
import { columnMenu } from "./columns";
import { detailOf } from "./detail";
import { exportButtons, withHalfWidths } from "./export";
import type { TablePart } from "./part";
import { asGiven, firstWay, matches, ordered, type Sorting } from "./order";

/** Number of rows shown at first. */
const FIRST = 15;
/** Tables with fewer rows have no search field. */
const MIN_SEARCHED = 8;

/** Columns hidden at first, because pictures show them or they are rarely needed; the menu can show them. */
const HIDDEN_AT_FIRST = new Set(["toplevel", "queryid", "cancels", "temp_bytes", "user"]);

/** In a window of a phone's width also those that say whose it is, which would leave no space for figures. */
const HIDDEN_WHEN_NARROW = new Set(["user", "database", "tablespace", "process"]);
const NARROW = "(max-width: 30rem)";

/** Columns with the text of a statement. */
const STATEMENTS = new Set(["query", "statement"]);

/** The classes that the command writes. */
function cellClass(column: Column | undefined): string {
    if (!column || column.unit === "text") return column && STATEMENTS.has(column.key) ? "text query" : "text";
    if (column.unit === "id" || column.unit === "time") return `text ${column.unit}`;
    return "num";
}

/** The address of a cell's link, as written by the command; null if there is none. */
function addressOf({ columns }: Table, values: Table["rows"][number], column: number): string | null {
    const link = columns[column]?.link;
    if (link === undefined) return null;
    let known = true;
    const address = link.replace(/\{(\w+)\}/g, (_, key: string) => {
        const value = values[columns.findIndex((one) => one.key === key)] ?? "";
        known &&= value !== "";
        return encodeURIComponent(value);
    });
    return known ? address : null;
}

export class Grid {
    private rows: HTMLTableRowElement[];
    private readonly body: HTMLTableSectionElement;
    private readonly heads: HTMLTableCellElement[];
    private readonly hidden: Set<number>;
    /** Whether there is a menu of columns. */
    private readonly hides: boolean;
    /** Rows that already have their bars, pictures and buttons. */
    private dressed = new Set<number>();
    private readonly opened = new Map<number, HTMLTableRowElement>();
    private sorting: Sorting | null;
    private wanted = "";
    private all = false;
    private span: Span;
    private readonly pictures: boolean;
    /** All of the time, while a part is shown. */
    private given: { readonly table: Table; readonly rows: HTMLTableRowElement[]; readonly dressed: Set<number> } | null = null;
    /** The part of the time that is shown; null: all of it. */
    private part: TablePart | null = null;
    private partName = "";
    private readonly of = element("span", { class: "of" });
    private readonly why = element("p", { class: "note of-whole" });
    private readonly shown = element("span", { class: "shown", role: "status" });
    private readonly more: HTMLButtonElement;

    constructor(
        private readonly host: HTMLTableElement,
        private table: Table,
        private readonly view: View,
        private readonly classes: ReadonlyMap<string, ActivityClass>,
        /** The keys of statements by text, for links to their pages. */
        private readonly statements: () => ReadonlyMap<string, string>,
    ) {
        this.body = host.tBodies[0] ?? host.createTBody();
        this.rows = [...this.body.rows];
        this.heads = [...(host.tHead?.rows[0]?.cells ?? [])];
        this.sorting = asGiven(table);
        this.pictures = table.details !== null;
        this.span = spanOf((table.details ?? []).map((detail) => detail?.histogram ?? []));
        const parts = new Set(this.pictures ? partColumns(table).map(({ column }) => column) : []);
        const narrow = matchMedia(NARROW).matches;
        this.hidden = new Set(
            table.columns.flatMap(({ key }, i) => {
                const always = this.pictures && (parts.has(i) || HIDDEN_AT_FIRST.has(key));
                const here = narrow && i > 0 && HIDDEN_WHEN_NARROW.has(key);
                return always || here ? [i] : [];
            }),
        );
        this.hides = this.hidden.size > 0;
        this.more = button(
            "",
            "",
            () => {
                this.all = !this.all;
                this.render();
            },
            "more",
        );
        // Moving an empty table is faster.
        this.body.replaceChildren();
        this.frame();
        this.sortable();
        this.render();
        view.on("zone", () => this.retime());
    }

    /** Adds title and tools above, a box that scrolls sideways, and the button below. */
    private frame(): void {
        const { host, table } = this;
        const title = host.caption?.textContent ?? table.title;
        host.caption?.classList.add("unseen");
        const tools = element("div", { class: "tools" });
        if (table.rows.length > MIN_SEARCHED) {
            const search = element("input", {
                type: "search",
                placeholder: "Filter",
                "aria-label": `Filter ${title}`,
            });
            search.addEventListener("input", () => {
                this.wanted = search.value.trim();
                this.render();
            });
            tools.append(this.shown, search);
        }
        if (this.hides) {
            tools.append(
                columnMenu(table.columns, this.hidden, (column, on) => {
                    if (on) this.hidden.delete(column);
                    else this.hidden.add(column);
                    this.hideColumns();
                }),
            );
        }
        tools.append(...exportButtons(() => withHalfWidths(this.table, this.order())));
        const head = element("div", { class: "head" }, element("h3", {}, title, this.of), tools);
        this.why.hidden = true;
        const box = element("div", { class: "sideways" });
        host.replaceWith(box);
        box.append(host);
        box.before(head, this.why);
        box.after(this.more);
    }

    private sortable(): void {
        this.heads.forEach((head, column) => {
            const label = head.textContent ?? "";
            head.replaceChildren(
                button(label, head.title || `Sort by ${label}`, () => this.sortBy(column), "sort"),
            );
        });
        if (!this.pictures) return;
        const second = this.heads[0];
        const extra = ["Latency", "Where"].map((title) =>
            element("th", { scope: "col", class: "text picture" }, title),
        );
        second?.after(...extra);
    }

    private sortBy(column: number): void {
        const first = firstWay(this.table, column);
        const again = this.sorting?.column === column;
        this.sorting = again && this.sorting ? { column, down: !this.sorting.down } : first;
        this.render();
    }

    private order(): number[] {
        const { table, wanted } = this;
        const given = asGiven(table);
        // The rows of a part come in the order of the whole time.
        const asCame = this.part?.measured == null && given?.column === this.sorting?.column && given?.down === this.sorting?.down;
        const order = ordered(table.rows, asCame ? null : this.sorting);
        return wanted ? order.filter((i) => matches(table.rows[i] ?? [], table, wanted)) : order;
    }

    private render(): void {
        const order = this.order();
        const rows = this.all ? order : order.slice(0, FIRST);
        const shown: HTMLTableRowElement[] = [];
        for (const i of rows) {
            const row = (this.rows[i] ??= this.row(this.table.rows[i] ?? [], i));
            this.dress(i, row);
            shown.push(row);
            const detail = this.opened.get(i);
            if (detail) shown.push(detail);
        }
        this.body.replaceChildren(...shown);
        this.heads.forEach((head, column) => {
            if (this.sorting?.column !== column) head.removeAttribute("aria-sort");
            else head.setAttribute("aria-sort", this.sorting.down ? "descending" : "ascending");
        });
        const total = this.table.rows.length;
        this.shown.textContent = this.wanted ? `${order.length} of ${total}` : "";
        this.more.hidden = order.length <= FIRST;
        this.more.textContent = this.all ? `Show only the first ${FIRST}` : `Show all ${order.length} rows`;
        this.hideColumns();
    }

    /** Adds a row's bars, pictures and button, once. */
    private dress(i: number, row: HTMLTableRowElement): void {
        if (this.dressed.has(i)) return;
        this.dressed.add(i);
        const { table, view } = this;
        const values = table.rows[i] ?? [];
        const cells = [...row.cells];
        table.columns.forEach(({ unit }, column) => {
            const value = values[column] ?? null;
            const td = cells[column];
            if (!td || typeof value !== "number") return;
            if (unit === "share") {
                td.classList.add("bar");
                td.style.setProperty("--part", `${Math.min(Math.max(value, 0), 1) * 100}%`);
            } else if (unit === "time") {
                td.textContent = cell(value, unit, view.zone);
            }
        });
        const detail = table.details?.[i];
        if (this.pictures && detail) {
            this.illustrate(i, cells[0], detail);
            return;
        }
        table.columns.forEach(({ key }, column) => {
            const td = cells[column];
            if (td && STATEMENTS.has(key)) this.linkStatement(td, values[column] ?? null);
        });
        if (cells[0]?.classList.contains("query")) this.shorten(cells[0]);
    }

    private linkStatement(cell: HTMLTableCellElement, text: Value): void {
        const statement = typeof text === "string" ? this.statements().get(text) : undefined;
        if (statement === undefined || cell.querySelector("a")) return;
        cell.replaceChildren(element("a", { href: addressOfStatement(statement) }, ...cell.childNodes));
    }

    /** Two lines of a statement; the whole text under the pointer. */
    private shorten(cell: HTMLTableCellElement): void {
        cell.replaceChildren(element("span", { class: "clamp", title: cell.textContent }, ...cell.childNodes));
    }

    private illustrate(i: number, first: HTMLTableCellElement | undefined, detail: Detail): void {
        if (!first) return;
        const values = this.table.rows[i] ?? [];
        const parts = partColumns(this.table).map(({ class: one, column }) => ({
            class: one,
            share: Number(values[column] ?? 0),
        }));
        first.after(
            element("td", { class: "picture" }, this.part ? "" : sparkbar(detail.histogram, this.span)),
            element("td", { class: "picture" }, splitbar(parts)),
        );
        const text = element("span", { class: "clamp" }, ...first.childNodes);
        const toggle = button(
            "",
            "Show the text, histogram and activities",
            () => this.open(i, detail, toggle),
            "opener",
        );
        toggle.setAttribute("aria-expanded", "false");
        toggle.append(text);
        first.replaceChildren(toggle);
        const { statement } = detail;
        if (statement === undefined) return;
        const title = "Its history, plans over time, and SQL to run";
        first.append(element("a", { class: "statement-link", href: addressOfStatement(statement), title }, "history"));
    }

    private open(i: number, detail: Detail, toggle: HTMLElement): void {
        const row = this.opened.get(i);
        // Selecting text is not a click.
        if (getSelection()?.toString()) return;
        if (row) {
            row.remove();
            this.opened.delete(i);
        } else {
            const box = element(
                "td",
                { colspan: String(this.table.columns.length + 2) },
                detailOf(detail, this.classes, this.part !== null),
            );
            const next = element("tr", { class: "opened" }, box);
            this.rows[i]?.after(next);
            this.opened.set(i, next);
        }
        toggle.setAttribute("aria-expanded", String(!row));
    }

    private hideColumns(): void {
        if (!this.hides && !this.pictures) return;
        const shift = (column: number): number => (this.pictures && column > 0 ? column + 2 : column);
        const rows = [this.host.tHead?.rows[0], ...this.body.rows];
        for (const row of rows) {
            if (!row || row.classList.contains("opened")) continue;
            this.table.columns.forEach((_, column) => {
                const at = row.cells[shift(column)];
                if (at) at.hidden = this.hidden.has(column);
            });
        }
    }

    /** Rewrites instants after a change of zone. */
    private retime(): void {
        this.table.columns.forEach(({ unit }, column) => {
            if (unit !== "time") return;
            for (const i of this.dressed) {
                const value = this.table.rows[i]?.[column];
                const at = this.rows[i]?.cells[column];
                if (at && typeof value === "number") at.textContent = cell(value, unit, this.view.zone);
            }
        });
    }

    /** Shows a part of the time with this name, or all of it. */
    select(part: TablePart | null, name: string): void {
        if (part === null && this.part === null) return;
        // What is open stays open until another part is selected.
        if (this.opened.size > 0 && name === this.partName) return;
        const { table, rows, dressed } = this.given ?? { table: this.table, rows: this.rows, dressed: this.dressed };
        this.part = part;
        this.partName = name;
        for (const i of this.opened.keys()) this.rows[i]?.querySelector(".opener")?.setAttribute("aria-expanded", "false");
        this.opened.clear();
        if (part === null || part.table === table) {
            this.given = part && { table, rows, dressed };
            [this.table, this.rows, this.dressed] = [table, rows, dressed];
        } else {
            this.given = { table, rows, dressed };
            this.table = part.table;
            this.dressed = new Set();
            this.rows = [];
        }
        this.say(part);
        this.render();
    }

    /** Which time the figures are of, and what is missing. */
    private say(part: TablePart | null): void {
        const { table } = this;
        const whole = part?.whole ?? null;
        const measured = part?.measured ?? null;
        const missing = [...(part?.unknown ?? [])].map((column) => table.columns[column]?.title ?? "");
        const notes = [
            whole === null ? "" : `Of the whole time: ${whole}.`,
            missing.length > 0 && table.rows.length > 0 ? `Known for the whole time only: ${missing.join(", ")}.` : "",
            part && table.rows.length === 0 ? "Nothing in the selected time." : "",
        ];
        this.of.textContent = whole !== null ? " (whole time)" : measured !== null ? ` (${duration(measured)})` : "";
        this.why.textContent = notes.filter((note) => note !== "").join(" ");
        this.why.hidden = this.why.textContent === "";
    }

    /** Replaces the rows. */
    update(table: Table): void {
        // A table with open details is not changed.
        if (this.opened.size > 0) return;
        [this.given, this.part, this.partName] = [null, null, ""];
        this.say(null);
        this.table = table;
        this.span = spanOf((table.details ?? []).map((detail) => detail?.histogram ?? []));
        this.dressed = new Set();
        this.opened.clear();
        this.rows = table.rows.map((values, i) => this.row(values, i));
        this.render();
    }

    private row(values: Table["rows"][number], i: number): HTMLTableRowElement {
        const kind = this.table.classes?.[i];
        const cells = this.table.columns.map(({ key, unit }, column) => {
            const href = addressOf(this.table, values, column);
            const half = this.table.half_widths?.[key]?.[i] ?? null;
            const value = values[column] ?? null;
            const isEstimate = half !== null && typeof value === "number";
            const shown = isEstimate ? estimate(value, half, unit) : cell(value, unit, this.view.zone);
            const text = href === null ? shown : element("a", { href }, shown);
            const kind = cellClass(this.table.columns[column]);
            return column === 0
                ? element("th", { scope: "row", class: kind }, text)
                : element("td", { class: kind }, text);
        });
        return element("tr", kind ? { class: kind } : {}, ...cells);
    }
}
