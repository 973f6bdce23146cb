// SPDX-License-Identifier: PostgreSQL
/** A profile as written by the command (docs/reference-json.md); only the fields that the page uses. */
export interface Account {
    readonly phase: string;
    readonly activity: string;
}

export interface Profile {
    readonly format: `pgtally profile ${number}`;
    readonly seconds: number;
    readonly hertz: number;
    readonly scope: "server" | "system";
    /** Whether the kernel was sampled. */
    readonly kernel: boolean;
    readonly quality: { readonly instants: number };
    readonly ledger: readonly (Account & {
        readonly class: string;
        readonly idle: boolean;
        readonly seconds: number;
    })[];
    readonly statements: readonly { readonly query_id: number; readonly query: string | null }[];
    readonly processes: readonly { readonly name: string; readonly server: boolean }[];
    readonly symbols: readonly { readonly name: string; readonly image: string }[];
    readonly stacks: readonly (Account & {
        readonly process: number;
        readonly statement: number | null;
        readonly frames: readonly number[];
        readonly samples: number;
    })[];
    readonly sessions: readonly (Account & {
        readonly statement: number | null;
        readonly samples: number;
    })[];
}

/** A frame of two profiles. */
export interface DiffNode {
    readonly name: string;
    readonly from: string;
    readonly samples: readonly [a: number, b: number];
    /** B's time divided by A's, and the factor of its 95 % interval; null if one has no samples. */
    readonly ratio: number | null;
    readonly factor: number | null;
    readonly beyond_chance: boolean;
    readonly children: readonly DiffNode[];
}

/** Two profiles. */
export interface ProfileDiff {
    readonly format: "pgtally profile diff";
    readonly servers: readonly [a: string, b: string];
    readonly per: string;
    readonly units: readonly [a: number, b: number];
    /** Samples divided by this are seconds of CPU time per unit. */
    readonly amounts: readonly [a: number, b: number];
    readonly false_discovery_rate: number;
    readonly trees: readonly {
        readonly grouping: string;
        readonly inverted: boolean;
        readonly root: DiffNode;
    }[];
}

/** What the page contains. */
export function embedded(): Profile | ProfileDiff {
    return JSON.parse(document.getElementById("report")?.textContent ?? "{}") as Profile | ProfileDiff;
}
