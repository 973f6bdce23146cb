// SPDX-License-Identifier: PostgreSQL
// An artificial report in the format of docs/reference-json.md, whose figures tests can compute.

/** The start of the example: 2026-11-21 10:00:00 UTC. */
export const BEGIN = Date.UTC(2026, 10, 21, 10) / 1000;

/** A statement that must be shown as text, and never run as a script. */
export const HOSTILE = `SELECT '</script><script>window.ran = 1</script><img src=x onerror="window.ran = 2">'`;

const ACTIVITIES = [
    ["cpu", "cpu", 0],
    ["IO:WALSync", "io", 0],
    ["LWLock:WALWrite", "lwlock", 0],
    ["Lock:transactionid", "lock", 0],
    ["IO:DataFileRead", "io", 1],
    ["Client:ClientRead in a transaction", "client", 0],
    ["LWLock:ProcArray", "lwlock", 1],
    ["LWLock:BufferContent", "lwlock", 2],
    ["IPC:ParallelFinish", "ipc", 0],
    ["IO:DataFileWrite", "io", 2],
    ["Lock:tuple", "lock", 1],
    ["IO:WALWrite", "io", 3],
    ["Timeout:VacuumDelay", "other", 0],
    ["other", "other", 1],
];

/** The value of series `series` at point `point`: the same in every run, and never the same twice in a row. */
export const valueAt = (series, point) =>
    Number((3 / (series + 1) + 0.5 * Math.sin(point / 7 + series) ** 2).toFixed(4));

/** The key of a statement. */
export const statementKey = (i) => `${i - 20}.16384.10`;

/** The calls of statement `i` in point `point`; none in every tenth. */
export const callsAt = (i, point) => (point % 10 === 9 ? 0 : 100 - i + 30 * (point % 7));

/** Statements in points of ten: half a millisecond per call on the CPU, and a lock from three quarters on; a new plan at that time. */
function histories(axis, statements) {
    const points = Array.from({ length: Math.ceil(axis.time.length / 10) }, (_, i) => i * 10);
    const time = points.map((i) => axis.time[i]);
    const seconds = points.map((i) => axis.seconds.slice(i, i + 10).reduce((a, b) => a + b, 0));
    const late = Math.floor(points.length * 0.75);
    const rows = Array.from({ length: Math.min(statements, 10) }, (_, i) => {
        const calls = seconds.map((measured, point) => (measured > 0 ? callsAt(i, point) : 0));
        const lock = calls.map((n, point) => (point < late ? 0 : n * 0.001));
        const cpu = calls.map((n) => n * 0.0005);
        const plan = (id, from, to) => ({
            plan: String(id),
            first: time[from],
            last: time[to - 1],
            noted: calls.map((n, point) => (n > 0 && point >= from && point < to ? 1 : 0)),
        });
        return {
            statement: statementKey(i),
            calls,
            exec_seconds: calls.map((n, point) => cpu[point] + lock[point]),
            p99_seconds: calls.map((n, point) => (n > 0 ? (point < late ? 0.001 : 0.004) : null)),
            classes: [
                { class: "cpu", seconds: cpu },
                { class: "lock", seconds: lock },
            ],
            ...(i === 0 ? { plans: [plan(71, 0, late), plan(72, late, points.length)] } : {}),
        };
    });
    return { axis: { time, seconds }, statements: rows };
}

const column = (key, title, unit, help = null) => ({ key, title, unit, help });

/** Statements and sessions over time, in points of ten; the last statement has time only at the end. */
function rankings(axis) {
    const points = Array.from({ length: Math.ceil(axis.time.length / 10) }, (_, i) => i * 10);
    const coarse = {
        time: points.map((i) => axis.time[i]),
        seconds: points.map((i) => axis.seconds.slice(i, i + 10).reduce((a, b) => a + b, 0)),
    };
    const over = (on, each) => on.time.map((time, i) => on.seconds[i] * each(i / on.time.length, time));
    const row = (on, name, kind, each) => ({ name, class: kind, seconds: over(on, each) });
    const rows = (on, names, factor) =>
        names.map((name, n) => row(on, name, n % 2 ? "io" : "cpu", (part) => (factor * (1 + part)) / (n + 1)));
    const statements = Array.from({ length: 12 }, (_, n) => (n === 2 ? HOSTILE : `UPDATE t${n} SET v = $1`));
    return [
        {
            id: "statements",
            section: "statements",
            title: "Statements",
            axis: coarse,
            rows: [
                ...rows(coarse, statements, 0.5).map((one, n) => ({ ...one, statement: statementKey(n) })),
                row(coarse, "SELECT late FROM t", "lock", (part) => (part < 0.75 ? 0 : 1.25)),
            ],
        },
        {
            id: "sessions",
            section: "waits",
            title: "Sessions",
            axis,
            rows: rows(axis, ["shop (11, app@shop)", "shop (12, app@shop)", "2 others"], 0.4).map((one) => ({ ...one, class: null })),
        },
    ];
}

