// SPDX-License-Identifier: PostgreSQL
//! `tally diff`: compares two recordings and separates changes from noise.
//!
//! [`side`] reads each recording in [`columns`] of time, [`compare`] tests the changes, [`configuration`] lists
//! settings that differ, and [`findings`] sums up in sentences. The resulting [`comparison`] is printed as JSON
//! or, as a [`document`], as text or a page.

#[cfg(test)]
mod alarms;
mod args;
mod call_change;
mod calls;
mod charts;
mod columns;
mod compare;
mod comparison;
mod configuration;
mod document;
mod findings;
mod key;
mod machine;
mod matching;
mod processors;
mod samples;
mod selection;
mod side;
mod statements;
mod verdict;

use std::time::Duration;

use indicatif::ProgressBar;
use jiff::tz::TimeZone;

use columns::State;
use compare::{units, MeasuredByBoth, Pair};
use comparison::{Compared, Comparison, DiffUnit, Subject};
use document::Noise;
use error::Error;
use key::{Key, COUNTED};
use selection::Selection;
use side::ComparedSide;
use view::document::ReportOrigin;

pub use args::DiffArgs;

/// A warning is given if the statements cover less than this share of the compared time.
const WHOLE: f64 = 0.95;

/// Compares two recordings, and prints the result or writes it to a file.
pub fn run(args: &DiffArgs, color: bool) -> Result<(), Error> {
    let (comparison, sides) = make(args)?;
    let zone = TimeZone::system();
    if !args.output.is_page() {
        let document = || document::document(&comparison, Noise::Summed, &zone);
        return args.output.write(&comparison, document, color);
    }
    let mut page = document::document(&comparison, Noise::Shown, &zone);
    charts::add(&mut page, &comparison, sides.each_ref())?;
    args.output.write(&comparison, || page, color)
}

/// Reads both recordings and compares them.
fn make(args: &DiffArgs) -> Result<(Comparison, [ComparedSide; 2]), Error> {
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(100));
    progress.set_message("reading A");
    let host = args.host.as_deref();
    let cluster = |of: &Selection, other: &Selection| {
        let meant = of.is_url() || !other.is_url();
        args.cluster.as_deref().filter(|_| meant)
    };
    let mut a = ComparedSide::read("A", &args.a, (cluster(&args.a, &args.b), host))?;
    progress.set_message("reading B");
    let host = args.host_b.as_deref().or(host);
    let mut b = ComparedSide::read("B", &args.b, (cluster(&args.b, &args.a), host))?;
    let shared = shared(&a, &b)?;
    let is_sampled = a.sampled.is_some() || b.sampled.is_some();
    if is_sampled {
        a.merge_phases();
        b.merge_phases();
    }
    if let (Some(a), Some(b)) = (&mut a.statements, &mut b.statements) {
        matching::match_up(a, b);
    }
    progress.set_message("comparing");
    let mut units = units(&a, &b);
    let per = match args.per {
        Some(DiffUnit::Second) => DiffUnit::Second,
        Some(per) if units.contains(&per) => per,
        Some(per) => return Err(nothing_to_count_by(&a, &b, per)),
        // Samples count no work.
        None if is_sampled => DiffUnit::Second,
        // Clients on one side only: the user must decide what counts as the same work.
        None if [&a, &b].iter().any(|side| side.has_clients()) => {
            *units.first().ok_or_else(|| nothing_to_count_by(&a, &b, DiffUnit::Command))?
        }
        None => DiffUnit::Second,
    };
    if per == DiffUnit::Second {
        units.push(per);
    }
    let mut left_out: Vec<String> = shared.into_iter().collect();
    left_out.extend([&a, &b].into_iter().filter_map(partial));
    left_out.extend(configuration::unknown(&a, &b)?);
    let mut looked = |what: fn(&State) -> u64, why: &str| {
        let (both, some) = (a.has(what) && b.has(what), a.has_some(what) || b.has_some(what));
        left_out.extend((some && !both).then(|| why.to_string()));
        both
    };
    let locks = looked(
        |state| state.locks_ns,
        "Locks are not compared: the level was not locks throughout A and B. Measuring locks \
         costs time, which is part of the accounts.",
    );
    let functions = looked(
        |state| state.functions_ns,
        "Functions are not compared: they were not timed throughout A and B. Timing them costs \
         time, which is part of the accounts.",
    );
    left_out.extend([&a, &b].into_iter().filter(|_| functions).filter_map(not_timed));
    if a.statements.is_some() != b.statements.is_some() {
        let missing = if a.statements.is_some() { "B" } else { "A" };
        left_out.push(format!(
            "Statements are not compared: {missing} has none, or is shorter than its recorder's \
             --detail."
        ));
    } else {
        left_out.extend([&a, &b].into_iter().filter_map(of_statements));
    }
    let chosen = std::iter::once(per).chain(units.into_iter().filter(|unit| *unit != per));
    let units: Vec<DiffUnit> = chosen.collect();
    let rows = Pair { a: &a, b: &b, per }.rows(&units, MeasuredByBoth { locks, functions });
    let mut comparison = Comparison {
        format: "pgtally diff",
        version: 1,
        made: ReportOrigin {
            time: segment::clock::realtime_ns() as f64 * 1e-9,
            by: format!("pgtally {}", env!("CARGO_PKG_VERSION")),
        },
        per,
        a: compared(&a),
        b: compared(&b),
        findings: Vec::new(),
        configuration: configuration::differences(&a, &b)?,
        left_out,
        rows,
    };
    // Problems are complete once everything has been read.
    for side in [&a, &b] {
        let problems = side.recording.problems().into_iter();
        comparison.left_out.extend(problems.map(|text| format!("{}: {text}.", side.name)));
    }
    comparison.findings = findings::findings(&comparison);
    progress.finish_and_clear();
    Ok((comparison, [a, b]))
}

