// SPDX-License-Identifier: PostgreSQL
//! Checks beyond the syntax of a study file: names exist, alternatives exclude each other, and the
//! design supports the requested features.

use std::collections::HashSet;
use std::ops::{Range, RangeBounds};
use std::time::Duration;

use super::{ArmLevel, Design, Read, ReadSource, Study};
use crate::study::expression::Expression;
use crate::study::selector::Selector;

/// Names that every expression may use, besides earlier reads and the arm's `given`.
pub const PREDEFINED: [&str; 4] = ["clients", "rate", "seconds", "cores"];

const POSITIVE: Range<f64> = f64::MIN_POSITIVE..f64::INFINITY;

/// A process adopts a new level at its next probe. Shorter slices would measure mostly the transition.
const MIN_SLICE: Duration = Duration::from_millis(4);
/// A session adopts a changed setting between two commands, some milliseconds after the reload.
const MIN_SLICE_WITH_SETTINGS: Duration = Duration::from_millis(50);

impl Study {
    /// Checks the whole study. The error describes the first problem found.
    pub(super) fn check(&self) -> Result<(), String> {
        check_name("the study", &self.name, '-')?;
        self.check_arms()?;
        self.check_workload()?;
        self.check_numbers()?;
        self.check_reads()?;
        if self.measure.design == Design::Toggle {
            self.check_toggle()?;
        }
        self.check_shown()
    }

    fn check_arms(&self) -> Result<(), String> {
        let mut seen = HashSet::new();
        for arm in &self.arms {
            check_name("an arm", &arm.name, '-')?;
            if !seen.insert(&arm.name) {
                return Err(format!("duplicate arm \"{}\"", arm.name));
            }
            let arm_is = |what: &str| Err(format!("arm \"{}\": {what}", arm.name));
            if arm.directory.is_some() && arm.file_system.is_some() {
                return arm_is("set either directory or file_system, not both");
            }
            if arm.wal_directory.is_some() && arm.wal_file_system.is_some() {
                return arm_is("set either wal_directory or wal_file_system, not both");
            }
            if arm.script.is_some() && arm.command.is_some() {
                return arm_is("set either script or command, not both");
            }
            let commands = [&arm.before, &arm.after, &arm.command];
            let own = arm.instrument.as_ref().map(|instrument| &instrument.command);
            if commands.into_iter().flatten().chain(own).any(Vec::is_empty) {
                return arm_is("a command must be a list of a program and its arguments");
            }
        }
        for settings in
            [&self.server.settings].into_iter().chain(self.arms.iter().map(|a| &a.settings))
        {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            if let Some(name) =
                settings.keys().find(|name| name.is_empty() || !name.chars().all(word))
            {
                return Err(format!("\"{name}\" is not a setting name"));
            }
        }
        if self.arms.is_empty() || (self.arms.len() < 2 && self.points_given() < 2) {
            return Err("a study needs at least two arms, or one arm and several points".into());
        }
        Ok(())
    }

    fn points_given(&self) -> usize {
        let workload = &self.workload;
        let clients = workload.clients.as_ref().map_or(1, Vec::len);
        clients * workload.rates.as_ref().map_or(1, Vec::len)
    }

    fn check_workload(&self) -> Result<(), String> {
        let workload = &self.workload;
        let ways =
            [workload.builtin.is_some(), workload.script.is_some(), workload.command.is_some()];
        let given = ways.into_iter().filter(|given| *given).count();
        let all_arms = self.arms.iter().all(|arm| arm.script.is_some() || arm.command.is_some());
        if given > 1 || (given == 0 && !all_arms) {
            return Err("workload: set exactly one of builtin, script and command".into());
        }
        if workload.command.as_ref().is_some_and(Vec::is_empty) {
            return Err("workload: a command must be a list of a program and its arguments".into());
        }
        if workload.think.is_some() && workload.script.is_none() {
            return Err("workload: think requires script".into());
        }
        for clients in [&workload.clients, &self.quick.clients].into_iter().flatten() {
            if clients.is_empty() || clients.iter().any(|n| !(1..=10_000).contains(n)) {
                return Err("clients must be a list of numbers from 1 to 10000".into());
            }
        }
        let rates = [&workload.rates, &self.quick.rates].into_iter().flatten().flatten();
        let rates = rates.chain(&workload.rate).map(|rate| Some(*rate));
        within(rates, POSITIVE, "rate must be greater than 0 transactions per second")?;
        if workload.rate.is_some() && workload.rates.is_some() {
            return Err("workload: set either rate or rates, not both".into());
        }
        if workload.rates.is_some() && workload.clients.as_ref().is_some_and(|c| c.len() > 1) {
            return Err("workload: use either rates or several numbers of clients, not both".into());
        }
        let transactions = [workload.transactions, self.quick.transactions];
        within(transactions, 1.., "transactions must be greater than 0")
    }

