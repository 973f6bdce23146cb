// SPDX-License-Identifier: PostgreSQL
/**
 * The common behaviour of curves and heat maps: they show the view's range, zoom by dragging, reset on a double click,
 * follow each other's cursor, react to keys, and show a tooltip.
 */
import uPlot from "uplot";
import { readInk, type Ink } from "../look/ink";
import { onPaper } from "../look/theme";
import type { Range, View } from "../view";
import { timeAxis } from "./axes";
import { drawMoment, drawOver, drawUnder, notesAt, type Landmarks } from "./marks";
import { Tooltip, type Content } from "./tooltip";

/** The specific part of a kind of plot. */
export interface Kind {
    readonly height: number;
    readonly series: uPlot.Series[];
    readonly yScale: uPlot.Scale;
    readonly yAxis: (ink: () => Ink) => uPlot.Axis;
    readonly data: () => uPlot.AlignedData;
    /** Drawn above the grid and the gaps, below the curves. */
    readonly ground?: (u: uPlot, ink: Ink) => void;
    /** Drawn above the curves. */
    readonly overlay?: (u: uPlot, ink: Ink) => void;
    /** The tooltip at an instant; `top` is the cursor's distance from the plot's top. */
    readonly describe: (time: number, top: number) => Content | null;
    /** The instant `by` points further. */
    readonly step: (time: number, by: number) => number;
    /** The point at an instant; null if there is none. */
    readonly point: (time: number) => Range | null;
}

/** Key bindings common to all plots, for screen readers. */
export const KEYS =
    "With Shift, they move the view. Plus and minus zoom; 0 shows everything. Enter opens the moment at the cursor. " +
    "The Table button shows the same figures.";
/** Minimum width of a plot in pixels. */
const MIN_WIDTH = 120;
/** Width in pixels on paper: about a page without its margins. */
const PAPER = 660;
/** Minimum distance of a drag in pixels; anything shorter is a click. */
const DRAG = 4;

export class Plot {
    readonly u: uPlot;
    private readonly tooltip: Tooltip;
    private drawnIn: Ink;
    /** The cursor is over this plot, or keys move it here. */
    private held = false;
    /** Where the mouse button was pressed. */
    private pressed = 0;

    constructor(
        private readonly host: HTMLElement,
        private readonly view: View,
        private landmarks: Landmarks,
        private readonly kind: Kind,
        label: string,
        until: AbortSignal,
    ) {
        this.drawnIn = readInk(view.theme);
        const ink = (): Ink => this.drawnIn;
        const options: uPlot.Options = {
            width: onPaper() ? PAPER : Math.max(MIN_WIDTH, host.clientWidth),
            height: kind.height,
            padding: [10, 18, 0, 0],
            legend: { show: false },
            scales: {
                x: { time: false, range: () => [view.range.from, view.range.to] },
                y: kind.yScale,
            },
            series: [{}, ...kind.series],
            axes: [timeAxis(ink, () => view.zone), kind.yAxis(ink)],
            cursor: {
                y: false,
                points: { show: false },
                drag: { x: true, y: false, setScale: false, dist: DRAG },
                bind: {
                    dblclick: () => () => {
                        view.reset();
                        return null;
                    },
                },
            },
            hooks: {
                drawAxes: [
                    (u) => {
                        drawUnder(u, this.landmarks, ink());
                        kind.ground?.(u, ink());
                    },
                ],
                draw: [
                    (u) => {
                        drawOver(u, this.landmarks, ink());
                        kind.overlay?.(u, ink());
                        drawMoment(u, view.moment, ink());
                    },
                ],
                setSelect: [(u) => this.selected(u)],
                setCursor: [(u) => this.moved(u)],
            },
        };
        this.u = new uPlot(options, kind.data(), host);
        this.tooltip = new Tooltip(host);
        this.listen(label, until);
    }

