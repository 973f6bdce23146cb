// SPDX-License-Identifier: PostgreSQL
/** The page of a profile: a flame graph with search, zoom and groupings, above the tables as text. */
import { button, element } from "../dom";
import { draw, foundIn } from "./draw";
import { embedded } from "./model";
import { type Grouping, type Node, treeOf } from "./tree";

const GROUPINGS: readonly (readonly [Grouping, string])[] = [
    ["phase", "phase, activity"],
    ["activity", "activity, phase"],
    ["statement", "statement"],
    ["function", "functions only"],
];

const profile = embedded();
let grouping: Grouping = "phase";
let wall = true;
let idle = false;
let wanted = "";
let root: Node = treeOf(profile, { grouping, wall, idle });
let path: readonly Node[] = [root];

const graph = element("div", { class: "flames", role: "tree", "aria-label": "Flame graph" });
const status = element("output", { class: "status" });
const matches = element("output", { class: "matches" });

const found = (node: Node): boolean =>
    wanted !== "" && `${node.name} ${node.from}`.toLowerCase().includes(wanted);

function time(seconds: number): string {
    return seconds >= 1 ? `${seconds.toFixed(2)} s` : `${(seconds * 1000).toFixed(0)} ms`;
}

function share(seconds: number): string {
    return root.seconds > 0 ? `${((100 * seconds) / root.seconds).toFixed(1)} %` : "";
}

function point(to: readonly Node[] | null): void {
    const it = to?.[to.length - 1] ?? path[path.length - 1];
    if (it === undefined) return;
    const from = it.from === "" ? "" : ` (${it.from})`;
    status.value = `${it.name}${from}: ${time(it.seconds)}, ${share(it.seconds)}`;
}

function show(): void {
    const rows = draw(graph, path, found, {
        zoom: (to) => {
            path = to;
            show();
        },
        point,
    });
    if (rows === 0) graph.append(element("p", { class: "nothing" }, "No samples."));
    const sum = wanted === "" ? 0 : foundIn(root, found);
    matches.value = wanted === "" ? "" : `${time(sum)}, ${share(sum)} matched`;
    point(null);
}

function again(): void {
    root = treeOf(profile, { grouping, wall, idle });
    path = [root];
    show();
}

function check(label: string, on: boolean, act: (on: boolean) => void): HTMLLabelElement {
    const box = element("input", { type: "checkbox" });
    box.checked = on;
    box.addEventListener("change", () => act(box.checked));
    return element("label", {}, box, label);
}

const select = element("select", { "aria-label": "Group by" });
for (const [value, label] of GROUPINGS) select.append(element("option", { value }, label));
select.addEventListener("change", () => {
    grouping = select.value as Grouping;
    again();
});
const search = element("input", { type: "search", placeholder: "Search", "aria-label": "Search" });
search.addEventListener("input", () => {
    wanted = search.value.trim().toLowerCase();
    show();
});
const whole = (): void => {
    path = [root];
    show();
};
addEventListener("keydown", (event) => {
    if (event.key === "Escape") whole();
});

const controls = element(
    "div",
    { class: "controls" },
    element("label", {}, "by ", select),
    check("off-CPU time", wall, (on) => {
        wall = on;
        again();
    }),
    check("idle sessions", idle, (on) => {
        idle = on;
        again();
    }),
    search,
    matches,
    button("Whole", "Zoom out to the whole graph (Esc)", whole),
);
document.getElementById("flames")?.append(controls, graph, status);
show();
