// SPDX-License-Identifier: PostgreSQL
/** The plans that a message executed, as trees: time, rows and waits of each node, with those of parallel workers. */
import { element } from "../dom";
import type { ActivityClass } from "../look/palette";
import { duration, whole } from "../units";
import { classOf, type TraceLine, type Message } from "./model";

interface NodeWait {
    readonly class: ActivityClass;
    ns: number;
    count: number;
}

export interface PlanNode {
    readonly number: number;
    readonly name: string;
    readonly depth: number;
    rows: number;
    calls: number;
    /** CPU time of the node alone, from samples, and its half-width; null without samples. */
    cpu: { ns: number; half: number } | null;
    /** By activity. */
    readonly waits: Map<string, NodeWait>;
}

/** A plan's nodes, each above the nodes that it calls. */
export type Plan = readonly PlanNode[];

/** The nodes of a plan while it is read, by number; `parents` has those that have one. */
interface PlanReading {
    readonly nodes: Map<number, PlanNode>;
    readonly parents: Map<number, number>;
}

/** The most levels of a plan; a damaged trace may have a circle. */
const DEEPEST = 50;

function read(lines: readonly TraceLine[], plans: PlanReading[], join: boolean): void {
    let depth = 0;
    const open = new Map<number, PlanReading>();
    for (const line of lines) {
        if (line.what === "begin") depth = (line.depth ?? 0) + 1;
        else if (line.what === "step") depth = line.depth ?? 0;
        if (line.node === undefined) continue;
        // A worker has the numbers of its leader's plan.
        let plan = join && depth <= 1 ? plans[0] : open.get(depth);
        if (line.what === "node" && !join && (plan === undefined || line.parent === undefined)) {
            plans.push((plan = { nodes: new Map(), parents: new Map() }));
            open.set(depth, plan);
        }
        if (plan === undefined) continue;
        let node = plan.nodes.get(line.node);
        if (node === undefined) {
            node = { number: line.node, name: line.name ?? "node", depth: 0, rows: 0, calls: 0, cpu: null, waits: new Map() };
            plan.nodes.set(line.node, node);
            if (line.parent !== undefined) plan.parents.set(line.node, line.parent);
        }
        if (line.what === "wait") {
            const name = line.activity ?? "wait";
            const wait = node.waits.get(name) ?? { class: classOf(line), ns: 0, count: 0 };
            wait.ns += line.length_ns ?? 0;
            wait.count++;
            node.waits.set(name, wait);
        } else if (line.what === "node end") {
            node.rows += line.rows ?? 0;
            node.calls += line.calls ?? 0;
            if (line.cpu_ns != null) {
                const half = line.cpu_half_width_ns ?? 0;
                node.cpu = { ns: (node.cpu?.ns ?? 0) + line.cpu_ns, half: Math.hypot(node.cpu?.half ?? 0, half) };
            }
        }
    }
}

function ordered({ nodes, parents }: PlanReading): Plan {
    const found: PlanNode[] = [];
    const visit = (node: PlanNode, depth: number): void => {
        found.push({ ...node, depth });
        if (depth >= DEEPEST) return;
        for (const [number, parent] of parents) {
            const child = nodes.get(number);
            if (parent === node.number && number !== parent && child) visit(child, depth + 1);
        }
    };
    for (const node of nodes.values()) {
        const parent = parents.get(node.number);
        if (parent === undefined || !nodes.has(parent)) visit(node, 0);
    }
    return found;
}

/** The plans of a message, in the order in which they started. */
export function plansOf(message: Message): Plan[] {
    const plans: PlanReading[] = [];
    read(message.lines, plans, false);
    for (const worker of message.workers) read(worker.lines, plans, true);
    return plans.map(ordered);
}

/** Time in waits, and of the CPU as far as it is known. */
export function timeOf({ waits, cpu }: PlanNode): number {
    return [...waits.values()].reduce((sum, { ns }) => sum + ns, cpu?.ns ?? 0);
}

function bar(node: PlanNode, most: number): HTMLElement {
    const parts = [...node.waits].map(([name, { class: kind, ns }]) => ({ name, kind, ns }));
    if (node.cpu) parts.unshift({ name: "cpu", kind: "cpu", ns: node.cpu.ns });
    parts.sort((a, b) => b.ns - a.ns);
    const pieces = parts.map(({ name, kind, ns }) => {
        const piece = element("i", { class: `of-${kind}`, title: `${name} ${duration(ns / 1e9)}` });
        piece.style.width = `${(100 * ns) / Math.max(most, 1)}%`;
        return piece;
    });
    return element("div", { class: "stack" }, ...pieces);
}

function rowOf(node: PlanNode, most: number): HTMLElement {
    const name = element("th", { scope: "row", title: node.name }, node.depth > 0 ? "\u2514 " : "", `${node.name}`);
    name.style.paddingLeft = `${0.25 + Math.max(node.depth - 1, 0) * 1.1}em`;
    const waits = [...node.waits].sort(([, a], [, b]) => b.ns - a.ns);
    const text = waits.map(([event, { ns, count }]) => `${event} ${duration(ns / 1e9)} (${whole(count)})`);
    if (node.cpu) text.push(`cpu ${duration(node.cpu.ns / 1e9)} ± ${duration(node.cpu.half / 1e9)}`);
    const number = (content: string): HTMLElement => element("td", { class: "num" }, content);
    return element(
        "tr",
        {},
        name,
        number(duration(timeOf(node) / 1e9)),
        number(whole(node.rows)),
        number(whole(node.calls)),
        element("td", { class: "pieces" }, bar(node, most)),
        element("td", { class: "waits" }, text.join(", ")),
    );
}

/** The plans of a message as tables; null if no node was traced. */
export function planTree(message: Message): HTMLElement | null {
    const plans = plansOf(message);
    if (plans.length === 0) return null;
    const head = (text: string, title: string, kind = "num"): HTMLElement => element("th", { scope: "col", class: kind, title }, text);
    const tables = plans.map((plan) => {
        const most = plan.reduce((longest, node) => Math.max(longest, timeOf(node)), 0);
        return element(
            "table",
            {},
            element(
                "thead",
                {},
                element(
                    "tr",
                    {},
                    head("Plan", "Each node is above the nodes that it calls", "text"),
                    head("time", "Waits and CPU time of the node alone"),
                    head("rows", "Rows returned, with those of parallel workers"),
                    head("calls", "Calls of the node: one for each row and one at the end"),
                    head("", "", "pieces"),
                    head("of it", "Waits with their number, and CPU time from samples", "text"),
                ),
            ),
            element("tbody", {}, ...plan.map((node) => rowOf(node, most))),
        );
    });
    return element("div", { class: "plan" }, ...tables);
}
