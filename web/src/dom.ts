// SPDX-License-Identifier: PostgreSQL
/** The only module that creates elements; no text is ever parsed as HTML. */

type Child = Node | string | null;

/** An element with attributes (`class`, `type`, `aria-…`) and children; strings become text. */
export function element<K extends keyof HTMLElementTagNameMap>(
    name: K,
    attributes: Readonly<Record<string, string>> = {},
    ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children.filter((child): child is Node | string => child !== null));
    return made;
}

const SVG = "http://www.w3.org/2000/svg";

/** The same for SVG. */
export function drawn(
    name: "svg" | "rect" | "path" | "title",
    attributes: Readonly<Record<string, string>> = {},
    ...children: readonly (Node | string)[]
): SVGElement {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
}

export function button(label: string, title: string, act: () => void, kind = "plain"): HTMLButtonElement {
    const made = element("button", { type: "button", class: kind, title }, label);
    made.addEventListener("click", act);
    return made;
}

/** Runs `act` once when `target` is nearly visible, or before printing. */
export function whenSeen(target: Element, act: () => void): void {
    const watcher = new IntersectionObserver(
        (entries) => {
            if (!entries.some((entry) => entry.isIntersecting)) return;
            watcher.disconnect();
            removeEventListener("beforeprint", now);
            act();
        },
        { rootMargin: "300px" },
    );
    const now = (): void => {
        watcher.disconnect();
        act();
    };
    addEventListener("beforeprint", now, { once: true });
    watcher.observe(target);
}
