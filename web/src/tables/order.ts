// SPDX-License-Identifier: PostgreSQL
/** Filters and sorts rows. */
import type { Table, Value } from "../model";
import { numeric } from "../units";

export interface Sorting {
    readonly column: number;
    readonly down: boolean;
}

const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

function compare(a: Value, b: Value): number {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return words.compare(String(a), String(b));
}

/** The initial order of a column: largest figure on top, words from A to Z. */
export function firstWay(table: Table, column: number): Sorting {
    return { column, down: numeric(table.columns[column]?.unit ?? "text") };
}

/** The report's own order: by the column that it names, in the direction given by the first and last values. */
export function asGiven(table: Table): Sorting | null {
    const column = table.columns.findIndex(({ key }) => key === table.sort);
    if (column < 0) return null;
    const first = table.rows[0]?.[column];
    const last = table.rows[table.rows.length - 1]?.[column];
    const rising = typeof first === "number" && typeof last === "number" && first < last;
    return rising ? { column, down: false } : firstWay(table, column);
}

/** The rows' indexes in order, or null if unsorted. Rows without a value come last in either direction. */
export function ordered(rows: readonly (readonly Value[])[], sorting: Sorting | null): number[] {
    const order = rows.map((_, i) => i);
    if (!sorting) return order;
    const { column, down } = sorting;
    return order.sort((i, j) => {
        const a = rows[i]?.[column] ?? null;
        const b = rows[j]?.[column] ?? null;
        if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0) || i - j;
        return (down ? compare(b, a) : compare(a, b)) || i - j;
    });
}

/** Whether a row's texts contain all words of `wanted`. */
export function matches(row: readonly Value[], table: Table, wanted: string): boolean {
    const texts = row
        .filter((value, i) => typeof value === "string" && !numeric(table.columns[i]?.unit ?? "text"))
        .join("\n")
        .toLowerCase();
    return wanted
        .toLowerCase()
        .split(/\s+/)
        .every((word) => texts.includes(word));
}
