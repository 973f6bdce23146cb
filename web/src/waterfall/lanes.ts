// SPDX-License-Identifier: PostgreSQL
/**
 * Draws the tracks of a trace on one canvas: a row for each level. Bars that are narrower than a pixel are drawn together, in
 * the proportions of their classes. The pointer shows what a bar is and selects its message; dragging selects a range.
 */
import { Tooltip } from "../charts/tooltip";
import { element } from "../dom";
import { readInk, type Ink } from "../look/ink";
import { CLASSES, CLASS_NAMES, inkOn, shade, type ActivityClass } from "../look/palette";
import { duration, percent } from "../units";
import type { View } from "../view";
import type { Message } from "./model";
import { firstAfter, LEVELS, ticksOf, type Bar, type Level, type Stretch, type Track } from "./timeline";

/** Heights in pixels: of a row, of a track's heading, between tracks. */
const ROW = 17;
const HEADING = 18;
const BETWEEN = 8;
/** Minimum width in pixels of a bar that shows its name. */
const NAMED = 26;
/** Width in pixels of a label on the axis. */
const LABEL = 96;
/** Minimum distance of a drag in pixels; anything shorter is a click. */
const DRAG = 4;
/** Distance in pixels at which the pointer is on a bar. */
const NEAR = 2;

export const LEVEL_NAMES: Readonly<Record<Level, string>> = {
    transaction: "transaction",
    message: "message",
    phase: "phase",
    activity: "wait or CPU",
    node: "waits of a plan node",
};

interface Lane {
    readonly track: Track;
    readonly level: Level;
    readonly top: number;
}

const KEYS =
    "The left and right arrow keys go from message to message, Enter zooms to it. With Shift, they move the view. " +
    "Plus and minus zoom; 0 shows everything.";

/** What is written in a bar. */
function nameOf(bar: Bar | Stretch): string {
    if (!("idle" in bar) || !bar.idle) return bar.name;
    return bar.phase === "idle" ? "client" : "client, in a transaction";
}

/** A name, shortened to this width in pixels; empty if hardly a letter of it fits. */
export function fitting(pen: Pick<CanvasRenderingContext2D, "measureText">, name: string, room: number): string {
    if (pen.measureText(name).width <= room) return name;
    const letters = [...name];
    for (let n = Math.min(letters.length - 1, Math.floor(room / 3)); n >= 2; n--) {
        const short = `${letters.slice(0, n).join("").trimEnd()}…`;
        if (pen.measureText(short).width <= room) return short;
    }
    return "";
}

export class Lanes {
    readonly root: HTMLElement;
    private readonly axis = element("div", { class: "axis", "aria-hidden": "true" });
    private readonly canvas = element("canvas", { "aria-hidden": "true" });
    private readonly area: HTMLElement;
    private readonly plot: HTMLElement;
    private readonly brush = element("div", { class: "brush" });
    private readonly tooltip: Tooltip;
    private readonly lanes: readonly Lane[];
    private readonly headings: readonly { readonly track: Track; readonly top: number }[];
    private readonly height: number;
    private ink: Ink;
    private selected: Message | null = null;
    private pending = false;

    /** `pick` is called with the message that is selected by pointer or keys. */
    constructor(
        private readonly view: View,
        private readonly tracks: readonly Track[],
        private readonly messages: readonly Message[],
        private readonly pick: (message: Message) => void,
    ) {
        this.ink = readInk(view.theme);
        const lanes: Lane[] = [];
        const headings: { track: Track; top: number }[] = [];
        let top = 0;
        for (const track of tracks) {
            headings.push({ track, top });
            top += HEADING;
            for (const level of LEVELS) {
                if (track[level].length === 0) continue;
                lanes.push({ track, level, top });
                top += ROW;
            }
            top += BETWEEN;
        }
        this.lanes = lanes;
        this.headings = headings;
        this.height = Math.max(top, HEADING);
        this.canvas.style.height = `${this.height}px`;
        this.brush.hidden = true;
        this.plot = element(
            "div",
            { class: "lanes", tabindex: "0", role: "application", "aria-roledescription": "timeline", "aria-label": `Sessions over time. ${KEYS}` },
            this.canvas,
            this.brush,
        );
        this.area = element("div", { class: "scroller" }, this.plot);
        this.root = element("div", { class: "timeline" }, this.axis, this.area);
        this.tooltip = new Tooltip(this.root);
        this.listen();
    }

