// SPDX-License-Identifier: PostgreSQL
// An artificial trace of a session and its parallel worker, whose figures tests can compute.
import { HOSTILE } from "./example.mjs";

export const MS = 1e6;
export const line = (pid, what, ms, length_ms, more = {}) => ({
    pid,
    what,
    ns: ms * MS,
    length_ns: length_ms === null ? null : length_ms * MS,
    ...more,
});
export const cpu = (pid, ms, length) => line(pid, "cpu", ms, length, { phase: "execute" });
export const read = (pid, ms, length, more = {}) =>
    line(pid, "wait", ms, length, { phase: "execute", activity: "IO:DataFileRead", operation: "read", file: "t", ...more });
export const idle = (pid, ms, length, phase = "idle") => line(pid, "wait", ms, length, { phase, activity: "Client:ClientRead" });

/** A transaction of two messages, the second with a worker, then a message alone; times in ms. */
const lines = [
    line(7, "trace", 0, null, { time: 1e9 }),
    line(7, "statement", 0, null, { query: "BEGIN", queryid: "1", depth: 0 }),
    cpu(7, 0, 1),
    line(7, "message", 0, 1, { message: "Query" }),
    idle(7, 1, 3, "idle in transaction"),
    line(7, "wait", 4, 1, { phase: "parse", activity: "LWLock:ProcArray" }),
    line(7, "statement", 5, null, { query: HOSTILE, queryid: "2", depth: 0 }),
    line(7, "begin", 5, null, { name: "run", depth: 0, queryid: "2" }),
    line(7, "node", 5, null, { node: 0, name: "Gather" }),
    line(7, "node", 5, null, { node: 1, parent: 0, name: "Parallel Seq Scan on t" }),
    cpu(7, 5, 2),
    read(7, 7, 4, { node: 1 }),
    read(7, 11, 1, { node: 1, file: "u" }),
    line(7, "node end", 14, null, { node: 1, rows: 10, calls: 11, cpu_ns: 1 * MS, cpu_half_width_ns: 0.3 * MS }),
    line(7, "node end", 14, null, { node: 0, rows: 30, calls: 31 }),
    cpu(7, 12, 2),
    line(7, "step", 5, 9, { name: "run", depth: 0, rows: 30 }),
    line(7, "message", 4, 10, { message: "Query" }),
    line(8, "trace", 6, null, { leader_pid: 7 }),
    line(8, "begin", 6, null, { name: "run", depth: 0, queryid: "2" }),
    line(8, "node", 6, null, { node: 1, name: "Parallel Seq Scan on t" }),
    read(8, 6, 5, { node: 1 }),
    line(8, "node end", 11, null, { node: 1, rows: 20, calls: 21, cpu_ns: 1 * MS, cpu_half_width_ns: 0.4 * MS }),
    line(8, "step", 6, 5, { name: "run", depth: 0, rows: 20 }),
    line(8, "sums", 0, null),
    idle(7, 14, 6),
    cpu(7, 20, 1),
    line(7, "message", 20, 1, { message: "Sync" }),
    line(7, "sums", 0, null),
];
export const trace = { left_out: 0, lines };
