// SPDX-License-Identifier: PostgreSQL
// An artificial profile, and the difference of two, whose figures tests can compute.

/** CPU samples at 10 Hz, so 0.1 s each, with one of the first statement; and 8 instants of sessions in 4 seconds. */
export const profile = {
    seconds: 4,
    hertz: 10,
    scope: "server",
    kernel: true,
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

/** A frame of two profiles; 100 samples per second and unit on either side. */
const differs = (name, samples, beyond_chance, children = [], from = "postgres") => ({
    name,
    from,
    samples,
    ratio: samples.includes(0) ? null : samples[1] / samples[0],
    factor: samples.includes(0) ? null : 1.25,
    beyond_chance,
    children,
});
const treeOfDifference = (grouping, inverted, children) => ({
    grouping,
    inverted,
    root: differs("all", [1000, 1500], true, children, ""),
});
export const difference = {
    format: "pgtally profile diff",
    servers: ["PostgreSQL 15.20", "PostgreSQL 17.1"],
    per: "transaction",
    units: [100, 100],
    amounts: [10_000, 10_000],
    false_discovery_rate: 0.01,
    trees: [false, true].flatMap((inverted) => [
        treeOfDifference("phase", inverted, [
            differs("slower", [200, 500], true),
            differs("alittle", [400, 480], true),
            differs("same", [100, 130], false),
            differs("faster", [300, 200], true),
            differs("gone", [100, 0], true, [], "kernel"),
            differs("new", [0, 190], true),
        ]),
        treeOfDifference("statement", inverted, [differs("select 1", [1000, 1500], true, [], "statement")]),
        treeOfDifference("function", inverted, [differs(inverted ? "leaf" : "main", [1000, 1500], true)]),
    ]),
};
