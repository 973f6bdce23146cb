// SPDX-License-Identifier: PostgreSQL
/**
 * The report, as the command writes it into the page (docs/reference-json.md, "The JSON of tally report").
 * All figures are raw, in seconds, bytes and counts; instants are seconds since 1970. Strings are
 * untrusted: they are shown as text, never parsed as HTML.
 */
import type { ActivityClass } from "./look/palette";
import type { Unit } from "./units";
import type { Trace } from "./waterfall/model";

export type Value = number | string | null;

export interface Report {
    readonly format: string;
    readonly version: number;
    readonly title: string;
    readonly made: { readonly time: number };
    readonly live: { readonly url: string; readonly seconds?: number } | null;
    readonly measured: Measured;
    /** The server's main figures; empty in a comparison. */
    readonly load: readonly Fact[];
    readonly axes: Readonly<Record<string, Axis>>;
    /** Times on the axes are seconds since the start of each side of a comparison. */
    readonly elapsed?: boolean;
    readonly charts: readonly Chart[];
    /** Only in a comparison: figures of both sides as bars. */
    readonly pairs?: readonly Pairs[];
    readonly heatmaps: readonly Heatmap[];
    readonly marks: readonly Mark[];
    readonly gaps: readonly Gap[];
    readonly sections: readonly Section[];
    readonly tables: readonly Table[];
    /** The tables over time. */
    readonly parts?: Parts;
    /** The state of the server in a sentence or two. */
    readonly verdict?: { readonly weight: Weight; readonly text: string };
    readonly findings: readonly Finding[];
    /** What took the most time, over time. */
    readonly rankings?: readonly Ranking[];
    /** What the statements with the most time did over time. */
    readonly histories?: Histories;
    readonly texts: readonly Plain[];
    /** A trace of sessions. */
    readonly trace?: Trace;
}

/** A sentence and the section with its figures. */
export interface Finding {
    readonly section: string;
    readonly weight: Weight;
    readonly text: string;
    readonly remedy?: Remedy;
    /** The evidence. */
    readonly details?: readonly string[];
    /** The key of the statement that it is about. */
    readonly statement?: string;
    /** When it was the case; missing: it is about the whole time. */
    readonly times?: readonly (readonly [from: number, to: number])[];
}

export type Weight = "note" | "warning";

/** What to do, with the SQL commands in it. */
export interface Remedy {
    readonly text: string;
    readonly sql?: readonly string[];
    readonly confidence: string;
}

/** Statements or sessions with their seconds in each point of an axis, most time first. */
export interface Ranking {
    readonly id: string;
    readonly section: string;
    readonly title: string;
    readonly axis: Axis;
    readonly rows: readonly {
        readonly name: string;
        readonly class: ActivityClass | null;
        /** The key of the statement. */
        readonly statement?: string;
        readonly seconds: readonly number[];
    }[];
}

/** Statements over time, most time first. */
export interface Histories {
    readonly axis: Axis;
    readonly statements: readonly StatementHistory[];
}

/** A statement over time: a value for each point of the axis. */
export interface StatementHistory {
    readonly statement: string;
    readonly calls: readonly number[];
    /** Total time of these executions. */
    readonly exec_seconds: readonly number[];
    /** null if none ended. */
    readonly p99_seconds: readonly (number | null)[];
    /** All its time in the server. */
    readonly classes: readonly { readonly class: ActivityClass; readonly seconds: readonly number[] }[];
    /** Its plans, those first noted first, and the executions that were noted, if these are known. */
    readonly plans?: readonly {
        readonly plan: string;
        readonly first: number;
        readonly last: number;
        readonly noted?: readonly number[];
    }[];
}

/** Preformatted text. */
export interface Plain {
    readonly id: string;
    readonly text: string;
}

export interface Measured {
    /** The recording's directory or URL. */
    readonly recording: string;
    readonly from: number;
    readonly to: number;
    readonly interval_seconds: number;
    /** Whether figures of times are estimates from samples. */
    readonly sampled?: boolean;
    /** The same in words, and the server, the machine, the level. */
    readonly facts: readonly Fact[];
}

/** A line of figures: "Commands", "22.4k/s, 386 us each". */
export interface Fact {
    readonly name: string;
    readonly text: string;
}

/** Points in time: the start of each, and its measured seconds (0 in a gap). */
export interface Axis {
    readonly time: readonly number[];
    readonly seconds: readonly number[];
}

export interface Chart {
    readonly id: string;
    readonly section: string;
    readonly title: string;
    readonly kind: "stack" | "lines";
    readonly axis: string;
    readonly unit: Unit;
    readonly reference: { readonly name: string; readonly value: number } | null;
    /** Whether the axis weights its values so that they can be averaged; without it, the unit decides. The command does not write it. */
    readonly averaged?: boolean;
    readonly series: readonly Series[];
}

