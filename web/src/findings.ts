// SPDX-License-Identifier: PostgreSQL
/** The verdict and the findings: a sentence, what to do with its commands, and the evidence, folded. */
import { copyButton } from "./copy";
import { button, element } from "./dom";
import type { Finding, Report } from "./model";
import { advice, sentence } from "./sentence";
import { addressOf } from "./statement/known";
import type { Range } from "./view";

/** Adds a button to each command that the page shows. */
export function addCopyButtons(): void {
    for (const block of document.querySelectorAll<HTMLElement>("#findings pre.sql")) {
        const code = block.querySelector("code");
        if (code && !block.querySelector("button")) block.append(copyButton(code));
    }
}

/** Opens all evidence on paper. */
export function unfoldForPrint(): void {
    const opened: HTMLDetailsElement[] = [];
    addEventListener("beforeprint", () => {
        for (const one of document.querySelectorAll<HTMLDetailsElement>("#findings details:not([open])")) {
            one.open = true;
            opened.push(one);
        }
    });
    addEventListener("afterprint", () => {
        for (const one of opened.splice(0)) one.open = false;
    });
}

/** Shows those of a newer report. What is open stays open, if its sentence is the same. */
export function rewriteFindings(report: Report, before: Report | null): void {
    const verdict = document.querySelector("#verdict");
    if (verdict && report.verdict && verdict.textContent !== report.verdict.text) {
        verdict.replaceChildren(...sentence(report.verdict.text, worst(report)?.statement));
        verdict.className = report.verdict.weight;
    }
    rewriteAdvice(report);
    const list = document.querySelector("#findings > ul");
    if (!list || (before && texts(before) === texts(report))) return;
    const open = new Set<string>();
    for (const one of list.querySelectorAll("li:has(> details[open]) > .what")) open.add(one.textContent ?? "");
    const titles = new Map(report.sections.map(({ id, title }) => [id, title]));
    list.replaceChildren(...report.findings.map((finding) => item(finding, titles, open)));
    addCopyButtons();
}

/** Everything that the list shows: not the times, which grow while a page is live. */
const texts = ({ findings }: Report): string => JSON.stringify(findings, (key, value: unknown) => (key === "times" ? undefined : value));

/**
 * Shows the findings of a part of the time; those that are about the whole time are behind a button. null: all of them.
 */
export function selectFindings({ findings }: Report, part: Range | null): void {
    const section = document.querySelector<HTMLElement>("#findings");
    if (!section) return;
    const items = section.querySelectorAll<HTMLElement>(":scope > ul > li");
    const within = ([from, to]: readonly [number, number]): boolean => part !== null && from < part.to && to >= part.from;
    let [shown, whole] = [0, 0];
    findings.forEach(({ times }, i) => {
        const item = items[i];
        if (!item) return;
        item.hidden = part !== null && times !== undefined && !times.some(within);
        item.classList.toggle("of-whole", part !== null && times === undefined);
        if (part !== null && times === undefined) whole++;
        else if (!item.hidden) shown++;
    });
    showsWhole(section, part === null ? null : { shown, whole });
}

/** Says below the findings of a part how many others there are, and shows them if its reader asks for them. */
function showsWhole(section: HTMLElement, counts: { readonly shown: number; readonly whole: number } | null): void {
    let more = section.querySelector<HTMLElement>(":scope > .more");
    if (!more) {
        more = element("p", { class: "more" });
        section.append(more);
    }
    more.hidden = counts === null;
    if (counts === null) return;
    const { shown, whole } = counts;
    const none = shown === 0 ? "No finding is about this part alone. " : "";
    const opened = section.classList.contains("with-whole");
    const label = `${opened ? "Hide" : "Show"} the ${whole === 1 ? "finding" : `${whole} findings`} about the whole time`;
    const toggle = button(label, "They are not of the selected part", () => {
        section.classList.toggle("with-whole");
        showsWhole(section, counts);
        section.querySelector<HTMLElement>(":scope > .more button")?.focus();
    });
    toggle.setAttribute("aria-expanded", String(opened));
    more.replaceChildren(none, ...(whole > 0 ? [toggle] : []));
}

/** The worst problem. */
const worst = ({ findings }: Report): Finding | undefined =>
    findings.find((one) => one.weight === "warning" && one.remedy !== undefined);

/** What to do about it. */
function rewriteAdvice(report: Report): void {
    const box = document.querySelector<HTMLElement>("#advice");
    const remedy = worst(report)?.remedy;
    if (!box) return;
    box.hidden = remedy === undefined;
    if (remedy) box.replaceChildren(element("b", {}, "What to do: "), ...advice(remedy));
}

function item(finding: Finding, titles: ReadonlyMap<string, string>, open: ReadonlySet<string>): HTMLElement {
    const { section, weight, text, remedy, details, statement } = finding;
    const title = titles.get(section);
    const link = title === undefined ? null : element("a", { href: `#${section}` }, title);
    const whatToDo =
        remedy === undefined
            ? null
            : element(
                  "p",
                  { class: "remedy" },
                  element("b", {}, "What to do: "),
                  ...advice(remedy),
                  " ",
                  element("span", { class: "confidence" }, `The cause is ${remedy.confidence}.`),
              );
    const commands = (remedy?.sql ?? []).map((sql) => element("pre", { class: "sql" }, element("code", {}, sql)));
    const evidence =
        details === undefined
            ? null
            : element(
                  "details",
                  open.has(text) ? { open: "" } : {},
                  element("summary", {}, "Evidence"),
                  element("ul", {}, ...details.map((detail) => element("li", {}, detail))),
              );
    const page =
        statement === undefined
            ? null
            : element("a", { class: "statement-link", href: addressOf(statement) }, "The statement");
    const what = element("span", { class: "what" }, ...sentence(text));
    return element("li", { class: weight }, link, " ", what, page, whatToDo, ...commands, evidence);
}
