// SPDX-License-Identifier: PostgreSQL
/** Classes of activities: headings and hues. Generated from format/classes.toml by `make generate`; do not edit. */

export const CLASSES = ["cpu", "io", "lwlock", "lock", "client", "ipc", "other"] as const;
export type ActivityClass = (typeof CLASSES)[number];

/** As in headings of tables. */
export const CLASS_NAMES: Readonly<Record<ActivityClass, string>> = {
    cpu: "CPU",
    io: "I/O",
    lwlock: "LWLock",
    lock: "Lock",
    client: "Client",
    ipc: "IPC",
    other: "Other",
};

export interface Hue {
    readonly chroma: number;
    readonly hue: number;
    /** Lightness of the class's own colour, and of the last of its shades. */
    readonly light: readonly [number, number];
    readonly dark: readonly [number, number];
}

export const HUES: Readonly<Record<ActivityClass, Hue>> = {
    cpu: { chroma: 0.13, hue: 164, light: [0.64, 0.85], dark: [0.68, 0.46] },
    io: { chroma: 0.13, hue: 245, light: [0.5, 0.85], dark: [0.58, 0.86] },
    lwlock: { chroma: 0.16, hue: 76, light: [0.78, 0.92], dark: [0.78, 0.58] },
    lock: { chroma: 0.19, hue: 40, light: [0.6, 0.8], dark: [0.62, 0.44] },
    client: { chroma: 0.12, hue: 347, light: [0.76, 0.9], dark: [0.76, 0.56] },
    ipc: { chroma: 0.17, hue: 105, light: [0.9, 0.72], dark: [0.92, 0.72] },
    other: { chroma: 0.01, hue: 250, light: [0.56, 0.74], dark: [0.5, 0.36] },
};
