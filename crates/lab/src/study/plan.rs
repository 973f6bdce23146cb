// SPDX-License-Identifier: PostgreSQL
//! A study as it will run: its arms with the A/A control, its points, its duration.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::file::{Arm, ArmLevel, Builtin, Design, Protocol, Settings, Study};
use error::Error;

/// Suffix of the A/A control's name.
pub const AGAIN: &str = "again";

/// A load on the server.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Number of clients.
    pub clients: u32,
    /// Requested transactions per second.
    pub rate: Option<f64>,
}

impl LoadPoint {
    /// Its label in tables: the number that varies.
    pub fn label(&self) -> String {
        match self.rate {
            Some(rate) => format!("{rate}/s"),
            None => self.clients.to_string(),
        }
    }

    /// Its value on an axis.
    pub fn axis_value(&self) -> f64 {
        self.rate.unwrap_or(f64::from(self.clients))
    }
}

/// A study ready to run.
#[derive(Debug, Clone)]
pub struct StudyPlan {
    /// The study, with its quick variant applied if requested.
    pub study: Study,
    /// The study's arms; the A/A control, if there is one, is the last.
    pub arms: Vec<Arm>,
    /// The loads at which each arm is measured.
    pub points: Vec<LoadPoint>,
    /// Index of the arm that the others are compared with.
    pub base: usize,
    /// Whether there is an A/A control.
    pub has_again: bool,
}

impl StudyPlan {
    /// Plans a study. `directories` replace the arms that name a directory or a file system.
    pub fn new(mut study: Study, quick: bool, directories: &[PathBuf]) -> Result<Self, Error> {
        if quick {
            let quick = study.quick.clone();
            quick.apply(&mut study);
        }
        let mut arms = with_directories(study.arms.clone(), directories)?;
        let base = match study.compare.as_ref().and_then(|compare| compare.base.as_ref()) {
            Some(name) => arms.iter().position(|arm| arm.name == *name).ok_or_else(|| {
                Error::Usage(format!("the base arm \"{name}\" is not among the remaining arms"))
            })?,
            None => 0,
        };
        let has_again = study.measure.again && study.compare.is_some();
        if has_again {
            let mut again = arms[base].clone();
            again.title = Some(format!("{} {AGAIN}", again.title()));
            again.name = format!("{}-{AGAIN}", again.name);
            arms.push(again);
        }
        let workload = &study.workload;
        let clients = workload.clients.clone().unwrap_or_else(|| vec![1]);
        let points = match &workload.rates {
            Some(rates) => rates
                .iter()
                .map(|rate| LoadPoint { clients: clients[0], rate: Some(*rate) })
                .collect(),
            None => clients
                .iter()
                .map(|clients| LoadPoint { clients: *clients, rate: workload.rate })
                .collect(),
        };
        Ok(Self { study, arms, points, base, has_again })
    }

    /// Index of the A/A control.
    pub fn again(&self) -> Option<usize> {
        self.has_again.then(|| self.arms.len() - 1)
    }

    /// Number of cells in all blocks.
    pub fn cells(&self) -> usize {
        self.study.measure.repeats * self.arms.len() * self.points.len()
    }

    /// Estimated duration, seconds.
    pub fn expected_seconds(&self) -> f64 {
        let measure = &self.study.measure;
        let servers = match measure.design {
            Design::Restart => measure.repeats * self.arms.len(),
            Design::Toggle => self.points.len(),
        };
        let start = 2.0 + 0.35 * f64::from(self.study.server.scale);
        let cell = match measure.design {
            Design::Restart => measure.seconds + measure.warm_up + 1.5,
            Design::Toggle => {
                let slice = measure.slice.0.as_secs_f64();
                measure.seconds * (slice + measure.discard.0.as_secs_f64()) / slice
            }
        };
        servers as f64 * start + self.cells() as f64 * cell
    }

    /// The server that toggled arms share: without any arm's settings, and with statements if any arm
    /// keeps them.
    pub fn shared_arm(&self, arms: &[usize]) -> Arm {
        let mut shared = self.arms[self.base].clone();
        shared.settings.clear();
        shared.extensions.clear();
        for name in arms.iter().flat_map(|arm| &self.arms[*arm].extensions) {
            if !shared.extensions.contains(name) {
                shared.extensions.push(name.clone());
            }
        }
        shared.statements = Some(self.arms.iter().any(|arm| self.statements(arm)));
        shared
    }

    /// Settings of an arm, including those for all arms.
    pub fn settings(&self, arm: &Arm) -> Settings {
        let mut settings = self.study.server.settings.clone();
        settings.extend(arm.settings.clone());
        settings
    }

    /// Extensions of an arm, including those for all arms.
    pub fn extensions(&self, arm: &Arm) -> Vec<String> {
        let mut all = self.study.server.extensions.clone();
        all.extend(
            arm.extensions
                .iter()
                .filter(|name| !self.study.server.extensions.contains(name))
                .cloned(),
        );
        all
    }

    /// The level of an arm.
    pub fn level(&self, arm: &Arm) -> ArmLevel {
        arm.level.unwrap_or(self.study.server.level)
    }

    /// Whether an arm keeps statements.
    pub fn statements(&self, arm: &Arm) -> bool {
        arm.statements.unwrap_or(self.study.server.statements)
    }

