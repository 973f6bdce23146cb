// SPDX-License-Identifier: PostgreSQL
//! Turns the figures of an interval into sentences: what is wrong, who or what causes it, how much time it takes, and
//! what to do.
//!
//! Each rule is a function of a [`Case`] (`rules`). A rule reports a *problem* only if a person should act on it: somebody
//! or something makes others wait, fail or grow without need. What merely bounds the load (the WAL's device, the processors,
//! reads) is a *limit*: a healthy server has one as soon as it is busy. What is good to know besides, such as changed
//! settings, is a *note*. Live views and reports use the same rules.

mod advice;
mod answer;
mod case;
mod diagnosis;
mod rules;

pub use advice::Advice;
pub use answer::{Diagnoses, DiagnosisLine};
pub use case::{choose_blocking, Case};
pub use diagnosis::{Confidence, Diagnosis, Kind, Rule};
pub use rules::changed_settings;

/// What the rules find.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    /// What is wrong, the worst first; each consequence comes right after its cause. Empty: the server is healthy.
    pub problems: Vec<Diagnosis>,
    /// What bounds the load, the largest first; none that a problem explains.
    pub limits: Vec<Diagnosis>,
    /// What is good to know besides.
    pub notes: Vec<Diagnosis>,
}

/// Apply all rules.
///
/// Problems are ordered by the sessions' time that they take, less if the cause is merely possible ([`Diagnosis::weight`]).
pub fn diagnose(case: &Case<'_>) -> Findings {
    let found = rules::ALL.iter().flat_map(|rule| rule(case));
    let (notes, mut found): (Vec<_>, Vec<_>) =
        found.partition(|finding| finding.kind == Kind::Note);
    let weight = |finding: &Diagnosis| finding.weight(case.length());
    found.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let (found, mut limits): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|finding| finding.kind == Kind::Problem);
    let rules: Vec<Rule> = found.iter().map(|finding| finding.rule).collect();
    let cause = |of: &Diagnosis| found.iter().position(|finding| finding.explains(of));
    limits.retain(|limit| cause(limit).is_none());
    let causes: Vec<Option<usize>> = found.iter().map(cause).collect();
    let mut placed: Vec<(usize, Diagnosis)> = found
        .into_iter()
        .enumerate()
        .map(|(own, finding)| match causes[own] {
            Some(at) => (at, Diagnosis { consequence_of: Some(rules[at]), ..finding }),
            None => (own, Diagnosis { consequence_of: None, ..finding }),
        })
        .collect();
    // Where its heaviest part would be, the cause first.
    let mut first: Vec<usize> = (0..rules.len()).collect();
    for (own, (at, _)) in placed.iter().enumerate() {
        first[*at] = first[*at].min(own);
    }
    placed.sort_by_key(|(at, finding)| (first[*at], *at, finding.consequence_of.is_some()));
    Findings { problems: placed.into_iter().map(|(_, finding)| finding).collect(), limits, notes }
}

#[cfg(test)]
mod tests;
