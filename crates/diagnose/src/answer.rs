// SPDX-License-Identifier: PostgreSQL
//! The answer to "what is wrong?": problems, limits, the time that they cover, and what was not examined.

use segment::Level;
use serde::Serialize;
use view::table::wrap;
use view::units::{capitalise, duration, percent};
use view::Reading;

use crate::case::Case;
use crate::diagnosis::Diagnosis;
use crate::{diagnose, Findings};

/// What is wrong with a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Diagnoses {
    /// Length of the examined interval.
    pub diagnosed_seconds: f64,
    /// Whether there is no problem; `None`: nothing was measured.
    pub healthy: Option<bool>,
    /// The problems, the worst first; each consequence comes right after its cause.
    pub diagnoses: Vec<Diagnosis>,
    /// What bounds the load, the largest first.
    pub limits: Vec<Diagnosis>,
    /// What is good to know besides.
    pub notes: Vec<Diagnosis>,
    #[serde(skip)]
    uncovered: usize,
    /// Whether the figures are estimates from samples.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
}

/// A line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagnosisLine {
    /// Its text, indented.
    pub text: String,
    /// Whether it states a problem, or that there is none.
    pub strong: bool,
}

const HEALTHY: &str = "Healthy: nothing is wrong.";
const AT_A_LIMIT: &str = "Healthy, but at a limit.";
const TOO_SHORT: &str = "No problem seen in so short a time.";
/// Less than this is too short to call a server healthy, seconds.
const SHORT: f64 = 1.0;
const ESTIMATES: &str = "Figures are estimates from samples.";
const HEALTHY_AS_SAMPLED: &str =
    "The samples show no problem. Some problems are seen only with pg_tally.";

/// Spaces before the text after a number, and before a consequence.
const INDENT: usize = 3;

impl Diagnoses {
    /// Examine the last seconds of a reading, or else its interval.
    pub fn examine(reading: &Reading) -> Diagnoses {
        let uncovered = reading.uncovered_processes.unwrap_or(0);
        Diagnoses { uncovered, ..Diagnoses::from_case(&Case::from_reading(reading)) }
    }

    /// Apply all rules to these figures.
    pub fn from_case(case: &Case<'_>) -> Diagnoses {
        let measured = case.whole.level != Level::Off || case.whole.instrumented_seconds > 0.0;
        let Findings { problems, limits, notes } = diagnose(case);
        Diagnoses {
            diagnosed_seconds: case.whole.interval_seconds,
            healthy: measured.then_some(problems.is_empty()),
            diagnoses: problems,
            limits,
            notes,
            uncovered: 0,
            sampled: case.interval().sampling.is_some(),
        }
    }

    /// Adds problems that no rule sees, because they are not in the figures of an interval: before all others, if they are about
    /// `damage`, or else behind them.
    pub fn add_problems(&mut self, damage: Vec<Diagnosis>, others: Vec<Diagnosis>) {
        self.diagnoses.splice(0..0, damage);
        self.diagnoses.extend(others);
        self.healthy = self.healthy.map(|_| self.diagnoses.is_empty());
    }

    /// The sentence for a server without problems.
    pub fn no_problem(&self) -> &'static str {
        match (self.sampled, self.limits.is_empty()) {
            _ if self.diagnosed_seconds < SHORT => TOO_SHORT,
            (true, _) => HEALTHY_AS_SAMPLED,
            (false, true) => HEALTHY,
            (false, false) => AT_A_LIMIT,
        }
    }

    /// The same, and what bounds the load.
    pub fn no_problem_but_limit(&self) -> String {
        let limit = self.limits.first().map(|limit| match self.no_problem() {
            AT_A_LIMIT => format!(" {}", capitalise(&limit.text)),
            _ => format!(" {}", limit.headline()),
        });
        format!("{}{}", self.no_problem(), limit.unwrap_or_default())
    }

    /// Which processes were not examined, if any.
    pub fn uncovered(&self) -> Option<String> {
        let them = match self.uncovered {
            0 => return None,
            1 => "1 process of the server is".to_string(),
            n => format!("{n} processes of the server are"),
        };
        Some(format!(
            "{them} not covered: started before pg_tally was loaded (tally status names them)"
        ))
    }

    /// The diagnoses as text of at most `width` characters a line.
    pub fn lines(&self, width: usize) -> Vec<DiagnosisLine> {
        let mut out = Vec::new();
        match self.healthy {
            None => add(
                &mut out,
                "Nothing is measured at level off. To measure: tally level waits",
                ["", ""],
                width,
                true,
            ),
            Some(true) => add(&mut out, self.no_problem(), ["", ""], width, true),
            Some(false) => {}
        }
        for (n, diagnosis) in self.diagnoses.iter().enumerate() {
            if n > 0 {
                out.push(DiagnosisLine { text: String::new(), strong: false });
            }
            let indent = if diagnosis.consequence_of.is_some() { INDENT } else { 0 };
            let first = format!("{:indent$}{}. ", "", n + 1);
            let rest = " ".repeat(indent + INDENT);
            add(&mut out, &diagnosis.headline(), [&first, &rest], width, true);
            for detail in diagnosis.details(self.sampled) {
                add(&mut out, &detail, [&rest, &rest], width, false);
            }
        }
        for finding in self.limits.iter().chain(&self.notes) {
            add(&mut out, &finding.headline(), ["", &" ".repeat(INDENT)], width, false);
        }
        if self.sampled && !(self.diagnoses.is_empty() && self.limits.is_empty()) {
            add(&mut out, ESTIMATES, ["", ""], width, false);
        }
        out
    }
}

