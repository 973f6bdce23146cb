// SPDX-License-Identifier: PostgreSQL
//! The answer as one HTML page.

use maud::{html, Markup};

use crate::engine::page::{figures, frame, table_sections, Drawn};
use view::html::Visible;
use view::table::Table;

use super::answer::StorageResults;
use super::text::facts;

/// Render the page; `study` is the text of the study's file.
pub fn render(answer: &StorageResults, tables: &[Table], charts: &[Drawn], study: &str) -> String {
    let body = html! {
        header {
            h1 { (Visible(&answer.title)) }
            p.question { (Visible(&answer.question)) }
            @if let Some(source) = &answer.source {
                p.faint { "Source of the question: " (Visible(source)) }
            }
        } "\n"
        section { h2 { "What was found" }
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
        section { h2 { "How it was measured" }
            ul {
                @for fact in facts(answer) { li { (Visible(fact)) } "\n" }
                li {
                    "The background is an open loop: each operation has a scheduled start, and its response time "
                    "counts from there. Times of victims are wall-clock; TIMES is the geometric mean of the ratios to "
                    "the run alone in the same cell, with a 95 % interval by Student's t."
                }
                li {
                    "Steadiness is lost at the change of the rate or of the response times that is clearest among "
                    "moments without a victim, if chance would make one like it in less than 1 of 100 cells."
                }
            }
            details { summary { "The study file" } pre.raw { (Visible(study)) } }
        } "\n"
    }
}
