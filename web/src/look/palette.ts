// SPDX-License-Identifier: PostgreSQL
/**
 * Colours of the classes of activities, whose hues are in format/classes.toml. The members of a class are
 * shades of its hue; the largest member is nearest to the class's own colour. test/palette.test.mjs checks a
 * minimum distance for normal vision and for colour blindness.
 */
import { HUES, type ActivityClass } from "./classes";
import { hex, type Oklch } from "./oklch";

export { CLASSES, CLASS_NAMES, type ActivityClass } from "./classes";

export type ThemeName = "light" | "dark";

/** The colour of member `index` out of the `members` of a class. */
export function shade(of: ActivityClass, index: number, members: number, theme: ThemeName): string {
    const hue = HUES[of];
    const [own, last] = hue[theme];
    const part = members > 1 ? index / (members - 1) : 0;
    // Two or three shades are distinct even without the full range.
    const reach = Math.min(1, 0.45 + 0.15 * (members - 2));
    const colour: Oklch = [own + (last - own) * part * Math.max(reach, 0), hue.chroma, hue.hue];
    return hex(colour);
}

/** Black or white, whichever contrasts more: one of them has a contrast of 4.58 at least with any colour. */
export function inkOn(colour: string): string {
    const [r = 0, g = 0, b = 0] = [1, 3, 5]
        .map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
        .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    // The relative luminance of WCAG 2.2, beside that of white, 1, and of black, 0.
    const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    return (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) ? "#000000" : "#ffffff";
}

/**
 * The colours of a heat map from lowest to highest: lightness changes in one direction, so that it can be
 * read without hue (as cividis can), from the page's background towards its text colour.
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
        const hue =
            theme === "light" ? from[2] + (to[2] - from[2]) * p : from[2] + (to[2] + 360 - from[2] - 360) * p;
        return hex([from[0] + (to[0] - from[0]) * p, from[1] + (to[1] - from[1]) * p, hue]);
    });
}
