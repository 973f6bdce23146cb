// SPDX-License-Identifier: PostgreSQL
//! The outcome of each case, kept in a file so that a run continues where it stopped; and the score of all of
//! them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value;

/// The outcomes so far: one JSON object a line.
pub struct Outcomes {
    path: PathBuf,
    lines: Mutex<BTreeMap<String, Value>>,
}

impl Outcomes {
    /// Those in this file; it need not exist.
    pub fn open(path: &Path) -> Outcomes {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lines = lines.map(|line| (line["name"].as_str().unwrap().to_owned(), line)).collect();
        Outcomes { path: path.to_path_buf(), lines: Mutex::new(lines) }
    }

    pub fn has(&self, name: &str) -> bool {
        self.lines.lock().unwrap().contains_key(name)
    }

    /// Keeps the outcome of a case.
    pub fn add(&self, name: &str, mut outcome: Value) {
        outcome["name"] = name.into();
        let mut lines = self.lines.lock().unwrap();
        let mut file =
            std::fs::OpenOptions::new().create(true).append(true).open(&self.path).unwrap();
        writeln!(file, "{outcome}").unwrap();
        lines.insert(name.to_owned(), outcome);
    }

    pub fn named(&self, names: impl IntoIterator<Item = String>) -> Vec<Value> {
        let lines = self.lines.lock().unwrap();
        names.into_iter().filter_map(|name| lines.get(&name).cloned()).collect()
    }
}

/// Cases of a kind, or of all.
#[derive(Default, Clone, Copy)]
pub struct Score {
    pub cases: u32,
    /// Named first, with the right object.
    pub first: u32,
    /// Named at all, with the right object.
    pub named: u32,
    /// A problem of this kind is named.
    pub mechanism: u32,
    /// Named first in a report, with the right object.
    pub first_in_report: u32,
    /// Problems that are named beside it and are none.
    pub wrong: u32,
    /// The advice was executed,
    pub followed: u32,
    /// and ended the problem.
    pub cured: u32,
}

impl Score {
    fn add(&mut self, outcome: &Value) {
        let is = |key: &str| u32::from(outcome[key] == true);
        self.cases += 1;
        self.first += is("first");
        self.named += is("named");
        self.mechanism += is("mechanism");
        self.first_in_report += is("first_in_report");
        self.wrong += outcome["wrong"].as_array().map_or(0, |wrong| wrong.len() as u32);
        self.followed += u32::from(outcome["cured"].is_boolean());
        self.cured += is("cured");
    }

    pub fn from_outcomes(outcomes: &[Value]) -> Score {
        let mut score = Score::default();
        outcomes.iter().for_each(|outcome| score.add(outcome));
        score
    }

    /// The part of the problems named that are there.
    pub fn precision(&self) -> f64 {
        f64::from(self.mechanism) / f64::from((self.mechanism + self.wrong).max(1))
    }

    fn row(&self, name: &str) -> String {
        format!(
            "{name:30} {:5} {:5} {:5} {:9} {:6} {:9.2} {:>7}",
            self.cases,
            self.first,
            self.named,
            self.mechanism,
            self.first_in_report,
            self.precision(),
            format!("{}/{}", self.cured, self.followed),
        )
    }
}

/// The score by kind, and what is wrong with each case that is not named first.
pub fn table(outcomes: &[Value]) -> String {
    let mut by_kind: BTreeMap<&str, Score> = BTreeMap::new();
    for outcome in outcomes {
        by_kind.entry(outcome["kind"].as_str().unwrap()).or_default().add(outcome);
    }
    let mut out = format!(
        "{:30} {:>5} {:>5} {:>5} {:>9} {:>6} {:>9} {:>7}\n",
        "KIND", "CASES", "FIRST", "NAMED", "MECHANISM", "REPORT", "PRECISION", "CURED"
    );
    for (kind, score) in by_kind {
        writeln!(out, "{}", score.row(kind)).unwrap();
    }
    writeln!(out, "{}", Score::from_outcomes(outcomes).row("all")).unwrap();
    for outcome in outcomes {
        let is_wrong = outcome["wrong"].as_array().is_some_and(|wrong| !wrong.is_empty());
        if outcome["first"] == true && outcome["cured"] != false && !is_wrong {
            continue;
        }
        writeln!(
            out,
            "\n{} ({}, {}, seed {}): looks for {}",
            outcome["name"].as_str().unwrap(),
            outcome["background"].as_str().unwrap_or_default(),
            if outcome["severe"] == true { "severe" } else { "mild" },
            outcome["seed"],
            outcome["truth"]
        )
        .unwrap();
        for line in outcome["said"].as_array().into_iter().flatten() {
            writeln!(out, "    {}", line.as_str().unwrap_or_default()).unwrap();
        }
        for key in ["error", "cured"] {
            if !outcome[key].is_null() {
                writeln!(out, "    {key}: {}", outcome[key]).unwrap();
            }
        }
    }
    out
}
