// SPDX-License-Identifier: PostgreSQL
//! What a study file must have beyond its form: names that exist, one way of saying each thing,
//! and nothing that its design cannot do.

use std::collections::HashSet;
use std::time::Duration;

use super::{Arm, ArmLevel, Design, Source, Study};
use crate::expression::Expression;
use crate::selector::Selector;

/// Names that expressions have beside the reads.
pub const GIVEN: [&str; 4] = ["clients", "rate", "seconds", "cores"];

/// A level is taken up at the next probe; less than this is all beginning.
const LEAST_SLICE: Duration = Duration::from_millis(4);
/// A setting is read again between commands, some milliseconds after the first process was told.
const LEAST_SLICE_OF_SETTINGS: Duration = Duration::from_millis(50);

impl Study {
    /// The first thing that is wrong, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        name_of("the study", &self.name, '-')?;
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
            name_of("an arm", &arm.name, '-')?;
            if !seen.insert(&arm.name) {
                return Err(format!("there are two arms \"{}\"", arm.name));
            }
            let arm_is = |what: &str| Err(format!("arm \"{}\": {what}", arm.name));
            if arm.directory.is_some() && arm.file_system.is_some() {
                return arm_is("directory and file_system exclude each other");
            }
            if arm.wal_directory.is_some() && arm.wal_file_system.is_some() {
                return arm_is("wal_directory and wal_file_system exclude each other");
            }
            if arm.script.is_some() && arm.command.is_some() {
                return arm_is("script and command exclude each other");
            }
            let commands = [&arm.before, &arm.after, &arm.command];
            let own = arm.instrument.as_ref().map(|instrument| &instrument.command);
            if commands.into_iter().flatten().chain(own).any(Vec::is_empty) {
                return arm_is("a command is a list of a program and its arguments");
            }
        }
        for settings in
            [&self.server.settings].into_iter().chain(self.arms.iter().map(|a| &a.settings))
        {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            if let Some(name) =
                settings.keys().find(|name| name.is_empty() || !name.chars().all(word))
            {
                return Err(format!("\"{name}\" is not the name of a setting"));
            }
        }
        if self.arms.is_empty() || (self.arms.len() < 2 && self.points_given() < 2) {
            return Err("a study wants two arms at least, or one and several points".into());
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
            return Err("workload: exactly one of builtin, script and command".into());
        }
        if workload.command.as_ref().is_some_and(Vec::is_empty) {
            return Err("workload: a command is a list of a program and its arguments".into());
        }
        if workload.think.is_some() && workload.script.is_none() {
            return Err("workload: think goes with a script of one's own".into());
        }
        for clients in [&workload.clients, &self.quick.clients].into_iter().flatten() {
            if clients.is_empty() || clients.iter().any(|n| !(1..=10_000).contains(n)) {
                return Err("clients: a list of numbers from 1 to 10000".into());
            }
        }
        let rates = [&workload.rates, &self.quick.rates].into_iter().flatten().flatten();
        if rates.chain(&workload.rate).any(|rate| !rate.is_finite() || *rate <= 0.0) {
            return Err("rate: transactions per second, more than 0".into());
        }
        if workload.rate.is_some() && workload.rates.is_some() {
            return Err("workload: rate and rates exclude each other".into());
        }
        if workload.rates.is_some() && workload.clients.as_ref().is_some_and(|c| c.len() > 1) {
            return Err("workload: the points are rates or several clients, not both".into());
        }
        if workload.transactions == Some(0) || self.quick.transactions == Some(0) {
            return Err("transactions: more than 0".into());
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), String> {
        let measure = &self.measure;
        let seconds = [Some(measure.seconds), self.quick.seconds, measure.every, self.quick.every];
        if seconds.into_iter().flatten().any(|s| !s.is_finite() || !(0.05..=86_400.0).contains(&s))
        {
            return Err("seconds and every: from 0.05 to 86400".into());
        }
        let warm_up = [Some(measure.warm_up), self.quick.warm_up];
        if warm_up.into_iter().flatten().any(|s| !(0.0..=3600.0).contains(&s)) {
            return Err("warm_up: from 0 to 3600 seconds".into());
        }
        let repeats = [Some(measure.repeats), self.quick.repeats];
        if repeats.into_iter().flatten().any(|n| !(1..=100_000).contains(&n)) {
            return Err("repeats: from 1 to 100000".into());
        }
        let widths = [measure.half_width, self.quick.half_width];
        if widths.into_iter().flatten().any(|width| !width.is_finite() || width <= 0.0) {
            return Err("half_width: per cent, more than 0".into());
        }
        let scales = [Some(self.server.scale), self.quick.scale];
        if scales.into_iter().flatten().any(|scale| scale > 100_000) {
            return Err("scale: at most 100000".into());
        }
        Ok(())
    }

    fn check_reads(&self) -> Result<(), String> {
        let mut known: HashSet<&str> = GIVEN.into_iter().collect();
        known.extend(self.arms.iter().flat_map(|arm| arm.given.keys()).map(String::as_str));
        for read in &self.reads {
            name_of("a read", &read.name, '_')?;
            if !known.insert(&read.name) {
                return Err(format!(
                    "there are two reads \"{}\" (or it is a given name)",
                    read.name
                ));
            }
            let wrong = |what: String| Err(format!("read \"{}\": {what}", read.name));
            match read.source()? {
                Source::Of(_) | Source::Sql(..) | Source::Line(..) => {}
                Source::Interval(path) => {
                    if let Err(error) = Selector::parse(path) {
                        return wrong(error);
                    }
                }
                Source::Value(text) => match Expression::parse(text) {
                    Err(error) => return wrong(error),
                    // Only what stands before it: so there is no circle.
                    Ok(expression) => {
                        let unknown = |name: &&str| !known.contains(name) || *name == read.name;
                        if let Some(name) = expression.names().into_iter().find(unknown) {
                            return wrong(format!("no read \"{name}\" stands before it"));
                        }
                    }
                },
                Source::OverBase(of) if known.contains(of) && of != read.name => {}
                Source::OverBase(of) => return wrong(format!("no read \"{of}\" stands before it")),
                Source::Series(of, _) => match self.read(of) {
                    Some(other) if other.series && other.name != read.name => {}
                    Some(_) => {
                        return wrong(format!("read \"{of}\" keeps no series (series = true)"))
                    }
                    None => return wrong(format!("there is no read \"{of}\"")),
                },
            }
            if read.series && self.measure.every.is_none() {
                return wrong("a series wants [measure] every".into());
            }
        }
        if self.reads.is_empty() {
            return Err("a study reads something: [[read]]".into());
        }
        Ok(())
    }

    /// What cannot be changed on live backends, and what slices cannot tell.
    fn check_toggle(&self) -> Result<(), String> {
        for arm in &self.arms {
            let level = arm.level.unwrap_or(self.server.level);
            let fixed = arm.has_place()
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
                    "arm \"{}\" cannot be toggled on live backends: levels, statements and settings \
                     can; the others want design = \"restart\"",
                    arm.name
                ));
            }
        }
        let workload = &self.workload;
        if workload.command.is_some() || workload.transactions.is_some() {
            return Err("what is toggled runs under a load of pgbench without an end".into());
        }
        if workload.script.is_some() && workload.commands.is_none() {
            return Err("workload: a toggled script wants commands = its number of messages".into());
        }
        for read in &self.reads {
            let can_be_had = match read.source()? {
                Source::Of(measured) => measured.is_of_slices(),
                Source::Value(_) | Source::OverBase(_) => !read.series,
                _ => false,
            };
            if !can_be_had {
                return Err(format!("read \"{}\" cannot be had of toggled arms", read.name));
            }
        }
        let slices = [Some(self.measure.slice), self.quick.slice];
        let least = if self.arms.iter().any(|arm: &Arm| !arm.settings.is_empty()) {
            LEAST_SLICE_OF_SETTINGS
        } else {
            LEAST_SLICE
        };
        if slices.into_iter().flatten().any(|slice| slice.0 < least) {
            return Err(format!("slice: at least {least:?} for these arms"));
        }
        Ok(())
    }

    fn check_shown(&self) -> Result<(), String> {
        let read = |name: &String, by: &str| match self.read(name) {
            Some(_) => Ok(()),
            None => Err(format!("{by}: there is no read \"{name}\"")),
        };
        let arm = |name: &String, by: &str| match self.arms.iter().any(|arm| arm.name == *name) {
            true => Ok(()),
            false => Err(format!("{by}: there is no arm \"{name}\"")),
        };
        if let Some(compare) = &self.compare {
            compare.base.iter().try_for_each(|name| arm(name, "compare"))?;
            compare.reads.iter().try_for_each(|name| read(name, "compare"))?;
            if compare.reads.is_empty() {
                return Err("compare: at least one read".into());
            }
        } else if self.measure.half_width.is_some() || self.quick.half_width.is_some() {
            return Err("half_width is of a comparison: [compare] is missing".into());
        }
        for table in &self.tables {
            table.reads.iter().chain(&table.read).try_for_each(|name| read(name, "table"))?;
            table.arms.iter().flatten().try_for_each(|name| arm(name, "table"))?;
            if table.reads.is_empty() == table.read.is_none() {
                return Err("table: either reads, a column each, or one read".into());
            }
        }
        for chart in &self.charts {
            chart.reads.iter().try_for_each(|name| read(name, "chart"))?;
            chart.arms.iter().flatten().try_for_each(|name| arm(name, "chart"))?;
            if chart.reads.is_empty() {
                return Err("chart: at least one read".into());
            }
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
                return Err(format!("{by}: exactly one of sql, events, output and worst"));
            }
            if let Some(name) = &listing.worst {
                read(name, &by)?;
                if !self.read(name).is_some_and(|read| read.series && read.better.is_some()) {
                    return Err(format!(
                        "{by}: the read \"{name}\" must have series = true, and say what is better"
                    ));
                }
            }
        }
        self.fits.iter().try_for_each(|fit| read(&fit.read, "fit"))
    }
}

