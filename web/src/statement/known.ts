// SPDX-License-Identifier: PostgreSQL
/** The statements of a report, of all applications together, and the addresses of their pages. */
import type { Detail, Report, Value } from "../model";

export const addressOf = (statement: string): string => `#statement-${statement}`;

/** The statement whose page a fragment of an address names; null if it names none. */
export const namedBy = (fragment: string): string | null => /^#statement-(.+)$/.exec(fragment)?.[1] ?? null;

export interface KnownStatement {
    readonly statement: string;
    /** Its row for each application, most time first: the cells by key, and the details. */
    readonly rows: readonly { readonly cells: ReadonlyMap<string, Value>; readonly detail: Detail }[];
}

/** By key, most time first. */
export function knownStatements({ tables }: Report): Map<string, KnownStatement> {
    const known = new Map<string, { statement: string; rows: { cells: Map<string, Value>; detail: Detail }[] }>();
    for (const table of tables) {
        table.rows.forEach((row, i) => {
            const detail = table.details?.[i];
            const statement = detail?.statement;
            if (!detail || statement === undefined) return;
            const cells = new Map(table.columns.map(({ key }, column) => [key, row[column] ?? null]));
            const one = known.get(statement);
            if (one) one.rows.push({ cells, detail });
            else known.set(statement, { statement, rows: [{ cells, detail }] });
        });
    }
    return known;
}

/** The key of the statement with the most time that has a text, by text. */
export function keysByText({ tables }: Report): ReadonlyMap<string, string> {
    const keys = new Map<string, string>();
    for (const detail of tables.flatMap(({ details }) => details ?? [])) {
        const { text, statement } = detail ?? {};
        if (text && statement !== undefined && !keys.has(text)) keys.set(text, statement);
    }
    return keys;
}

/** The details of all its rows as one. */
export function mergedDetail({ rows }: KnownStatement): Detail {
    const histogram = new Map<number, [from: number, to: number | null, count: number]>();
    const activities = new Map<string, [phase: string, activity: string, seconds: number, count: number | null]>();
    for (const { detail } of rows) {
        for (const [from, to, count] of detail.histogram) {
            const sum = histogram.get(from);
            if (sum) sum[2] += count;
            else histogram.set(from, [from, to, count]);
        }
        for (const [phase, activity, seconds, count] of detail.activities) {
            const sum = activities.get(`${phase}\n${activity}`);
            if (sum) {
                sum[2] += seconds;
                sum[3] = sum[3] === null || count === null ? null : sum[3] + count;
            } else activities.set(`${phase}\n${activity}`, [phase, activity, seconds, count]);
        }
    }
    const first = rows.find(({ detail }) => detail.text !== null)?.detail;
    return {
        text: first?.text ?? null,
        cut: first?.cut ?? false,
        example: first?.example ?? null,
        histogram: [...histogram.values()].sort((a, b) => a[0] - b[0]),
        activities: [...activities.values()].sort((a, b) => b[2] - a[2]),
        plans: rows.flatMap(({ detail }) => detail.plans),
        slow_executions: rows.flatMap(({ detail }) => detail.slow_executions ?? []).sort((a, b) => b[1] - a[1]),
    };
}
