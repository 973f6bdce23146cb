// SPDX-License-Identifier: PostgreSQL
/** The ticks of axes and their labels. */
import type uPlot from "uplot";
import { ticks, offsetSeconds, type Zone } from "../clock";
import type { Ink } from "../look/ink";
import type { Chart } from "../model";
import { tick } from "../units";

/** The same in all charts, so that their plots are aligned. */
export const AXIS_WIDTH = 62;
export const FONT = "11px system-ui, -apple-system, 'Segoe UI', sans-serif";

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

// prettier-ignore
const TIME_STEPS = [
    0.1, 0.5, 1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
    HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY,
];

/** Round times of the zone's clock, `step` seconds apart. */
function timeTicks(min: number, max: number, step: number, zone: Zone): number[] {
    const ahead = zone === "local" ? offsetSeconds(min) : 0;
    const found: number[] = [];
    for (let n = Math.ceil((min + ahead) / step); n * step - ahead <= max; n++) found.push(n * step - ahead);
    return found;
}

/** The labels, which are centred below their ticks; without those that would be cut at the right edge. */
function whole(u: uPlot, splits: readonly number[], labels: readonly string[]): string[] {
    u.ctx.save();
    u.ctx.font = FONT;
    const room = u.width - u.bbox.left / devicePixelRatio;
    const fits = (label: string, i: number): boolean => {
        const width = Math.max(...label.split("\n").map((line) => u.ctx.measureText(line).width));
        return u.valToPos(splits[i] ?? 0, "x") + width / 2 <= room;
    };
    const shown = labels.map((label, i) => (fits(label, i) ? label : ""));
    u.ctx.restore();
    return shown;
}

export function timeAxis(ink: () => Ink, zone: () => Zone): uPlot.Axis {
    return {
        scale: "x",
        stroke: () => ink().faint,
        font: FONT,
        size: 34,
        gap: 4,
        space: 76,
        incrs: TIME_STEPS,
        splits: (_u, _axis, min, max, step) => timeTicks(min, max, step, zone()),
        values: (u, splits, _axis, _space, step) => whole(u, splits, ticks(splits, step, zone())),
        grid: { show: false },
        ticks: { stroke: () => ink().grid, width: 1, size: 4 },
    };
}

// Round numbers of bytes are powers of two.
const BYTE_STEPS = Array.from({ length: 46 }, (_, power) => 2 ** power);

/** Ticks of these charts are plain numbers, so the axis says what they count; others have their unit. */
const COUNTED: Readonly<Record<string, string>> = {
    processors: "CPUs or processes",
    sessions: "processes",
    client_connections: "connections",
};
const LABEL_HEIGHT = 15;

export function valueAxis({ id, unit }: Pick<Chart, "id" | "unit">, ink: () => Ink): uPlot.Axis {
    const binary = unit === "bytes" || unit === "bytes_per_second";
    const counted = COUNTED[id] ?? (unit === "sessions" ? unit : undefined);
    const label = counted === undefined ? {} : { label: counted, labelFont: FONT, labelSize: LABEL_HEIGHT, labelGap: 0 };
    return {
        scale: "y",
        stroke: () => ink().faint,
        font: FONT,
        ...label,
        size: AXIS_WIDTH - (label.labelSize ?? 0),
        gap: 6,
        space: 34,
        ...(binary ? { incrs: BYTE_STEPS } : {}),
        values: (_u, splits) => splits.map((value) => tick(value, unit)),
        grid: { stroke: () => ink().grid, width: 1 },
        ticks: { show: false },
    };
}

/** From zero to a little above the maximum. */
export function fromZero(_u: uPlot, _min: number, max: number): uPlot.Range.MinMax {
    return [0, max > 0 ? max * 1.06 : 1];
}
