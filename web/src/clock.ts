// SPDX-License-Identifier: PostgreSQL
/**
 * Formats instants (seconds since 1970) in the reader's time zone or in UTC or, in a comparison, as the time since the
 * start of each side.
 */

export type Zone = "local" | "UTC" | "elapsed";

const DATE: Intl.DateTimeFormatOptions = { year: "numeric", month: "2-digit", day: "2-digit" };
const CLOCK: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const SECONDS: Intl.DateTimeFormatOptions = { ...CLOCK, second: "2-digit" };
const MILLISECONDS: Intl.DateTimeFormatOptions = { ...SECONDS, fractionalSecondDigits: 3 };
const FINE: Intl.DateTimeFormatOptions = { ...SECONDS, fractionalSecondDigits: 1 };

/** Formatters are slow to create, so they are cached. */
const made = new Map<string, Intl.DateTimeFormat>();

function formatter(zone: Zone, name: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
    const key = zone + name;
    let format = made.get(key);
    if (!format) {
        // The Swedish locale formats dates as in ISO 8601.
        format = new Intl.DateTimeFormat("sv-SE", zone === "UTC" ? { ...options, timeZone: "UTC" } : options);
        made.set(key, format);
    }
    return format;
}

/** "40 s", "2:05 min", "1:02:05 h". */
export function elapsed(time: number): string {
    const two = (n: number): string => String(n).padStart(2, "0");
    const whole = Math.round(time);
    if (whole < 120) return `${Number(time.toFixed(1))}\u00a0s`;
    const [hours, minutes, rest] = [Math.trunc(whole / 3600), Math.trunc(whole / 60), whole % 60];
    if (hours < 2) return `${minutes}:${two(rest)}\u00a0min`;
    return `${hours}:${two(minutes % 60)}:${two(rest)}\u00a0h`;
}

const format =
    (name: string, options: Intl.DateTimeFormatOptions) =>
    (time: number, zone: Zone): string =>
        zone === "elapsed" ? elapsed(time) : formatter(zone, name, options).format(time * 1000);

const ofDate = format("date", DATE);
/** "2026-11-21" */
export const date = (time: number, zone: Zone): string => (zone === "elapsed" ? "" : ofDate(time, zone));
/** "14:05" */
export const clock = format("clock", CLOCK);
/** "14:05:09" */
export const seconds = format("seconds", SECONDS);
/** "14:05:09.5" */
export const fine = (time: number, zone: Zone): string => format("fine", FINE)(time, zone).replace(",", ".");
/** "14:05:09.512" */
export const milliseconds = (time: number, zone: Zone): string =>
    format("milliseconds", MILLISECONDS)(time, zone).replace(",", ".");
/** "2026-11-21 14:05:09" */
export const instant = (time: number, zone: Zone): string =>
    zone === "elapsed" ? elapsed(time) : `${date(time, zone)} ${seconds(time, zone)}`;

/** Offset of local time from UTC at that time. */
export const offsetSeconds = (time: number): number => -60 * new Date(time * 1000).getTimezoneOffset();

/** The same as text: "UTC+1", "UTC+5:30". */
export function offset(time: number): string {
    const minutes = offsetSeconds(time) / 60;
    if (minutes === 0) return "UTC";
    const hours = Math.trunc(Math.abs(minutes) / 60);
    const rest = Math.abs(minutes) % 60;
    return `UTC${minutes < 0 ? "−" : "+"}${hours}${rest ? ":" + String(rest).padStart(2, "0") : ""}`;
}

/** "2026-11-21T13:05:09.000Z", for files. */
export const iso = (time: number): string => new Date(time * 1000).toISOString();

/** Labels for ticks that are `increment` seconds apart, with the date when the day changes. */
export function ticks(times: readonly number[], increment: number, zone: Zone): string[] {
    if (zone === "elapsed") return times.map(elapsed);
    let day = "";
    return times.map((time) => {
        const today = date(time, zone);
        const text =
            increment >= 86_400
                ? today
                : increment >= 60
                  ? clock(time, zone)
                  : increment >= 1
                    ? seconds(time, zone)
                    : fine(time, zone);
        if (today === day || increment >= 86_400) return text;
        day = today;
        return `${text}\n${today}`;
    });
}
