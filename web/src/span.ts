// SPDX-License-Identifier: PostgreSQL
/**
 * The selected part of the time. It consists of whole points, so that its figures are those of a report of exactly that time;
 * a point counts if its middle is in the part, as a detail does in such a report.
 */
import { pointAt } from "./charts/points";
import type { Axis, Report } from "./model";
import type { Range, View } from "./view";

/** The points whose middle is in a range, or else the one in which the range is; `to` is exclusive. */
export function pointsOf({ time }: Axis, end: number, range: Range): [from: number, to: number] {
    const middle = (i: number): number => ((time[i] ?? end) + (time[i + 1] ?? end)) / 2;
    let from = 0;
    while (from < time.length && middle(from) < range.from) from++;
    let to = from;
    while (to < time.length && middle(to) < range.to) to++;
    if (from < to) return [from, to];
    const at = pointAt([...time, end], (range.from + range.to) / 2);
    return at < 0 ? [0, 0] : [at, at + 1];
}

/** The whole points of the tables, or else of the chart, in a range. */
function wholePoints(report: Report, end: number, range: Range): Range {
    const chart = report.charts.find(({ id }) => id === "activity");
    const axis = report.parts?.axis ?? (chart && report.axes[chart.axis]);
    if (!axis) return range;
    const [from, to] = pointsOf(axis, end, range);
    return { from: axis.time[from] ?? range.from, to: axis.time[to] ?? end };
}

/** What is open, or else what is selected; null: nothing, which means the whole time. */
export function selectedPart(report: Report, view: View): Range | null {
    if (view.moment) return view.moment;
    return view.zoomed ? wholePoints(report, view.whole.to, view.range) : null;
}
