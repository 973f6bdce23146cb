// SPDX-License-Identifier: PostgreSQL
/** The state shared by all charts: the range in view, the moment that is open, the instant at the cursor, zone and theme. */
import type { Zone } from "./clock";
import type { ThemeName } from "./look/palette";

export interface Range {
    readonly from: number;
    readonly to: number;
}

/** The changes that can be listened to. */
export interface Changes {
    /** The range in view. */
    range: Range;
    /** The moment that is open, a point of a chart, or none. */
    moment: Range | null;
    /** The recording has grown (live page). */
    data: undefined;
    /** The instant at the cursor, or none. */
    point: number | null;
    zone: Zone;
    theme: ThemeName;
}

type Listener<T> = (value: T) => void;

/** The narrowest range in view, in points of the recording. */
const MIN_POINTS = 4;

export class View {
    private shown: Range;
    private opened: Range | null = null;
    private pointed: number | null = null;
    private listeners: { [K in keyof Changes]: Set<Listener<Changes[K]>> } = {
        range: new Set(),
        moment: new Set(),
        data: new Set(),
        point: new Set(),
        zone: new Set(),
        theme: new Set(),
    };

    /** `step` is the usual distance between two points, in seconds. */
    constructor(
        private all: Range,
        private readonly step: number,
        private timeZone: Zone,
        private look: ThemeName,
    ) {
        this.shown = all;
    }

    get range(): Range {
        return this.shown;
    }
    get moment(): Range | null {
        return this.opened;
    }
    get whole(): Range {
        return this.all;
    }
    get zone(): Zone {
        return this.timeZone;
    }
    get theme(): ThemeName {
        return this.look;
    }
    get point(): number | null {
        return this.pointed;
    }
    get zoomed(): boolean {
        return this.shown.from > this.all.from || this.shown.to < this.all.to;
    }

    /** Listens until `until` is aborted. */
    on<K extends keyof Changes>(what: K, listener: Listener<Changes[K]>, until?: AbortSignal): void {
        this.listeners[what].add(listener);
        until?.addEventListener("abort", () => this.listeners[what].delete(listener));
    }

    private notify<K extends keyof Changes>(what: K, value: Changes[K]): void {
        for (const listener of this.listeners[what]) listener(value);
    }

    /** Shows a range, limited to the recording and to at least MIN_POINTS. */
    zoom(from: number, to: number): void {
        const { all } = this;
        const narrowest = Math.min(all.to - all.from, MIN_POINTS * this.step);
        const width = Math.min(Math.max(to - from, narrowest), all.to - all.from);
        const middle = (from + to) / 2;
        const start = Math.min(Math.max(middle - width / 2, all.from), all.to - width);
        if (start === this.shown.from && start + width === this.shown.to) return;
        this.shown = { from: start, to: start + width };
        this.notify("range", this.shown);
    }

    /** Opens a moment; the one that is open already, or none: closes it. */
    open(moment: Range | null): void {
        const { opened } = this;
        const same = moment !== null && opened !== null && moment.from === opened.from && moment.to === opened.to;
        this.opened = same ? null : moment;
        if (this.opened !== opened) this.notify("moment", this.opened);
    }

    /** Moves the cursor of all charts. */
    pointAt(time: number | null): void {
        if (time === this.pointed) return;
        this.pointed = time;
        this.notify("point", time);
    }

    /** Shows the whole recording. */
    reset(): void {
        this.open(null);
        this.showAll();
    }

    private showAll(): void {
        this.zoom(this.all.from, this.all.to);
    }

    /** Moves the view by a share of its width. */
    pan(part: number): void {
        const by = (this.shown.to - this.shown.from) * part;
        this.zoom(this.shown.from + by, this.shown.to + by);
    }

    /** Widens the view by a factor around its middle. */
    scale(factor: number): void {
        const half = ((this.shown.to - this.shown.from) / 2) * factor;
        const middle = (this.shown.from + this.shown.to) / 2;
        this.zoom(middle - half, middle + half);
    }

    /** The recording has grown. If the view shows everything, or the end, it continues to do so. */
    grow(all: Range): void {
        const { shown, zoomed, all: before } = this;
        this.all = all;
        if (this.opened && this.opened.from < all.from) this.open(null);
        if (!zoomed) this.showAll();
        else if (shown.to >= before.to) this.zoom(shown.from + all.to - before.to, all.to);
        else this.zoom(shown.from, shown.to);
    }

    /** All drawings have the newer points. */
    dataChanged(): void {
        this.notify("data", undefined);
    }

    setZone(zone: Zone): void {
        this.timeZone = zone;
        this.notify("zone", zone);
    }

    setTheme(theme: ThemeName): void {
        this.look = theme;
        this.notify("theme", theme);
    }
}
