// SPDX-License-Identifier: PostgreSQL
//! The one judgement of a report, from which the sentence at the top follows.

use diagnose::Diagnoses;
use view::document::{Finding, Verdict, Weight};

/// The section of findings about the recording, which are not about the server.
pub(super) const RECORDING: &str = "recording";

/// The worst problem or, without one, that nothing is wrong and what bounds the load. Every warning about the server is a problem,
/// so the findings never contradict this.
pub(super) fn verdict(found: &Diagnoses, findings: &[Finding]) -> Verdict {
    let is_problem =
        |finding: &&Finding| finding.weight == Weight::Warning && finding.section != RECORDING;
    let mut problems = findings.iter().filter(is_problem);
    if let Some(worst) = problems.next() {
        let text = match problems.count() {
            0 => worst.text.clone(),
            1 => format!("{} 1 more problem is below.", ended(&worst.text)),
            more => format!("{} {more} more problems are below.", ended(&worst.text)),
        };
        return Verdict { weight: Weight::Warning, text };
    }
    Verdict { weight: Weight::Note, text: found.no_problem_but_limit() }
}

/// A sentence with its full stop.
fn ended(text: &str) -> String {
    match text.ends_with(['.', '!', '?']) {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{diagnosed, finding, findings};
    use crate::material::Material;
    use crate::sample;
    use jiff::tz::TimeZone;
    use recording::LogRow;

    #[test]
    fn every_warning_about_the_server_is_a_problem_and_those_about_the_recording_are_not() {
        let mut found = diagnosed(&sample::material(), &TimeZone::UTC);
        (found.healthy, found.diagnoses, found.limits) = (Some(true), Vec::new(), Vec::new());
        let (note, warning) = (
            |section| finding::note(section, "it is busy.".into()),
            |section| finding::warning(section, "it is \"bad\"".into()),
        );
        let of = |findings: &[Finding]| {
            let verdict = verdict(&found, findings);
            (verdict.weight, verdict.text)
        };
        let healthy = (Weight::Note, found.no_problem().to_owned());
        assert_eq!(of(&[]), healthy);
        assert_eq!(of(&[note("processors"), warning(RECORDING)]), healthy);
        assert_eq!(of(&[note("processors"), warning("client")]).1, "it is \"bad\"");
        let two = of(&[warning("client"), warning(RECORDING), warning("files")]);
        assert_eq!(two, (Weight::Warning, "it is \"bad\". 1 more problem is below.".to_owned()));
        let three = of(&[warning("client"), warning("log"), warning("files")]);
        assert!(three.1.ends_with("2 more problems are below."), "{}", three.1);
    }

    #[test]
    fn a_server_that_panicked_is_not_healthy_whatever_its_sessions_did() {
        let mut material = sample::material();
        let before = findings(&material, &TimeZone::UTC).0;
        let row = |severity: &str, sqlstate: &str| LogRow {
            time_us: 60_000_000,
            kind: "error".into(),
            severity: severity.into(),
            sqlstate: sqlstate.into(),
            ..LogRow::default()
        };
        material.log = vec![row("FATAL", "53300"), row("PANIC", "58030")];
        let (verdict, all) = findings(&material, &TimeZone::UTC);
        assert_eq!(verdict.weight, Weight::Warning);
        assert!(
            verdict.text.starts_with("The server ended with a PANIC at 1970"),
            "{}",
            verdict.text
        );
        assert!(!before.text.contains("PANIC"));
        assert!(!all.iter().any(|finding| finding.text.starts_with("Healthy")), "{all:#?}");
        let panic = all.iter().find(|finding| finding.text.contains("PANIC")).unwrap();
        assert_eq!(panic.times, [(60.0, 60.0)]);
        assert!(panic.remedy.is_some());
        let refused = all.iter().find(|finding| finding.text.contains("53300")).unwrap();
        assert_eq!((refused.weight, refused.times.len()), (Weight::Warning, 1));
        // The same for `tally fleet doctor`.
        let hosts = diagnosed(&material, &TimeZone::UTC);
        assert_eq!(hosts.healthy, Some(false));
        let of_rule = hosts.diagnoses.iter().filter(|found| found.rule.name() == "server-log");
        assert_eq!(of_rule.count(), 2);
    }

    #[test]
    fn a_busy_server_is_healthy_and_no_finding_warns_of_that() {
        let mut material = Material { vacuum: None, ..sample::material() };
        for point in &mut material.points {
            if let Some(figures) = &mut point.figures {
                figures.activities = vec![("cpu".into(), 9.0 * point.seconds)];
            }
        }
        material.whole.cores = 2;
        let (_, all) = findings(&material, &TimeZone::UTC);
        let busy = all.iter().find(|finding| finding.section == "processors").unwrap();
        assert!(busy.text.starts_with("CPU demand exceeded"), "{}", busy.text);
        assert_eq!(busy.weight, Weight::Note);
    }
}
