// SPDX-License-Identifier: PostgreSQL
/**
 * Shows invisible characters, and characters that change how others are displayed, as \uXXXX, like the
 * command's text output (crates/view/src/escape.rs). A report's JSON has the characters themselves;
 * all text in the page goes through this module.
 */

const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}\p{DI}]|[\0-\x08\x0b-\x1f\x7f-\x9f]/gu;

/** Escapes each UTF-16 code unit. */
const escaped = (letter: string): string =>
    Array.from({ length: letter.length }, (_, at) => letter.charCodeAt(at))
        .map((unit) => `\\u${unit.toString(16).toUpperCase().padStart(4, "0")}`)
        .join("");

/** A text with these characters escaped; line feeds and tabs stay. */
export const visible = (text: string): string => text.replace(INVISIBLE, escaped);

/** Parses JSON and escapes its texts. Visiting each value takes time, so this is done only if there are such characters. */
export function parse(json: string): unknown {
    const need = /\\u(?!003c)/.test(json) || json.search(INVISIBLE) >= 0;
    return need
        ? JSON.parse(json, (_, value: unknown) => (typeof value === "string" ? visible(value) : value))
        : JSON.parse(json);
}