/// A warning if the statements of a side cover much less time than is compared: a recorder that was killed did
/// not read the last ones.
fn of_statements(side: &ComparedSide) -> Option<String> {
    let (all, known) = (side.seconds(), side.statement_seconds()?);
    (known < all * WHOLE)
        .then(|| format!("The statements of {} cover only {known:.0} of {all:.0} s.", side.name))
}

/// Functions with calls that were counted but not timed.
fn not_timed(side: &ComparedSide) -> Option<String> {
    let mut names: Vec<&str> = side
        .lines
        .keys()
        .filter_map(|key| match key {
            Key::Row(Subject::Function { function, part: COUNTED, .. }) if side.count(key) > 0 => {
                Some(&**function)
            }
            _ => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| {
        format!(
            "Some calls in {} were counted but not timed (too frequent) and are missing here: \
             {}.",
            side.name,
            names.join(", ")
        )
    })
}

fn compared(side: &ComparedSide) -> Compared {
    Compared {
        recording: side.source.name(),
        host: side.recording.host().to_string(),
        server: side.recording.about().server.clone(),
        from: side.range.from_us as f64 * 1e-6,
        to: side.range.to_us as f64 * 1e-6,
        recorded_seconds: side.recorded_seconds(),
        compared_seconds: side.seconds(),
        exact: side.exact,
        source: if side.sampled.is_some() { "sampled" } else { "exact" },
        blocks: side.kept.len(),
        processors: side.processors,
        commits: side.count(&Key::Unit(DiffUnit::Commit)),
        commands: side.count(&Key::Unit(DiffUnit::Command)),
    }
}

/// A warning if both sides overlap in one recording; an error if they are the same.
fn shared(a: &ComparedSide, b: &ComparedSide) -> Result<Option<String>, Error> {
    if !a.source.is(&b.source) || a.recording.host() != b.recording.host() {
        return Ok(None);
    }
    if a.range == b.range {
        return Err(Error::Usage(format!(
            "A and B are the same time range of the same recording, {}; specify another recording, or parts of \
             it: \
             DIR@FROM..TO",
            a.source.name()
        )));
    }
    let common = a.range.to_us.min(b.range.to_us) - a.range.from_us.max(b.range.from_us);
    Ok((common > 0).then(|| {
        format!(
            "A and B have {:.0} s in common, so their noise is underestimated, and so are \
             their differences.",
            common as f64 * 1e-6
        )
    }))
}

/// A warning if part of a side is not compared, or not exact.
fn partial(side: &ComparedSide) -> Option<String> {
    let (recorded, compared) = (side.recorded_seconds(), side.seconds());
    if side.sampled.is_some() {
        return Some(format!(
            "{} was made from samples: it has no phases and no counts. A change counts only if it exceeds the error of the samples.",
            side.name
        ));
    }
    if !side.exact {
        return Some(format!(
            "{} has no exact part (sessions, statistics or time are missing). The rest is \
             compared, and its figures may be too small.",
            side.name
        ));
    }
    (compared < recorded * 0.999).then(|| {
        let off = side.columns.states.iter().any(|state| state.off_ns > 0);
        let why =
            if off { "the level was off, or something is missing" } else { "something is missing" };
        format!(
            "{:.0} s of {} are left out ({why}); {compared:.0} s are compared.",
            recorded - compared,
            side.name
        )
    })
}

fn nothing_to_count_by(a: &ComparedSide, b: &ComparedSide, per: DiffUnit) -> Error {
    let key = Key::Unit(per);
    let none: Vec<&ComparedSide> =
        [a, b].into_iter().filter(|side| side.count(&key) == 0).collect();
    let which = match none[..] {
        [side] => side.name,
        _ => "A and B",
    };
    let remedy = match per {
        DiffUnit::Commit => "use --per command",
        DiffUnit::Command | DiffUnit::Second => {
            "specify a time range in which clients were served, or use --per second"
        }
    };
    Error::Failed(format!(
        "no client {} was recorded in {which}, so there is no time per unit; {remedy}",
        per.name()
    ))
}
