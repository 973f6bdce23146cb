// SPDX-License-Identifier: PostgreSQL
/**
 * Pairs of bars: figures of both sides of a comparison. Each pair has its own axis from zero, because statements differ
 * by orders of magnitude. A line at the end of a bar is its confidence interval.
 */
import { element } from "../dom";
import type { Bar, PairOfBars, Report, SideName } from "../model";
import { figure, tick, type Unit } from "../units";

/** Maximum number of steps on an axis. */
const STEPS = 4;

/** The marks of an axis from zero to `max` or above, in steps of 1, 2 or 5. */
export function marks(max: number): number[] {
    if (!(max > 0)) return [0, 1];
    const rough = max / STEPS;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * (1 - 1e-9)) ?? 10 * power;
    return Array.from({ length: Math.ceil(max / step - 1e-9) + 1 }, (_, at) => Number((at * step).toPrecision(12)));
}

const reach = (bar: Bar | null): number => (bar ? bar.value + (bar.half_width ?? 0) : 0);

function reading(bar: Bar | null, unit: Unit): string {
    if (!bar) return "none";
    const half = bar.half_width === null ? "" : ` ± ${figure(bar.half_width, unit)}`;
    return figure(bar.value, unit) + half;
}

const percent = (share: number): string => `${(share * 100).toFixed(2)}%`;

function bar(side: SideName, shown: Bar | null, end: number, unit: Unit): HTMLElement[] {
    const name = side.toUpperCase();
    const track = element("div", { class: "track", title: `${name}: ${reading(shown, unit)}` });
    if (shown) {
        const fill = element("div", { class: `fill ${side}` });
        fill.style.width = percent(shown.value / end);
        track.append(fill);
        if (shown.half_width) {
            const error = element("div", { class: "error" });
            const from = Math.max(0, shown.value - shown.half_width);
            error.style.left = percent(from / end);
            error.style.width = percent((shown.value + shown.half_width - from) / end);
            track.append(error);
        }
    }
    return [
        element("span", { class: "side" }, name),
        track,
        element("span", { class: "reading" }, reading(shown, unit)),
    ];
}

function row({ name, a, b }: PairOfBars, unit: Unit): HTMLElement {
    const all = marks(Math.max(reach(a), reach(b)));
    const end = all[all.length - 1] ?? 1;
    const scale = element("div", { class: "ticks", "aria-hidden": "true" });
    for (const value of all) {
        const mark = element("span", {}, tick(value, unit));
        mark.style.left = percent(value / end);
        scale.append(mark);
    }
    return element(
        "li",
        {},
        element("code", { title: name }, name),
        element("div", { class: "bars" }, ...bar("a", a, end, unit), ...bar("b", b, end, unit), scale),
    );
}

/** Draws the pairs into their figure. */
export function drawPairs(host: HTMLElement, id: string, report: Report): void {
    const pairs = report.pairs?.find((one) => one.id === id);
    if (!pairs) return;
    host.querySelector(".without-script")?.remove();
    host.append(element("ul", { class: "rows" }, ...pairs.rows.map((one) => row(one, pairs.unit))));
}
