// SPDX-License-Identifier: PostgreSQL
/** Saves tables as files: raw figures in base units, instants as ISO 8601 in UTC. */
import { iso } from "../clock";
import { element } from "../dom";
import type { Table, Value } from "../model";
import type { Unit } from "../units";

/** The content of a file: the columns' keys and units, and the rows. */
export interface Sheet {
    readonly name: string;
    readonly columns: readonly { readonly key: string; readonly unit: Unit }[];
    readonly rows: readonly (readonly Value[])[];
}

/** These rows of a table. Behind its columns are the half-widths of those with estimates. */
export function withHalfWidths(table: Table, order: readonly number[]): Sheet {
    const halves = Object.entries(table.half_widths ?? {});
    const units = new Map(table.columns.map(({ key, unit }) => [key, unit]));
    const columns = halves.map(([key]) => ({ key: `${key}_half_width`, unit: units.get(key) ?? ("number" as const) }));
    const row = (i: number): readonly Value[] => [...(table.rows[i] ?? []), ...halves.map(([, half]) => half[i] ?? null)];
    return { name: table.id, columns: [...table.columns, ...columns], rows: order.map(row) };
}

/** CSV according to RFC 4180. */
export function csv({ columns, rows }: Sheet): string {
    const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
    const field = (value: Value, unit: Unit): string => {
        if (value === null) return "";
        if (typeof value === "string") return quoted(value);
        return unit === "time" ? iso(value) : String(value);
    };
    const lines = [columns.map(({ key }) => quoted(key)).join(",")];
    for (const row of rows) lines.push(columns.map(({ unit }, i) => field(row[i] ?? null, unit)).join(","));
    return lines.join("\r\n") + "\r\n";
}

/** A JSON array with one object per row. */
export function json({ columns, rows }: Sheet): string {
    const objects = rows.map((row) =>
        Object.fromEntries(
            columns.map(({ key, unit }, i) => {
                const value = row[i] ?? null;
                return [key, unit === "time" && typeof value === "number" ? iso(value) : value];
            }),
        ),
    );
    return JSON.stringify(objects, null, 1) + "\n";
}

/** Saves a file without a request. */
export function download(name: string, type: string, content: string): void {
    const url = URL.createObjectURL(new Blob([content], { type }));
    element("a", { href: url, download: name }).click();
    // By then the browser has read it.
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** The two buttons. The sheet is made when one of them is pressed. */
export function exportButtons(sheet: () => Sheet): HTMLButtonElement[] {
    const one = (label: string, type: string, write: (sheet: Sheet) => string): HTMLButtonElement => {
        const save = element("button", { type: "button", class: "plain", title: `Save as ${label}` }, label);
        save.addEventListener("click", () => {
            const data = sheet();
            download(`${data.name}.${label.toLowerCase()}`, type, write(data));
        });
        return save;
    };
    return [one("CSV", "text/csv;charset=utf-8", csv), one("JSON", "application/json", json)];
}
