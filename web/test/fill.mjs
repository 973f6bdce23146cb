// SPDX-License-Identifier: PostgreSQL
// Fills the page's template like the command (crates/view/src/html.rs): the report as JSON, and
// all of its tables as plain HTML.
const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text) => String(text).replace(/[&<>"]/g, (c) => escapes[c]);

const duration = (s) =>
    s === 0
        ? "0"
        : s < 1e-3
          ? `${(s * 1e6).toPrecision(3)} us`
          : s < 1
            ? `${(s * 1e3).toPrecision(3)} ms`
            : `${s.toFixed(1)} s`;

function text(value, unit) {
    if (value === null || typeof value === "string") return value ?? "";
    switch (unit) {
        case "seconds":
            return duration(value);
        case "share":
            return `${(value * 100).toFixed(1)} %`;
        case "count":
            return Math.round(value).toLocaleString("en-US");
        case "time":
            return new Date(value * 1000).toISOString().slice(0, 19).replace("T", " ");
        default:
            return String(Number(value.toPrecision(3)));
    }
}

const words = { text: "text", id: "text id", time: "text time" };

function table(it) {
    const kind = ({ key, unit }) => (key === "query" ? "text query" : (words[unit] ?? "num"));
    const head = it.columns.map(
        (column) =>
            `<th scope="col" class="${kind(column)}" data-key="${column.key}"` +
            `${column.help ? ` title="${escape(column.help)}"` : ""}>${escape(column.title)}</th>`,
    );
    const rows = it.rows.map((row, i) => {
        const cells = it.columns.map((column, j) => {
            const [tag, scope] = j ? ["td", ""] : ["th", ' scope="row"'];
            return `<${tag}${scope} class="${kind(column)}">${escape(text(row[j], column.unit))}</${tag}>`;
        });
        return `<tr${it.classes ? ` class="${it.classes[i]}"` : ""}>${cells.join("")}</tr>`;
    });
    return (
        `<div class="table"><table id="table-${it.id}" data-table="${it.id}"><caption>${escape(it.title)}</caption>` +
        `<thead><tr>${head.join("")}</tr></thead><tbody>${rows.join("\n")}</tbody></table>` +
        `${it.note ? `<p class="note">${escape(it.note)}</p>` : ""}</div>`
    );
}

function figure(it, kind) {
    return (
        `<figure class="${kind}" id="${kind}-${it.id}" data-${kind}="${it.id}"><figcaption>${escape(it.title)}</figcaption>` +
        `${it.note ? `<p class="note">${escape(it.note)}</p>` : ""}<p class="without-script">This chart needs JavaScript.</p></figure>`
    );
}

function section(report, it) {
    const pick = (all, ids, draw) => ids.map((id) => draw(all.find((one) => one.id === id))).join("\n");
    return (
        `<section id="${it.id}"><h2>${escape(it.title)}</h2>${it.note ? `<p class="note">${escape(it.note)}</p>` : ""}\n` +
        pick(report.charts, it.charts, (one) => figure(one, "chart")) +
        pick(report.pairs ?? [], it.pairs ?? [], (one) => figure(one, "pairs")) +
        (it.id === report.lead ? '<div id="rankings"></div>' : "") +
        pick(report.heatmaps, it.heatmaps, (one) => figure(one, "heatmap")) +
        pick(report.tables, it.tables, table) +
        pick(
            report.texts,
            it.texts,
            (one) =>
                `<div class="plain" id="text-${one.id}"><h3>${escape(one.title)}</h3><pre tabindex="0">${escape(one.text)}</pre></div>`,
        ) +
        "</section>"
    );
}

/** What to do, with its commands as code. */
const commanded = ({ text, sql = [] }) =>
    sql.map((one) => escape(one.replace(/;$/, ""))).reduce((all, one) => all.replaceAll(one, `<code>${one}</code>`), escape(text));

const finding =
    (title) =>
    ({ section, weight, text, remedy, details, statement }) =>
        `<li class="${weight}"><a href="#${section}">${title(section)}</a> <span class="what">${escape(text)}</span>` +
        (statement ? `<a class="statement-link" href="#statement-${statement}">The statement</a>` : "") +
        (remedy
            ? `<p class="remedy"><b>What to do: </b>${commanded(remedy)} ` +
              `<span class="confidence">The cause is ${remedy.confidence}.</span></p>` +
              (remedy.sql ?? []).map((sql) => `<pre class="sql"><code>${escape(sql)}</code></pre>`).join("")
            : "") +
        (details
            ? `<details><summary>Evidence</summary><ul>${details.map((one) => `<li>${escape(one)}</li>`).join("")}</ul></details>`
            : "") +
        "</li>";

function advice({ findings }) {
    const remedy = findings.find((one) => one.weight === "warning" && one.remedy)?.remedy;
    return `<p id="advice"${remedy ? "" : " hidden"}>${remedy ? `<b>What to do: </b>${commanded(remedy)}` : ""}</p>`;
}

function body(report) {
    const facts = report.measured.facts.map(
        ({ name, text }) => `<dt>${escape(name)}</dt><dd>${escape(text)}</dd>`,
    );
    const title = (id) => escape(report.sections.find((one) => one.id === id)?.title ?? id);
    const findings = report.findings.map(finding(title));
    const isLead = ({ id }) => id === report.lead;
    const contents = report.sections.map(({ id }) => `<li><a href="#${id}">${title(id)}</a></li>`);
    return [
        `<header id="head"><h1>${escape(report.title)}</h1>` +
            (report.verdict
                ? `<p id="verdict" class="${report.verdict.weight}">${escape(report.verdict.text)}</p>` + advice(report)
                : "") +
            `<dl class="facts" id="facts">${facts.join("")}</dl></header>`,
        ...report.sections.filter(isLead).map((it) => section(report, it)),
        `<section id="findings"><h2>Findings</h2><ul>${findings.join("")}</ul></section>`,
        `<nav id="contents" aria-label="Contents"><ul>${contents.join("")}</ul></nav>`,
        ...report.sections.filter((it) => !isLead(it)).map((it) => section(report, it)),
    ].join("\n");
}

/** The whole page. */
export function fill(template, report, html = body(report)) {
    const parts = {
        title: escape(report.title),
        body: html,
        data: JSON.stringify(report).replace(/</g, "\\u003c"),
    };
    return template.replace(/<!--pgtally:([a-z]+)-->/g, (_, name) => parts[name]);
}