    fn check_numbers(&self) -> Result<(), String> {
        let (measure, quick) = (&self.measure, &self.quick);
        let seconds = [Some(measure.seconds), quick.seconds, measure.every, quick.every];
        within(seconds, 0.05..=86_400.0, "seconds and every must be between 0.05 and 86400")?;
        let warm_up = [Some(measure.warm_up), quick.warm_up];
        within(warm_up, 0.0..=3600.0, "warm_up must be between 0 and 3600 seconds")?;
        let repeats = [Some(measure.repeats), quick.repeats];
        within(repeats, 1..=100_000, "repeats must be between 1 and 100000")?;
        let widths = [measure.half_width, quick.half_width];
        within(widths, POSITIVE, "half_width must be greater than 0 percent")?;
        within([Some(self.server.scale), quick.scale], ..=100_000, "scale must be at most 100000")
    }

    fn check_reads(&self) -> Result<(), String> {
        let mut known: HashSet<&str> = PREDEFINED.into_iter().collect();
        known.extend(self.arms.iter().flat_map(|arm| arm.given.keys()).map(String::as_str));
        for read in &self.reads {
            check_name("a read", &read.name, '_')?;
            if !known.insert(&read.name) {
                return Err(format!(
                    "duplicate read \"{}\", or an arm gives a value of that name",
                    read.name
                ));
            }
            let wrong = |what: String| format!("read \"{}\": {what}", read.name);
            match read.source()? {
                ReadSource::Of(_) | ReadSource::Sql(..) | ReadSource::Line(..) => {}
                ReadSource::Interval(path) => drop(Selector::parse(path).map_err(wrong)?),
                ReadSource::Value(text) => {
                    let expression = Expression::parse(text).map_err(wrong)?;
                    // Only earlier reads are allowed, so references cannot be circular.
                    let unknown = |name: &&str| !known.contains(name) || *name == read.name;
                    if let Some(name) = expression.names().into_iter().find(unknown) {
                        return Err(wrong(format!("no earlier read is named \"{name}\"")));
                    }
                }
                ReadSource::OverBase(of) if known.contains(of) && of != read.name => {}
                ReadSource::OverBase(of) => {
                    return Err(wrong(format!("no earlier read is named \"{of}\"")))
                }
                ReadSource::Series(of, _) => match self.read(of) {
                    Some(other) if other.series && other.name != read.name => {}
                    Some(_) => {
                        let what = format!("read \"{of}\" has no series; set series = true there");
                        return Err(wrong(what));
                    }
                    None => return Err(wrong(format!("read \"{of}\" does not exist"))),
                },
            }
            if read.series && self.measure.every.is_none() {
                return Err(wrong("a series requires [measure] every".into()));
            }
        }
        if self.reads.is_empty() {
            return Err("a study needs at least one [[read]]".into());
        }
        Ok(())
    }

