// SPDX-License-Identifier: PostgreSQL
/** The box at the cursor, which screen readers announce, too. */
import { element } from "../dom";

export interface TooltipLine {
    readonly name: string;
    readonly value: string;
    readonly colour: string | null;
}

export interface Content {
    /** The instant in the chosen zone; the subtitle has the other one. */
    readonly title: string;
    readonly subtitle: string;
    readonly lines: readonly TooltipLine[];
    /** The sum of the lines, if they add up. */
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

    show(content: Content, over: HTMLElement, left: number, top: number): void {
        const rows = content.lines.map(({ name, value, colour }) => {
            const dot = element("i", { class: colour ? "dot" : "dot none" });
            if (colour) dot.style.background = colour;
            return element("tr", {}, element("th", { scope: "row" }, dot, name), element("td", {}, value));
        });
        if (content.total !== null) {
            rows.push(
                element(
                    "tr",
                    { class: "sum" },
                    element("th", { scope: "row" }, "all"),
                    element("td", {}, content.total),
                ),
            );
        }
        this.box.replaceChildren(
            element("p", { class: "when" }, element("b", {}, content.title), " ", content.subtitle),
            element("table", {}, element("tbody", {}, ...rows)),
            ...content.notes.map((note) => element("p", { class: "remark" }, note)),
        );
        this.box.hidden = false;
        this.place(over, left, top);
    }

    /** Puts the box on the side of the cursor where it fits, inside the plot. */
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
