// SPDX-License-Identifier: PostgreSQL
/** Draws a tree of frames, each as wide as its time, with the root on top (icicle) or at the bottom (flame). */
import { element } from "../dom";
import { colourOf, type Node } from "./tree";

const ROW = 18;
/** Frames narrower than this share of the width are left out. */
const NARROWEST = 0.0006;
/** The name of a frame narrower than this is not legible, pixels. */
const LEGIBLE = 26;

export interface Drawn {
    /** The frames down to the one that has the whole width. */
    readonly path: readonly Node[];
    readonly rootOnTop: boolean;
    readonly found: (node: Node) => boolean;
    /** A frame was selected: show it over the whole width. */
    readonly zoom: (path: readonly Node[]) => void;
    /** The pointer or focus is on this frame; `null` if on none. */
    readonly point: (path: readonly Node[] | null) => void;
}

/** Fills `into` with the frames above the last one of `path`, and all below it. Returns the number of rows. */
export function draw(into: HTMLElement, { path, rootOnTop, found, zoom, point }: Drawn): number {
    into.replaceChildren();
    const focus = path[path.length - 1];
    if (focus === undefined || focus.seconds <= 0) return 0;
    let rows = 0;
    const room = into.clientWidth;
    const put = (to: readonly Node[], left: number, width: number): void => {
        const node = to[to.length - 1] as Node;
        const frame = element("div", { class: `frame of-${colourOf(node)}`, role: "treeitem", tabindex: "-1" }, node.name);
        frame.setAttribute("aria-level", String(to.length));
        frame.style.left = `${left * 100}%`;
        frame.style.width = `${width * 100}%`;
        frame.style[rootOnTop ? "top" : "bottom"] = `${(to.length - 1) * ROW}px`;
        if (width * room < LEGIBLE) frame.classList.add("narrow");
        if (found(node)) frame.classList.add("found");
        if (to.length < path.length) frame.classList.add("above");
        frame.addEventListener("click", () => zoom(to));
        frame.addEventListener("keydown", (event) => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            zoom(to);
        });
        for (const event of ["pointerenter", "focus"]) frame.addEventListener(event, () => point(to));
        frame.addEventListener("pointerleave", () => point(null));
        into.append(frame);
        rows = Math.max(rows, to.length);
    };
    for (let depth = 1; depth < path.length; depth++) put(path.slice(0, depth), 0, 1);
    const down = (to: readonly Node[], left: number): void => {
        const node = to[to.length - 1] as Node;
        const width = node.seconds / focus.seconds;
        if (width < NARROWEST) return;
        put(to, left, width);
        let at = left;
        for (const next of widestFirst(node)) {
            down([...to, next], at);
            at += next.seconds / focus.seconds;
        }
    };
    down(path, 0);
    into.style.height = `${rows * ROW}px`;
    into.querySelector(".frame")?.setAttribute("tabindex", "0");
    return rows;
}

/** Moves the focus from frame to frame: towards the root, away from it, and to the side. */
export function followKeys(graph: HTMLElement, rootOnTop: () => boolean): void {
    graph.addEventListener("keydown", (event) => {
        const from = event.target;
        if (!(from instanceof HTMLElement) || !from.classList.contains("frame")) return;
        const to = neighbour(graph, from, event.key, rootOnTop());
        if (to === undefined) return;
        event.preventDefault();
        from.tabIndex = -1;
        to.tabIndex = 0;
        to.focus();
    });
}

function neighbour(graph: HTMLElement, from: HTMLElement, pressed: string, rootOnTop: boolean): HTMLElement | undefined {
    const rows = { ArrowDown: rootOnTop ? 1 : -1, ArrowUp: rootOnTop ? -1 : 1, ArrowLeft: 0, ArrowRight: 0 }[pressed];
    if (rows === undefined) return undefined;
    const level = (frame: Element): number => Number(frame.getAttribute("aria-level"));
    const start = (frame: HTMLElement): number => parseFloat(frame.style.left);
    const end = (frame: HTMLElement): number => start(frame) + parseFloat(frame.style.width);
    const row = [...graph.querySelectorAll<HTMLElement>(".frame")].filter((one) => level(one) === level(from) + rows);
    row.sort((a, b) => start(a) - start(b));
    if (rows === 0) return row[row.indexOf(from) + (pressed === "ArrowRight" ? 1 : -1)];
    if (rows < 0) return row.find((one) => end(one) > start(from) + 1e-9);
    return row.find((one) => start(one) >= start(from) - 1e-9 && end(one) <= end(from) + 1e-9);
}

function widestFirst(of: Node): Node[] {
    return [...of.children.values()].sort((a, b) => b.seconds - a.seconds || (a.name < b.name ? -1 : 1));
}

/** Time in matching frames, counting nested ones once. */
export function foundIn(node: Node, found: (node: Node) => boolean): number {
    if (found(node)) return node.seconds;
    let sum = 0;
    for (const below of node.children.values()) sum += foundIn(below, found);
    return sum;
}