    /// Rejects keys that cannot be changed in running backends, and reads that slices cannot provide.
    fn check_toggle(&self) -> Result<(), String> {
        for arm in &self.arms {
            let level = arm.level.unwrap_or(self.server.level);
            let fixed = arm.has_location()
                || arm.wal_directory.is_some()
                || arm.wal_file_system.is_some()
                || arm.instrument.is_some()
                || arm.before.is_some()
                || arm.after.is_some()
                || arm.script.is_some()
                || arm.command.is_some()
                || arm.clock_source.is_some()
                || matches!(level, ArmLevel::None | ArmLevel::Any);
            if fixed {
                return Err(format!(
                    "arm \"{}\" cannot be toggled in running backends; only levels, statements and \
                     settings can. Use design = \"restart\" for the rest",
                    arm.name
                ));
            }
        }
        let workload = &self.workload;
        if workload.command.is_some() || workload.transactions.is_some() {
            return Err(
                "toggled arms require a pgbench load without a number of transactions".into()
            );
        }
        let connects = |option: &String| {
            option == "-C" || option.len() > 3 && "--connect".starts_with(option.as_str())
        };
        if let Some(option) = workload.options.iter().find(|option| connects(option)) {
            return Err(format!(
                "workload: toggled arms are measured in sessions that last, but {option} makes one for each transaction. Use \
                 design = \"restart\""
            ));
        }
        if workload.script.is_some() && workload.commands.is_none() {
            return Err(
                "workload: a toggled script requires commands, its number of messages".into()
            );
        }
        for read in &self.reads {
            let available = match read.source()? {
                ReadSource::Of(measured) => measured.is_of_slices(),
                ReadSource::Value(_) | ReadSource::OverBase(_) => !read.series,
                _ => false,
            };
            if !available {
                return Err(format!("read \"{}\" is not available for toggled arms", read.name));
            }
        }
        let min = match self.arms.iter().any(|arm| !arm.settings.is_empty()) {
            true => MIN_SLICE_WITH_SETTINGS,
            false => MIN_SLICE,
        };
        let slices =
            [Some(self.measure.slice), self.quick.slice].map(|slice| slice.map(|time| time.0));
        within(slices, min.., &format!("slice must be at least {min:?} for these arms"))
    }

    fn check_shown(&self) -> Result<(), String> {
        let read = |name: &String, by: &str| match self.read(name) {
            Some(_) => Ok(()),
            None => Err(format!("{by}: read \"{name}\" does not exist")),
        };
        let arm = |name: &String, by: &str| match self.arms.iter().any(|arm| arm.name == *name) {
            true => Ok(()),
            false => Err(format!("{by}: arm \"{name}\" does not exist")),
        };
        if let Some(compare) = &self.compare {
            compare.base.iter().try_for_each(|name| arm(name, "compare"))?;
            compare.reads.iter().try_for_each(|name| read(name, "compare"))?;
            if compare.reads.is_empty() {
                return Err("compare needs at least one read".into());
            }
        } else if self.measure.half_width.is_some() || self.quick.half_width.is_some() {
            return Err("half_width requires [compare]".into());
        }
        for table in &self.tables {
            table.reads.iter().chain(&table.read).try_for_each(|name| read(name, "table"))?;
            table.arms.iter().flatten().try_for_each(|name| arm(name, "table"))?;
            if table.reads.is_empty() == table.read.is_none() {
                return Err("table: set either reads, one column each, or read".into());
            }
        }
        for chart in &self.charts {
            chart.reads.iter().try_for_each(|name| read(name, "chart"))?;
            chart.arms.iter().flatten().try_for_each(|name| arm(name, "chart"))?;
            if chart.reads.is_empty() {
                return Err("chart needs at least one read".into());
            }
            let reads: Vec<&Read> = chart.reads.iter().filter_map(|name| self.read(name)).collect();
            chart.unit(&reads)?;
        }
        for listing in &self.listings {
            let ways = [
                listing.sql.is_some(),
                listing.events.is_some(),
                listing.output.is_some(),
                listing.worst.is_some(),
            ];
            let by = format!("listing \"{}\"", listing.title);
            if ways.into_iter().filter(|given| *given).count() != 1 {
                return Err(format!("{by}: set exactly one of sql, events, output and worst"));
            }
            if let Some(name) = &listing.worst {
                read(name, &by)?;
                if !self.read(name).is_some_and(|read| read.series && read.better.is_some()) {
                    return Err(format!("{by}: read \"{name}\" must set series = true and better"));
                }
            }
        }
        self.fits.iter().try_for_each(|fit| read(&fit.read, "fit"))
    }
}

fn check_name(what: &str, name: &str, separator: char) -> Result<(), String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == separator;
    if !name.is_empty() && name.len() <= 60 && name.chars().all(letter) {
        return Ok(());
    }
    Err(format!(
        "\"{name}\" is not a valid name for {what}; use up to 60 letters, digits and {separator}"
    ))
}

