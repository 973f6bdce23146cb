// SPDX-License-Identifier: PostgreSQL
/** SQL that a reader can run to see how the server plans a statement: its text has `$n` in place of constants. */

/** Commands that PREPARE and EXPLAIN accept. */
const PLANNED = /^[\s(]*(?:select|insert|update|delete|merge|values|with|table)\b/i;
/** Comments before the command. */
const COMMENTS = /^(?:\s|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)+/;
/** What may contain a dollar sign that is no parameter, or a parameter. */
const TOKENS =
    /--[^\n]*|\/\*[\s\S]*?\*\/|\bE'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$|\w\$\d+|\$(\d+)/gi;
const TYPE = String.raw`((?:"(?:[^"]|"")+"|[A-Za-z_]\w*)(?:\.(?:"(?:[^"]|"")+"|[A-Za-z_]\w*))?(?:\s+(?:precision|varying))?(?:\s*\(\s*\d+(?:\s*,\s*\d+)?\s*\))?(?:\s*\[\s*\])*)`;
const CAST_AFTER = new RegExp(String.raw`^\s*::\s*${TYPE}`, "i");
const CAST_AROUND = new RegExp(String.raw`^\s+AS\s+${TYPE}\s*\)`, "i");
/** A constant with its type in front, such as interval '1 day'. A parameter needs a cast instead. */
const TYPE_BEFORE = /\b(date|time|timetz|timestamp|timestamptz|interval|inet|cidr|uuid|jsonb?|bytea)\s+$/i;

export interface Prepared {
    readonly text: string;
    /** The types of `$1`, `$2`, ..., as far as the text names them. */
    readonly types: readonly (string | null)[];
}

/** The statement with its parameters; null if the server cannot prepare it. */
export function prepared(text: string): Prepared | null {
    const whole = text.trim().replace(/;\s*$/, "");
    if (!PLANNED.test(whole.replace(COMMENTS, ""))) return null;
    const types: (string | null)[] = [];
    let written = "";
    let end = 0;
    for (const token of whole.matchAll(TOKENS)) {
        const number = Number(token[2] ?? 0);
        if (number < 1 || number > 0xffff) continue;
        while (types.length < number) types.push(null);
        const before = whole.slice(end, token.index);
        const after = whole.slice(token.index + token[0].length);
        const prefix = TYPE_BEFORE.exec(before);
        const around = /\bcast\s*\(\s*$/i.test(before) ? CAST_AROUND.exec(after) : null;
        const type = prefix?.[1] ?? CAST_AFTER.exec(after)?.[1] ?? around?.[1];
        if (type) types[number - 1] ??= type.replace(/\s+/g, " ");
        written += prefix ? `${before.slice(0, prefix.index)}${token[0]}::${prefix[1]}` : before + token[0];
        end = token.index + token[0].length;
    }
    return { text: written + whole.slice(end), types };
}

/** Commands that show its plan without executing it; null if there are none. */
export function exampleOf(text: string): string | null {
    const statement = prepared(text);
    if (!statement) return null;
    const { types } = statement;
    if (types.length === 0) return `EXPLAIN (VERBOSE)\n${statement.text};`;
    const known = types.some((type) => type !== null);
    const list = known ? ` (${types.map((type) => type ?? "unknown").join(", ")})` : "";
    return [
        "BEGIN;",
        "SET LOCAL plan_cache_mode = force_generic_plan;",
        `PREPARE example${list} AS`,
        `${statement.text};`,
        "-- The types of its parameters:",
        "SELECT parameter_types FROM pg_prepared_statements WHERE name = 'example';",
        "-- Its plan for any values. To execute the statement, replace NULL with values, and VERBOSE with ANALYZE, BUFFERS:",
        `EXPLAIN (VERBOSE) EXECUTE example (${types.map(() => "NULL").join(", ")});`,
        "ROLLBACK;",
        "DEALLOCATE example;",
    ].join("\n");
}
