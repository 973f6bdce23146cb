// SPDX-License-Identifier: PostgreSQL
/**
 * Colours by lightness, chroma and hue in Björn Ottosson's Oklab space, in which equal steps of
 * lightness look equal. They are converted to sRGB here.
 */

/** Lightness 0..1, chroma 0..0.4, hue in degrees. */
export type Oklch = readonly [lightness: number, chroma: number, hue: number];

type Triple = [number, number, number];

function linear([lightness, chroma, hue]: Oklch): Triple {
    const angle = (hue * Math.PI) / 180;
    const a = chroma * Math.cos(angle);
    const b = chroma * Math.sin(angle);
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
    return [
        4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ];
}

/** `#rrggbb`; the chroma of a colour outside sRGB is reduced until it fits. */
export function hex(colour: Oklch): string {
    const [lightness, , hue] = colour;
    let chroma = colour[1];
    let rgb = linear(colour);
    while (chroma > 0 && rgb.some((v) => v < -1e-4 || v > 1.0001)) {
        chroma = Math.max(0, chroma - 0.005);
        rgb = linear([lightness, chroma, hue]);
    }
    const byte = (v: number): string => {
        const c = Math.min(1, Math.max(0, v));
        const gamma = c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055;
        return Math.round(gamma * 255)
            .toString(16)
            .padStart(2, "0");
    };
    return "#" + rgb.map(byte).join("");
}