/** `points` of `step` seconds, a gap in the middle, and `statements`. */
export function example({ points = 600, step = 1, statements = 40, fine = points } = {}) {
    const end = BEGIN + points * step;
    const gap = {
        from: BEGIN + Math.floor(points * 0.6) * step,
        to: BEGIN + Math.floor(points * 0.65) * step,
        reason: "the server was down",
    };
    const axis = (count) => {
        const each = (points * step) / count;
        const time = Array.from({ length: count }, (_, i) => BEGIN + i * each);
        return { time, seconds: time.map((t) => (t >= gap.from && t < gap.to ? 0 : each)) };
    };
    const axes = { main: axis(points), fine: axis(fine) };
    const values = (on, series) => on.time.map((_, i) => (on.seconds[i] ? valueAt(series, i) : null));
    const lines = (on, names, factor) =>
        names.map((name, s) => ({
            name,
            class: null,
            shade: 0,
            values: values(on, s).map((v) => v && v * factor),
        }));
    const mark = (part, kind, text, until = null) => ({
        time: BEGIN + part * points * step,
        until: until && BEGIN + until * points * step,
        kind,
        text,
    });
    const bounds = Array.from({ length: 61 }, (_, i) => 1e-5 * 2 ** (i / 4));
    const columns = Math.max(60, Math.floor(points / 10));
    const heat = Array.from({ length: columns }, (_, i) => {
        const t = BEGIN + (i * points * step) / columns;
        if (t >= gap.from && t < gap.to) return null;
        const first = 6 + Math.round(5 * Math.sin(i / 9) ** 2);
        return [
            first,
            ...Array.from(
                { length: 24 },
                (_, k) => Math.round(4000 * Math.exp(-((k - 9) ** 2) / 22)) + (k === 23 ? 3 : 0),
            ),
        ];
    });
    const tables = [waitTable(axes.main), statementTable(statements), checkpointTable(points * step)];
    return {
        format: "pgtally report",
        version: 1,
        title: "PostgreSQL 15.20 on db1, 2026-11-21 from 10:00:00 UTC",
        made: { time: end, by: "pgtally 0.3.0" },
        live: null,
        load: [],
        measured: {
            recording: "/srv/rec",
            host: "db1",
            from: BEGIN,
            to: end,
            interval_seconds: step,
            detail_seconds: 10,
            facts: [
                { name: "Server", text: "PostgreSQL 15.20, /var/lib/postgresql/15/main, port 5432" },
                { name: "Level", text: "waits" },
                { name: "Exactness", text: "exact: nothing is missing inside the measured time" },
                { name: "Gaps", text: "one: the server was down" },
            ],
        },
        verdict: { weight: "warning", text: "3 sessions wait for session 4304. 1 more problem is below." },
        findings: [
            {
                section: "waits",
                weight: "warning",
                text: "3 sessions wait for session 4304 (forgetful, app@shop), idle in transaction for 12 s.",
                remedy: {
                    text: "If its client has abandoned it, end it: SELECT pg_terminate_backend(4304).",
                    sql: ["SELECT pg_terminate_backend(4304);"],
                    confidence: "certain",
                },
                details: ["It holds a lock on table orders.", "Its last statement: UPDATE orders SET v = $1"],
                statement: statementKey(1),
            },
            { section: "waits", weight: "note", text: "The largest wait is IO:WALSync." },
            { section: "activity", weight: "warning", text: "Lock:transactionid changed the most over time." },
        ],
        lead: "activity",
        rankings: rankings(axes.main),
        histories: histories(axes.main, statements),
        axes,
        charts: [
            {
                id: "activity",
                section: "activity",
                title: "Average active sessions by activity",
                note: null,
                kind: "stack",
                axis: "main",
                unit: "sessions",
                reference: { name: "cores", value: 8 },
                series: ACTIVITIES.map(([name, kind, shade], s) => ({
                    name,
                    class: kind,
                    shade,
                    values: values(axes.main, s),
                })),
            },
            {
                id: "throughput",
                section: "throughput",
                title: "Throughput",
                note: null,
                kind: "lines",
                axis: "fine",
                unit: "per_second",
                reference: null,
                series: lines(axes.fine, ["commands", "commits"], 1000),
            },
            {
                id: "read_handle",
                section: "throughput",
                title: "Reading against handling",
                note: null,
                kind: "lines",
                axis: "main",
                unit: "sessions",
                reference: null,
                series: [
                    { name: "read", class: "client", shade: 0, values: values(axes.main, 2) },
                    { name: "handle", class: "cpu", shade: 0, values: values(axes.main, 0) },
                ],
            },
            {
                id: "commit",
                section: "throughput",
                title: "Commit and sync, mean",
                note: null,
                kind: "lines",
                axis: "main",
                unit: "seconds",
                reference: null,
                series: lines(axes.main, ["commit", "sync"], 1e-3),
            },
            {
                id: "files",
                section: "throughput",
                title: "Bytes read and written",
                note: null,
                kind: "lines",
                axis: "main",
                unit: "bytes_per_second",
                reference: null,
                series: lines(axes.main, ["read", "written"], 2 ** 20),
            },
        ],
        heatmaps: [
            {
                id: "latency",
                section: "latency",
                title: "How long commands took",
                note: null,
                unit: "seconds",
                time: heat.map((_, i) => BEGIN + (i * points * step) / columns),
                step_seconds: (points * step) / columns,
                bounds,
                columns: heat,
            },
        ],
        marks: [
            mark(0.1, "checkpoint", "checkpoint: 58 s, 8183 buffers", 0.2),
            mark(0.42, "checkpoint", "checkpoint: 60 s, 8373 buffers", 0.52),
            mark(0.197, "slow", "sync of base/16384/16397 took 0.81 s"),
            mark(0.65, "server start", "the server started"),
            mark(0.75, "plan", "new plan of UPDATE t0: Seq Scan on t0, before Index Scan on t0 using t0_pkey"),
            mark(0.8, "level", "locks"),
        ],
        gaps: [gap],
        sections: [
            {
                id: "activity",
                title: "Activity over time",
                note: null,
                charts: ["activity"],
                heatmaps: [],
                tables: [],
                texts: [],
            },
            {
                id: "waits",
                title: "Waits",
                note: null,
                charts: [],
                heatmaps: [],
                tables: ["waits"],
                texts: [],
            },
            {
                id: "statements",
                title: "Statements",
                note: null,
                charts: [],
                heatmaps: [],
                tables: ["statements"],
                texts: [],
            },
            {
                id: "latency",
                title: "Latency",
                note: null,
                charts: [],
                heatmaps: ["latency"],
                tables: [],
                texts: [],
            },
            {
                id: "throughput",
                title: "Throughput",
                note: null,
                charts: ["throughput", "read_handle", "commit", "files"],
                heatmaps: [],
                tables: [],
                texts: [],
            },
            {
                id: "recording",
                title: "The recording",
                note: null,
                charts: [],
                heatmaps: [],
                tables: ["checkpoints"],
                texts: ["run"],
            },
        ],
        tables,
        parts: parts(axes.main, tables),
        texts: [
            {
                id: "run",
                title: "Output of the command",
                note: null,
                text: "tps = 4199.2 (without initial connection time)\n",
            },
        ],
    };
}

