// SPDX-License-Identifier: PostgreSQL
/** The rows of a message's waterfall: steps with their parts, repeated waits as one row, plan nodes. */
import type { ActivityClass } from "../look/palette";
import { duration, whole } from "../units";
import { classOf, type TraceLine, type Message } from "./model";

/** A stretch of time, in nanoseconds. */
export interface Span {
    readonly start: number;
    readonly length: number;
    readonly kind: ActivityClass;
}

export interface Row {
    readonly depth: number;
    readonly name: string;
    detail: string;
    readonly start: number;
    /** Its end; `null` if it is an instant. */
    length: number | null;
    /** Its parts; empty if it has none, and no class. */
    readonly spans: Span[];
    /** Time in it, if less than its length, as with repeated waits. */
    total: number | null;
    failed: boolean;
}

const seconds = (ns: number): string => duration(ns / 1e9);

/** Total length of spans that do not overlap. */
const sum = (spans: readonly Span[]): number => spans.reduce((total, { length }) => total + length, 0);

interface Step {
    readonly row: Row;
    readonly depth: number;
}

/** The object of a wait. */
function objectOf(line: TraceLine): string {
    const parts = [line.operation ?? ""];
    if (line.lock !== undefined) {
        parts.push(line.mode ?? "", line.lock);
        if (line.blockers?.length) parts.push(`blocked by ${line.blockers.join(", ")}`);
    } else if (line.file !== undefined) parts.push(line.file);
    return parts.filter(Boolean).join(" ");
}

class Waterfall {
    readonly rows: Row[] = [];
    private readonly steps: Step[] = [];
    /** The depth of the innermost step. */
    private readonly waits = new Map<string, Row>();
    private readonly nodes = new Map<string, { parent: number | undefined; name: string; spans: Span[] }>();

    constructor(private readonly depth: number) {}

    add(line: TraceLine): void {
        const at = this.depth + this.steps.length;
        switch (line.what) {
            case "statement":
                this.put({ depth: at, name: line.query ?? "statement", detail: "", line });
                break;
            case "begin": {
                const row = this.put({ depth: at, name: line.name ?? "step", detail: "", line });
                this.steps.push({ row, depth: line.depth ?? 0 });
                this.waits.clear();
                break;
            }
            case "step": {
                this.end(line);
                break;
            }
            case "cpu":
            case "wait": {
                const span = { start: line.ns, length: line.length_ns ?? 0, kind: classOf(line) };
                for (const { row } of this.steps) row.spans.push(span);
                if (line.what === "wait") this.wait(line, span, at);
                break;
            }
            case "commit":
                this.put({ depth: at, name: "commit", detail: line.name ?? "", line });
                break;
            case "node":
                this.nodes.set(this.nodeKey(line), { parent: line.parent, name: line.name ?? "", spans: [] });
                break;
            case "node end":
                this.node(line, at);
                break;
            case "lost":
                this.put({ depth: at, name: `${line.records} records lost`, detail: "", line, failed: true });
                break;
            case "reset":
                this.put({ depth: at, name: "all totals were reset", detail: "", line });
                break;
        }
    }

    private put(of: { depth: number; name: string; detail: string; line: TraceLine; failed?: boolean }): Row {
        const { depth, name, detail, line, failed = false } = of;
        const row: Row = { depth, name, detail, start: line.ns, length: line.length_ns, spans: [], total: null, failed };
        this.rows.push(row);
        return row;
    }

    private end(line: TraceLine): void {
        const depth = line.depth ?? 0;
        // An error ends several steps at once.
        while ((this.steps[this.steps.length - 1]?.depth ?? -1) > depth) this.steps.pop();
        const row = this.steps.pop()?.row;
        this.waits.clear();
        if (row === undefined) return;
        row.length = line.length_ns;
        row.failed = line.failed ?? false;
        const rows = (line.rows ?? 0) > 0 ? `${whole(line.rows ?? 0)} rows` : "";
        row.detail = [rows, row.failed ? "failed" : ""].filter(Boolean).join(", ");
    }

    /** Waits for the same event on the same object, within the same step, are one row. */
    private wait(line: TraceLine, span: Span, depth: number): void {
        const object = objectOf(line);
        const key = `${line.activity}\0${object}\0${line.node}`;
        if (line.node !== undefined) this.nodes.get(this.nodeKey(line))?.spans.push(span);
        const known = this.waits.get(key);
        if (known !== undefined) {
            known.spans.push(span);
            known.length = span.start + span.length - known.start;
            known.total = sum(known.spans);
            return;
        }
        const node = line.node === undefined ? "" : `node ${line.node}`;
        const detail = [object, node].filter(Boolean).join(", ");
        const row = this.put({ depth, name: line.activity ?? "wait", detail, line });
        row.spans.push(span);
        this.waits.set(key, row);
    }

    private nodeKey(line: TraceLine): string {
        return `${this.steps.length}\0${line.node}`;
    }

    private node(line: TraceLine, at: number): void {
        const known = this.nodes.get(this.nodeKey(line));
        const spans = known?.spans ?? [];
        let depth = at;
        let up = known?.parent;
        for (let turns = 0; up !== undefined && turns < 50; turns++) {
            depth++;
            up = this.nodes.get(`${this.steps.length}\0${up}`)?.parent;
        }
        const cpu =
            line.cpu_ns == null ? "" : `cpu ${seconds(line.cpu_ns)} ± ${seconds(line.cpu_half_width_ns ?? 0)}`;
        const detail = [
            `${whole(line.rows ?? 0)} rows`,
            `${whole(line.calls ?? 0)} calls`,
            spans.length > 0 ? `${whole(spans.length)} waits ${seconds(sum(spans))}` : "",
            cpu,
        ];
        const first = spans[0]?.start ?? line.ns;
        const last = spans[spans.length - 1];
        this.rows.push({
            depth,
            name: `[${line.node}] ${known?.name || line.name || "node"}`,
            detail: detail.filter(Boolean).join(", "),
            start: first,
            length: last ? last.start + last.length - first : null,
            spans,
            total: last ? sum(spans) : null,
            failed: false,
        });
    }
}

/** The rows of a message, in order, and of its workers. */
export function rowsOf(message: Message): Row[] {
    const own = new Waterfall(0);
    for (const line of message.lines) own.add(line);
    const rows = own.rows;
    for (const worker of message.workers) {
        const of = new Waterfall(1);
        for (const line of worker.lines) of.add(line);
        rows.push({
            depth: 0,
            name: `worker ${worker.pid}`,
            detail: "",
            start: worker.start,
            length: worker.end - worker.start,
            spans: spansOf(worker),
            total: null,
            failed: false,
        });
        rows.push(...of.rows);
    }
    return rows;
}

/** The parts of a message: its CPU time and its waits. */
export function spansOf(message: Message): Span[] {
    return message.lines
        .filter(({ what }) => what === "cpu" || what === "wait")
        .map((line) => ({ start: line.ns, length: line.length_ns ?? 0, kind: classOf(line) }));
}
