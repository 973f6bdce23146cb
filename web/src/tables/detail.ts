// SPDX-License-Identifier: PostgreSQL
/** The details of a statement: text, execution times, time by activity, plans. */
import { drawn, element } from "../dom";
import type { Detail } from "../model";
import type { ActivityClass } from "../look/palette";
import { NOTHING, figure, percent, whole } from "../units";
import { histogramPath, spanOf } from "./bars";

const WIDE = 480;
const HIGH = 96;
/** From here on labels are at the left of their marks, %. */
const LAST = 88;
/** Maximum number of activities listed. */
const MAX_ACTIVITIES = 12;

function text({ text, cut }: Detail): HTMLElement {
    if (text === null) return element("p", { class: "note" }, "The statement text is unknown.");
    return element(
        "div",
        {},
        element("pre", { tabindex: "0" }, text),
        cut ? element("p", { class: "note" }, "Truncated: the segment keeps only the beginning of the text.") : null,
    );
}

export function histogramOf({ histogram }: Detail): HTMLElement | null {
    if (!histogram.length) return null;
    const span = spanOf([histogram]);
    const picture = drawn("svg", {
        class: "spark",
        viewBox: `0 0 ${WIDE} ${HIGH}`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": "Histogram of executions",
    });
    picture.append(drawn("path", { d: histogramPath(histogram, span, WIDE, HIGH) }));
    // One mark per decade.
    const marks: HTMLElement[] = [];
    const scale = 100 / Math.log(span.high / span.low);
    for (let power = Math.ceil(Math.log10(span.low)); 10 ** power <= span.high; power++) {
        const mark = element("span", {}, figure(10 ** power, "seconds"));
        const at = Math.log(10 ** power / span.low) * scale;
        // A label is at the right of its mark; near the right edge there is no room for it.
        if (at > LAST) {
            mark.className = "last";
            mark.style.right = `${100 - at}%`;
        } else mark.style.left = `${at}%`;
        marks.push(mark);
    }
    const all = histogram.reduce((sum, [, , count]) => sum + count, 0);
    return element(
        "figure",
        { class: "histogram" },
        element("figcaption", {}, `${whole(all)} executions, by duration`),
        picture,
        element("div", { class: "scale" }, ...marks),
    );
}

export function activitiesOf(
    { activities }: Detail,
    classes: ReadonlyMap<string, ActivityClass>,
): HTMLElement | null {
    if (!activities.length) return null;
    const all = activities.reduce((sum, [, , seconds]) => sum + seconds, 0);
    // Samples do not count, so their times are estimates.
    const sign = (count: number | null): string => (count === null ? "~" : "");
    const head = ["Activity", "Phase", "Time", "Share", "Count"].map((title, i) =>
        element("th", { scope: "col", class: i > 1 ? "num" : "text" }, title),
    );
    const rows = activities
        .slice(0, MAX_ACTIVITIES)
        .map(([phase, activity, seconds, count]) =>
            element(
                "tr",
                { class: classes.get(activity) ?? "other" },
                element("th", { scope: "row", class: "text" }, activity),
                element("td", { class: "text" }, phase),
                element("td", { class: "num" }, sign(count) + figure(seconds, "seconds")),
                element("td", { class: "num" }, all > 0 ? sign(count) + percent(seconds / all) : ""),
                element("td", { class: "num" }, count === null ? NOTHING : whole(count)),
            ),
        );
    return element(
        "table",
        {},
        element("thead", {}, element("tr", {}, ...head)),
        element("tbody", {}, ...rows),
    );
}

export function planOf([figures, nodes]: Detail["plans"][number]): HTMLElement {
    return element(
        "figure",
        { class: "plan" },
        element("figcaption", {}, figures),
        element("pre", { tabindex: "0" }, nodes),
    );
}

/** The details; `inPart`: of a row of a part of the time, which they say nothing about. */
export function detailOf(detail: Detail, classes: ReadonlyMap<string, ActivityClass>, inPart: boolean): HTMLElement {
    const note = inPart ? element("p", { class: "note" }, "Executions and activities are those of the whole time.") : null;
    const parts = [text(detail), note, histogramOf(detail), activitiesOf(detail, classes), ...detail.plans.map(planOf)];
    return element("div", { class: "detail" }, ...parts);
}