/** The tables over time: every sum is spread over the points in the same way, so that shares and means stay. */
function parts({ time, seconds }, tables) {
    const each = Math.ceil(time.length / 720);
    const first = time.flatMap((_, i) => (i % each === 0 ? [i] : []));
    const axis = {
        time: first.map((i) => time[i]),
        seconds: first.map((i) => seconds.slice(i, i + each).reduce((a, b) => a + b, 0)),
    };
    const weights = axis.seconds.map((s, i) => s * (1 + (i % 5)));
    const all = weights.reduce((a, b) => a + b);
    const spread = (value) => weights.map((weight) => Number(((value * weight) / all).toPrecision(6)));
    const sums = ["seconds", "calls", "count"];
    const of = (table) => {
        const known = table.columns.flatMap(({ key }, at) => (sums.includes(key) ? [at] : []));
        const by = table.columns.some(({ key }) => key === "calls") ? "calls" : "count";
        return {
            columns: table.columns.map(({ key, unit }) => {
                if (unit === "text" || unit === "id") return [];
                if (sums.includes(key)) return [key];
                return { active: ["seconds", "measured"], mean_seconds: ["seconds", by] }[key] ?? null;
            }),
            sums: known.map((at) => table.columns[at].key),
            rows: table.rows.slice(0, 200).map((row) => known.map((at) => spread(row[at]))),
        };
    };
    return { axis, totals: {}, tables: Object.fromEntries(tables.slice(0, 2).map((table) => [table.id, of(table)])) };
}

