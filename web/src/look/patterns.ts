// SPDX-License-Identifier: PostgreSQL
/**
 * Patterns that tell classes apart without colours, if the reader switches them on: in stacked charts here, elsewhere in
 * look/patterns.css.
 */
import { inkOn, type ActivityClass } from "./palette";

const KEPT_AS = "pgtally.patterns";
/** Edge of a tile in CSS pixels; every pattern repeats within it. */
const TILE = 8;

type Stroke = readonly [x1: number, y1: number, x2: number, y2: number];

/** Lines within a tile, which continue in its neighbours; CPU is plain. */
const LINES: Readonly<Record<ActivityClass, readonly Stroke[]>> = {
    cpu: [],
    io: [
        [-2, 2, 2, -2],
        [-2, 10, 10, -2],
        [6, 10, 10, 6],
    ],
    lwlock: [
        [3, 4, 5, 4],
        [-1, 0, 1, 0],
        [7, 0, 9, 0],
        [-1, 8, 1, 8],
        [7, 8, 9, 8],
    ],
    lock: [
        [-2, -2, 10, 10],
        [-2, 10, 10, -2],
    ],
    client: [[0, 4, 8, 4]],
    ipc: [[4, 0, 4, 8]],
    other: [
        [-2, 6, 2, 10],
        [-2, -2, 10, 10],
        [6, -2, 10, 2],
    ],
};

let on = remembered();

/** A page opened from a file may have no storage. */
function remembered(): boolean {
    try {
        return localStorage.getItem(KEPT_AS) === "on";
    } catch {
        return false;
    }
}

export const patternsAreOn = (): boolean => on;

/** Applies what the reader chose before. */
export function applyPatterns(): void {
    document.documentElement.classList.toggle("patterns", on);
}

export function turnPatterns(): void {
    on = !on;
    try {
        localStorage.setItem(KEPT_AS, on ? "on" : "off");
    } catch {
        // See remembered().
    }
    applyPatterns();
}

const made = new Map<string, CanvasPattern>();

/** A colour with the pattern of a class. */
export function patterned(ctx: CanvasRenderingContext2D, kind: ActivityClass, colour: string): CanvasPattern | string {
    const lines = LINES[kind];
    const scale = devicePixelRatio;
    const key = `${kind} ${colour} ${scale}`;
    const known = made.get(key);
    if (known || lines.length === 0) return known ?? colour;
    const tile = document.createElement("canvas");
    tile.width = tile.height = Math.round(TILE * scale);
    const pen = tile.getContext("2d");
    if (!pen) return colour;
    pen.fillStyle = colour;
    pen.fillRect(0, 0, tile.width, tile.height);
    pen.scale(tile.width / TILE, tile.height / TILE);
    pen.strokeStyle = inkOn(colour);
    pen.globalAlpha = 0.6;
    pen.lineWidth = kind === "lwlock" ? 2 : 1.25;
    pen.beginPath();
    for (const [x1, y1, x2, y2] of lines) {
        pen.moveTo(x1, y1);
        pen.lineTo(x2, y2);
    }
    pen.stroke();
    const pattern = ctx.createPattern(tile, "repeat");
    if (!pattern) return colour;
    made.set(key, pattern);
    return pattern;
}