    private listen(label: string, until: AbortSignal): void {
        const { host, view, u } = this;
        host.tabIndex = 0;
        host.setAttribute("role", "application");
        host.setAttribute("aria-roledescription", "chart");
        host.setAttribute("aria-label", label);
        host.addEventListener("keydown", (event) => this.key(event));
        host.addEventListener("blur", () => this.leave());
        u.over.addEventListener("mouseenter", () => (this.held = true));
        u.over.addEventListener("mouseleave", () => this.leave());
        u.over.addEventListener("click", (event) => this.clicked(event));
        u.over.addEventListener("mousedown", (event) => (this.pressed = event.clientX));
        view.on("range", ({ from, to }) => u.setScale("x", { min: from, max: to }), until);
        view.on(
            "point",
            (time) => {
                if (!this.held) this.follow(time);
            },
            until,
        );
        view.on("moment", () => u.redraw(false, false), until);
        view.on("zone", () => u.redraw(false, true), until);
        view.on(
            "theme",
            () => {
                this.drawnIn = readInk(view.theme);
                u.redraw(false, true);
            },
            until,
        );
        const size = new ResizeObserver(() => this.fit());
        size.observe(host);
        // Before the page is laid out for paper, because the style sheet scales the drawing to the sheet.
        addEventListener("beforeprint", () => this.resize(PAPER), { signal: until });
        addEventListener("afterprint", () => this.fit(), { signal: until });
        until.addEventListener("abort", () => {
            size.disconnect();
            u.destroy();
        });
    }

    private fit(): void {
        if (!onPaper()) this.resize(Math.max(MIN_WIDTH, this.host.clientWidth));
    }

    private resize(width: number): void {
        if (width !== this.u.width) this.u.setSize({ width, height: this.kind.height });
    }

    /** New data or new landmarks. */
    refresh(landmarks: Landmarks = this.landmarks): void {
        this.landmarks = landmarks;
        const { from, to } = this.view.range;
        this.u.batch(() => {
            this.u.setData(this.kind.data(), false);
            this.u.setScale("x", { min: from, max: to });
        });
    }

    private selected(u: uPlot): void {
        const { left, width } = u.select;
        if (width < DRAG) return;
        const from = u.posToVal(left, "x");
        const to = u.posToVal(left + width, "x");
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        this.view.open(null);
        this.view.zoom(from, to);
    }

    private clicked(event: MouseEvent): void {
        const { u, kind, view } = this;
        if (Math.abs(event.clientX - this.pressed) >= DRAG) return;
        view.open(kind.point(u.posToVal(event.clientX - u.over.getBoundingClientRect().left, "x")));
    }

    private moved(u: uPlot): void {
        if (!this.held) return;
        const { left = -1, top = -1 } = u.cursor;
        if (left < 0) {
            this.tooltip.hide();
            this.view.pointAt(null);
            return;
        }
        const time = u.posToVal(left, "x");
        this.view.pointAt(time);
        const content = this.kind.describe(time, top);
        if (!content) {
            this.tooltip.hide();
            return;
        }
        const notes = notesAt(u, left, this.landmarks);
        this.tooltip.show({ ...content, notes: [...notes, ...content.notes] }, u.over, left, top);
    }

    /** Moves the cursor to that of another plot. */
    private follow(time: number | null): void {
        const left = time === null ? -10 : this.u.valToPos(time, "x");
        const inside = left >= 0 && left <= this.u.over.clientWidth;
        this.u.setCursor({ left: inside ? left : -10, top: inside ? 0 : -10 }, false);
    }

    private leave(): void {
        this.held = false;
        this.tooltip.hide();
        this.u.setCursor({ left: -10, top: -10 }, false);
        this.view.pointAt(null);
    }

    /** The arrow keys move the cursor from point to point; with Shift they move the view. */
    private key(event: KeyboardEvent): void {
        if (event.target !== this.host || event.ctrlKey || event.metaKey || event.altKey) return;
        const { view, u } = this;
        const walk = (by: number): void => {
            const { from, to } = view.range;
            const time = this.kind.step(view.point ?? (from + to) / 2, view.point === null ? 0 : by);
            if (time < from || time > to)
                view.zoom(from + time - (time < from ? from : to), to + time - (time < from ? from : to));
            this.held = true;
            u.setCursor({ left: u.valToPos(time, "x"), top: u.over.clientHeight / 3 });
        };
        const acts: Record<string, () => void> = {
            ArrowLeft: () => (event.shiftKey ? view.pan(-0.25) : walk(-1)),
            ArrowRight: () => (event.shiftKey ? view.pan(0.25) : walk(1)),
            PageUp: () => walk(-10),
            PageDown: () => walk(10),
            "+": () => view.scale(0.5),
            "=": () => view.scale(0.5),
            "-": () => view.scale(2),
            "0": () => view.reset(),
            Enter: () => (view.point === null ? undefined : view.open(this.kind.point(view.point))),
            Escape: () => (this.held ? this.leave() : view.moment ? view.open(null) : view.reset()),
        };
        const act = acts[event.key];
        if (!act) return;
        event.preventDefault();
        act();
    }
}
