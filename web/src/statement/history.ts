// SPDX-License-Identifier: PostgreSQL
/** The history of a statement as charts, as sums of a range, and as times in which plans were used. */
import { CLASS_NAMES } from "../look/palette";
import type { Axis, Chart, Histories, Report, StatementHistory } from "../model";
import { pointsOf } from "../span";
import type { Range } from "../view";

/** Its section, and the beginning of the names of charts. */
export const SECTION = "statement";

const over = (calls: readonly number[], seconds: readonly number[]): (number | null)[] =>
    calls.map((n, i) => (n > 0 ? (seconds[i] ?? 0) / n : null));

/** A report that consists of the history's charts, with the marks and gaps of the whole report. */
export function chartsOf(report: Report, { axis }: Histories, history: StatementHistory): Report {
    const { calls, exec_seconds: times, p99_seconds: p99 } = history;
    const chart = (id: string, title: string, rest: Pick<Chart, "kind" | "axis" | "unit" | "series">): Chart => ({
        id: `${SECTION}-${id}`,
        section: SECTION,
        title,
        reference: null,
        averaged: true,
        ...rest,
    });
    const line = (name: string, values: readonly (number | null)[]) => ({ name, class: null, shade: 0, values });
    return {
        ...report,
        // A mean per call counts by its calls.
        axes: { time: axis, calls: { time: axis.time, seconds: calls } },
        charts: [
            chart("split", "Time per call, by class of wait", {
                kind: "stack",
                axis: "calls",
                unit: "seconds",
                series: history.classes.map((one) => ({
                    name: CLASS_NAMES[one.class],
                    class: one.class,
                    shade: 0,
                    values: over(calls, one.seconds),
                })),
            }),
            {
                ...chart("times", "Execution time of a call", {
                    kind: "lines",
                    axis: "calls",
                    unit: "seconds",
                    series: [line("mean", over(calls, times)), line("99th percentile", p99)],
                }),
                // A percentile of a range is not the mean of percentiles.
                averaged: false,
            },
            chart("calls", "Calls", {
                kind: "lines",
                axis: "time",
                unit: "per_second",
                series: [
                    line(
                        "calls",
                        calls.map((n, i) => ((axis.seconds[i] ?? 0) > 0 ? n / (axis.seconds[i] ?? 1) : null)),
                    ),
                ],
            }),
        ],
    };
}

export interface HistorySums {
    readonly calls: number;
    /** Measured seconds. */
    readonly measured: number;
    /** Seconds of executions, and all time in the server. */
    readonly executing: number;
    readonly seconds: number;
    /** The highest 99th percentile of a point. */
    readonly p99: number | null;
}

/** What it did in a range. A point counts if its middle is in the range. */
export function sumsIn(history: StatementHistory, axis: Axis, end: number, range: Range): HistorySums {
    const [from, to] = pointsOf(axis, end, range);
    const total = (values: readonly number[]): number => values.slice(from, to).reduce((sum, value) => sum + value, 0);
    const p99 = history.p99_seconds.slice(from, to).filter((value): value is number => value !== null);
    return {
        calls: total(history.calls),
        measured: total(axis.seconds),
        executing: total(history.exec_seconds),
        seconds: history.classes.reduce((sum, one) => sum + total(one.seconds), 0),
        p99: p99.length > 0 ? Math.max(...p99) : null,
    };
}

type Plan = NonNullable<StatementHistory["plans"]>[number];

/** When a plan was in use: the points with noted executions or, if these are not known, from the first to the last one. */
export function spansOf(plan: Plan, { time }: Axis, end: number): Range[] {
    if (!plan.noted) return [{ from: plan.first, to: plan.last }];
    const spans: { from: number; to: number }[] = [];
    plan.noted.forEach((noted, i) => {
        const from = time[i];
        if (noted === 0 || from === undefined) return;
        const to = time[i + 1] ?? end;
        const last = spans[spans.length - 1];
        if (last?.to === from) last.to = to;
        else spans.push({ from, to });
    });
    return spans;
}
