// SPDX-License-Identifier: PostgreSQL
/** The data of a chart, as a table of the points in view and as files. */
import { instant } from "../clock";
import { button, element } from "../dom";
import { exportButtons, type Sheet } from "../tables/export";
import { figure, type Unit } from "../units";
import type { Range, View } from "../view";

/** The data of a chart: a column per curve, a row per point. */
export interface Figures {
    readonly name: string;
    readonly unit: Unit;
    readonly columns: readonly string[];
    /** The points that overlap a range. */
    rows(range: Range): { time: number; values: readonly (number | null)[] }[];
}

/** Maximum number of rows in the table; files contain all rows. */
const MAX_ROWS = 1000;

function table(figures: Figures, view: View): HTMLElement {
    const rows = figures.rows(view.range);
    const head = ["Time", ...figures.columns].map((title, i) =>
        element("th", { scope: "col", class: i ? "num" : "text" }, title),
    );
    const body = rows
        .slice(0, MAX_ROWS)
        .map(({ time, values }) =>
            element(
                "tr",
                {},
                element("th", { scope: "row", class: "text" }, instant(time, view.zone)),
                ...values.map((value) => element("td", { class: "num" }, figure(value, figures.unit))),
            ),
        );
    const caption =
        rows.length > MAX_ROWS
            ? `The first ${MAX_ROWS} of ${rows.length} points in view; exported files contain all`
            : `${rows.length} points in view`;
    return element(
        "div",
        { class: "table scroll", tabindex: "0", role: "region", "aria-label": "Data of the chart" },
        element(
            "table",
            {},
            element("caption", {}, caption),
            element("thead", {}, element("tr", {}, ...head)),
            element("tbody", {}, ...body),
        ),
    );
}

/** The buttons Table, CSV and JSON. The table opens at the end of `host`. */
export function behind(host: HTMLElement, figures: Figures, view: View, until: AbortSignal): HTMLElement {
    let open: HTMLElement | null = null;
    const fill = (): void => {
        const next = table(figures, view);
        if (open) open.replaceWith(next);
        else host.append(next);
        open = next;
    };
    const toggle = button("Table", "Show the points in view as a table", () => {
        if (open) {
            open.remove();
            open = null;
        } else {
            fill();
        }
        toggle.setAttribute("aria-expanded", String(open !== null));
    });
    toggle.setAttribute("aria-expanded", "false");
    for (const what of ["range", "zone", "data"] as const) {
        const refill = (): void => {
            if (open) fill();
        };
        view.on(what, refill, until);
    }
    const sheet = (): Sheet => ({
        name: figures.name,
        columns: [
            view.zone === "elapsed" ? { key: "elapsed_seconds", unit: "seconds" } : { key: "time", unit: "time" },
            ...figures.columns.map((key) => ({ key, unit: figures.unit })),
        ],
        rows: figures.rows(view.range).map(({ time, values }) => [time, ...values]),
    });
    return element("div", { class: "tools" }, toggle, ...exportButtons(sheet));
}
