// SPDX-License-Identifier: PostgreSQL
/**
 * Colours of the classes of activities. The hues are those of Okabe and Ito's palette ("Color
 * Universal Design", 2008), which people with any of the colour-blindnesses tell apart; the
 * members of a class are shades of its hue, the largest next to the class's own colour.
 * test/palette.test.mjs holds them to a least distance as seen with normal eyes, by deuteranopes
 * and by protanopes.
 */
import { hex, type Oklch } from "./oklch";

/** What an activity is of. */
export const CLASSES = ["cpu", "io", "lwlock", "lock", "client", "ipc", "other"] as const;
export type ActivityClass = (typeof CLASSES)[number];

export type ThemeName = "light" | "dark";

interface Hue {
    readonly chroma: number;
    readonly hue: number;
    /** Lightness of the class's own colour, and of the last of its shades. */
    readonly light: readonly [number, number];
    readonly dark: readonly [number, number];
}

const HUES: Record<ActivityClass, Hue> = {
    cpu: { chroma: 0.13, hue: 164, light: [0.64, 0.85], dark: [0.68, 0.46] },
    io: { chroma: 0.13, hue: 245, light: [0.5, 0.85], dark: [0.58, 0.86] },
    lwlock: { chroma: 0.16, hue: 76, light: [0.78, 0.92], dark: [0.78, 0.58] },
    lock: { chroma: 0.19, hue: 40, light: [0.6, 0.8], dark: [0.62, 0.44] },
    client: { chroma: 0.12, hue: 347, light: [0.76, 0.9], dark: [0.76, 0.56] },
    ipc: { chroma: 0.17, hue: 105, light: [0.9, 0.72], dark: [0.92, 0.72] },
    other: { chroma: 0.01, hue: 250, light: [0.56, 0.74], dark: [0.5, 0.36] },
};

/** The colour of member `index` of the `members` that a class has. */
export function shade(of: ActivityClass, index: number, members: number, theme: ThemeName): string {
    const hue = HUES[of];
    const [own, last] = hue[theme];
    const part = members > 1 ? index / (members - 1) : 0;
    // Two or three shades need not go all the way to the last one to be told apart.
    const reach = Math.min(1, 0.45 + 0.15 * (members - 2));
    const colour: Oklch = [own + (last - own) * part * Math.max(reach, 0), hue.chroma, hue.hue];
    return hex(colour);
}

/**
 * The steps of a heat map, from hardly anything to most: a single-direction ramp of lightness, so
 * that it reads without hue as well (as cividis does), from the page's ground towards the ink.
 */
export function ramp(theme: ThemeName, steps = 64): string[] {
    const [from, to]: [Oklch, Oklch] =
        theme === "light"
            ? [
                  [0.95, 0.045, 200],
                  [0.3, 0.12, 275],
              ]
            : [
                  [0.3, 0.07, 265],
                  [0.93, 0.13, 100],
              ];
    return Array.from({ length: steps }, (_, i) => {
        const p = i / (steps - 1);
        const hue = theme === "light" ? from[2] + (to[2] - from[2]) * p : from[2] + (to[2] + 360 - from[2] - 360) * p;
        return hex([from[0] + (to[0] - from[0]) * p, from[1] + (to[1] - from[1]) * p, hue]);
    });
}
