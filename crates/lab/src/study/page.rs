// SPDX-License-Identifier: PostgreSQL
//! The findings of the page and what stands below its tables: listings, method, raw data. All text is untrusted and
//! goes through [`Visible`].

use maud::{html, Markup};

use super::answer::{ArmVerdict, StudyResults};
use super::cell::Cell;
use super::plan::StudyPlan;
use view::html::Visible;
use view::table::csv;

/// The page below its tables.
pub fn rest(plan: &StudyPlan, cells: &[Cell], answer: &StudyResults, facts: &[String]) -> Markup {
    html! {
        (listings(plan, cells))
        (method(plan, facts))
        (raw(answer, cells))
    }
}

/// Longer lists of inconclusive changes and of changes of the A/A control are collapsed, since the tables
/// contain them too.
const FEW: usize = 6;

/// The findings, one list for each verdict.
pub fn findings(verdicts: &[(ArmVerdict, String)]) -> Markup {
    html! {
        @for alike in verdicts.chunk_by(|one, other| one.0 == other.0) {
            @let (class, what) = match alike[0].0 {
                ArmVerdict::Resolved => ("resolved", None),
                ArmVerdict::Inconclusive => ("faint", Some("inconclusive")),
                ArmVerdict::Placebo => ("faint", Some("for the A/A control")),
            };
            @let list = html! {
                ul.findings { @for (_, line) in alike { li class=(class) { (Visible(line)) } "\n" } }
            };
            @match what.filter(|_| alike.len() > FEW) {
                Some(what) => details { summary { (alike.len()) " " (what) } (list) },
                None => (list),
            }
        }
    }
}

fn listings(plan: &StudyPlan, cells: &[Cell]) -> Markup {
    let text = |arm: &str, number: usize| {
        let last = cells.iter().filter(|cell| cell.arm == arm).max_by_key(|c| c.block);
        last.and_then(|cell| cell.listings.get(number)).filter(|text| !text.is_empty())
    };
    html! {
        @for (number, listing) in plan.study.listings.iter().enumerate() {
            section { h2 { (Visible(&listing.title)) }
                @for arm in &plan.arms {
                    @if let Some(text) = text(&arm.name, number) {
                        h3 { (Visible(arm.title())) }
                        div.scroll { pre { (Visible(text)) } }
                    }
                }
            } "\n"
        }
    }
}

fn method(plan: &StudyPlan, facts: &[String]) -> Markup {
    let measure = &plan.study.measure;
    let length = match plan.study.workload.transactions {
        Some(transactions) => format!("{transactions} transactions per client"),
        None => format!("{} s", measure.seconds),
    };
    let made_of = |arm| {
        let settings = plan.settings(arm);
        let mut words: Vec<_> =
            settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        words.extend(plan.extensions(arm));
        words.push(format!("level {:?}", plan.level(arm)).to_lowercase());
        words.join(", ")
    };
    html! {
        section { h2 { "Method" }
            ul {
                @for fact in facts { li { (Visible(fact)) } "\n" }
                li {
                    (length) " measured in each cell after " (measure.warm_up) " s of warm-up; "
                    (measure.repeats) " blocks; randomised order (seed " (measure.seed) ")"
                } "\n"
                li {
                    "Changes are means of the log ratios of pairs within a block, with 95 % intervals. A change is "
                    "resolved if Student's t test (with Holm's correction over all arms and points) and Wilcoxon's "
                    "signed-rank test both give p < 0.05, and the change is larger than the half-width of the A/A "
                    "control, which is the base measured a second time."
                }
            }
            details { summary { "Configuration of each arm" }
                ul {
                    @for arm in &plan.arms {
                        li { b { (Visible(arm.title())) } ": " (Visible(made_of(arm))) } "\n"
                    }
                }
            }
        } "\n"
    }
}

/// All cells as CSV.
fn raw(answer: &StudyResults, cells: &[Cell]) -> Markup {
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
    html! {
        section { h2 { "Raw data" }
            details { summary { (cells.len()) " cells as CSV" } pre.raw { (Visible(text)) } }
        } "\n"
    }
}
