// SPDX-License-Identifier: PostgreSQL
/**
 * The colours that charts draw with: those of the style sheet for paper and ink, those of the
 * palette for curves. Read anew whenever the theme changes.
 */
import { neutral, shade, type ActivityClass, type ThemeName } from "./palette";

export interface Ink {
    readonly theme: ThemeName;
    readonly paper: string;
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
        text: token("ink"),
        faint: token("ink-2"),
        grid: token("grid"),
        hatch: token("hatch"),
        checkpoint: token("checkpoint"),
        accent: token("accent"),
        warning: token("warning"),
    };
}

/** What a curve is drawn in: its class and shade among `members` of that class, or a place among the neutral ones. */
export interface Paint {
    readonly class: ActivityClass | null;
    readonly index: number;
    readonly members: number;
}

/** The paints of a chart's series, in their order. */
export function paints(series: readonly { class: ActivityClass | null; shade: number }[]): Paint[] {
    let neutrals = 0;
    return series.map((one) => {
        if (one.class === null) return { class: null, index: neutrals++, members: 0 };
        const shades = series.filter((other) => other.class === one.class).map((other) => other.shade);
        return { class: one.class, index: one.shade, members: Math.max(...shades) + 1 };
    });
}

export function colour(paint: Paint, theme: ThemeName): string {
    return paint.class === null
        ? neutral(paint.index, theme)
        : shade(paint.class, paint.index, paint.members, theme);
}