function waitTable(main) {
    const covered = main.seconds.reduce((sum, s) => sum + s, 0);
    const rows = ACTIVITIES.slice(1).map(([name, kind], i) => {
        const seconds = main.seconds.reduce((sum, s, p) => sum + s * valueAt(i + 1, p), 0);
        // One row has no percentiles, because cpu has none.
        return {
            kind,
            row: [
                name,
                seconds,
                seconds / covered / 8,
                Math.round(seconds * 100),
                seconds / covered,
                i === 3 ? null : 0.01 / (i + 1),
            ],
        };
    });
    rows.sort((a, b) => b.row[1] - a.row[1]);
    return {
        id: "waits",
        title: "Waits, over all phases",
        note: "Of busy time.",
        sort: "seconds",
        columns: [
            column("activity", "Activity", "text"),
            column("seconds", "Time", "seconds"),
            column("share", "of busy time", "share"),
            column("count", "Count", "count"),
            column("active", "Sessions", "sessions"),
            column("p99_seconds", "p99", "seconds", "99 of 100 took no longer"),
        ],
        rows: rows.map(({ row }) => row),
        classes: rows.map(({ kind }) => kind),
        details: null,
    };
}

function statementTable(count) {
    const texts = Array.from({ length: count }, (_, i) =>
        i === 2
            ? HOSTILE
            : i === 3
              ? `SELECT "a", 'two\nlines', $1`
              : `UPDATE t${i} SET balance = balance + $1 WHERE id = $2 AND branch = $3`,
    );
    const parts = ["cpu", "io", "lwlock", "lock", "client", "ipc", "other"];
    const rows = texts.map((text, i) => {
        const seconds = 900 / (i + 1);
        return [
            text,
            "shop",
            "app",
            1000 * (count - i),
            seconds,
            1 / (i + 2),
            seconds / (1000 * (count - i)),
            0.4,
            0.2,
            0.1,
            0.1,
            0.1,
            0.05,
            0.05,
            String(-4611686018427387904n + BigInt(i)),
        ];
    });
    return {
        id: "statements",
        title: "Statements",
        note: null,
        sort: "seconds",
        columns: [
            column("query", "Statement", "text"),
            column("database", "Database", "text"),
            column("user", "User", "text"),
            column("calls", "Calls", "count"),
            column("seconds", "Time", "seconds"),
            column("share", "Share", "share"),
            column("mean_seconds", "Mean", "seconds"),
            ...parts.map((part) => column(`${part}_share`, part, "share")),
            column("queryid", "Query ID", "id"),
        ],
        rows,
        classes: rows.map(() => "cpu"),
        details: rows.map(([text, , , calls, seconds], i) => ({
            text,
            cut: false,
            example: { commands: `PREPARE example AS\n${text};` },
            statement: statementKey(i),
            histogram: Array.from({ length: 32 }, (_, k) => [
                1e-4 * 2 ** (k / 4 + (i % 5)),
                1e-4 * 2 ** ((k + 1) / 4 + (i % 5)),
                Math.round(calls * Math.exp(-((k - 15) ** 2) / 20)) + 1,
            ]),
            activities: [
                ["execute", "cpu", seconds * 0.4, calls * 3],
                ["commit", "IO:WALSync", seconds * 0.6, calls],
            ],
            plans: i === 2 ? [["Plan 7: 3 executions noted", `Limit\n  Seq Scan on ${HOSTILE} [filter]`]] : [],
        })),
    };
}

function checkpointTable(length) {
    const rows = [0.1, 0.42].map((part) => [
        BEGIN + part * length,
        BEGIN + (part + 0.1) * length,
        "time",
        0.1 * length,
        8183,
    ]);
    return {
        id: "checkpoints",
        title: "Checkpoints",
        note: null,
        sort: "begun",
        columns: [
            column("begun", "Begun", "time"),
            column("ended", "Ended", "time"),
            column("reason", "Reason", "text"),
            column("seconds", "Took", "seconds"),
            column("buffers", "Buffers", "count"),
        ],
        rows,
        classes: null,
        details: null,
        times: ["ended", "ended"],
    };
}
