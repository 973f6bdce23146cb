// SPDX-License-Identifier: PostgreSQL
//! A server on which arms take turns: changes the level, statement tracking and settings of live backends
//! between slices, and verifies each change.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pq::Client;
use segment::{Level, LevelSwitch};

use super::file::Settings;
use super::plan::StudyPlan;
use super::server::{fixed_settings, ArmServer};
use error::Error;

/// The file with the current arm's settings, included at the end of postgresql.conf.
const FILE: &str = "toggled.conf";
/// How long sessions may take to apply a changed setting.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(2);

/// The state of an arm on live backends.
#[derive(Debug, Clone, PartialEq)]
struct ArmState {
    level: Level,
    statements: bool,
    settings: Settings,
}

/// Switches the arms of one server.
pub struct Live {
    switch: LevelSwitch,
    states: Vec<ArmState>,
    /// Settings that any arm changes.
    names: BTreeSet<String>,
    file: PathBuf,
    /// A session that shows whether settings are applied.
    client: Client,
}

impl Live {
    /// Prepares the server that all arms share. Fails if an arm changes a setting that needs a restart.
    pub fn new(plan: &StudyPlan, server: &ArmServer) -> Result<Self, Error> {
        let segment = server.segment.as_ref().ok_or_else(|| {
            Error::Failed("toggled arms require pg_tally in the server, to count commands".into())
        })?;
        let states: Vec<ArmState> = plan
            .arms
            .iter()
            .map(|arm| ArmState {
                level: plan.level(arm).of_segment().unwrap_or(Level::Off),
                statements: plan.statements(arm),
                settings: arm.settings.clone(),
            })
            .collect();
        let names: BTreeSet<String> =
            plan.arms.iter().flat_map(|arm| arm.settings.keys().cloned()).collect();
        let all: Vec<&String> = names.iter().collect();
        if let Some((name, context)) = fixed_settings(&server.cluster, &all)?.first_key_value() {
            return Err(Error::Usage(format!(
                "{name} cannot be changed in running backends (its context is {context}); use \
                 design = \"restart\""
            )));
        }
        let file = server.cluster.data_dir().join(FILE);
        if !names.is_empty() {
            server.cluster.replace_file(FILE, "")?;
            server.cluster.append_config(&format!("\ninclude_if_exists = '{FILE}'\n"))?;
        }
        Ok(Self {
            switch: LevelSwitch::open(segment)?,
            states,
            names,
            file,
            client: server.cluster.client()?,
        })
    }

    /// Switches to this arm; returns once a session has applied its settings.
    pub fn set(&mut self, arm: usize, server: &ArmServer) -> Result<(), Error> {
        let state = self.states[arm].clone();
        self.switch.set(state.level);
        self.switch.pause_statements(!state.statements);
        // Reload even if nothing changes, so that all slices start alike.
        if !self.names.is_empty() {
            let mut text = String::new();
            for (name, value) in &state.settings {
                text.push_str(&format!("{name} = '{}'\n", value.replace('\'', "''")));
            }
            server.cluster.replace_file(FILE, &text)?;
            server.cluster.reload()?;
            self.wait_for(&state.settings)?;
        }
        Ok(())
    }

    /// Waits until the session has exactly the settings of the file.
    fn wait_for(&mut self, settings: &Settings) -> Result<(), Error> {
        let names: Vec<String> = self.names.iter().map(|name| name.to_lowercase()).collect();
        let file = self.file.display().to_string();
        let began = Instant::now();
        loop {
            let rows = self.client.query(
                "select name from pg_settings where lower(name) = any($1) and sourcefile = $2",
                &[&names, &file],
            )?;
            let differs = self.client.query(
                "select 1 from pg_file_settings f join pg_settings s on lower(s.name) = \
                 lower(f.name) \
                 where f.sourcefile = $1 and (not f.applied or s.sourcefile is distinct from $1)",
                &[&file],
            )?;
            if rows.len() == settings.len() && differs.is_empty() && self.holds(settings)? {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err(Error::Failed(format!(
                    "sessions did not apply {settings:?} within {PATIENCE:?}"
                )));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Whether each setting has its value in the file.
    fn holds(&mut self, settings: &Settings) -> Result<bool, Error> {
        for (name, value) in settings {
            let row = self.client.query_one(
                "select setting, current_setting(name), coalesce(reset_val, '') from pg_settings \
                 where lower(name) = lower($1)",
                &[name],
            )?;
            let shown = [row.get::<String>(0)?, row.get(1)?, row.get(2)?];
            let number = |text: &str| text.parse::<f64>().ok();
            // The server may show a value in a different unit; then its source file is the only check.
            let same = |shown: &String| {
                shown.eq_ignore_ascii_case(value)
                    || number(shown).is_some_and(|shown| number(value) == Some(shown))
            };
            let plain = number(value).is_some() || !value.starts_with(|c: char| c.is_ascii_digit());
            if plain && !shown.iter().any(same) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the level and statement tracking are still as this arm sets them.
    pub fn is(&self, arm: usize) -> bool {
        let state = &self.states[arm];
        self.switch.level() == state.level && self.switch.statements_paused() != state.statements
    }
}