    /// Number of client messages in a transaction, from which toggled arms compute the number of transactions.
    pub fn commands_per_transaction(&self) -> f64 {
        let workload = &self.study.workload;
        let statements = match workload.builtin {
            Some(Builtin::TpcbLike) => 7,
            Some(Builtin::SimpleUpdate) => 5,
            _ => 1,
        };
        // parse, bind, describe, execute, sync
        let messages = match workload.protocol {
            Protocol::Simple => 1,
            Protocol::Extended => 5,
            Protocol::Prepared => 4,
        };
        f64::from(workload.commands.unwrap_or(statements * messages))
    }
}

/// Replaces the arms that name a directory or file system with one arm for each directory.
fn with_directories(arms: Vec<Arm>, directories: &[PathBuf]) -> Result<Vec<Arm>, Error> {
    if directories.is_empty() {
        return Ok(arms);
    }
    let like = arms.iter().find(|arm| arm.has_location()).cloned().ok_or_else(|| {
        Error::Usage("--directory: no arm of this study sets directory or file_system".into())
    })?;
    let (_, mut all): (Vec<Arm>, Vec<Arm>) = arms.into_iter().partition(Arm::has_location);
    for (number, directory) in directories.iter().enumerate() {
        let directory = directory.display().to_string();
        all.push(Arm {
            name: format!("directory-{}", number + 1),
            title: Some(directory.clone()),
            directory: Some(directory),
            file_system: None,
            file_system_size: None,
            ..like.clone()
        });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        name = "a"
        title = "A"
        question = "?"
        [[arm]]
        name = "one"
        file_system = "ext4"
        [[arm]]
        name = "two"
        [workload]
        builtin = "tpcb-like"
        clients = [1, 10]
        [quick]
        repeats = 2
        clients = [3]
        [[read]]
        name = "throughput"
        of = "throughput"
        [compare]
        reads = ["throughput"]
    "#;

    fn plan(quick: bool, directories: &[&str]) -> StudyPlan {
        let directories: Vec<PathBuf> = directories.iter().map(PathBuf::from).collect();
        StudyPlan::new(Study::parse(TEXT).unwrap(), quick, &directories).unwrap()
    }

    #[test]
    fn the_base_is_repeated_as_the_control() {
        let plan = plan(false, &[]);
        let names: Vec<&str> = plan.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["one", "two", "one-again"]);
        assert_eq!(plan.arms[2].file_system.as_deref(), Some("ext4"));
        assert_eq!((plan.again(), plan.cells()), (Some(2), 8 * 3 * 2));
    }

    #[test]
    fn messages_of_a_transaction_depend_on_its_statements_and_protocol() {
        let of = |workload: &str| {
            let text = TEXT.replace("builtin = \"tpcb-like\"", workload);
            StudyPlan::new(Study::parse(&text).unwrap(), false, &[])
                .unwrap()
                .commands_per_transaction()
        };
        assert_eq!(of("builtin = \"tpcb-like\""), 7.0);
        assert_eq!(of("builtin = \"select-only\"\nprotocol = \"prepared\""), 4.0);
        assert_eq!(of("script = \"select 1\"\ncommands = 3"), 3.0);
    }

    #[test]
    fn the_quick_variant_overrides_the_study() {
        let plan = plan(true, &[]);
        assert_eq!((plan.study.measure.repeats, plan.points.len()), (2, 1));
        assert_eq!(plan.points[0].label(), "3");
    }

    #[test]
    fn directories_replace_the_arms_that_have_one() {
        let plan = plan(false, &["/a", "/b"]);
        let titles: Vec<&str> = plan.arms.iter().map(Arm::title).collect();
        assert_eq!(titles, ["two", "/a", "/b", "two again"]);
    }

    #[test]
    fn each_rate_is_a_point_and_an_arm_overrides_the_server() {
        let text = TEXT.replacen("clients = [1, 10]", "clients = [4]\nrates = [50, 100]", 1);
        let mut plan = StudyPlan::new(Study::parse(&text).unwrap(), false, &[]).unwrap();
        let points: Vec<_> =
            plan.points.iter().map(|point| (point.clients, point.label())).collect();
        assert_eq!(points, [(4, "50/s".into()), (4, "100/s".into())]);
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        plan.study.server.settings = [pair("a", "1"), pair("b", "1")].into();
        plan.study.server.extensions = vec!["x".into()];
        let arm = Arm {
            settings: [pair("b", "2"), pair("c", "2")].into(),
            extensions: vec!["x".into(), "y".into()],
            ..plan.arms[0].clone()
        };
        let expected: Settings = [pair("a", "1"), pair("b", "2"), pair("c", "2")].into();
        assert_eq!(plan.settings(&arm), expected);
        assert_eq!(plan.extensions(&arm), ["x", "y"]);
    }

    #[test]
    fn a_run_takes_the_starts_of_its_servers_and_its_cells() {
        let mut plan = plan(false, &[]);
        let measure = &mut plan.study.measure;
        (measure.seconds, measure.warm_up) = (10.0, 5.0);
        measure.slice = crate::engine::time::Time(std::time::Duration::from_millis(20));
        measure.discard = crate::engine::time::Time(std::time::Duration::from_millis(10));
        plan.study.server.scale = 10;
        // 8 blocks, 3 arms, 2 points; a server takes 2 s and 0.35 s for each unit of its scale.
        assert_eq!(plan.expected_seconds(), 24.0 * 5.5 + 48.0 * 16.5);
        plan.study.measure.design = Design::Toggle;
        let toggled = plan.expected_seconds() - (2.0 * 5.5 + 48.0 * 15.0);
        assert!(toggled.abs() < 1e-6, "{toggled}");
    }
}
