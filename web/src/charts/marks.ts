// SPDX-License-Identifier: PostgreSQL
/**
 * Marks below and above the curves of every chart: gaps in the measurement (hatched), checkpoints (tinted, with a bar
 * at the top), and instants (lines with a flag, whose shape says what happened).
 */
import type uPlot from "uplot";
import { element } from "../dom";
import type { Ink } from "../look/ink";
import type { Gap, Mark } from "../model";
import type { Range } from "../view";

export interface Landmarks {
    readonly marks: readonly Mark[];
    readonly gaps: readonly Gap[];
}

/** Distance in CSS pixels at which the cursor is on a mark's line. */
const NEAR = 5;
/** The narrowest bar at the top, CSS pixels. */
const SHORTEST = 6;

/** The kinds of marks that look different. */
type Look = "checkpoint" | "blocking" | "slow" | "plan" | "restart" | "level" | "event";

const LOOKS: Readonly<Record<string, Look>> = {
    checkpoint: "checkpoint",
    blocking: "blocking",
    slow: "slow",
    plan: "plan",
    start: "restart",
    "server start": "restart",
    "server end": "restart",
    level: "level",
};

const lookOf = ({ kind }: Mark): Look => LOOKS[kind] ?? "event";

/** Blocking and slow operations need attention, checkpoints do not. */
export function inkOf(mark: Mark, ink: Ink): string {
    switch (lookOf(mark)) {
        case "blocking":
        case "slow":
            return ink.warning;
        case "checkpoint":
            return ink.checkpoint;
        case "plan":
            return ink.accent;
        case "restart":
            return ink.text;
        case "level":
        case "event":
            return ink.faint;
    }
}

/** The flag of an instant, above the plot: its outline from the top of its line, in units of 4 pixels. */
const FLAGS: Readonly<Partial<Record<Look, readonly (readonly [x: number, y: number])[]>>> = {
    plan: [
        [0, 0],
        [1, -1],
        [0, -2],
        [-1, -1],
    ],
    restart: [
        [0, 0],
        [0, -2],
        [1.5, -2],
        [1.5, -0.75],
        [0, -0.75],
    ],
    level: [
        [-1.25, 0],
        [0, -1.75],
        [1.25, 0],
    ],
};
const FLAG: readonly (readonly [x: number, y: number])[] = [
    [-1, -1.5],
    [1, -1.5],
    [0, 0],
];

/** What the marks mean, for those that there are; null if there are none. */
export function markKey({ marks, gaps }: Landmarks): HTMLElement | null {
    const looks = new Set(marks.map(lookOf));
    const has = (look: Look): boolean => looks.has(look);
    const entries: (readonly [kind: string, label: string, present: boolean])[] = [
        ["checkpoint", "checkpoint", has("checkpoint")],
        ["blocking", "a session blocks others", has("blocking")],
        ["slow", "slow operation", has("slow")],
        ["plan", "new plan of a statement", has("plan")],
        ["restart", "server start or end", has("restart")],
        ["level", "change of level", has("level")],
        ["event", "other event", has("event")],
        ["gap", "not measured", gaps.length > 0],
    ];
    const there = entries.filter(([, , present]) => present);
    if (there.length === 0) return null;
    return element(
        "p",
        { class: "mark-key" },
        ...there.map(([kind, label]) => element("span", {}, element("i", { class: `mark ${kind}` }), label)),
    );
}

function visible(u: uPlot, from: number, to: number): [left: number, width: number] | undefined {
    const { left, width } = u.bbox;
    const a = Math.max(left, u.valToPos(from, "x", true));
    const b = Math.min(left + width, u.valToPos(to, "x", true));
    return b < a ? undefined : [a, Math.max(b - a, 1)];
}

