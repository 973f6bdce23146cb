// SPDX-License-Identifier: PostgreSQL
/** Whether a live page follows its server: "live, 12:04:31", paused, or without data. */
import { seconds as clock } from "./clock";
import { button, element } from "./dom";
import type { View } from "./view";

/** Lengths of the view that can be chosen, from its end; seconds. */
const SPANS: readonly (readonly [label: string, seconds: number])[] = [
    ["last 5 min", 300],
    ["last 15 min", 900],
    ["last hour", 3600],
    ["all", Infinity],
];

export class LiveState {
    readonly root: HTMLElement;
    private readonly text = element("span", { class: "live", role: "status" });
    private readonly pause: HTMLButtonElement;
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
        const span = element("select", { "aria-label": "Time shown" });
        for (const [label, length] of SPANS) span.append(element("option", { value: String(length) }, label));
        span.value = "Infinity";
        span.addEventListener("change", () => {
            const { to } = view.whole;
            if (span.value === "Infinity") view.reset();
            else view.zoom(to - Number(span.value), to);
        });
        view.on("zone", () => this.write());
        this.root = element("span", { class: "live-tools" }, this.text, this.pause, span);
        this.write();
    }

    get paused(): boolean {
        return this.stopped;
    }

    /** A report of this time is shown. */
    shows(time: number): void {
        this.time = time;
        this.write();
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
