// SPDX-License-Identifier: PostgreSQL
//! Figures computed from invented courses.

use crate::engine::journal::RunHead;

use super::course::CoursePoint;
use super::*;
use crate::storage::victim::VictimOutcome;

fn study() -> StorageStudy {
    let text = "name = \"a\"\ntitle = \"A\"\nquestion = \"?\"\nfor = 60\nrepeats = 4\nagain = false\n[background]\nrate = 1\n\
                threads = 4\nfiles = 1\nsizes = [{ size = \"8kB\", share = 1 }]\n[[arm]]\nname = \"x\"\n\
                [[arm]]\nname = \"y\"\n[[victim]]\nname = \"copy\"\ncommand = [\"true\"]\nat = [9]\n";
    StorageStudy::parse(text).unwrap()
}

fn run(at: Option<f64>, seconds: f64, failure: Option<String>) -> VictimRun {
    let ran = VictimOutcome {
        seconds,
        user_seconds: 1.0,
        system_seconds: 2.0,
        children_seconds: 4.0,
        failure,
        ..VictimOutcome::default()
    };
    VictimRun { name: "copy".into(), at, began: at.unwrap_or(-9.0) + 1.0, ran }
}

/// A cell in which the victim takes two seconds without background and `factor` times as long with it.
fn course(arm: &str, block: usize, factor: f64) -> CellCourse {
    let point = |from, to, rate, response, reads| CoursePoint {
        from,
        to,
        rate,
        wanted: Some(2.0 * rate),
        response: Some(response),
        reads: Some(reads),
        bytes: 10.0 * rate,
        owed: 5,
        ..CoursePoint::default()
    };
    CellCourse {
        arm: arm.into(),
        block,
        points: vec![point(0.0, 10.0, 10.0, 0.001, 1.0), point(10.0, 30.0, 1.0, 0.01, 0.0)],
        runs: vec![run(None, 2.0, None), run(Some(9.0), 2.0 * factor, None)],
        ..CellCourse::default()
    }
}

/// Arm y takes twice as long as arm x, which takes about three times as long as without background; one run fails.
fn courses() -> Vec<CellCourse> {
    let factors = [2.5, 3.0, 3.5, 3.0];
    let mut all = Vec::new();
    for (block, factor) in factors.into_iter().enumerate() {
        all.push(course("x", block, factor));
        all.push(course("y", block, 2.0 * factor + block as f64));
    }
    all[6].runs[1].ran.failure = Some("no".into());
    all
}

fn close(ours: f64, expected: f64) {
    assert!((ours / expected - 1.0).abs() < 1e-9, "{ours} is not {expected}");
}

#[test]
fn slowdowns_and_comparisons_are_means_of_logs_of_the_runs_that_succeeded() {
    let (study, courses) = (study(), courses());
    let mut cells: Vec<CellRow> = courses.iter().map(cell).collect();
    let found = slowdowns(&study, &arms(&study), &courses, &cells);
    let logs = [2.5f64, 3.0, 3.5].map(f64::ln);
    let e = Estimate::of_repeats(&logs).unwrap();
    assert_eq!(
        (found[0].arm.as_str(), found[0].when, found[0].runs, found.len()),
        ("x", "all", 3, 2)
    );
    close(found[0].factor, e.mean.exp());
    let (low, high) = found[0].interval.unwrap();
    close(low, (e.mean - e.half_width).exp());
    close(high, (e.mean + e.half_width).exp());

    let found = comparisons(&study, &arms(&study), &courses, "x");
    let logs = [(5.0f64, 2.5), (7.0, 3.0), (9.0, 3.5)].map(|(y, x)| (y / x).ln());
    let e = Estimate::of_repeats(&logs).unwrap();
    assert_eq!((found.len(), found[0].pairs), (1, 3));
    close(found[0].percent, 100.0 * (e.mean.exp() - 1.0));
    close(found[0].half_width.unwrap(), 100.0 * e.mean.exp() * e.half_width);

    // The runs begin at 10 s.
    for (cell, at) in cells.iter_mut().step_by(2).zip([9.0, 10.0, 11.0, 12.0]) {
        let lost = Loss { at, ..loss() };
        cell.lost = Some(lost);
    }
    let found = slowdowns(&study, &arms(&study), &courses, &cells);
    let of_x: Vec<_> = found
        .iter()
        .filter(|slowdown| slowdown.arm == "x")
        .map(|slowdown| (slowdown.when, slowdown.runs))
        .collect();
    assert_eq!(of_x, [("all", 3), ("before", 1), ("after", 2)]);
}

fn loss() -> Loss {
    Loss {
        at: 0.0,
        uncertain: 1.0,
        of: "rate",
        rate_before: 10.0,
        rate_after: 5.0,
        rate_percent: -50.0,
        rate_half_width: None,
        response_before: 0.001,
        response_after: 0.1,
        cause: None,
    }
}

#[test]
fn figures_of_a_cell_are_weighted_by_time_or_by_operations() {
    let course = course("x", 0, 3.0);
    let found = cell(&course);
    // 100 operations in 10 s, 20 in 20 s.
    for (ours, expected) in [
        (found.seconds, 30.0),
        (found.made_per_second, 4.0),
        (found.wanted_per_second.unwrap(), 8.0),
        (found.bytes_per_second, 40.0),
        (found.response_mean.unwrap(), (100.0 * 0.001 + 20.0 * 0.01) / 120.0),
        (found.reads.unwrap(), 100.0 / 120.0),
    ] {
        close(ours, expected);
    }
    assert_eq!((found.owed, found.lost), (5, None));
    let (alone, busy) = (row(&course, &course.runs[0]), row(&course, &course.runs[1]));
    assert_eq!((alone.cpu_seconds, alone.began, alone.background_per_second), (7.0, None, None));
    assert_eq!((busy.began, busy.background_per_second), (Some(10.0), Some(1.0)));
}

#[test]
fn the_table_and_the_sentences_say_what_the_answer_has() {
    let head = RunHead::new(false, "fio".into());
    let kept = RunRecord {
        head,
        host: live::host::Watch::start().host(""),
        left_out: Vec::new(),
        failed: Vec::new(),
    };
    let mut answer =
        StorageResults::compute(&study(), &courses(), &kept, Path::new("/nowhere")).unwrap();
    let tables = crate::storage::tables::make_tables(&answer);
    let rows: Vec<String> = tables[0].csv().lines().map(String::from).collect();
    assert_eq!(tables[0].title, "Duration of copy in seconds, by start time");
    // Alone, the mean of 5, 6 and 7 s, and the factor; for y of 10, 14, 18 and 18 s.
    assert!(rows[1].starts_with("x,2,6,2.97") && rows[2].starts_with("y,2,15,"), "{rows:?}");
    let steady = |answer: &StorageResults| {
        let all = sentences::sentences(answer);
        all.iter()
            .filter(|sentence| sentence.contains("stayed steady"))
            .map(|sentence| sentence[..1].to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(steady(&answer), ["x", "y"]);
    answer.cells[2].lost = Some(loss());
    assert_eq!(steady(&answer), ["y"], "one cell of x lost it");
}
