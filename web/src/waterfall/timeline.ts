// SPDX-License-Identifier: PostgreSQL
/**
 * The sessions of a trace over time: a track for each process with its transactions, messages, phases, activities and the
 * waits of its plan nodes. Times are seconds since the start of the trace.
 */
import type { ActivityClass } from "../look/palette";
import { classOf, isIdle, type TraceLine, type Message, type Trace } from "./model";

/** The levels of a track, from the outside to the inside. */
export const LEVELS = ["transaction", "message", "phase", "activity", "node"] as const;
export type Level = (typeof LEVELS)[number];

/** Something that lasts. */
export interface Bar {
    readonly start: number;
    end: number;
    readonly name: string;
    /** null if it is no activity. */
    readonly class: ActivityClass | null;
    readonly message: Message | null;
}

/** A wait, CPU time, or the client's time between two messages. */
export interface Stretch extends Bar {
    readonly class: ActivityClass;
    /** Whether the session has no message to work on. */
    readonly idle: boolean;
    readonly phase: string;
    readonly statement: string;
    /** The lock or the file of a wait. */
    readonly object: string;
    /** The running plan node of a wait. */
    readonly node: string;
}

export interface Track {
    readonly pid: number;
    /** Of a parallel worker. */
    readonly leader: number | null;
    readonly transaction: readonly Bar[];
    readonly message: readonly Bar[];
    readonly phase: readonly Bar[];
    readonly activity: readonly Stretch[];
    readonly node: readonly Bar[];
}

const IN_TRANSACTION = "idle in transaction";
const seconds = (ns: number): number => ns / 1e9;
/** Starts and lengths are rounded to nanoseconds. */
const ROUNDING = 2.5e-9;

/** The statement of each line of a message: lines before the first one belong to it. */
function statementsOf(message: Message): (line: TraceLine) => string {
    const texts = new Map<string, string>();
    for (const { what, queryid, query } of message.lines)
        if (what === "statement" && queryid !== undefined && query !== undefined) texts.set(queryid, query);
    const textOf = (line: TraceLine): string | undefined => {
        if (line.depth !== 0 || (line.what !== "statement" && line.what !== "begin")) return undefined;
        return line.query ?? texts.get(line.queryid ?? "");
    };
    let current = message.query;
    return (line) => (current = textOf(line) ?? current);
}

/** Names of the plan nodes that run: a nested statement has nodes of its own with the same numbers. */
class NodeNames {
    private depth = 0;
    private readonly names = new Map<string, string>();

    add(line: TraceLine): void {
        if (line.what === "begin") this.depth = (line.depth ?? 0) + 1;
        else if (line.what === "step") this.depth = line.depth ?? 0;
        else if (line.what === "node") this.names.set(`${this.depth} ${line.node}`, line.name ?? "");
    }

    of(node: number | undefined): string {
        if (node === undefined) return "";
        return `[${node}] ${this.names.get(`${this.depth} ${node}`) ?? ""}`.trim();
    }
}

function stretchOf(line: TraceLine, more: Pick<Stretch, "statement" | "node" | "message">): Stretch {
    const start = seconds(line.ns);
    return {
        start,
        end: start + seconds(line.length_ns ?? 0),
        name: line.what === "cpu" ? "cpu" : (line.activity ?? "wait"),
        class: classOf(line),
        idle: isIdle(line),
        phase: line.phase ?? "",
        object: line.lock ?? line.file ?? "",
        ...more,
    };
}

/** What a message's process did, and its parallel workers. */
function stretchesOf(message: Message, of: Message, statement: string | null): Stretch[] {
    const found: Stretch[] = [];
    const statementOf = statementsOf(message);
    const nodes = new NodeNames();
    for (const line of message.lines) {
        nodes.add(line);
        const text = statement ?? statementOf(line);
        if ((line.what !== "cpu" && line.what !== "wait") || isIdle(line)) continue;
        found.push(stretchOf(line, { statement: text, node: nodes.of(line.node), message: of }));
    }
    return found;
}

