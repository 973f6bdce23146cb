// SPDX-License-Identifier: PostgreSQL
/**
 * What else of a live page changes with a newer report: the facts, the findings, the texts. And
 * when there is something that the page has no place for yet, the page is asked for anew.
 */
import { element } from "./dom";
import type { Report } from "./model";

/** Does not load anew more often than this, in ms. */
const PATIENCE = 5000;

/** Rewrites the page's words; false: there is more in the report than the page has places for. */
export function rewrite(report: Report): boolean {
    document.title = report.title;
    const head = document.querySelector("#measured h1");
    if (head) head.textContent = report.title;
    facts(report);
    findings(report);
    for (const { id, text } of report.texts) {
        const place = document.querySelector(`#text-${CSS.escape(id)} pre`);
        if (place && place.textContent !== text) place.textContent = text;
    }
    const place = (id: string): boolean => document.getElementById(id) !== null;
    return (
        report.charts.every(({ id }) => place(`chart-${id}`)) &&
        report.heatmaps.every(({ id }) => place(`heatmap-${id}`)) &&
        report.tables.every(({ id }) => place(`table-${id}`)) &&
        report.texts.every(({ id }) => place(`text-${id}`))
    );
}

function facts(report: Report): void {
    const list = document.querySelector("#measured dl");
    list?.replaceChildren(
        ...report.measured.facts.flatMap(({ name, text }) => [element("dt", {}, name), element("dd", {}, text)]),
    );
}

function findings(report: Report): void {
    const titles = new Map(report.sections.map(({ id, title }) => [id, title]));
    const list = document.querySelector("#findings ul");
    list?.replaceChildren(
        ...report.findings.map(({ section, weight, text }) => {
            const title = titles.get(section);
            const link = title === undefined ? null : element("a", { href: `#${section}` }, title);
            return element("li", { class: weight }, link, " ", element("span", {}, text));
        }),
    );
}

/** Loads the page anew, unless its reader would lose what he is at: then at a later report. */
export function again(zoomed: boolean): void {
    const reading = getSelection()?.type === "Range" || document.activeElement instanceof HTMLInputElement;
    if (zoomed || reading || performance.now() < PATIENCE) return;
    location.reload();
}
