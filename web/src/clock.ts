// SPDX-License-Identifier: PostgreSQL
/** Instants (seconds since 1970) as text, in the reader's time zone or in UTC. */

export type Zone = "local" | "UTC";

const DATE: Intl.DateTimeFormatOptions = { year: "numeric", month: "2-digit", day: "2-digit" };
const CLOCK: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const SECONDS: Intl.DateTimeFormatOptions = { ...CLOCK, second: "2-digit" };
const FINE: Intl.DateTimeFormatOptions = { ...SECONDS, fractionalSecondDigits: 1 };

/** Formatters are slow to make, so they are kept. */
const made = new Map<string, Intl.DateTimeFormat>();

function formatter(zone: Zone, name: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
    const key = zone + name;
    let it = made.get(key);
    if (!it) {
        // Swedish writes dates as ISO 8601 does.
        it = new Intl.DateTimeFormat("sv-SE", zone === "UTC" ? { ...options, timeZone: "UTC" } : options);
        made.set(key, it);
    }
    return it;
}

const format =
    (name: string, options: Intl.DateTimeFormatOptions) =>
    (time: number, zone: Zone): string =>
        formatter(zone, name, options).format(time * 1000);

/** "2026-11-21" */
export const date = format("date", DATE);
/** "14:05" */
export const clock = format("clock", CLOCK);
/** "14:05:09" */
export const seconds = format("seconds", SECONDS);
/** "14:05:09.5" */
export const fine = (time: number, zone: Zone): string => format("fine", FINE)(time, zone).replace(",", ".");
/** "2026-11-21 14:05:09" */
export const instant = (time: number, zone: Zone): string => `${date(time, zone)} ${seconds(time, zone)}`;

/** How far local time is ahead of UTC at that time. */
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

/** Labels of ticks that are `increment` seconds apart, with the date where the day changes. */
export function ticks(times: readonly number[], increment: number, zone: Zone): string[] {
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