/** Neighbours of the same name as one bar. Names that are empty have none. */
function joined(stretches: readonly Stretch[], nameOf: (of: Stretch) => string): Bar[] {
    const bars: Bar[] = [];
    let last: Bar | null = null;
    for (const stretch of stretches) {
        const name = nameOf(stretch);
        if (last && last.name === name && last.message === stretch.message && stretch.start - last.end < ROUNDING) {
            last.end = stretch.end;
            continue;
        }
        last = name === "" ? null : { start: stretch.start, end: stretch.end, name, class: null, message: stretch.message };
        if (last) bars.push(last);
    }
    return bars;
}

/** Messages between which the session was idle in a transaction are one transaction. */
function transactionsOf(messages: readonly Bar[], gaps: readonly Stretch[]): Bar[] {
    const found: Bar[] = [];
    for (const gap of gaps) {
        if (gap.phase !== IN_TRANSACTION) continue;
        const next = firstAfter(messages, gap.start + ROUNDING);
        const [before, after] = [messages[next - 1], messages[next]];
        const last = found[found.length - 1];
        const start = before?.start ?? gap.start;
        const end = after?.end ?? gap.end;
        if (last && start <= last.end) last.end = end;
        else found.push({ start, end, name: "transaction", class: null, message: null });
    }
    return found;
}

/** The tracks of a trace: sessions by their first message, each above its parallel workers. */
export function tracksOf(trace: Trace, messages: readonly Message[]): Track[] {
    const leaders = new Map<number, number>();
    const gaps = new Map<number, Stretch[]>();
    const push = <T>(to: Map<number, T[]>, pid: number, more: readonly T[]): void => {
        const known = to.get(pid) ?? [];
        for (const one of more) known.push(one);
        to.set(pid, known);
    };
    for (const line of trace.lines) {
        if (line.what === "trace" && line.leader_pid !== undefined) leaders.set(line.pid, line.leader_pid);
        if ((line.what === "wait" || line.what === "cpu") && isIdle(line) && (line.length_ns ?? 0) > 0)
            push(gaps, line.pid, [stretchOf(line, { statement: "", node: "", message: null })]);
    }
    const bars = new Map<number, Bar[]>();
    const busy = new Map<number, Stretch[]>();
    const barOf = (of: Message, name: string, message: Message): Bar => ({
        start: seconds(of.start),
        end: seconds(of.end),
        name,
        class: null,
        message,
    });
    for (const message of messages) {
        const leader = leaders.get(message.pid);
        const plain = leader === undefined ? "work without a message" : `worker of ${leader}`;
        push(bars, message.pid, [barOf(message, message.query || message.kind || plain, message)]);
        push(busy, message.pid, stretchesOf(message, message, null));
        for (const worker of message.workers) {
            push(bars, worker.pid, [barOf(worker, `worker of ${message.pid}`, message)]);
            push(busy, worker.pid, stretchesOf(worker, message, message.query));
        }
    }
    const byStart = (a: Bar, b: Bar): number => a.start - b.start;
    const track = (pid: number): Track => {
        const message = (bars.get(pid) ?? []).sort(byStart);
        const work = (busy.get(pid) ?? []).sort(byStart);
        const idle = (gaps.get(pid) ?? []).sort(byStart);
        return {
            pid,
            leader: leaders.get(pid) ?? null,
            transaction: transactionsOf(message, idle),
            message,
            phase: joined(work, ({ phase }) => phase),
            activity: [...work, ...idle].sort(byStart),
            node: joined(work, ({ node }) => node),
        };
    };
    const pids = [...new Set([...bars.keys(), ...gaps.keys()])];
    const first = (pid: number): number => Math.min(bars.get(pid)?.[0]?.start ?? Infinity, gaps.get(pid)?.[0]?.start ?? Infinity);
    pids.sort((a, b) => first(a) - first(b));
    const own = pids.filter((pid) => !pids.includes(leaders.get(pid) ?? NaN));
    return own.flatMap((pid) => [pid, ...pids.filter((other) => leaders.get(other) === pid)]).map(track);
}

