// SPDX-License-Identifier: PostgreSQL
/**
 * The colours of charts: background and text from the style sheet, curves from the palette. Read again
 * when the theme changes.
 */
import type { Series, SideName } from "../model";
import { shade, type ActivityClass, type ThemeName } from "./palette";

export interface Ink {
    readonly theme: ThemeName;
    readonly paper: string;
    readonly sunken: string;
    readonly bar: string;
    readonly line: string;
    readonly text: string;
    readonly faint: string;
    readonly grid: string;
    readonly hatch: string;
    readonly checkpoint: string;
    readonly accent: string;
    readonly warning: string;
}

export function readInk(theme: ThemeName): Ink {
    const style = getComputedStyle(document.documentElement);
    const token = (name: string): string => style.getPropertyValue(`--${name}`).trim();
    return {
        theme,
        paper: token("panel"),
        sunken: token("sunken"),
        bar: token("bar"),
        line: token("line"),
        text: token("ink"),
        faint: token("ink-2"),
        grid: token("grid"),
        hatch: token("hatch"),
        checkpoint: token("checkpoint"),
        accent: token("accent"),
        warning: token("warning"),
    };
}

/** A curve's colour: one of the shades of a class. */
export interface Paint {
    readonly class: ActivityClass;
    readonly index: number;
    readonly members: number;
}

/** Colours for curves that are not activities, in this order, skipping those used by an activity in the chart. */
const BORROWED: readonly ActivityClass[] = ["io", "lock", "cpu", "client", "lwlock"];

/** The colours of the sides of a comparison, which are distinct for everyone. */
export const SIDES: Readonly<Record<SideName, ActivityClass>> = { a: "lwlock", b: "io" };

/** The properties that determine a series' colour. */
type Coloured = Pick<Series, "class" | "shade" | "side">;

/** The colours of a chart's series, in their order. */
export function paints(series: readonly Coloured[]): Paint[] {
    const free = BORROWED.filter((one) => series.every((other) => other.class !== one));
    const plain = series.filter((one) => one.class === null).length;
    const rounds = Math.ceil(plain / free.length);
    let borrowed = 0;
    return series.map((one) => {
        if (one.side) {
            const members = series.filter((other) => other.side === one.side).length;
            return { class: SIDES[one.side], index: one.shade, members };
        }
        if (one.class === null) {
            const index = borrowed++;
            return {
                class: free[index % free.length] ?? "other",
                index: Math.floor(index / free.length),
                members: rounds,
            };
        }
        const shades = series.filter((other) => other.class === one.class).map((other) => other.shade);
        return { class: one.class, index: one.shade, members: Math.max(...shades) + 1 };
    });
}

export const colour = ({ class: of, index, members }: Paint, theme: ThemeName): string =>
    shade(of, index, members, theme);
