// SPDX-License-Identifier: PostgreSQL
/** Two profiles as one flame graph: the width is the mean time, the colour what changed by more than chance explains. */
import { button, element } from "../dom";
import { followTheme } from "../look/theme";
import { themeButton } from "../toolbar";
import { duration, percent, whole } from "../units";
import { choice, LAYOUTS, type Layout } from "./controls";
import { draw, followKeys, foundIn } from "./draw";
import type { DiffNode, ProfileDiff } from "./model";
import { halfWidth, type Node } from "./tree";

const GROUPINGS = [
    ["phase", "phase, activity"],
    ["statement", "statement"],
    ["function", "functions only"],
] as const;
type Grouping = (typeof GROUPINGS)[number][0];

/** Factors from which on a change is darker. */
const STEPS = [1.25, 2];

/** "more-1" to "more-3", "less-1" to "less-3", or "plain" within chance. */
export function colourOfChange({ beyond_chance, ratio, samples: [a, b] }: DiffNode): string {
    if (!beyond_chance) return "plain";
    const factor = ratio ?? (b > a ? Infinity : 0);
    const size = factor >= 1 ? factor : 1 / factor;
    const step = 1 + STEPS.filter((least) => size >= least).length;
    return `${factor > 1 ? "more" : "less"}-${step}`;
}

/** A tree as the graph draws it, and the frames from which it was made. */
function nodeOf(of: DiffNode, [a, b]: ProfileDiff["amounts"], made: Map<Node, DiffNode>): Node {
    const children = of.children.map((child) => nodeOf(child, [a, b], made));
    const node: Node = {
        name: of.name,
        from: of.from,
        kind: colourOfChange(of),
        kernel: false,
        seconds: (of.samples[0] / a + of.samples[1] / b) / 2,
        samples: of.samples[0] + of.samples[1],
        children: new Map(children.map((child) => [`${child.name}\0${child.from}`, child])),
    };
    made.set(node, of);
    return node;
}

export function showDifference(diff: ProfileDiff, into: HTMLElement): void {
    const { amounts, per, units, servers } = diff;
    const made = new Map<Node, DiffNode>();
    let grouping: Grouping = "phase";
    let layout: Layout = "icicle";
    let wanted = "";
    let path: readonly Node[] = [];

    const status = element("output", { class: "status" });
    const matches = element("output", { class: "matches" });
    const graph = element("div", { class: "flames", role: "tree", "aria-label": `CPU time per ${per}` });
    const isFound = ({ name, from }: Node): boolean =>
        wanted !== "" && `${name} ${from}`.toLowerCase().includes(wanted);

    const side = (samples: number, at: 0 | 1): string =>
        `${duration(samples / amounts[at])} ± ${duration(halfWidth(samples, 1 / amounts[at]))}`;
    const describe = (node: Node | undefined): void => {
        const of = node && made.get(node);
        if (!of) {
            status.value =
                "Point at a frame for its figures; click to zoom in. Arrow keys move, Enter zooms, Esc shows all.";
            return;
        }
        const [a, b] = of.samples;
        const change = b / amounts[1] - a / amounts[0];
        const { ratio, factor } = of;
        const times =
            ratio === null || factor === null
                ? ""
                : `, ${ratio.toFixed(2)} times as much (95 %: ${(ratio / factor).toFixed(2)} to ${(ratio * factor).toFixed(2)})`;
        status.value =
            `${of.name}${of.from === "" ? "" : ` (${of.from})`}: A ${side(a, 0)}, B ${side(b, 1)} per ${per}, ` +
            `${change < 0 ? "−" : "+"}${duration(Math.abs(change))}${times}; ` +
            (of.beyond_chance ? "beyond chance" : "within chance");
        status.title = status.value;
    };

    const redraw = (): void => {
        graph.classList.toggle("searching", wanted !== "");
        draw(graph, {
            path,
            rootOnTop: LAYOUTS[layout].rootOnTop,
            found: isFound,
            zoom: (to) => {
                path = to;
                redraw();
                graph.querySelector<HTMLElement>(`[aria-level="${to.length}"]`)?.focus();
            },
            point: (to) => describe(to?.[to.length - 1]),
        });
        const [root] = path;
        const found = wanted === "" || !root ? 0 : foundIn(root, isFound);
        matches.value = wanted === "" || !root ? "" : `matched: ${percent(root.seconds > 0 ? found / root.seconds : 0)}`;
    };
    const show = (): void => {
        const tree = diff.trees.find((one) => one.grouping === grouping && one.inverted === LAYOUTS[layout].inverted);
        path = tree ? [nodeOf(tree.root, amounts, made)] : [];
        redraw();
        describe(undefined);
    };
    const all = (): void => {
        path = path.slice(0, 1);
        redraw();
    };

    const search = element("input", { type: "search", placeholder: "Search", "aria-label": "Search" });
    search.addEventListener("input", () => {
        wanted = search.value.trim().toLowerCase();
        redraw();
    });
    addEventListener("keydown", (event) => {
        if (event.key === "Escape") all();
    });
    followKeys(graph, () => LAYOUTS[layout].rootOnTop);
    const themed = { theme: undefined, setTheme: () => undefined };
    document.documentElement.classList.add("scripted");
    followTheme(themed);
    const facts = (["A", "B"] as const).map((name, at) =>
        element("div", {}, element("dt", {}, name), element("dd", {}, `${servers[at]}, ${whole(units[at] ?? 0)} ${per}s`)),
    );
    const key = (colour: string, label: string): HTMLElement =>
        element("li", {}, element("i", { class: `dot of-${colour}` }), label);
    const steps = (kind: string, label: string): HTMLElement =>
        element("li", {}, ...[1, 2, 3].map((step) => element("i", { class: `dot of-${kind}-${step}` })), label);
    into.append(
        element("dl", { class: "facts-line" }, ...facts),
        element(
            "div",
            { class: "controls" },
            choice("Group by", GROUPINGS, (to) => {
                grouping = to;
                show();
            }),
            choice(
                "Layout",
                Object.entries(LAYOUTS).map(([name, { label }]) => [name as Layout, label] as const),
                (to) => {
                    layout = to;
                    show();
                },
            ),
            search,
            matches,
            button("Show all", "Zoom out to the whole graph (Esc)", all),
            themeButton(themed),
        ),
        element(
            "ul",
            { class: "legend", "aria-label": "Colours" },
            steps("more", "slower in B: below 1.25 times, to 2 times, above"),
            steps("less", "faster in B"),
            key("plain", `no difference beyond chance (at most ${percent(diff.false_discovery_rate)} of the marked ones differ by chance)`),
        ),
        graph,
        status,
    );
    show();
}
