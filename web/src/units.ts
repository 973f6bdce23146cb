// SPDX-License-Identifier: PostgreSQL
/**
 * Formats figures with three significant digits and a unit. Only this module turns quantities into text;
 * the rules are those of the command's tables (crates/view/src/units.rs).
 */
import { instant } from "./clock";
import type { Zone } from "./clock";

/** The unit of a column or a curve. Durations are in seconds, shares from 0 to 1. */
export type Unit =
    | "text"
    | "id"
    | "time"
    | "count"
    | "number"
    | "seconds"
    | "share"
    | "change"
    | "per_second"
    | "bytes"
    | "bytes_per_second"
    | "sessions";

/** The no-break space between a figure and its unit. */
const SPACE = "\u00a0";
/** Shown in place of a missing figure. */
export const NOTHING = "–";

/** Whether figures of this unit are compared as numbers and right-aligned. */
export function numeric(unit: Unit): boolean {
    return unit !== "text" && unit !== "id";
}

/** Three significant digits without an exponent; integers below 1000 in full. */
function digits(n: number): string {
    const a = Math.abs(n);
    if (Number.isInteger(n) && a < 1000) return n.toFixed(0);
    if (a < 9.995) return n.toFixed(2);
    if (a < 99.95) return n.toFixed(1);
    return n.toFixed(0);
}

/** Units by upper limit; a value is multiplied by `times` and divided by `over`. */
type Ladder = readonly (readonly [limit: number, times: number, over: number, name: string])[];

// At these limits, three digits would round up to the next unit.
const DURATIONS: Ladder = [
    [999.5e-9, 1e9, 1, "ns"],
    [999.5e-6, 1e6, 1, "us"],
    [999.5e-3, 1e3, 1, "ms"],
    [119.5, 1, 1, "s"],
    [7_170, 1, 60, "min"],
    [172_000, 1, 3_600, "h"],
    [Infinity, 1, 86_400, "d"],
];

const COUNTS: Ladder = [
    [999.5, 1, 1, ""],
    [999.5e3, 1, 1e3, "k"],
    [999.5e6, 1, 1e6, "M"],
    [Infinity, 1, 1e9, "G"],
];

// A kB is 1024 bytes, as in PostgreSQL.
const BYTES: Ladder = [
    [999.5, 1, 1, "B"],
    [999.5 * 1024, 1, 1024, "kB"],
    [999.5 * 1024 ** 2, 1, 1024 ** 2, "MB"],
    [999.5 * 1024 ** 3, 1, 1024 ** 3, "GB"],
    [Infinity, 1, 1024 ** 4, "TB"],
];

function climb(n: number, ladder: Ladder, space: string): string {
    if (n === 0) return "0";
    const step = ladder.find(([limit]) => Math.abs(n) < limit);
    if (!step) return NOTHING;
    const [, times, over, name] = step;
    return digits((n * times) / over) + (name ? space + name : "");
}

/** "312 ns", "4.31 us", "12.3 ms", "1.24 s", "3.10 min". */
export const duration = (seconds: number): string => climb(seconds, DURATIONS, SPACE);

/** "7", "0.25", "12.3k", "4.50M". */
export const count = (n: number): string => climb(n, COUNTS, "");

/** "512 B", "1.50 kB". */
export const bytes = (n: number): string => (n === 0 ? `0${SPACE}B` : climb(n, BYTES, SPACE));

/** "12.3 %". */
export const percent = (share: number): string => (share * 100).toFixed(1) + SPACE + "%";

/** From this relative change on, it is a factor; no factor is larger than LARGEST: what was there before was nearly nothing. */
const TRIPLE = 2;
const LARGEST = 10_000;

/** A change relative to what was there before, 0.2 for a fifth more: "+20.0 %", "12.3 times" (crates/view/src/measured.rs). */
export function relative(change: number): string {
    const factor = 1 + change;
    if (change >= TRIPLE) {
        if (factor >= LARGEST) return `more than ${whole(LARGEST)}${SPACE}times`;
        const short = factor < 9.995 ? factor.toFixed(2) : factor < 99.95 ? factor.toFixed(1) : whole(factor);
        return `${short}${SPACE}times`;
    }
    // A fall to nearly nothing has as many decimals as tell it from nothing.
    let decimals = 1;
    while (factor > 0 && decimals < 4 && (change * 100).toFixed(decimals) === (-100).toFixed(decimals)) decimals++;
    return `${change < 0 || Object.is(change, -0) ? "" : "+"}${(change * 100).toFixed(decimals)}${SPACE}%`;
}

/** "1,234,567". */
export const whole = (n: number): string => n.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ",");

/** A figure with its unit, as in charts; a dash if there is none. */
export function figure(value: number | null | undefined, unit: Unit): string {
    if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
    switch (unit) {
        case "seconds":
            return duration(value);
        case "count":
        case "number":
            return count(value);
        case "per_second":
            return count(value) + "/s";
        case "sessions":
            return value.toFixed(2);
        case "bytes":
            return bytes(value);
        case "bytes_per_second":
            return bytes(value) + "/s";
        case "share":
            return percent(value);
        case "change":
            return relative(value);
        case "time":
        case "text":
        case "id":
            return String(value);
    }
}

/** A value for a table cell: counts in full, empty if there is no value. */
export function cell(value: number | string | null, unit: Unit, zone: Zone): string {
    if (value === null) return "";
    if (typeof value === "string") return value;
    if (unit === "count") return whole(value);
    if (unit === "time") return instant(value, zone);
    return figure(value, unit);
}

/** "12.3 s ± 0.80": the unit is that of the larger of the two, and two digits are enough for an error. */
function within(seconds: number, half: number): string {
    const shows = Math.abs(seconds) >= half;
    const unit = duration(shows ? seconds : half).split(SPACE)[1] ?? "s";
    const [, times = 1, over = 1] = DURATIONS.find(([, , , name]) => name === unit) ?? [];
    const short = (n: number): string => {
        const inUnit = (n * times) / over;
        const size = Math.abs(inUnit);
        return size === 0 ? "0" : inUnit.toFixed(size < 0.95 ? 2 : size < 9.5 ? 1 : 0);
    };
    return `${shows ? duration(seconds) : short(seconds) + SPACE + unit} ± ${short(half)}`;
}

/**
 * The value of a cell that is an estimate, with half of its 95 % interval, as the command shows it (crates/view/src/table/cell.rs):
 * a share has its half-width only in exports.
 */
export function estimate(value: number, half: number, unit: Unit): string {
    if (unit === "seconds") return `~${within(value, half)}`;
    if (unit === "share") return `~${figure(value, unit)}`;
    return `~${figure(value, unit)} ± ${figure(half, unit)}`;
}

/** A figure on an axis: without trailing zeros. */
export function tick(value: number, unit: Unit): string {
    if (unit === "sessions") return String(Number(value.toPrecision(6)));
    if (value === 0) return "0";
    return figure(value, unit).replace(/\.0+(?=\D|$)/, "");
}