fn name_of(what: &str, name: &str, joint: char) -> Result<(), String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == joint;
    if !name.is_empty() && name.len() <= 60 && name.chars().all(letter) {
        return Ok(());
    }
    Err(format!("\"{name}\" is no name for {what}: letters, digits and {joint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL: &str = r#"
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
        Study::parse(&change(WELL)).unwrap_err()
    }

    #[test]
    fn a_small_study_is_read() {
        let study = Study::parse(WELL).unwrap();
        assert_eq!((study.arms.len(), study.measure.repeats), (2, 8));
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let said = refused(|text| text.replace("builtin =", "bulitin ="));
        assert!(said.contains("bulitin") && said.contains("line 10"), "{said}");
    }

    #[test]
    fn what_is_missing_or_said_twice_is_refused_in_words() {
        for (more, words) in [
            ("[compare]\nreads = [\"throughput\"]\nbase = \"three\"", "no arm \"three\""),
            ("[compare]\nreads = [\"latency\"]", "no read \"latency\""),
            ("[[arm]]\nname = \"one\"", "two arms \"one\""),
            ("[[arm]]\nname = \"thr ee\"", "no name"),
            ("[[read]]\nname = \"x\"", "exactly one of"),
            ("[[read]]\nname = \"x\"\nof = \"cpu\"\nsql = \"select 1\"", "exactly one of"),
            ("[[read]]\nname = \"x\"\nvalue = \"x + 1\"", "no read \"x\""),
            ("[[read]]\nname = \"x\"\nof = \"cpu\"\nseries = true", "every"),
            ("[[read]]\nname = \"x\"\ninterval = \"ledger[\"", "]"),
            ("[[table]]\ntitle = \"t\"", "table"),
            ("[[table]]\nreads = [\"throughput\"]\narms = [\"three\"]", "no arm \"three\""),
            ("[[chart]]\nkind = \"bars\"\nreads = [\"y\"]", "no read \"y\""),
            ("[measure]\nrepeats = 0", "repeats"),
            ("[measure]\nhalf_width = 1", "compare"),
            ("[measure]\ndesign = \"toggle\"\nslice = \"1ms\"", "slice"),
            ("[quick]\nclients = []", "clients"),
        ] {
            let said = refused(|text| format!("{text}\n{more}"));
            assert!(said.contains(words), "{more}: {said}");
        }
        let said = refused(|text| text.replace("builtin = \"select-only\"", ""));
        assert!(said.contains("builtin, script and command"), "{said}");
        let said = refused(|text| text.replace("[[arm]]\n        name = \"two\"", ""));
        assert!(said.contains("two arms at least"), "{said}");
    }

    #[test]
    fn what_cannot_be_toggled_is_refused() {
        let toggle = "[measure]\ndesign = \"toggle\"\n";
        for (arm, words) in [
            ("[[arm]]\nname = \"x\"\nlevel = \"none\"", "cannot be toggled"),
            ("[[arm]]\nname = \"x\"\ndirectory = \"/tmp\"", "cannot be toggled"),
            ("[[read]]\nname = \"x\"\nof = \"latency_p99\"", "toggled arms"),
        ] {
            let said = refused(|text| format!("{text}\n{toggle}{arm}"));
            assert!(said.contains(words), "{said}");
        }
    }
}
