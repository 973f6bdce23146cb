// SPDX-License-Identifier: PostgreSQL
/** A trace as written by the command (docs/reference-json.md), and the messages in its lines. */
import { CLASSES, type ActivityClass } from "../look/palette";

/** Maximum number of executions in a message whose parameters are shown. */
const MOST_PARAMETERS = 50;

/** A parameter of an execution: without a value, only its size is known, or nothing. */
export interface Parameter {
    readonly number: number;
    readonly value?: string | null;
    /** Length of the whole value, if it is not shown as a whole. */
    readonly bytes?: number;
}

/** A line; times are nanoseconds since the start of the trace. Only the fields that the page uses. */
export interface TraceLine {
    readonly pid: number;
    readonly what: string;
    readonly ns: number;
    readonly length_ns: number | null;
    readonly phase?: string;
    readonly activity?: string;
    readonly message?: string;
    readonly queryid?: string;
    readonly query?: string;
    readonly depth?: number;
    readonly rows?: number;
    readonly failed?: boolean;
    readonly operation?: string;
    readonly file?: string;
    readonly block?: number;
    readonly lock?: string;
    readonly mode?: string;
    readonly blockers?: readonly number[];
    readonly node?: number;
    readonly parent?: number;
    readonly name?: string;
    readonly calls?: number;
    readonly cpu_ns?: number | null;
    readonly cpu_half_width_ns?: number | null;
    readonly records?: number;
    readonly leader_pid?: number;
    readonly parameters?: readonly Parameter[];
    /** In a line `trace`: its start, in seconds since 1970. */
    readonly time?: number;
    readonly records_lost?: number;
    readonly equals_ledger?: boolean | null;
}

export interface Trace {
    readonly lines: readonly TraceLine[];
    /** Number of lines left out because there were too many. */
    readonly left_out: number;
}

/** A client message with all work done for it, or a stretch of work of a process without messages. */
export interface Message {
    readonly pid: number;
    readonly kind: string;
    /** The first statement's text. */
    readonly query: string;
    /** The parameters of each execution, if they were recorded: "$1 = '42', $2 = NULL". */
    readonly parameters: readonly string[];
    readonly start: number;
    readonly end: number;
    readonly lines: readonly TraceLine[];
    /** The work of its parallel workers. */
    readonly workers: readonly Message[];
}

/** The kind that an activity is drawn as. */
export function classOf(line: TraceLine): ActivityClass {
    if (line.what === "cpu") return "cpu";
    const [head = "", event = ""] = (line.activity ?? "").split(":");
    if (event === "") return line.activity === "cpu" ? "cpu" : "other";
    return CLASSES.find((one) => one === head.toLowerCase()) ?? "other";
}

/** Whether a process has no message to work on. */
export const isIdle = (line: TraceLine): boolean =>
    (line.phase === "idle" || line.phase === "idle in transaction") &&
    (line.what === "cpu" || (line.activity ?? "").startsWith("Client:"));

const endOf = (line: TraceLine): number => line.ns + (line.length_ns ?? 0);

/** The start of a trace, ns 0 in its lines, in seconds since 1970. */
export function beganAt(trace: Trace): number {
    const first = trace.lines.find(({ what, time }) => what === "trace" && time !== undefined);
    return first === undefined ? 0 : (first.time ?? 0) - first.ns / 1e9;
}

/** As in the server's log. */
function parametersOf(parameters: readonly Parameter[]): string {
    const text = ({ number, value, bytes }: Parameter): string => {
        if (value === null) return `$${number} = NULL`;
        if (value === undefined) return `$${number} = (not shown${bytes === undefined ? "" : `: ${bytes} bytes`})`;
        const [dots, size] = bytes === undefined ? ["", ""] : ["...", ` (${bytes} bytes)`];
        return `$${number} = '${value.replaceAll("'", "''")}${dots}'${size}`;
    };
    return parameters.map(text).join(", ");
}

/** All messages of a trace, by start. */
export function messagesOf(trace: Trace): Message[] {
    const open = new Map<number, TraceLine[]>();
    const leaders = new Map<number, number>();
    const found: Message[] = [];
    const close = (pid: number, kind: string, start: number | null, end: number | null): void => {
        const lines = open.get(pid) ?? [];
        open.set(pid, []);
        if (start === null && lines.every(isIdle)) return;
        const first = lines[0]?.ns ?? start ?? 0;
        const from = start ?? first;
        const to = end ?? lines.reduce((latest, line) => Math.max(latest, endOf(line)), from);
        const query = lines.find((line) => line.what === "statement")?.query ?? "";
        // A client's message at the beginning or end of the trace; a background process works without messages.
        const isCut = kind === "" && lines.some(({ phase }) => phase !== undefined && phase !== "background") && !leaders.has(pid);
        const cut = found.some((before) => before.pid === pid) ? "not ended" : "begun before the trace";
        const parameters = lines.flatMap((line) => (line.parameters ? [parametersOf(line.parameters)] : [])).slice(0, MOST_PARAMETERS);
        found.push({ pid, kind: isCut ? cut : kind, query, parameters, start: from, end: to, lines, workers: [] });
    };
    for (const line of trace.lines) {
        if (line.what === "trace") {
            if (line.leader_pid !== undefined) leaders.set(line.pid, line.leader_pid);
        } else if (line.what === "message") {
            close(line.pid, line.message ?? "", line.ns, line.ns + (line.length_ns ?? 0));
        } else if (line.what === "sums") {
            close(line.pid, "", null, null);
        } else if (isIdle(line) && (line.length_ns ?? 0) > 0 && line.what === "wait") {
            // The wait for the client comes between two messages.
            if (!(open.get(line.pid) ?? []).length) continue;
            close(line.pid, "", null, line.ns);
        } else {
            let lines = open.get(line.pid);
            if (lines === undefined) open.set(line.pid, (lines = []));
            lines.push(line);
        }
    }
    for (const pid of [...open.keys()]) close(pid, "", null, null);
    return withWorkers(found, leaders);
}

/** Workers belong to the message of their leader during which they started. */
function withWorkers(found: readonly Message[], leaders: ReadonlyMap<number, number>): Message[] {
    const own = found.filter(({ pid }) => !leaders.has(pid)).sort((a, b) => a.start - b.start);
    const workers = new Map<Message, Message[]>();
    const orphans: Message[] = [];
    for (const worker of found.filter(({ pid }) => leaders.has(pid))) {
        const leader = own.find(
            (message) => message.pid === leaders.get(worker.pid) && message.start <= worker.start && worker.start <= message.end,
        );
        if (leader === undefined) orphans.push(worker);
        else workers.set(leader, [...(workers.get(leader) ?? []), worker]);
    }
    const all = own.map((message) => ({ ...message, workers: workers.get(message) ?? [] }));
    return [...all, ...orphans].sort((a, b) => a.start - b.start);
}