/** Where the bars that end after `time` begin, in a list by start whose bars do not overlap. */
export function firstAfter(bars: readonly Bar[], time: number): number {
    let [low, high] = [0, bars.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if ((bars[middle]?.end ?? 0) <= time) low = middle + 1;
        else high = middle;
    }
    return low;
}

/** Time of one thing in a range. */
export interface TimeSum {
    readonly name: string;
    readonly class: ActivityClass | null;
    seconds: number;
    count: number;
    longest: number;
}

/** Where the time of a range went. */
export interface TraceSums {
    /** Time in messages, of all processes. */
    readonly busy: number;
    /** Time between messages, and the part of it in transactions. */
    readonly idle: number;
    readonly inTransaction: number;
    readonly activities: readonly TimeSum[];
    readonly statements: readonly TimeSum[];
    readonly objects: readonly TimeSum[];
    readonly nodes: readonly TimeSum[];
}

export function sumsIn(tracks: readonly Track[], from: number, to: number): TraceSums {
    const lists = { activities: new Map(), statements: new Map(), objects: new Map(), nodes: new Map() } as Record<
        "activities" | "statements" | "objects" | "nodes",
        Map<string, TimeSum>
    >;
    let [busy, idle, inTransaction] = [0, 0, 0];
    const add = (list: Map<string, TimeSum>, name: string, kind: ActivityClass | null, length: number): void => {
        if (name === "") return;
        let sum = list.get(name);
        if (!sum) list.set(name, (sum = { name, class: kind, seconds: 0, count: 0, longest: 0 }));
        sum.seconds += length;
        sum.count++;
        sum.longest = Math.max(sum.longest, length);
    };
    for (const { activity } of tracks) {
        for (let i = firstAfter(activity, from); i < activity.length; i++) {
            const stretch = activity[i];
            if (!stretch || stretch.start >= to) break;
            const length = Math.min(stretch.end, to) - Math.max(stretch.start, from);
            if (stretch.idle) {
                idle += length;
                if (stretch.phase === IN_TRANSACTION) inTransaction += length;
                continue;
            }
            busy += length;
            add(lists.activities, stretch.name, stretch.class, length);
            add(lists.statements, stretch.statement || "(no statement)", null, length);
            add(lists.objects, stretch.object, stretch.class, length);
            add(lists.nodes, stretch.node, null, length);
        }
    }
    const sorted = (list: Map<string, TimeSum>): TimeSum[] => [...list.values()].sort((a, b) => b.seconds - a.seconds);
    const { activities, statements, objects, nodes } = lists;
    return {
        busy,
        idle,
        inTransaction,
        activities: sorted(activities),
        statements: sorted(statements),
        objects: sorted(objects),
        nodes: sorted(nodes),
    };
}

/** Ticks of an axis: round, with labels that count from `base`, so that three digits distinguish them. */
export function ticksOf(from: number, to: number, most: number): { base: number; digits: number; ticks: readonly number[] } {
    const length = to - from;
    const raw = length / Math.max(most, 1);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = ([1, 2, 5, 10].find((n) => n * power >= raw * (1 - 1e-9)) ?? 10) * power;
    const unit = 10 ** Math.ceil(Math.log10(length) - 1e-9);
    const base = Math.floor(from / unit + 1e-9) * unit;
    const ticks: number[] = [];
    for (let n = Math.ceil((from - base) / step - 1e-9); base + n * step <= to; n++) ticks.push(Number((n * step).toPrecision(12)));
    return { base, digits: Math.max(0, -Math.round(Math.log10(unit))), ticks };
}
