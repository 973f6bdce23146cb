// SPDX-License-Identifier: PostgreSQL
/** The main chart, average active sessions, by wait, by statement or by session. */
import { element } from "../dom";
import type { Chart, Ranking, Report, Series } from "../model";

/** The chart that can be sliced. */
export const SLICED = "activity";
/** What the chart shows at first. */
export const WAITS = "waits";
/** Number of statements or sessions with an area of their own. */
const OWN = 8;
/** Maximum number of characters of a name in the legend. */
const LETTERS = 80;

/** The report with its main chart sliced by this ranking; unchanged if there is none. */
export function sliced(report: Report, by: string): Report {
    const ranking = report.rankings?.find(({ id }) => id === by);
    const chart = report.charts.find(({ id }) => id === SLICED);
    if (!ranking || !chart) return report;
    const axis = `by-${by}`;
    const next: Chart = { ...chart, title: `Active sessions by ${NAMES[by] ?? by}`, axis, series: seriesOf(ranking) };
    return {
        ...report,
        axes: { ...report.axes, [axis]: ranking.axis },
        charts: report.charts.map((one) => (one === chart ? next : one)),
    };
}

const NAMES: Readonly<Record<string, string>> = { statements: "statement", sessions: "session" };

/** The largest, which are at the bottom of the stack, and the sum of the others. */
function seriesOf({ axis, rows }: Ranking): Series[] {
    const averages = (seconds: readonly number[]): (number | null)[] =>
        axis.seconds.map((measured, i) => (measured > 0 ? (seconds[i] ?? 0) / measured : null));
    const series = rows.slice(0, OWN).map(
        ({ name, seconds }): Series => ({ name: short(name), class: null, shade: 0, values: averages(seconds) }),
    );
    const others = rows.slice(OWN);
    if (others.length > 0) {
        const sum = axis.seconds.map((_, i) => others.reduce((all, { seconds }) => all + (seconds[i] ?? 0), 0));
        series.push({ name: "others", class: "other", shade: 0, values: averages(sum) });
    }
    return series;
}

const short = (name: string): string => (name.length > LETTERS ? `${name.slice(0, LETTERS - 1)}…` : name);

/** The choice of what the chart shows; null if there is only one. */
export function sliceChoice({ rankings }: Report, chosen: string, choose: (by: string) => void): HTMLElement | null {
    const known = (rankings ?? []).filter(({ id }) => NAMES[id] !== undefined);
    if (known.length === 0) return null;
    const select = element("select", { "aria-label": "Slice the chart by", title: "What the areas of the chart are" });
    for (const [value, label] of [[WAITS, "by wait"], ...known.map(({ id }) => [id, `by ${NAMES[id]}`])] as const) {
        select.append(element("option", { value: value ?? "" }, label ?? ""));
    }
    select.value = chosen;
    select.addEventListener("change", () => choose(select.value));
    return select;
}
