// SPDX-License-Identifier: PostgreSQL
/**
 * Characters that are not seen, or that change how others are seen, as the command writes them in
 * its text (crates/view/src/escape.rs): \uXXXX. A report's JSON has them exactly; the page shows
 * no other text than this.
 */

const UNSEEN = /[\p{Cf}\p{Zl}\p{Zp}\p{DI}]|[\0-\x08\x0b-\x1f\x7f-\x9f]/gu;

/** Each 16-bit unit of a character. */
const escaped = (letter: string): string =>
    Array.from({ length: letter.length }, (_, at) => letter.charCodeAt(at))
        .map((unit) => `\\u${unit.toString(16).toUpperCase().padStart(4, "0")}`)
        .join("");

/** A text with all of it in sight; line feeds and tabs stay. */
export const visible = (text: string): string => text.replace(UNSEEN, escaped);

/** JSON with all its texts in sight. Looking at each value takes time: only where there may be need. */
export function parse(json: string): unknown {
    const need = /\\u(?!003c)/.test(json) || json.search(UNSEEN) >= 0;
    return need
        ? JSON.parse(json, (_, value: unknown) => (typeof value === "string" ? visible(value) : value))
        : JSON.parse(json);
}
