// SPDX-License-Identifier: PostgreSQL
//! The answer as one HTML page.

use maud::{html, Markup};

use crate::engine::page::{figures, frame, table_sections, Drawn};
use view::html::Visible;
use view::table::Table;

use super::answer::StorageResults;
use super::text::facts;

/// Renders the page; `study` is the text of the study's file.
pub fn render(answer: &StorageResults, tables: &[Table], charts: &[Drawn], study: &str) -> String {
    let body = html! {
        header {
            h1 { (Visible(&answer.title)) }
            p.question { (Visible(&answer.question)) }
            @if let Some(source) = &answer.source {
                p.faint { "Source: " (Visible(source)) }
            }
        } "\n"
        section { h2 { "Findings" }
            ul.findings { @for line in &answer.sentences { li { (Visible(line)) } "\n" } }
        } "\n"
        (figures(charts))
        (table_sections(tables))
        (method(answer, study))
    };
    frame(&answer.title, body)
}

fn method(answer: &StorageResults, study: &str) -> Markup {
    html! {
        section { h2 { "Method" }
            ul {
                @for fact in facts(answer) { li { (Visible(fact)) } "\n" }
                li {
                    "The background load is an open loop: each operation has a scheduled start, and its response "
                    "time counts from there. Times of victims are wall-clock times. TIMES is the geometric mean of the "
                    "ratios to the run alone in the same cell, with a 95 % interval by Student's t."
                }
                li {
                    "The load stops being steady at the clearest change of its rate or response time while no victim "
                    "runs, provided that chance alone would produce such a change in fewer than 1 of 100 cells."
                }
            }
            details { summary { "Study file" } pre.raw { (Visible(study)) } }
        } "\n"
    }
}