fn add(out: &mut Vec<DiagnosisLine>, text: &str, indents: [&str; 2], width: usize, strong: bool) {
    let space = width.saturating_sub(indents[1].len()).max(1);
    for (n, part) in wrap(text, space).into_iter().enumerate() {
        let indent = indents[usize::from(n > 0)];
        out.push(DiagnosisLine { text: format!("{indent}{part}"), strong });
    }
}

impl Diagnosis {
    /// The time that it takes: "12.3 s of the sessions' time, 45 %."; with `~` if it was `sampled`.
    pub fn time(&self, sampled: bool) -> Option<String> {
        let sign = if sampled { "~" } else { "" };
        let seconds = duration(self.seconds);
        (self.seconds > 0.0).then(|| match self.share {
            Some(share) => {
                format!("{sign}{seconds} of the sessions' time, {sign}{} %.", percent(share))
            }
            None => format!("{sign}{seconds} of clients' time."),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use view::sample;

    /// A reading in which eight sessions wait for one.
    fn blocked() -> Reading {
        Reading { blocking: Some(sample::blocking()), ..sample::reading() }
    }

    #[test]
    fn it_names_the_time_the_share_and_the_culprit() {
        let answer = Diagnoses::examine(&blocked());
        assert_eq!(answer.healthy, Some(false));
        let lines: Vec<String> = answer.lines(200).into_iter().map(|line| line.text).collect();
        let at = |text: &str| lines.iter().position(|line| line.contains(text)).unwrap();
        let sentence =
            "8 sessions wait for session 4304 (psql, joe@shop), idle in transaction for 41 s.";
        let begin = at(sentence);
        let advice = at(
            "What to do: If its client has abandoned it, end it: SELECT pg_terminate_backend(4304)",
        );
        assert!(advice > begin);
        let facts = at(" of the sessions' time, 5.1 %. The cause is certain.");
        assert!(facts > advice, "what to do comes first");
        assert!(at("Its last statement: UPDATE accounts SET balance = 0") > facts);
        for line in answer.lines(40) {
            assert!(line.text.chars().count() <= 40, "{line:?}");
        }
    }

    #[test]
    fn what_samples_say_is_marked_as_an_estimate() {
        let measured = Diagnoses::examine(&blocked());
        let sampled = Diagnoses { sampled: true, ..measured.clone() };
        let text = |answer: &Diagnoses| {
            answer.lines(200).into_iter().map(|line| line.text + "\n").collect::<String>()
        };
        assert!(!text(&measured).contains('~') && !text(&measured).contains(ESTIMATES));
        let text = text(&sampled);
        assert!(text.ends_with(&format!("{ESTIMATES}\n")), "{text}");
        let times: Vec<&str> =
            text.lines().filter(|line| line.contains(" of the sessions' time, ")).collect();
        assert!(!times.is_empty(), "{text}");
        assert!(times.iter().all(|line| line.matches('~').count() == 2), "{text}");
    }

    #[test]
    fn nothing_measured_is_not_healthy() {
        let mut reading = sample::reading();
        reading.interval.level = Level::Off;
        reading.interval.instrumented_seconds = 0.0;
        reading.interval.ledger.clear();
        reading.uncovered_processes = Some(2);
        let answer = Diagnoses::examine(&reading);
        assert_eq!(answer.healthy, None);
        assert!(answer.lines(80)[0].text.starts_with("Nothing is measured at level off"));
        assert!(answer.uncovered().unwrap().starts_with("2 processes of the server are not"));
    }

    #[test]
    fn a_server_with_a_problem_that_no_rule_sees_is_not_healthy() {
        let mut all = Diagnoses::examine(&sample::reading());
        assert_eq!(all.healthy, Some(true));
        all.add_problems(Vec::new(), Vec::new());
        assert_eq!(all.healthy, Some(true));
        let one = Diagnoses::examine(&blocked()).diagnoses.remove(0);
        let other = |text: &str| vec![Diagnosis { text: text.into(), ..one.clone() }];
        all.add_problems(Vec::new(), vec![one.clone()]);
        all.add_problems(other("damaged"), other("last"));
        let texts: Vec<&str> = all.diagnoses.iter().map(|found| &*found.text).collect();
        assert_eq!((texts[0], texts[2], texts.len()), ("damaged", "last", 3));
        assert_eq!(all.healthy, Some(false));
        assert!(!all.lines(80).iter().any(|line| line.text.contains(HEALTHY)));
        let mut unknown = Diagnoses { healthy: None, ..Diagnoses::default() };
        unknown.add_problems(other("damaged"), Vec::new());
        assert_eq!(unknown.healthy, None, "nothing was measured");
    }

    #[test]
    fn the_last_seconds_count_if_there_are_any() {
        let mut reading = blocked();
        let mut interval = sample::interval();
        interval.interval_seconds = 10.0;
        interval.ledger.clear();
        interval.sessions.clear();
        reading.blocking = None;
        reading.recent = Some(Box::new(view::Recent { interval, statements: None }));
        let answer = Diagnoses::examine(&reading);
        assert_eq!((answer.diagnosed_seconds, answer.healthy), (10.0, Some(true)));
    }
}
