// SPDX-License-Identifier: PostgreSQL
/**
 * What is drawn under and over the curves of every chart: stretches that were not measured
 * (hatched), checkpoints (tinted, with a bar at the top), and other marks (dashed lines with a flag).
 */
import type uPlot from "uplot";
import type { Ink } from "../look/ink";
import type { Gap, Mark } from "../model";

export interface Landmarks {
    readonly marks: readonly Mark[];
    readonly gaps: readonly Gap[];
}

/** How far from a mark's line the cursor still means it, in CSS pixels. */
const NEAR = 5;

function visible(u: uPlot, from: number, to: number): [left: number, width: number] | undefined {
    const { left, width } = u.bbox;
    const a = Math.max(left, u.valToPos(from, "x", true));
    const b = Math.min(left + width, u.valToPos(to, "x", true));
    return b < a ? undefined : [a, Math.max(b - a, 1)];
}

/** Slanted lines, the same in all charts whatever the page's scale. */
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

/** Under the curves. */
export function drawUnder(u: uPlot, { marks, gaps }: Landmarks, ink: Ink): void {
    const { ctx, bbox } = u;
    ctx.save();
    for (const mark of marks) {
        if (mark.until === null) continue;
        const place = visible(u, mark.time, mark.until);
        if (!place) continue;
        ctx.globalAlpha = 0.1;
        ctx.fillStyle = ink.checkpoint;
        ctx.fillRect(place[0], bbox.top, place[1], bbox.height);
    }
    ctx.globalAlpha = 1;
    let pattern: CanvasPattern | string | undefined;
    for (const gap of gaps) {
        const place = visible(u, gap.from, gap.to);
        if (!place) continue;
        pattern ??= hatching(ctx, ink);
        ctx.fillStyle = pattern;
        ctx.fillRect(place[0], bbox.top, place[1], bbox.height);
    }
    ctx.restore();
}

/** Over the curves: bars and flags at the top edge. */
export function drawOver(u: uPlot, { marks }: Landmarks, ink: Ink): void {
    const { ctx, bbox } = u;
    const pixel = devicePixelRatio;
    ctx.save();
    ctx.lineWidth = pixel;
    for (const mark of marks) {
        if (mark.until !== null) {
            const place = visible(u, mark.time, mark.until);
            if (!place) continue;
            ctx.fillStyle = ink.checkpoint;
            ctx.fillRect(place[0], bbox.top - 4 * pixel, place[1], 3 * pixel);
            continue;
        }
        if (!visible(u, mark.time, mark.time)) continue;
        const x = Math.round(u.valToPos(mark.time, "x", true));
        ctx.strokeStyle = ctx.fillStyle = mark.kind === "slow" ? ink.warning : ink.faint;
        ctx.globalAlpha = 0.55;
        ctx.setLineDash([2 * pixel, 3 * pixel]);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        ctx.globalAlpha = 1;
        ctx.beginPath();
        ctx.moveTo(x - 4 * pixel, bbox.top - 6 * pixel);
        ctx.lineTo(x + 4 * pixel, bbox.top - 6 * pixel);
        ctx.lineTo(x, bbox.top);
        ctx.fill();
    }
    ctx.restore();
}

/** What marks and gaps say about the place of the cursor. */
export function saidAt(u: uPlot, left: number, { marks, gaps }: Landmarks): string[] {
    const time = u.posToVal(left, "x");
    const said: string[] = [];
    for (const gap of gaps) if (gap.from <= time && time < gap.to) said.push(`not measured: ${gap.reason}`);
    for (const mark of marks) {
        const here =
            mark.until === null
                ? Math.abs(u.valToPos(mark.time, "x") - left) <= NEAR
                : mark.time <= time && time <= mark.until;
        if (here) said.push(mark.text);
    }
    return said;
}