export interface Series {
    readonly name: string;
    /** null if it is not an activity; then it gets the next free colour. */
    readonly class: ActivityClass | null;
    /** Index of the shade in its class or side. */
    readonly shade: number;
    /** The side of a comparison, which determines the colour. */
    readonly side?: SideName;
    /** One value per point of the axis; null if nothing was measured. */
    readonly values: readonly (number | null)[];
}

export type SideName = "a" | "b";

/** Figures of both sides of a comparison, a pair of bars per row. */
export interface Pairs {
    readonly id: string;
    readonly title: string;
    readonly unit: Unit;
    readonly rows: readonly PairOfBars[];
}

/** null if that side has no figure. */
export interface PairOfBars {
    readonly name: string;
    readonly a: Bar | null;
    readonly b: Bar | null;
}

export interface Bar {
    readonly value: number;
    /** Half of the 95 % confidence interval; null if unknown. */
    readonly half_width: number | null;
}

export interface Heatmap {
    readonly id: string;
    readonly title: string;
    readonly unit: Unit;
    /** The starts of the columns. */
    readonly time: readonly number[];
    readonly step_seconds: number;
    /** The bounds of the rows in ascending order, one more than there are rows. */
    readonly bounds: readonly number[];
    /** Per column: the first row with a count, then the counts from there on; null in a gap. */
    readonly columns: readonly (readonly number[] | null)[];
}

/** An event, which is a period if it has an end, and an instant otherwise. */
export interface Mark {
    readonly time: number;
    readonly until: number | null;
    /** "checkpoint", "blocking", "slow", or what happened to the recording, in words. */
    readonly kind: string;
    readonly text: string;
}

/** A period without measurement. */
export interface Gap {
    readonly from: number;
    readonly to: number;
    readonly reason: string;
}

export interface Section {
    readonly id: string;
    readonly title: string;
}

export interface Column {
    readonly key: string;
    readonly title: string;
    readonly unit: Unit;
    readonly help: string | null;
    /** The address of a cell's link, with keys of other cells in braces. */
    readonly link?: string;
}

export interface Table {
    readonly id: string;
    readonly title: string;
    readonly columns: readonly Column[];
    /** The key of the column that the rows are sorted by. */
    readonly sort: string | null;
    readonly rows: readonly (readonly Value[])[];
    /** The class of each row, for its coloured dot. */
    readonly classes: readonly ActivityClass[] | null;
    /** The details of each row. */
    readonly details: readonly (Detail | null)[] | null;
    /** Half of the 95 % interval of each row, by the key of the column; for columns with estimates from samples. */
    readonly half_widths?: Readonly<Record<string, readonly (number | null)[]>>;
    /** The columns with the time of a row: from and to. */
    readonly times?: readonly [from: string, to: string];
    /** Why its figures are known for the whole time only. */
    readonly whole?: string;
    /** Whether it belongs to no time. */
    readonly always?: boolean;
}

/** Values that are not negative, one for each point; a negative number stands for so many zeros, and those at the end are missing. */
export type SumSeries = readonly number[];

/** The tables over time. */
export interface Parts {
    readonly axis: Axis;
    readonly totals: Readonly<Record<string, SumSeries>>;
    /** By the key of the table. */
    readonly tables: Readonly<Record<string, TableParts>>;
}

export interface TableParts {
    /** Its own points, if it has some. */
    readonly axis?: Axis;
    readonly totals?: Readonly<Record<string, SumSeries>>;
    /** For each column: [], it is a name; [sum]; [sum, sum], their quotient; null: known for the whole time only. */
    readonly columns: readonly (readonly string[] | null)[];
    /** The names of the sums of a row. */
    readonly sums: readonly string[];
    /** The sums of each row of the table; empty if unknown. */
    readonly rows: readonly (readonly SumSeries[])[];
}

/** The details of a statement. */
export interface Detail {
    readonly text: string | null;
    /** Whether the text was truncated. */
    readonly cut: boolean;
    /** Numbers of executions by duration in seconds; the last bucket may have no upper bound. */
    readonly histogram: readonly (readonly [from: number, to: number | null, count: number])[];
    /** Its time by activity, largest first. */
    readonly activities: readonly (readonly [
        phase: string,
        activity: string,
        seconds: number,
        count: number | null,
    ])[];
    /** Its plans, most recently used first. */
    readonly plans: readonly (readonly [figures: string, nodes: string])[];
    /** Its slowest executions, the slowest first, if the recording has parameters. */
    readonly slow_executions?: readonly (readonly [ended: number, seconds: number, parameters: string])[];
    /** Commands for psql that show its plan, or why there are none; null or missing: its text is unknown. */
    readonly example?: { readonly commands?: string; readonly unavailable?: string } | null;
    /** The key of the statement, of all applications together, which names its page. */
    readonly statement?: string;
}
