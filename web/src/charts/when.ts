// SPDX-License-Identifier: PostgreSQL
/** An instant for tooltips and tables: in the chosen zone, then in the other one. */
import * as clock from "../clock";

export interface When {
    readonly title: string;
    readonly subtitle: string;
}

/** A point that begins at `time` and lasts `seconds`. */
export function when(time: number, seconds: number, zone: clock.Zone): When {
    if (zone === "elapsed") return { title: clock.elapsed(time), subtitle: "since the start" };
    const write = seconds < 1 ? clock.fine : clock.seconds;
    const same = clock.offsetSeconds(time) === 0;
    const local = `${write(time, "local")} ${clock.offset(time)}`;
    const utc = `${write(time, "UTC")} UTC`;
    const [first, second] = zone === "UTC" ? [utc, local] : [local, utc];
    return { title: first, subtitle: same ? clock.date(time, zone) : second };
}
