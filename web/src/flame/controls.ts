// SPDX-License-Identifier: PostgreSQL
/** What the pages of a profile and of a difference offer above their graphs. */
import { element } from "../dom";

/** How the frames are stacked. */
export const LAYOUTS = {
    icicle: { label: "icicle: root on top", rootOnTop: true, inverted: false },
    flame: { label: "flame: root at the bottom", rootOnTop: false, inverted: false },
    inverted: { label: "inverted: innermost first", rootOnTop: true, inverted: true },
} as const;
export type Layout = keyof typeof LAYOUTS;

/** A choice among several; the first is chosen. */
export function choice<T extends string>(
    label: string,
    options: readonly (readonly [T, string])[],
    act: (to: T) => void,
): HTMLElement {
    const select = element("select", { "aria-label": label });
    for (const [value, text] of options) select.append(element("option", { value }, text));
    select.addEventListener("change", () => act(select.value as T));
    return element("label", {}, `${label} `, select);
}
