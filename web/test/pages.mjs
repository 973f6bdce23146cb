// SPDX-License-Identifier: PostgreSQL
// All pages, with artificial data.
import { readFile } from "node:fs/promises";
import { example, statementKey } from "./example.mjs";
import { fill } from "./fill.mjs";
import { difference, profile } from "./profiles.mjs";
import { trace } from "./traces.mjs";

const built = (name) => readFile(new URL(`../../build/web/${name}.html`, import.meta.url), "utf8");
const drawing = async (name, id, data) =>
    (await built(name))
        .replace("<!--pgtally:title-->", () => "Page")
        .replace("<!--pgtally:body-->", () => `<h1>Page</h1><div id="${id}"></div><pre>figures</pre>`)
        .replace("<!--pgtally:data-->", () => JSON.stringify(data).replace(/</g, "\\u003c"));
const report = async () => fill(await built("report"), example());

/** The pages: what makes them, what their address ends with, and what must be drawn. */
export const PAGES = {
    report: [report, "", "#chart-activity canvas"],
    statement: [report, `#statement-${statementKey(0)}`, "#chart-statement-calls canvas"],
    flame: [() => drawing("flame", "flames", profile), "", ".frame"],
    "profile-diff": [() => drawing("flame", "flames", difference), "", ".frame"],
    trace: [() => drawing("waterfall", "traced", trace), "", ".lanes"],
};
export const WINDOWS = { wide: { width: 1280, height: 900 }, narrow: { width: 390, height: 844 } };
