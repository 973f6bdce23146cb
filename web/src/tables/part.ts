// SPDX-License-Identifier: PostgreSQL
/**
 * A table in a part of the time. The command writes the sums of each row in each point and how columns follow from them
 * (docs/reference-json.md, `parts`), so no figure is defined here.
 */
import type { Axis, Parts, Report, SumSeries, Table, TableParts, Value } from "../model";
import { pointsOf } from "../span";
import type { Range } from "../view";

/** The name of the measured time, as a sum. */
const MEASURED = "measured";
const LOADING = "those of the selected time are being loaded";
const NOT_KEPT = "they are not known over time";

export interface TablePart {
    readonly table: Table;
    /** Why the figures are those of the whole time; null: they are those of the part. */
    readonly whole: string | null;
    /** The time that the figures are of, in seconds, if they are sums. */
    readonly measured: number | null;
    /** The columns that are known for the whole time only. */
    readonly unknown: ReadonlySet<number>;
}

/** The sum of a series over points. A negative number stands for so many zeros. */
export function sumWithin(series: SumSeries, from: number, to: number): number {
    let at = 0;
    let sum = 0;
    for (const value of series) {
        if (at >= to) break;
        if (value < 0) at -= value;
        else {
            if (at >= from) sum += value;
            at++;
        }
    }
    return sum;
}

/** The rows that have an instant in the range. */
function rowsWithin(table: Table, [from, to]: readonly [string, string], range: Range): number[] {
    const [first, last] = [from, to].map((key) => table.columns.findIndex((column) => column.key === key));
    const at = (i: number, column: number | undefined): number => Number(table.rows[i]?.[column ?? -1] ?? NaN);
    return table.rows.flatMap((_, i) => (at(i, first) < range.to && at(i, last) >= range.from ? [i] : []));
}

/** The table with these rows only. */
function withRows(table: Table, kept: readonly number[], rows: Table["rows"]): Table {
    const those = <T>(all: readonly T[] | null): T[] | null => all && kept.map((i) => all[i] as T);
    const halves = Object.entries(table.half_widths ?? {}).map(([key, all]) => [key, those(all) ?? []] as const);
    const halfWidths = Object.fromEntries(halves);
    return { ...table, rows, half_widths: halfWidths, classes: those(table.classes), details: those(table.details) };
}

function summed(table: Table, parts: Parts, of: TableParts, end: number, range: Range): TablePart {
    const axis: Axis = of.axis ?? parts.axis;
    const [from, to] = pointsOf(axis, end, range);
    const measured = axis.seconds.slice(from, to).reduce((a, b) => a + b, 0);
    const totals = new Map<string, number>([[MEASURED, measured]]);
    for (const all of [of.axis ? {} : parts.totals, of.totals ?? {}]) {
        for (const [name, series] of Object.entries(all)) totals.set(name, sumWithin(series, from, to));
    }
    const kept: number[] = [];
    const rows: Value[][] = [];
    of.rows.forEach((series, i) => {
        const sums = series.map((one) => sumWithin(one, from, to));
        if (!sums.some((sum) => sum > 0)) return;
        const sum = (name: string | undefined): number => {
            const at = of.sums.indexOf(name ?? "");
            return (at >= 0 ? sums[at] : totals.get(name ?? "")) ?? 0;
        };
        const given = table.rows[i] ?? [];
        kept.push(i);
        rows.push(
            of.columns.map((how, column) => {
                if (how === null) return null;
                if (how.length === 0) return given[column] ?? null;
                if (how.length === 1) return given[column] === null ? null : sum(how[0]);
                const by = sum(how[1]);
                return by > 0 ? sum(how[0]) / by : null;
            }),
        );
    });
    const unknown = new Set(of.columns.flatMap((how, column) => (how === null ? [column] : [])));
    return { table: withRows(table, kept, rows), whole: null, measured, unknown };
}

/** A table in a part of the time that ends at `end`. */
export function tableWithin(table: Table, { parts, live }: Report, end: number, range: Range): TablePart {
    const rest = { measured: null, unknown: new Set<number>() };
    const of = parts?.tables[table.id];
    if (parts && of) return summed(table, parts, of, end, range);
    if (table.times) {
        const kept = rowsWithin(table, table.times, range);
        const rows = kept.map((i) => table.rows[i] ?? []);
        return { table: withRows(table, kept, rows), whole: table.whole ?? null, ...rest };
    }
    if (table.always) return { table, whole: null, ...rest };
    return { table, whole: table.whole ?? (live && !parts ? LOADING : NOT_KEPT), ...rest };
}