/** Slanted lines that look the same at every page zoom. */
function hatching(ctx: CanvasRenderingContext2D, ink: Ink): CanvasPattern | string {
    const size = Math.round(8 * devicePixelRatio);
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const pen = tile.getContext("2d");
    if (!pen) return ink.hatch;
    pen.strokeStyle = ink.hatch;
    pen.lineWidth = devicePixelRatio;
    pen.beginPath();
    for (const shift of [-size, 0, size]) {
        pen.moveTo(shift, size);
        pen.lineTo(shift + size, 0);
    }
    pen.stroke();
    return ctx.createPattern(tile, "repeat") ?? ink.hatch;
}

/** Draws the marks below the curves. */
export function drawUnder(u: uPlot, { marks, gaps }: Landmarks, ink: Ink): void {
    const { ctx, bbox } = u;
    ctx.save();
    for (const mark of marks) {
        if (mark.until === null) continue;
        const area = visible(u, mark.time, mark.until);
        if (!area) continue;
        ctx.globalAlpha = 0.1;
        ctx.fillStyle = inkOf(mark, ink);
        ctx.fillRect(area[0], bbox.top, area[1], bbox.height);
    }
    ctx.globalAlpha = 1;
    let pattern: CanvasPattern | string | undefined;
    for (const gap of gaps) {
        const area = visible(u, gap.from, gap.to);
        if (!area) continue;
        pattern ??= hatching(ctx, ink);
        ctx.fillStyle = pattern;
        ctx.fillRect(area[0], bbox.top, area[1], bbox.height);
    }
    ctx.restore();
}

/** Draws the marks above the curves: bars and flags at the top edge. */
export function drawOver(u: uPlot, { marks }: Landmarks, ink: Ink): void {
    const { ctx, bbox } = u;
    const pixel = devicePixelRatio;
    ctx.save();
    ctx.lineWidth = pixel;
    for (const mark of marks) {
        if (mark.until !== null) {
            const area = visible(u, mark.time, mark.until);
            if (!area) continue;
            // However short it was, it can be seen.
            const width = Math.max(area[1], SHORTEST * pixel);
            const left = Math.min(area[0] - (width - area[1]) / 2, bbox.left + bbox.width - width);
            ctx.fillStyle = inkOf(mark, ink);
            ctx.fillRect(left, bbox.top - 4 * pixel, width, 3 * pixel);
            continue;
        }
        if (!visible(u, mark.time, mark.time)) continue;
        const x = Math.round(u.valToPos(mark.time, "x", true));
        ctx.strokeStyle = ctx.fillStyle = inkOf(mark, ink);
        ctx.globalAlpha = 0.55;
        const look = lookOf(mark);
        ctx.setLineDash(look === "restart" ? [] : [2 * pixel, 3 * pixel]);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        ctx.globalAlpha = 1;
        ctx.beginPath();
        for (const [right, down] of FLAGS[look] ?? FLAG) ctx.lineTo(x + 4 * right * pixel, bbox.top + 4 * down * pixel);
        ctx.fill();
    }
    ctx.restore();
}

/** Draws a frame around the moment that is open. */
export function drawMoment(u: uPlot, moment: Range | null, ink: Ink): void {
    const area = moment && visible(u, moment.from, moment.to);
    if (!area) return;
    const { ctx, bbox } = u;
    const pixel = devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = ink.accent;
    ctx.lineWidth = 2 * pixel;
    ctx.strokeRect(area[0] - pixel, bbox.top + pixel, area[1] + 2 * pixel, bbox.height - 2 * pixel);
    ctx.restore();
}

/** The texts of the marks and gaps at the cursor. */
export function notesAt(u: uPlot, left: number, { marks, gaps }: Landmarks): string[] {
    const time = u.posToVal(left, "x");
    const notes: string[] = [];
    for (const gap of gaps) if (gap.from <= time && time < gap.to) notes.push(`not measured: ${gap.reason}`);
    for (const mark of marks) {
        const here =
            mark.until === null
                ? Math.abs(u.valToPos(mark.time, "x") - left) <= NEAR
                : mark.time <= time && time <= mark.until;
        if (here) notes.push(mark.text);
    }
    return notes;
}