    private listen(): void {
        const { view, plot } = this;
        view.on("range", () => this.soon());
        view.on("theme", () => {
            this.ink = readInk(view.theme);
            this.soon();
        });
        new ResizeObserver(() => this.soon()).observe(plot);
        plot.addEventListener("pointerdown", (event) => this.drag(event));
        plot.addEventListener("pointermove", (event) => this.point(event));
        plot.addEventListener("pointerleave", () => this.tooltip.hide());
        plot.addEventListener("dblclick", () => view.reset());
        plot.addEventListener("keydown", (event) => this.key(event));
        plot.addEventListener("blur", () => this.tooltip.hide());
    }

    /** Draws the selection's frame around this message. */
    select(message: Message | null): void {
        this.selected = message;
        this.soon();
    }

    private soon(): void {
        if (this.pending) return;
        this.pending = true;
        requestAnimationFrame(() => {
            this.pending = false;
            this.draw();
        });
    }

    private get width(): number {
        return this.plot.clientWidth;
    }

    private timeAt(x: number): number {
        const { from, to } = this.view.range;
        return from + (x / Math.max(this.width, 1)) * (to - from);
    }

    /** The bar at a position of the canvas, and its level. */
    private at(x: number, y: number): { bar: Bar | Stretch; lane: Lane } | null {
        const lane = this.lanes.find(({ top }) => y >= top && y < top + ROW);
        if (!lane) return null;
        const bars: readonly (Bar | Stretch)[] = lane.track[lane.level];
        const bar = bars[firstAfter(bars, this.timeAt(x - NEAR))];
        return bar && bar.start <= this.timeAt(x + NEAR) ? { bar, lane } : null;
    }

    private point(event: PointerEvent): void {
        const { left, top } = this.plot.getBoundingClientRect();
        const [x, y] = [event.clientX - left, event.clientY - top];
        const found = this.at(x, y);
        if (!found || event.buttons !== 0) return this.tooltip.hide();
        const { bar, lane } = found;
        const took = bar.end - bar.start;
        const whole = bar.message ? (bar.message.end - bar.message.start) / 1e9 : 0;
        const notes = [`process ${lane.track.pid}, from ${this.offset(bar.start)}`];
        if ("phase" in bar) {
            notes.unshift([bar.phase, bar.object, bar.node && `node ${bar.node}`].filter(Boolean).join(", "));
            if (bar.idle) notes.unshift("between two messages: the server waits for the client");
        }
        const kind = "phase" in bar ? CLASS_NAMES[bar.class] : LEVEL_NAMES[lane.level];
        const value = lane.level !== "message" && whole > 0 ? `${duration(took)}, ${percent(took / whole)} of the message` : duration(took);
        const colour = bar.class === null ? null : shade(bar.class, 0, 1, this.ink.theme);
        this.tooltip.show(
            { title: bar.name.slice(0, 200), subtitle: "", lines: [{ name: kind, value, colour }], total: null, notes: notes.filter(Boolean) },
            this.area,
            x,
            y - this.area.scrollTop,
        );
    }

    private drag(event: PointerEvent): void {
        if (event.button !== 0) return;
        const { plot, brush, view } = this;
        const box = plot.getBoundingClientRect();
        const begun = event.clientX - box.left;
        const clamp = (x: number): number => Math.min(Math.max(x, 0), box.width);
        const isDrag = (next: PointerEvent): boolean => Math.abs(next.clientX - box.left - begun) >= DRAG;
        const move = (next: PointerEvent): void => {
            const x = clamp(next.clientX - box.left);
            brush.hidden = !isDrag(next);
            brush.style.left = `${Math.min(x, begun)}px`;
            brush.style.width = `${Math.abs(x - begun)}px`;
        };
        const stop = new AbortController();
        const end = (next: PointerEvent): void => {
            stop.abort();
            brush.hidden = true;
            if (next.type === "pointercancel") return;
            const x = clamp(next.clientX - box.left);
            if (isDrag(next)) {
                view.zoom(this.timeAt(Math.min(x, begun)), this.timeAt(Math.max(x, begun)));
                return;
            }
            const message = this.at(begun, event.clientY - box.top)?.bar.message;
            if (message) this.pick(message);
        };
        plot.setPointerCapture(event.pointerId);
        plot.addEventListener("pointermove", move, { signal: stop.signal });
        plot.addEventListener("pointerup", end, { signal: stop.signal });
        plot.addEventListener("pointercancel", end, { signal: stop.signal });
    }

