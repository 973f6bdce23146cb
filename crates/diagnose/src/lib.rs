// SPDX-License-Identifier: PostgreSQL
//! From the figures of an interval to sentences: what is wrong, who or what it is, how much time it
//! takes, and what to do.
//!
//! Each rule is a function of a [`Case`] (`rules`). A rule reports only what it would be right to act on:
//! a server that is merely busy has no diagnosis. Live views and reports use the same rules.

mod answer;
mod case;
mod diagnosis;
mod rules;

pub use answer::{Diagnoses, DiagnosisLine};
pub use case::Case;
pub use diagnosis::{Confidence, Diagnosis, Rule};

/// What is wrong, the worst first; empty: the server is healthy.
///
/// The worst is what takes most time, less where the cause is merely possible ([`Diagnosis::weight`]). A diagnosis that
/// another one explains comes right behind that one.
pub fn diagnose(case: &Case<'_>) -> Vec<Diagnosis> {
    let mut found: Vec<Diagnosis> = rules::ALL.iter().flat_map(|rule| rule(case)).collect();
    let weight = |it: &Diagnosis| it.weight(case.length());
    found.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let rules: Vec<Rule> = found.iter().map(|it| it.rule).collect();
    let cause = |of: Rule| rules.iter().position(|rule| rule.explains().contains(&of));
    let mut placed: Vec<(usize, Diagnosis)> = found
        .into_iter()
        .enumerate()
        .map(|(own, it)| match cause(it.rule) {
            Some(at) => (at, Diagnosis { consequence_of: Some(rules[at]), ..it }),
            None => (own, it),
        })
        .collect();
    placed.sort_by_key(|(at, it)| (*at, it.consequence_of.is_some()));
    placed.into_iter().map(|(_, it)| it).collect()
}

#[cfg(test)]
mod tests;
