// SPDX-License-Identifier: PostgreSQL
/** Draws a tree with the root on top, each frame as wide as its time. */
import { element } from "../dom";
import type { Node } from "./tree";

const ROW = 18;
/** Frames narrower than this share of the width are left out. */
const NARROWEST = 0.0006;

export interface Actions {
    /** A frame was selected: show it over the whole width. */
    readonly zoom: (path: readonly Node[]) => void;
    /** The pointer is over this frame; `null` if over none. */
    readonly point: (path: readonly Node[] | null) => void;
}

/** Fills `into` with the frames above the last one of `path`, and all below it. Returns the number of rows. */
export function draw(
    into: HTMLElement,
    path: readonly Node[],
    found: (node: Node) => boolean,
    actions: Actions,
): number {
    into.replaceChildren();
    const focus = path[path.length - 1];
    if (focus === undefined || focus.seconds <= 0) return 0;
    let rows = 0;
    const put = (to: readonly Node[], left: number, width: number): void => {
        const it = to[to.length - 1] as Node;
        const frame = element("div", { class: classOf(it), role: "treeitem", tabindex: "0" }, it.name);
        frame.style.left = `${left * 100}%`;
        frame.style.width = `${width * 100}%`;
        frame.style.top = `${(to.length - 1) * ROW}px`;
        if (found(it)) frame.classList.add("found");
        if (to.length < path.length) frame.classList.add("above");
        frame.addEventListener("click", () => actions.zoom(to));
        frame.addEventListener("keydown", (event) => {
            if (event.key === "Enter" || event.key === " ") {
                event.preventDefault();
                actions.zoom(to);
            }
        });
        for (const event of ["pointerenter", "focus"]) frame.addEventListener(event, () => actions.point(to));
        frame.addEventListener("pointerleave", () => actions.point(null));
        into.append(frame);
        rows = Math.max(rows, to.length);
    };
    for (let depth = 1; depth < path.length; depth++) put(path.slice(0, depth), 0, 1);
    const down = (to: readonly Node[], left: number): void => {
        const it = to[to.length - 1] as Node;
        const width = it.seconds / focus.seconds;
        if (width < NARROWEST) return;
        put(to, left, width);
        let at = left;
        for (const next of widestFirst(it)) {
            down([...to, next], at);
            at += next.seconds / focus.seconds;
        }
    };
    down(path, 0);
    into.style.height = `${rows * ROW}px`;
    return rows;
}

function widestFirst(of: Node): Node[] {
    return [...of.children.values()].sort((a, b) => b.seconds - a.seconds || (a.name < b.name ? -1 : 1));
}

function classOf(node: Node): string {
    return ["frame", `of-${node.kind}`, node.kernel ? "kernel" : ""].filter(Boolean).join(" ");
}

/** Time in matching frames, counting nested ones once. */
export function foundIn(node: Node, found: (node: Node) => boolean): number {
    if (found(node)) return node.seconds;
    let sum = 0;
    for (const it of node.children.values()) sum += foundIn(it, found);
    return sum;
}
