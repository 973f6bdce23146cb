// SPDX-License-Identifier: PostgreSQL
/** The box beside the cursor, which is also what a screen reader is told. */
import { element } from "../dom";

/** One line of it. */
export interface Line {
    readonly name: string;
    readonly value: string;
    readonly colour: string | null;
}

export interface Said {
    /** The instant, in the reader's time and in UTC. */
    readonly title: string;
    readonly subtitle: string;
    readonly lines: readonly Line[];
    /** The sum of the lines, where they add up. */
    readonly total: string | null;
    readonly notes: readonly string[];
}

/** Distance from the cursor, in pixels. */
const AWAY = 14;

export class Tooltip {
    private readonly box = element("div", { class: "tooltip", role: "status" });

    constructor(private readonly host: HTMLElement) {
        this.box.hidden = true;
        host.append(this.box);
    }

    hide(): void {
        this.box.hidden = true;
    }

    show(said: Said, over: HTMLElement, left: number, top: number): void {
        const rows = said.lines.map(({ name, value, colour }) => {
            const dot = element("i", { class: colour ? "dot" : "dot none" });
            if (colour) dot.style.background = colour;
            return element("tr", {}, element("th", { scope: "row" }, dot, name), element("td", {}, value));
        });
        if (said.total !== null) {
            rows.push(
                element("tr", { class: "sum" }, element("th", { scope: "row" }, "all"), element("td", {}, said.total)),
            );
        }
        this.box.replaceChildren(
            element("p", { class: "when" }, element("b", {}, said.title), " ", said.subtitle),
            element("table", {}, element("tbody", {}, ...rows)),
            ...said.notes.map((note) => element("p", { class: "said" }, note)),
        );
        this.box.hidden = false;
        this.place(over, left, top);
    }

    /** On the side of the cursor that has room, never outside the plot's own box. */
    private place(over: HTMLElement, left: number, top: number): void {
        const { box, host } = this;
        const x = over.offsetLeft + left;
        const y = over.offsetTop + top;
        const right = x + AWAY;
        const fits = right + box.offsetWidth <= host.clientWidth;
        const at = fits ? right : Math.max(0, x - AWAY - box.offsetWidth);
        box.style.left = `${Math.min(at, Math.max(0, host.clientWidth - box.offsetWidth))}px`;
        box.style.top = `${Math.max(-8, Math.min(y - 20, host.clientHeight - box.offsetHeight))}px`;
    }
}