/// Rejects numbers outside a range; NaN is outside every range.
fn within<T: PartialOrd>(
    numbers: impl IntoIterator<Item = Option<T>>,
    range: impl RangeBounds<T>,
    why: &str,
) -> Result<(), String> {
    match numbers.into_iter().flatten().all(|number| range.contains(&number)) {
        true => Ok(()),
        false => Err(why.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = r#"
        name = "a"
        title = "A"
        question = "?"
        [[arm]]
        name = "one"
        [[arm]]
        name = "two"
        [workload]
        builtin = "select-only"
        [[read]]
        name = "throughput"
        of = "throughput"
    "#;

    fn refused(change: impl Fn(&str) -> String) -> String {
        Study::parse(&change(VALID)).unwrap_err()
    }

    #[test]
    fn a_minimal_study_is_accepted() {
        let study = Study::parse(VALID).unwrap();
        assert_eq!((study.arms.len(), study.measure.repeats), (2, 8));
    }

    #[test]
    fn the_error_for_an_unknown_key_names_the_key_and_its_line() {
        let message = refused(|text| text.replace("builtin =", "bulitin ="));
        assert!(message.contains("bulitin") && message.contains("line 10"), "{message}");
    }

    #[test]
    fn missing_and_conflicting_entries_are_refused_with_a_message() {
        for (more, words) in [
            (
                "[compare]\nreads = [\"throughput\"]\nbase = \"three\"",
                "arm \"three\" does not exist",
            ),
            ("[compare]\nreads = [\"latency\"]", "read \"latency\" does not exist"),
            ("[[arm]]\nname = \"one\"", "duplicate arm \"one\""),
            ("[[arm]]\nname = \"thr ee\"", "not a valid name"),
            ("[[read]]\nname = \"x\"", "exactly one of"),
            ("[[read]]\nname = \"x\"\nof = \"cpu\"\nsql = \"select 1\"", "exactly one of"),
            ("[[read]]\nname = \"x\"\nvalue = \"x + 1\"", "no earlier read is named \"x\""),
            ("[[read]]\nname = \"x\"\nof = \"cpu\"\nseries = true", "every"),
            ("[[read]]\nname = \"x\"\ninterval = \"ledger[\"", "]"),
            ("[[table]]\ntitle = \"t\"", "table"),
            (
                "[[table]]\nreads = [\"throughput\"]\narms = [\"three\"]",
                "arm \"three\" does not exist",
            ),
            ("[[chart]]\nkind = \"bars\"\nreads = [\"y\"]", "read \"y\" does not exist"),
            ("[measure]\nrepeats = 0", "repeats"),
            ("[measure]\nhalf_width = 1", "compare"),
            ("[measure]\ndesign = \"toggle\"\nslice = \"1ms\"", "slice"),
            ("[quick]\nclients = []", "clients"),
        ] {
            let message = refused(|text| format!("{text}\n{more}"));
            assert!(message.contains(words), "{more}: {message}");
        }
        let message = refused(|text| text.replace("builtin = \"select-only\"", ""));
        assert!(message.contains("builtin, script and command"), "{message}");
        let message = refused(|text| text.replace("[[arm]]\n        name = \"two\"", ""));
        assert!(message.contains("two arms, or"), "{message}");
    }

    #[test]
    fn arms_and_reads_that_cannot_be_toggled_are_refused() {
        let toggle = "[measure]\ndesign = \"toggle\"\n";
        for (arm, words) in [
            ("[[arm]]\nname = \"x\"\nlevel = \"none\"", "cannot be toggled"),
            ("[[arm]]\nname = \"x\"\ndirectory = \"/tmp\"", "cannot be toggled"),
            ("[[read]]\nname = \"x\"\nof = \"latency_p99\"", "toggled arms"),
        ] {
            let message = refused(|text| format!("{text}\n{toggle}{arm}"));
            assert!(message.contains(words), "{message}");
        }
        let connecting =
            |text: &str| text.replace("builtin =", "options = [\"--connect\"]\nbuiltin =");
        let message = refused(|text| format!("{}\n{toggle}", connecting(text)));
        assert!(message.contains("sessions that last"), "{message}");
    }
}
