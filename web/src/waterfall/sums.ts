// SPDX-License-Identifier: PostgreSQL
/** Where the time of the range in view went: lists by wait, statement, object and plan node. */
import { element } from "../dom";
import { duration, percent, whole } from "../units";
import type { View } from "../view";
import { sumsIn, type TimeSum, type TraceSums, type Track } from "./timeline";

/** Number of rows of a list. */
const SHOWN = 6;

const LISTS = [
    ["activities", "By wait and CPU", "Of the time in messages"],
    ["statements", "By statement", "Time in messages with the statement"],
    ["objects", "By object", "Waits for a lock or a file"],
    ["nodes", "By plan node", "Waits while the node ran; its CPU time is in the plan of a message"],
] as const;

export class Sums {
    readonly root = element("section", { class: "sums", "aria-label": "Where the time went" });
    private pending = false;
    /** All of the trace: no part of it has longer lists. */
    private readonly all: TraceSums;

    constructor(
        private readonly tracks: readonly Track[],
        private readonly view: View,
    ) {
        this.all = sumsIn(tracks, view.whole.from, view.whole.to);
        view.on("range", () => this.soon());
        this.write();
    }

    private soon(): void {
        if (this.pending) return;
        this.pending = true;
        requestAnimationFrame(() => {
            this.pending = false;
            this.write();
        });
    }

    private write(): void {
        const { view } = this;
        const { from, to } = view.range;
        const sums = sumsIn(this.tracks, from, to);
        const what = view.zoomed ? `Selected, ${duration(to - from)}: ` : `The whole trace, ${duration(to - from)}: `;
        const waited = sums.inTransaction > 0 ? `, ${duration(sums.inTransaction)} of it in a transaction` : "";
        const text =
            `${duration(sums.busy)} in messages` + (sums.idle > 0 ? `; ${duration(sums.idle)} between messages, waiting for the client${waited}.` : ".");
        this.root.replaceChildren(
            element("p", {}, element("b", {}, what), text),
            element("div", { class: "lists" }, ...LISTS.map(([id, title, help]) => list(title, help, sums[id], this.all[id].length, sums.busy))),
        );
    }
}

/** The first rows of a list, which has this many rows at most. */
function list(title: string, help: string, sums: readonly TimeSum[], most: number, busy: number): HTMLElement {
    const largest = sums[0]?.seconds ?? 0;
    const rows = sums.slice(0, SHOWN).map(({ name, class: kind, seconds, count, longest }) => {
        const bar = element("i", { class: `of-${kind ?? "none"}` });
        bar.style.width = `${(100 * seconds) / Math.max(largest, 1e-12)}%`;
        return element(
            "tr",
            { title: `${name}: ${whole(count)} times, at most ${duration(longest)}` },
            element("th", { scope: "row" }, element("span", {}, name), bar),
            element("td", { class: "num" }, duration(seconds)),
            element("td", { class: "num" }, percent(busy > 0 ? seconds / busy : 0)),
        );
    });
    if (rows.length === 0) rows.push(element("tr", { class: "nothing" }, element("td", { colspan: "3" }, "none")));
    // As many rows with any figures, so that nothing moves.
    const filled = Math.min(SHOWN, Math.max(most, 1));
    while (rows.length < filled) rows.push(element("tr", {}, element("td", { colspan: "3" }, "\u00a0")));
    return element("table", {}, element("caption", { title: help }, title), element("tbody", {}, ...rows));
}
