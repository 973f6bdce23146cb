// SPDX-License-Identifier: PostgreSQL
/**
 * The tree of a flame graph. CPU samples have stacks; session samples say how long each account took, on a CPU or not.
 * The excess of an account's session time over its CPU time is time off the CPU, or waiting for one.
 */
import type { Account, Profile } from "./model";

/** What is below the root: an account's phase and activity, statements, or directly functions. */
export type Grouping = "phase" | "statement" | "activity" | "function";

export interface Options {
    readonly grouping: Grouping;
    /** Include off-CPU time. */
    readonly wall: boolean;
    /** Include idle sessions. */
    readonly idle: boolean;
}

export interface Node {
    readonly name: string;
    /** The location of a function, or the kind of another node. */
    readonly from: string;
    /** The class of its account's activity. */
    readonly kind: string;
    readonly kernel: boolean;
    seconds: number;
    /** By name and class. */
    readonly children: Map<string, Node>;
}

const UNKNOWN = "unknown account";

export function treeOf(profile: Profile, options: Options): Node {
    const root = node("all", "", "other");
    const classes = new Map(profile.ledger.map((it) => [key(it), it]));
    const kindOf = (account: Account): string =>
        classes.get(key(account))?.class ?? (account.activity === "cpu" ? "cpu" : "other");
    const wanted = (account: Account): boolean => options.idle || !classes.get(key(account))?.idle;
    const each = { cpu: 1 / profile.hertz, session: profile.seconds / Math.max(profile.quality.instants, 1) };

    /** The frames above the stack. */
    const above = (account: Account, statement: number | null, server: boolean, process: string): Node[] => {
        if (!server) return [child(root, process, "process", "other")];
        const kind = account.phase === "" ? "other" : kindOf(account);
        const phase: [string, string] = [account.phase || UNKNOWN, "phase"];
        const activity: [string, string] = [account.activity || UNKNOWN, "activity"];
        const query: [string, string] = [queryOf(profile, statement), "statement"];
        const path = {
            phase: [phase, activity],
            activity: [activity, phase],
            statement: [query, phase, activity],
            function: [],
        }[options.grouping];
        let at = root;
        return path.map(([name, from]) => (at = child(at, name, from, kind)));
    };

    const cpu = new Map<string, number>();
    for (const stack of profile.stacks) {
        const process = profile.processes[stack.process];
        const server = process?.server ?? true;
        if (server && !wanted(stack)) continue;
        const seconds = stack.samples * each.cpu;
        const path = above(stack, stack.statement, server, process?.name ?? "");
        const kind = server ? kindOf(stack) : "other";
        let at = path[path.length - 1] ?? root;
        add([root, ...path], seconds);
        for (let n = stack.frames.length - 1; n >= 0; n--) {
            const symbol = profile.symbols[stack.frames[n] as number];
            if (symbol === undefined) continue;
            at = child(at, symbol.name, symbol.image, kind);
            at.seconds += seconds;
        }
        const place = `${key(stack)}\0${stack.statement}`;
        cpu.set(place, (cpu.get(place) ?? 0) + seconds);
    }
    if (!options.wall) return root;
    for (const session of profile.sessions) {
        if (!wanted(session)) continue;
        const on = cpu.get(`${key(session)}\0${session.statement}`) ?? 0;
        const off = session.samples * each.session - on;
        if (off <= 0) continue;
        const path = above(session, session.statement, true, "");
        const waits = session.activity !== "cpu";
        const at = path[path.length - 1] ?? root;
        // Without accounts above it, the wait must name itself.
        const name = waits
            ? options.grouping === "function"
                ? session.activity
                : "off CPU"
            : "waiting for a CPU, or blocked without a wait event";
        const leaf = child(at, name, "not on a CPU", kindOf(session));
        add([root, ...path, leaf], off);
    }
    return root;
}

function queryOf(profile: Profile, statement: number | null): string {
    if (statement === null) return "no statement, or unknown";
    const found = profile.statements[statement];
    return found?.query ?? `statement ${found?.query_id ?? "?"}`;
}

function key(account: Account): string {
    return `${account.phase}\0${account.activity}`;
}

function node(name: string, from: string, kind: string): Node {
    const kernel = from === "kernel" || from.startsWith("kernel [");
    return { name, from, kind, kernel, seconds: 0, children: new Map() };
}

function child(of: Node, name: string, from: string, kind: string): Node {
    // The activities of a statement share frames; frames of an activity are not shared.
    const shared = from === "phase" || from === "statement";
    const place = `${name}\0${from}\0${shared ? "" : kind}`;
    const known = of.children.get(place);
    if (known !== undefined) return known;
    const made = node(name, from, shared ? "plain" : kind);
    of.children.set(place, made);
    return made;
}

function add(path: readonly Node[], seconds: number): void {
    for (const it of path) it.seconds += seconds;
}