    private key(event: KeyboardEvent): void {
        if (event.target !== this.plot || event.ctrlKey || event.metaKey || event.altKey) return;
        const { view } = this;
        const acts: Record<string, () => void> = {
            ArrowLeft: () => (event.shiftKey ? view.pan(-0.25) : this.walk(-1)),
            ArrowRight: () => (event.shiftKey ? view.pan(0.25) : this.walk(1)),
            Enter: () => this.zoomToSelected(),
            "+": () => view.scale(0.5),
            "=": () => view.scale(0.5),
            "-": () => view.scale(2),
            "0": () => view.reset(),
            Escape: () => view.reset(),
        };
        const act = acts[event.key];
        if (!act) return;
        event.preventDefault();
        act();
    }

    /** Selects the next or the previous message, and moves the view to it. */
    private walk(by: number): void {
        const { messages, selected, view } = this;
        const at = selected ? messages.indexOf(selected) + by : messages.findIndex(({ end }) => end / 1e9 > view.range.from);
        const next = messages[Math.min(Math.max(at, 0), messages.length - 1)];
        if (!next) return;
        const [start, end] = [next.start / 1e9, next.end / 1e9];
        const { from, to } = view.range;
        if (end < from || start > to) view.zoom((start + end) / 2 - (to - from) / 2, (start + end) / 2 + (to - from) / 2);
        this.pick(next);
    }

    private zoomToSelected(): void {
        const { selected, view } = this;
        if (!selected) return;
        const [start, end] = [selected.start / 1e9, selected.end / 1e9];
        const edge = (end - start) * 0.05;
        view.zoom(start - edge, end + edge);
    }

    /** An instant as the axis has it: exact. */
    private offset(time: number): string {
        return `${time.toFixed(6)}\u00a0s`;
    }

    private draw(): void {
        const { canvas, width, height, ink } = this;
        canvas.width = Math.round(width * devicePixelRatio);
        canvas.height = Math.round(height * devicePixelRatio);
        const pen = canvas.getContext("2d");
        if (!pen || width === 0) return;
        pen.scale(devicePixelRatio, devicePixelRatio);
        const style = getComputedStyle(this.plot);
        pen.font = `11px ${style.fontFamily}`;
        pen.textBaseline = "middle";
        this.drawAxis(pen);
        for (const { track, top } of this.headings) {
            pen.fillStyle = ink.text;
            const name = track.leader === null ? `process ${track.pid}` : `\u21b3 worker ${track.pid} of ${track.leader}`;
            pen.fillText(name, 2, top + HEADING / 2);
        }
        for (const lane of this.lanes) this.drawLane(pen, lane);
        this.drawSelected(pen);
    }

    private drawAxis(pen: CanvasRenderingContext2D): void {
        const { from, to } = this.view.range;
        const { base, digits, ticks } = ticksOf(from, to, this.width / LABEL);
        const labels = ticks.map((tick) => {
            const left = ((base + tick - from) / (to - from)) * this.width;
            pen.fillStyle = this.ink.grid;
            pen.fillRect(Math.round(left), 0, 1, this.height);
            const label = element("span", {}, `${base > 0 ? "+" : ""}${duration(tick)}`);
            label.style.left = `${left}px`;
            label.hidden = left > this.width - LABEL / 2;
            return label;
        });
        const start = base > 0 ? `${base.toFixed(digits)}\u00a0s +` : "time since the start of the trace";
        this.axis.replaceChildren(element("b", {}, start), element("div", { class: "ticks" }, ...labels));
    }

    private drawLane(pen: CanvasRenderingContext2D, { track, level, top }: Lane): void {
        const { width, view } = this;
        const { from, to } = view.range;
        const scale = width / (to - from);
        const bars: readonly (Bar | Stretch)[] = track[level];
        const narrow = new Map<number, Map<string, number>>();
        for (let i = firstAfter(bars, from); i < bars.length; i++) {
            const bar = bars[i];
            if (!bar || bar.start >= to) break;
            const left = Math.max((bar.start - from) * scale, -1);
            const right = Math.min((bar.end - from) * scale, width + 1);
            if (right - left >= 1.5) {
                this.drawBar(pen, bar, level, left, top, right - left);
                continue;
            }
            const column = Math.floor(left);
            const sums = narrow.get(column) ?? new Map<string, number>();
            const fill = this.fillOf(bar, level);
            sums.set(fill, (sums.get(fill) ?? 0) + (bar.end - bar.start) * scale);
            narrow.set(column, sums);
        }
        for (const [column, sums] of narrow) {
            const total = [...sums.values()].reduce((a, b) => a + b, 0);
            // Seen in any case, and as high as the part of the pixel's time that it takes.
            const tall = Math.min(ROW - 2, Math.max(3, (ROW - 2) * total));
            let bottom = top + ROW - 1;
            for (const [fill, part] of sums) {
                const high = (part / total) * tall;
                pen.fillStyle = fill;
                pen.fillRect(column, bottom - high, 1, high);
                bottom -= high;
            }
        }
    }

