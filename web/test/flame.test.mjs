// SPDX-License-Identifier: PostgreSQL
// Tests the tree of a flame graph exactly.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { treeOf } = await load("flame/tree.ts");

/** CPU samples at 10 Hz, so 0.1 s each, with one of the first statement; and 8 instants of sessions in 4 seconds. */
const profile = {
    seconds: 4,
    hertz: 10,
    quality: { instants: 8 },
    ledger: [
        { phase: "execute", activity: "cpu", class: "cpu", idle: false, seconds: 1 },
        { phase: "execute", activity: "IO:DataFileRead", class: "io", idle: false, seconds: 1 },
        { phase: "idle", activity: "Client:ClientRead", class: "client", idle: true, seconds: 1 },
    ],
    statements: [
        { query_id: 7, query: "select 1" },
        { query_id: 8, query: null },
    ],
    processes: [
        { name: "postgres", server: true },
        { name: "pgbench", server: false },
    ],
    symbols: [
        { name: "main", image: "postgres" },
        { name: "read", image: "kernel" },
        { name: "ext4", image: "kernel [ext4]" },
    ],
    stacks: [
        // Innermost first; frames without a symbol are omitted.
        { process: 0, statement: 0, phase: "execute", activity: "cpu", frames: [1, 9, 0], samples: 1 },
        { process: 0, statement: 1, phase: "execute", activity: "cpu", frames: [0], samples: 2 },
        { process: 0, statement: null, phase: "", activity: "", frames: [2], samples: 4 },
        { process: 0, statement: null, phase: "idle", activity: "Client:ClientRead", frames: [0], samples: 8 },
        { process: 1, statement: null, phase: "", activity: "", frames: [0], samples: 16 },
    ],
    sessions: [
        { statement: 0, phase: "execute", activity: "cpu", samples: 2 },
        // On a CPU all the time.
        { statement: 1, phase: "execute", activity: "cpu", samples: 0.4 },
        { statement: 0, phase: "execute", activity: "IO:DataFileRead", samples: 1 },
        { statement: null, phase: "idle", activity: "Client:ClientRead", samples: 3 },
    ],
};

/** All nodes: path, origin, class, seconds. */
function nodes(options) {
    const found = {};
    const walk = (node, path) => {
        const name = [...path, node.name].join(" / ");
        found[name] = [node.from, node.kind, Number(node.seconds.toFixed(6))];
        for (const below of node.children.values()) walk(below, [...path, node.name]);
    };
    const tree = treeOf(profile, options);
    for (const below of tree.children.values()) walk(below, []);
    return [Number(tree.seconds.toFixed(6)), found];
}

test("time on CPUs is that of the samples, below their accounts", () => {
    assert.deepEqual(nodes({ grouping: "phase", wall: false, idle: false }), [
        2.3,
        {
            execute: ["phase", "plain", 0.3],
            "execute / cpu": ["activity", "cpu", 0.3],
            "execute / cpu / main": ["postgres", "cpu", 0.3],
            "execute / cpu / main / read": ["kernel", "cpu", 0.1],
            "unknown account": ["phase", "plain", 0.4],
            "unknown account / unknown account": ["activity", "other", 0.4],
            "unknown account / unknown account / ext4": ["kernel [ext4]", "other", 0.4],
            pgbench: ["process", "other", 1.6],
            "pgbench / main": ["postgres", "other", 1.6],
        },
    ]);
});

test("off-CPU time is that of the sessions without that of the samples", () => {
    const waiting = "waiting for a CPU, or blocked without a wait event";
    assert.deepEqual(nodes({ grouping: "statement", wall: true, idle: false }), [
        3.7,
        {
            "select 1": ["statement", "plain", 1.5],
            "select 1 / execute": ["phase", "plain", 1.5],
            "select 1 / execute / cpu": ["activity", "cpu", 1],
            "select 1 / execute / cpu / main": ["postgres", "cpu", 0.1],
            "select 1 / execute / cpu / main / read": ["kernel", "cpu", 0.1],
            [`select 1 / execute / cpu / ${waiting}`]: ["not on a CPU", "cpu", 0.9],
            "select 1 / execute / IO:DataFileRead": ["activity", "io", 0.5],
            "select 1 / execute / IO:DataFileRead / off CPU": ["not on a CPU", "io", 0.5],
            "statement 8": ["statement", "plain", 0.2],
            "statement 8 / execute": ["phase", "plain", 0.2],
            "statement 8 / execute / cpu": ["activity", "cpu", 0.2],
            "statement 8 / execute / cpu / main": ["postgres", "cpu", 0.2],
            "no statement, or unknown": ["statement", "plain", 0.4],
            "no statement, or unknown / unknown account": ["phase", "plain", 0.4],
            "no statement, or unknown / unknown account / unknown account": ["activity", "other", 0.4],
            "no statement, or unknown / unknown account / unknown account / ext4": ["kernel [ext4]", "other", 0.4],
            pgbench: ["process", "other", 1.6],
            "pgbench / main": ["postgres", "other", 1.6],
        },
    ]);
});

test("idle sessions are added on request, and a wait without accounts above it has its event's name", () => {
    const [all, found] = nodes({ grouping: "function", wall: true, idle: true });
    assert.equal(all, 2.3 + 0.8 + 0.9 + 0.5 + 0.7);
    assert.deepEqual(found["IO:DataFileRead"], ["not on a CPU", "io", 0.5]);
    assert.deepEqual(found["Client:ClientRead"], ["not on a CPU", "client", 0.7]);
    const [, byActivity] = nodes({ grouping: "activity", wall: true, idle: true });
    assert.deepEqual(byActivity["IO:DataFileRead / execute"], ["phase", "plain", 0.5]);
});

test("functions of the kernel are marked", () => {
    const below = treeOf(profile, { grouping: "function", wall: false, idle: false }).children;
    const kernel = [...below.values()].map(({ name, kernel }) => [name, kernel]);
    assert.deepEqual(kernel.filter(([name]) => name === "ext4"), [["ext4", true]]);
    assert.deepEqual(kernel.filter(([name]) => name === "main"), [["main", false]]);
});

test("a profile without instants, and a process that is not listed, have their samples", () => {
    const tree = treeOf(
        { ...profile, quality: { instants: 0 }, processes: [], stacks: profile.stacks.slice(0, 1), sessions: [{ ...profile.sessions[2], samples: 1 }] },
        { grouping: "phase", wall: true, idle: false },
    );
    assert.deepEqual([...tree.children.values()].map(({ name, seconds }) => [name, seconds]), [["execute", 0.1 + 4]]);
});
