// SPDX-License-Identifier: PostgreSQL
/**
 * The brush: the whole recording as a strip with a window. Mouse, touch and arrow keys move and resize
 * the window; all charts show its range.
 */
import { instant } from "../clock";
import { element } from "../dom";
import { readInk } from "../look/ink";
import type { View } from "../view";
import { inkOf, type Landmarks } from "./marks";
import type { Values } from "./points";

/** The curve in the strip: a total over time. */
export interface Outline {
    readonly edges: readonly number[];
    readonly values: Values;
}

type Grip = "from" | "to" | "window" | "new";

/** Distance in pixels at which the pointer is on an edge of the window. */
const NEAR = 8;
/** A key moves an edge by this share of the recording. */
const KEY_STEP = 0.01;

export class Overview {
    readonly root: HTMLElement;
    private readonly canvas = element("canvas", { "aria-hidden": "true" });
    private readonly window = element("div", { class: "window" });
    private readonly grips: Record<"from" | "to", HTMLElement>;

    constructor(
        private readonly view: View,
        private outline: Outline,
        private landmarks: Landmarks,
    ) {
        this.grips = {
            from: this.grip("from", "Start of the view"),
            to: this.grip("to", "End of the view"),
        };
        this.window.append(this.grips.from, this.grips.to);
        this.root = element(
            "div",
            { class: "overview", title: "Drag to select the time range of all charts; double-click to show everything" },
            this.canvas,
            this.window,
        );
        this.root.addEventListener("pointerdown", (event) => this.drag(event));
        this.root.addEventListener("dblclick", () => view.reset());
        for (const what of ["range", "zone"] as const) view.on(what, () => this.place());
        view.on("theme", () => this.draw());
        new ResizeObserver(() => this.draw()).observe(this.root);
        this.place();
    }

    private grip(edge: "from" | "to", label: string): HTMLElement {
        const strip = element("div", {
            class: `grip ${edge}`,
            role: "slider",
            tabindex: "0",
            "aria-label": label,
        });
        strip.addEventListener("keydown", (event) => {
            const { whole, range } = this.view;
            const step = (whole.to - whole.from) * KEY_STEP * (event.shiftKey ? 10 : 1);
            const by = { ArrowLeft: -step, ArrowDown: -step, ArrowRight: step, ArrowUp: step }[event.key];
            if (by !== undefined) this.set(edge, range[edge] + by);
            else if (event.key === "Home") this.set(edge, edge === "from" ? whole.from : range.from);
            else if (event.key === "End") this.set(edge, edge === "to" ? whole.to : range.to);
            else if (event.key === "Escape") this.view.reset();
            else return;
            event.preventDefault();
        });
        return strip;
    }

    private set(edge: "from" | "to", time: number): void {
        const { range, whole } = this.view;
        const kept = Math.min(Math.max(time, whole.from), whole.to);
        if (edge === "from") this.view.zoom(Math.min(kept, range.to), range.to);
        else this.view.zoom(range.from, Math.max(kept, range.from));
    }

    private timeAt(x: number): number {
        const { left, width } = this.root.getBoundingClientRect();
        const { from, to } = this.view.whole;
        return from + (Math.min(Math.max(x - left, 0), width) / width) * (to - from);
    }

    private drag(event: PointerEvent): void {
        if (event.button !== 0) return;
        const { view, root } = this;
        const { left, right } = this.window.getBoundingClientRect();
        const x = event.clientX;
        const grip: Grip =
            Math.abs(x - left) <= NEAR
                ? "from"
                : Math.abs(x - right) <= NEAR
                  ? "to"
                  : view.zoomed && x > left && x < right
                    ? "window"
                    : "new";
        const begun = this.timeAt(x);
        const before = view.range;
        const move = (next: PointerEvent): void => {
            const time = this.timeAt(next.clientX);
            if (grip === "window") view.zoom(before.from + time - begun, before.to + time - begun);
            else if (grip !== "new") this.set(grip, time);
            else if (Math.abs(next.clientX - x) > NEAR / 2)
                view.zoom(Math.min(begun, time), Math.max(begun, time));
        };
        const end = (): void => {
            root.removeEventListener("pointermove", move);
            root.removeEventListener("pointerup", end);
            root.removeEventListener("pointercancel", end);
        };
        root.setPointerCapture(event.pointerId);
        root.addEventListener("pointermove", move);
        root.addEventListener("pointerup", end);
        root.addEventListener("pointercancel", end);
    }

    private place(): void {
        const { whole, range, zone, zoomed } = this.view;
        const part = (time: number): number => ((time - whole.from) / (whole.to - whole.from)) * 100;
        this.window.style.left = `${part(range.from)}%`;
        this.window.style.width = `${part(range.to) - part(range.from)}%`;
        this.root.classList.toggle("zoomed", zoomed);
        for (const edge of ["from", "to"] as const) {
            const grip = this.grips[edge];
            grip.setAttribute("aria-valuemin", String(Math.round(whole.from)));
            grip.setAttribute("aria-valuemax", String(Math.round(whole.to)));
            grip.setAttribute("aria-valuenow", String(Math.round(range[edge])));
            grip.setAttribute("aria-valuetext", instant(range[edge], zone));
        }
    }

    private draw(): void {
        const { canvas, root, view, outline, landmarks } = this;
        const { clientWidth: width, clientHeight: height } = root;
        canvas.width = Math.round(width * devicePixelRatio);
        canvas.height = Math.round(height * devicePixelRatio);
        const pen = canvas.getContext("2d");
        if (!pen || width === 0) return;
        const ink = readInk(view.theme);
        pen.scale(devicePixelRatio, devicePixelRatio);
        const { from, to } = view.whole;
        const x = (time: number): number => ((time - from) / (to - from)) * width;
        const most = Math.max(1e-9, ...outline.values.map((value) => value ?? 0));
        pen.fillStyle = ink.hatch;
        for (const gap of landmarks.gaps) pen.fillRect(x(gap.from), 0, x(gap.to) - x(gap.from), height);
        pen.fillStyle = ink.faint;
        pen.globalAlpha = 0.55;
        outline.values.forEach((value, i) => {
            const begin = outline.edges[i];
            const end = outline.edges[i + 1];
            if (value === null || begin === undefined || end === undefined) return;
            const tall = (value / most) * (height - 6);
            pen.fillRect(x(begin), height - tall, x(end) - x(begin) + 0.4, tall);
        });
        pen.globalAlpha = 1;
        for (const mark of landmarks.marks) {
            const { time, until } = mark;
            pen.fillStyle = inkOf(mark, ink);
            if (until !== null) pen.fillRect(x(time), 0, Math.max(x(until) - x(time), 1), 2.5);
        }
    }

    update(outline: Outline, landmarks: Landmarks): void {
        this.outline = outline;
        this.landmarks = landmarks;
        this.draw();
        this.place();
    }
}