    private fillOf(bar: Bar | Stretch, level: Level): string {
        if (bar.class !== null) return "idle" in bar && bar.idle ? this.ink.hatch : shade(bar.class, 0, 1, this.ink.theme);
        return { transaction: this.ink.line, message: this.ink.bar, phase: this.ink.sunken, activity: this.ink.hatch, node: this.ink.line }[level];
    }

    private drawBar(pen: CanvasRenderingContext2D, bar: Bar | Stretch, level: Level, left: number, top: number, width: number): void {
        const { ink } = this;
        const fill = this.fillOf(bar, level);
        const idle = "idle" in bar && bar.idle;
        const begin = Math.max(left, 0);
        const name = width < NAMED ? "" : fitting(pen, nameOf(bar), left + width - 3 - begin - 4);
        if (idle) {
            this.drawGap(pen, left, top, width, bar.phase !== "idle");
            pen.fillStyle = ink.paper;
            if (name !== "") pen.fillRect(begin + 1, top + 1, pen.measureText(name).width + 6, ROW - 2);
        } else {
            pen.fillStyle = fill;
            pen.fillRect(left, top + 1, width, ROW - 2);
            pen.fillStyle = ink.paper;
            if (width > 4) pen.fillRect(left + width - 1, top + 1, 1, ROW - 2);
        }
        if (name === "") return;
        pen.fillStyle = bar.class !== null && !idle ? inkOn(fill) : idle ? ink.faint : ink.text;
        pen.fillText(name, begin + 4, top + ROW / 2 + 0.5);
    }

    /** The client's time between two messages. */
    private drawGap(pen: CanvasRenderingContext2D, left: number, top: number, width: number, inTransaction: boolean): void {
        pen.save();
        pen.beginPath();
        pen.rect(left, top + 1, width, ROW - 2);
        pen.clip();
        pen.strokeStyle = this.ink.hatch;
        pen.beginPath();
        const step = inTransaction ? 4 : 8;
        const first = Math.floor((left - ROW) / step) * step;
        for (let x = first; x < left + width; x += step) {
            pen.moveTo(x, top + ROW);
            pen.lineTo(x + ROW, top);
        }
        pen.stroke();
        pen.restore();
    }

    private drawSelected(pen: CanvasRenderingContext2D): void {
        const { selected, view, width, ink } = this;
        if (!selected) return;
        const { from, to } = view.range;
        const x = (time: number): number => ((time - from) / (to - from)) * width;
        const of = new Set([selected.pid, ...selected.workers.map(({ pid }) => pid)]);
        for (const { track, top } of this.headings) {
            if (!of.has(track.pid)) continue;
            const rows = this.lanes.filter((lane) => lane.track === track && lane.level !== "transaction");
            const [first, last] = [rows[0]?.top ?? top, rows[rows.length - 1]?.top ?? top];
            const left = Math.max(x(selected.start / 1e9), -2);
            const right = Math.min(x(selected.end / 1e9), width + 2);
            if (right < 0 || left > width) continue;
            pen.strokeStyle = ink.accent;
            pen.lineWidth = 2;
            pen.strokeRect(left - 1, first, Math.max(right - left, 1) + 2, last + ROW - first);
        }
    }

    /** The classes that occur, for the legend. */
    classes(): ActivityClass[] {
        const found = new Set<ActivityClass>();
        for (const { activity } of this.tracks) for (const stretch of activity) if (!stretch.idle) found.add(stretch.class);
        return CLASSES.filter((one) => found.has(one));
    }

    get hasGaps(): boolean {
        return this.tracks.some(({ activity }) => activity.some(({ idle }) => idle));
    }
}
