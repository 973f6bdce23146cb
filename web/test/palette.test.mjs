// SPDX-License-Identifier: PostgreSQL
// Tests the colours of the classes for normal vision and for colour blindness.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { CLASSES, ramp, shade } = await load("look/palette.ts");

// Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
// Deficiency" (2009), at full severity, on linear RGB.
const EYES = {
    normal: [1, 0, 0, 0, 1, 0, 0, 0, 1],
    protanope: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
    deuteranope: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
    tritanope: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
};

const linear = (hex) =>
    [1, 3, 5]
        .map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
        .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));

/** CIE L*a*b* of a colour as seen with that vision. */
function lab(hex, eyes) {
    const rgb = linear(hex);
    const [r, g, b] = [0, 3, 6].map((row) =>
        Math.min(1, Math.max(0, eyes[row] * rgb[0] + eyes[row + 1] * rgb[1] + eyes[row + 2] * rgb[2])),
    );
    const xyz = [
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883,
    ];
    const [x, y, z] = xyz.map((v) => (v > 0.008856 ? Math.cbrt(v) : 7.787 * v + 16 / 116));
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const distance = (a, b, eyes) => Math.hypot(...lab(a, eyes).map((v, i) => v - lab(b, eyes)[i]));

for (const theme of ["light", "dark"]) {
    for (const [who, eyes] of Object.entries(EYES)) {
        test(`any two classes differ for ${who} vision in the ${theme} theme`, () => {
            for (const a of CLASSES) {
                for (const b of CLASSES) {
                    if (a >= b) continue;
                    const far = distance(shade(a, 0, 1, theme), shade(b, 0, 1, theme), eyes);
                    assert.ok(far >= 12, `${a} and ${b}: ${far.toFixed(1)}`);
                }
            }
        });
    }

    test(`shades of a class are distinct in the ${theme} theme`, () => {
        for (const one of CLASSES) {
            for (const members of [2, 3, 4]) {
                const shades = Array.from({ length: members }, (_, i) => shade(one, i, members, theme));
                for (let i = 1; i < members; i++) {
                    const far = distance(shades[i - 1], shades[i], EYES.normal);
                    assert.ok(far >= 2.5, `${one} ${i - 1} and ${i} of ${members}: ${far.toFixed(1)}`);
                }
            }
        }
    });

    test(`a heat map's lightness changes in one direction in the ${theme} theme`, () => {
        const steps = ramp(theme).map((colour) => lab(colour, EYES.normal)[0]);
        const way = Math.sign(steps.at(-1) - steps[0]);
        assert.ok(Math.abs(steps.at(-1) - steps[0]) > 50);
        for (let i = 1; i < steps.length; i++) assert.ok((steps[i] - steps[i - 1]) * way > -0.6, `step ${i}`);
    });
}
