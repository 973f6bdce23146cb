// SPDX-License-Identifier: PostgreSQL
/**
 * Updates facts, findings and texts of a live page when a newer report arrives. If the report has parts that the page
 * has no element for, the page is reloaded.
 */
import { element } from "./dom";
import { rewriteFindings } from "./findings";
import type { Fact, Report } from "./model";
import { title } from "./sentence";

/** Minimum time between reloads, in ms. */
const RELOAD_PAUSE = 5000;

/** Updates the page's text. Returns false if the report has parts that the page has no element for. */
export function rewrite(report: Report, before: Report): boolean {
    document.title = report.title;
    const head = document.querySelector("#head h1");
    head?.replaceChildren(...title(report.title));
    facts("#figures", report.load);
    facts("#facts", report.measured.facts);
    rewriteFindings(report, before);
    for (const { id, text } of report.texts) {
        const pre = document.querySelector(`#text-${CSS.escape(id)} pre`);
        if (pre && pre.textContent !== text) pre.textContent = text;
    }
    const exists = (id: string): boolean => document.getElementById(id) !== null;
    return (
        report.charts.every(({ id }) => exists(`chart-${id}`)) &&
        report.heatmaps.every(({ id }) => exists(`heatmap-${id}`)) &&
        report.tables.every(({ id }) => exists(`table-${id}`)) &&
        report.texts.every(({ id }) => exists(`text-${id}`))
    );
}

function facts(list: string, facts: readonly Fact[]): void {
    document
        .querySelector(list)
        ?.replaceChildren(...facts.flatMap(({ name, text }) => [element("dt", {}, name), element("dd", {}, text)]));
}

/** Reloads the page, unless its reader has zoomed, has selected text or is typing. */
export function reload(zoomed: boolean): void {
    const reading = getSelection()?.type === "Range" || document.activeElement instanceof HTMLInputElement;
    if (zoomed || reading || performance.now() < RELOAD_PAUSE) return;
    location.reload();
}
