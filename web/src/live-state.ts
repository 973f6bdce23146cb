// SPDX-License-Identifier: PostgreSQL
/** Whether a live page follows its server: "live, 12:04:31", paused, or without data. */
import { seconds as clock } from "./clock";
import { button, element } from "./dom";
import type { Range, View } from "./view";

/** Lengths of the view that can be chosen, from its end; seconds. */
const SPANS: readonly (readonly [label: string, seconds: number])[] = [
    ["last 5 min", 300],
    ["last 15 min", 900],
    ["last hour", 3600],
    ["all", Infinity],
];
/** The option's value while a part is shown that has none of these lengths. */
const OTHER = "";

export class LiveState {
    readonly root: HTMLElement;
    private readonly text = element("span", { class: "live", role: "status" });
    private readonly pause: HTMLButtonElement;
    private readonly span = element("select", { "aria-label": "Time shown" });
    /** Whether the view moves because of the chosen length or of a longer history, and not by its reader. */
    private moving = false;
    private stopped = false;
    private lost = false;

    /** `time` is that of the report shown; `resume` is called when the page is to follow the server again. */
    constructor(
        private readonly view: View,
        private time: number,
        resume: () => void,
    ) {
        this.pause = button("Pause", "Stop updating, or follow the server again", () => {
            this.stopped = !this.stopped;
            this.write();
            if (!this.stopped) resume();
        });
        const { span } = this;
        for (const [label, length] of SPANS) span.append(element("option", { value: String(length) }, label));
        span.append(element("option", { value: OTHER, hidden: "" }, "selected part"));
        span.value = "Infinity";
        span.addEventListener("change", () => this.move(() => this.apply()));
        view.on("range", () => {
            if (!this.moving) span.value = view.zoomed ? OTHER : "Infinity";
        });
        view.on("zone", () => this.write());
        this.root = element("span", { class: "live-tools" }, this.text, this.pause, span);
        this.write();
    }

    get paused(): boolean {
        return this.stopped;
    }

    /** A report of this time is shown, whose history is `whole`. */
    shows(time: number, whole: Range): void {
        this.time = time;
        this.move(() => {
            this.view.grow(whole);
            if (this.span.value !== OTHER) this.apply();
        });
        this.write();
    }

    private move(act: () => void): void {
        this.moving = true;
        act();
        this.moving = false;
    }

    /** Shows the chosen length. A history that is shorter is shown whole, and will be cut to the length when it has grown. */
    private apply(): void {
        const { whole } = this.view;
        if (this.span.value === "Infinity") this.view.reset();
        else this.view.zoom(Math.max(whole.to - Number(this.span.value), whole.from), whole.to);
    }

    /** Whether the server does not answer. */
    setLost(lost: boolean): void {
        this.lost = lost;
        this.write();
    }

    private write(): void {
        const state = this.stopped ? "paused" : this.lost ? "no data since" : "live";
        this.text.className = `live ${state.split(" ")[0]}`;
        this.text.textContent = `${state}${this.lost && !this.stopped ? " " : ", "}${clock(this.time, this.view.zone)}`;
        this.pause.textContent = this.stopped ? "Resume" : "Pause";
    }
}
