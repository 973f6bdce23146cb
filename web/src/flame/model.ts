// SPDX-License-Identifier: PostgreSQL
/** A profile as written by the command (docs/reference-json.md); only the fields that the page uses. */
export interface Account {
    readonly phase: string;
    readonly activity: string;
}

export interface Profile {
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

/** The profile in the page. */
export function embedded(): Profile {
    return JSON.parse(document.getElementById("report")?.textContent ?? "{}") as Profile;
}
