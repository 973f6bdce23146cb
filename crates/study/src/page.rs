// SPDX-License-Identifier: PostgreSQL
//! The answer as one HTML page without scripts or requests; it contains its raw data. All text is
//! untrusted and passes through [`escape`].

use std::fmt::Write;

use super::answer::{Answer, Verdict};
use super::cell::Cell;
use super::charts::Drawn;
use super::plan::Plan;
use super::shown::{csv, Shown, Tone};
use super::text::{facts, verdicts};
use view::html::escape;

const STYLE: &str = include_str!("page.css");

/// Render the page.
pub fn render(
    plan: &Plan,
    cells: &[Cell],
    answer: &Answer,
    tables: &[Shown],
    charts: &[Drawn],
) -> String {
    let title = escape(&answer.title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style></head>\n<body><main>\n<header><h1>{title}</h1>\n\
         <p class=\"question\">{}</p>\n",
        escape(&answer.question)
    );
    if let Some(source) = &answer.source {
        let _ = writeln!(page, "<p class=\"faint\">Source of the question: {}</p>", escape(source));
    }
    page.push_str("</header>\n");
    findings(answer, &mut page);
    for chart in charts {
        let _ = writeln!(
            page,
            "<figure><figcaption><h2>{}</h2></figcaption>{}<p class=\"faint\">{}</p></figure>",
            escape(&chart.title),
            chart.svg,
            escape(&chart.caption)
        );
    }
    tables.iter().for_each(|shown| table(shown, &mut page));
    listings(plan, cells, &mut page);
    method(plan, answer, &mut page);
    raw(answer, cells, &mut page);
    page + "</main></body></html>\n"
}

/// Longer lists of inconclusive changes, and of the A/A control's, are collapsed: the tables contain
/// them too.
const FEW: usize = 6;

fn findings(answer: &Answer, page: &mut String) {
    if answer.comparisons.is_empty() {
        return;
    }
    page.push_str("<section><h2>What was found</h2>\n");
    for alike in verdicts(answer).chunk_by(|one, other| one.0 == other.0) {
        let (class, what) = match alike[0].0 {
            Verdict::Resolved => ("resolved", None),
            Verdict::Inconclusive => ("faint", Some("inconclusive")),
            Verdict::Placebo => ("faint", Some("of the A/A control")),
        };
        let collapsed = what.filter(|_| alike.len() > FEW);
        if let Some(what) = collapsed {
            let _ = write!(page, "<details><summary>{} {what}</summary>", alike.len());
        }
        page.push_str("<ul class=\"findings\">\n");
        for (_, line) in alike {
            let _ = writeln!(page, "<li class=\"{class}\">{}</li>", escape(line));
        }
        page.push_str(if collapsed.is_some() { "</ul></details>\n" } else { "</ul>\n" });
    }
    page.push_str("</section>\n");
}

fn table(shown: &Shown, page: &mut String) {
    let _ = write!(
        page,
        "<section><h2>{}</h2><div class=\"scroll\"><table><thead><tr>",
        escape(&shown.title)
    );
    for (at, heading) in shown.headings.iter().enumerate() {
        let class = if at < shown.names { "name" } else { "number" };
        let _ = write!(page, "<th scope=\"col\" class=\"{class}\">{}</th>", escape(heading));
    }
    page.push_str("</tr></thead><tbody>\n");
    for row in &shown.rows {
        page.push_str("<tr>");
        for (at, field) in row.iter().enumerate() {
            let tone = match field.tone {
                Tone::Plain => "",
                Tone::Good => " good",
                Tone::Bad => " bad",
                Tone::Faint => " faint",
            };
            let text = escape(&field.text);
            let _ = match at < shown.names {
                true => write!(page, "<th scope=\"row\" class=\"name\">{text}</th>"),
                false => write!(page, "<td class=\"number{tone}\">{text}</td>"),
            };
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div></section>\n");
}

fn listings(plan: &Plan, cells: &[Cell], page: &mut String) {
    for (number, listing) in plan.study.listings.iter().enumerate() {
        let _ = writeln!(page, "<section><h2>{}</h2>", escape(&listing.title));
        for arm in &plan.arms {
            let last = cells.iter().filter(|cell| cell.arm == arm.name).max_by_key(|c| c.block);
            let text = last.and_then(|cell| cell.listings.get(number)).filter(|t| !t.is_empty());
            if let Some(text) = text {
                let _ = writeln!(
                    page,
                    "<h3>{}</h3><div class=\"scroll\"><pre>{}</pre></div>",
                    escape(arm.title()),
                    escape(text)
                );
            }
        }
        page.push_str("</section>\n");
    }
}

fn method(plan: &Plan, answer: &Answer, page: &mut String) {
    page.push_str("<section><h2>How it was measured</h2><ul>\n");
    for fact in facts(answer) {
        let _ = writeln!(page, "<li>{}</li>", escape(&fact));
    }
    let measure = &plan.study.measure;
    let length = match plan.study.workload.transactions {
        Some(transactions) => format!("{transactions} transactions of each client"),
        None => format!("{} s", measure.seconds),
    };
    let _ = writeln!(
        page,
        "<li>{length} measured in each cell after {} s of warm-up; {} blocks; randomised order \
         ({})</li>\n\
         <li>Changes are means of log ratios by pairs of a block, with 95 % intervals. Resolved: Student's t \
         (by Holm over all arms and points) and Wilcoxon's signed ranks agree below 0.05, and the change is \
         beyond the half-width of the A/A control, the base a second time.</li>\n</ul>\n",
        measure.warm_up,
        measure.repeats,
        measure.seed
    );
    page.push_str("<details><summary>The study file, by arm</summary><ul>\n");
    for arm in &plan.arms {
        let mut words: Vec<String> =
            plan.settings(arm).iter().map(|(name, value)| format!("{name} = {value}")).collect();
        words.extend(plan.extensions(arm));
        words.push(format!("level {:?}", plan.level(arm)).to_lowercase());
        let _ = writeln!(
            page,
            "<li><b>{}</b>: {}</li>",
            escape(arm.title()),
            escape(&words.join(", "))
        );
    }
    page.push_str("</ul></details></section>\n");
}

/// All cells as CSV.
fn raw(answer: &Answer, cells: &[Cell], page: &mut String) {
    let fixed = ["block", "arm", "clients", "rate", "seconds", "disturbed"].map(String::from);
    let names = answer.reads.iter().map(|read| read.name.clone());
    let record = |cell: &Cell| {
        let fixed = [
            cell.block.to_string(),
            cell.arm.clone(),
            cell.point.clients.to_string(),
            cell.point.rate.map_or(String::new(), |rate| rate.to_string()),
            format!("{:.3}", cell.seconds),
            u8::from(cell.machine.disturbed.is_some()).to_string(),
        ];
        let value = |name: &String| cell.values.get(name).copied().flatten();
        let values = answer.reads.iter().map(|read| value(&read.name));
        let values = values.map(|value| value.map_or(String::new(), |value| value.to_string()));
        fixed.into_iter().chain(values).collect()
    };
    let headings = std::iter::once(fixed.into_iter().chain(names).collect());
    let text = csv(headings.chain(cells.iter().map(record)));
    let _ = writeln!(
        page,
        "<section><h2>Raw data</h2><details><summary>{} cells as CSV</summary>\
         <pre class=\"raw\">{}</pre></details></section>",
        cells.len(),
        escape(&text)
    );
}
