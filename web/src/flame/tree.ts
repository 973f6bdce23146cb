// SPDX-License-Identifier: PostgreSQL
/**
 * The tree of a flame graph. CPU samples have stacks; session samples say how long each account took, on a CPU or not.
 * The excess of an account's session time over its CPU time is time off the CPU, or waiting for one.
 */
import type { Account, Profile } from "./model";

/** What is below the root: an account's phase and activity, statements, or directly functions. */
export type Grouping = "phase" | "statement" | "activity" | "function";

/** The time that a tree divides: on CPUs by samples of their stacks, or off them by samples of the sessions. */
export type Part = "cpu" | "off";

export interface Options {
    readonly part: Part;
    readonly grouping: Grouping;
    /** Include idle sessions. */
    readonly idle: boolean;
    /** From the innermost frame to its callers. */
    readonly inverted: boolean;
}

interface Frame {
    readonly name: string;
    /** The location of a function, or the kind of another node. */
    readonly from: string;
    /** The class of its account's activity. */
    readonly kind: string;
    readonly kernel: boolean;
}

export interface Node extends Frame {
    seconds: number;
    samples: number;
    /** By name and class. */
    readonly children: Map<string, Node>;
}

/** A stack of frames, outermost first, with its time. */
interface Stack {
    readonly path: readonly Frame[];
    readonly seconds: number;
    readonly samples: number;
}

const UNKNOWN = "unknown account";
const RUN_QUEUE = "waiting for a CPU, or blocked without a wait event";

/** The time that one sample stands for. */
export const period = ({ hertz, seconds, quality }: Profile, part: Part): number =>
    part === "cpu" ? 1 / hertz : seconds / Math.max(quality.instants, 1);

/** Half of the 95 % interval of the time of this many independent samples. */
export const halfWidth = (samples: number, each: number): number => 1.96 * Math.sqrt(samples) * each;

export function treeOf(profile: Profile, options: Options): Node {
    const root = nodeOf(frame("all", "", "plain"));
    const lines = options.part === "cpu" ? onCpu(profile, options) : offCpu(profile, options);
    for (const { path, seconds, samples } of lines) {
        let at = root;
        for (const one of [root, ...(options.inverted ? [...path].reverse() : path)]) {
            if (one !== root) at = child(at, one);
            at.seconds += seconds;
            at.samples += samples;
        }
    }
    return root;
}

/** What the ledger says of an account. */
class Accounts {
    private readonly rows: ReadonlyMap<string, Profile["ledger"][number]>;

    constructor(
        private readonly profile: Profile,
        private readonly options: Options,
    ) {
        this.rows = new Map(profile.ledger.map((row) => [key(row), row]));
    }

    isWanted(account: Account): boolean {
        return this.options.idle || !this.rows.get(key(account))?.idle;
    }

    classOf(account: Account): string {
        if (account.phase === "") return "other";
        return this.rows.get(key(account))?.class ?? (account.activity === "cpu" ? "cpu" : "other");
    }

    /** The frames of an account and its statement, above those of functions. */
    framesOf(account: Account, statement: number | null): Frame[] {
        const phase = frame(account.phase || UNKNOWN, "phase", "plain");
        const activity = frame(account.activity || UNKNOWN, "activity", this.classOf(account));
        return {
            phase: [phase, activity],
            activity: [activity, phase],
            statement: [frame(queryOf(this.profile, statement), "statement", "plain"), phase, activity],
            function: [],
        }[this.options.grouping];
    }
}

function onCpu(profile: Profile, options: Options): Stack[] {
    const accounts = new Accounts(profile, options);
    const each = period(profile, "cpu");
    return profile.stacks.flatMap((stack) => {
        const process = profile.processes[stack.process];
        const server = process?.server ?? true;
        if (server && !accounts.isWanted(stack)) return [];
        const kind = server ? accounts.classOf(stack) : "other";
        const above = server
            ? accounts.framesOf(stack, stack.statement)
            : [frame(process?.name ?? "", "process", "other")];
        const functions = [...stack.frames].reverse().flatMap((index) => {
            const symbol = profile.symbols[index];
            return symbol === undefined ? [] : [frame(symbol.name, symbol.image, kind)];
        });
        return [{ path: [...above, ...functions], seconds: stack.samples * each, samples: stack.samples }];
    });
}

function offCpu(profile: Profile, options: Options): Stack[] {
    const accounts = new Accounts(profile, options);
    const place = (one: Account & { statement: number | null }): string => `${key(one)}\0${one.statement}`;
    const cpu = new Map<string, number>();
    for (const stack of profile.stacks) {
        if (!(profile.processes[stack.process]?.server ?? true)) continue;
        const seconds = stack.samples * period(profile, "cpu");
        cpu.set(place(stack), (cpu.get(place(stack)) ?? 0) + seconds);
    }
    const each = period(profile, "off");
    return profile.sessions.flatMap((session) => {
        const seconds = session.samples * each - (cpu.get(place(session)) ?? 0);
        if (seconds <= 0 || !accounts.isWanted(session)) return [];
        const path = accounts.framesOf(session, session.statement);
        // The activity is the wait; time of the account "cpu" off a CPU needs a name of its own.
        if (session.activity === "cpu") path.push(frame(RUN_QUEUE, "not on a CPU", accounts.classOf(session)));
        else if (options.grouping === "function")
            path.push(frame(session.activity || UNKNOWN, "activity", accounts.classOf(session)));
        return [{ path, seconds, samples: Math.round(seconds / each) }];
    });
}

function queryOf(profile: Profile, statement: number | null): string {
    if (statement === null) return "no statement, or unknown";
    const found = profile.statements[statement];
    return found?.query ?? `statement ${found?.query_id ?? "?"}`;
}

function key(account: Account): string {
    return `${account.phase}\0${account.activity}`;
}

function frame(name: string, from: string, kind: string): Frame {
    const kernel = from === "kernel" || from.startsWith("kernel [");
    return { name, from, kind, kernel };
}

const nodeOf = (one: Frame): Node => ({ ...one, seconds: 0, samples: 0, children: new Map() });

/** The activities of a statement share a phase; frames of an activity are not shared. */
function child(of: Node, one: Frame): Node {
    const place = `${one.name}\0${one.from}\0${one.kind}`;
    const known = of.children.get(place);
    if (known !== undefined) return known;
    const made = nodeOf(one);
    of.children.set(place, made);
    return made;
}

/** Time by class and whether it is the kernel's, of the innermost frames. */
export function timeByColour(root: Node, inverted: boolean): Map<string, number> {
    const sums = new Map<string, number>();
    const add = (node: Node, seconds: number): void => {
        const colour = colourOf(node);
        if (colour !== "plain" && seconds > 1e-12) sums.set(colour, (sums.get(colour) ?? 0) + seconds);
    };
    const walk = (node: Node): void => {
        const below = [...node.children.values()];
        if (node !== root) add(node, node.seconds - below.reduce((sum, { seconds }) => sum + seconds, 0));
        below.forEach(walk);
    };
    if (inverted) for (const node of root.children.values()) add(node, node.seconds);
    else walk(root);
    return sums;
}

/** A frame's colour: its class, or that of the kernel's code in it. */
export const colourOf = ({ kind, kernel }: Frame): string => (kernel && kind !== "plain" ? `${kind}-2` : kind);
