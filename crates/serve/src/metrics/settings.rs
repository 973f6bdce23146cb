// SPDX-License-Identifier: PostgreSQL
//! Metrics of the server's settings (`--health`): how often they changed, and whether the configuration files are in force. None
//! has a label, because the names of settings are without bounds; the page and the messages of `--alert-settings` have them.

use live::settings::ConfigurationState;

use super::family::{
    Family,
    Kind::{Counter, Gauge},
};

/// What is known of the settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SettingMetrics {
    /// The first reading, seconds since 1970.
    since: f64,
    /// Changes since then.
    changes: u64,
    /// The last reading.
    configuration: ConfigurationState,
}

impl SettingMetrics {
    /// Those of the first reading.
    pub fn begin(configuration: ConfigurationState) -> SettingMetrics {
        SettingMetrics { since: configuration.read, changes: 0, configuration }
    }

    /// Those after a later reading that found changes.
    pub fn after(self, configuration: ConfigurationState, changes: usize) -> SettingMetrics {
        SettingMetrics { changes: self.changes + changes as u64, configuration, ..self }
    }

    /// Adds the families.
    pub fn add(&self, families: &mut Vec<Family>) {
        let mut changes = Family::new(
            "pgtally_setting_changes_total",
            Counter,
            "Changes of the server's settings since tally serve first read them.",
        );
        changes.number_since([], self.changes as f64, self.since);
        let mut loaded = Family::new(
            "pgtally_configuration_loaded_timestamp_seconds",
            Gauge,
            "When the server last loaded its configuration files.",
        );
        loaded.number([], self.configuration.loaded);
        let mut pending = Family::new(
            "pgtally_settings_pending_restart",
            Gauge,
            "Settings whose value in the configuration files needs a restart.",
        );
        pending.number([], self.configuration.pending_restart as f64);
        let mut errors = Family::new(
            "pgtally_configuration_errors",
            Gauge,
            "Lines of the configuration files that the server cannot apply, at most 10.",
        );
        if let Some(lines) = self.configuration.unapplied {
            errors.number([], lines as f64);
        }
        families.extend([changes, loaded, pending, errors]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Value;

    #[test]
    fn changes_add_up_and_what_the_role_may_not_see_is_absent() {
        let first =
            ConfigurationState { loaded: 10.5, read: 20.0, pending_restart: 0, unapplied: Some(1) };
        let second =
            ConfigurationState { loaded: 70.0, read: 80.0, pending_restart: 2, unapplied: None };
        let values = |all: &SettingMetrics| -> Vec<(&str, f64)> {
            let mut families = Vec::new();
            all.add(&mut families);
            let of = |family: &Family| {
                let Value::Number(value) = family.samples.first()?.value else { return None };
                Some((family.name.trim_start_matches("pgtally_"), value))
            };
            families.iter().filter_map(of).collect()
        };
        let begun = SettingMetrics::begin(first);
        assert_eq!(
            values(&begun),
            [
                ("setting_changes_total", 0.0),
                ("configuration_loaded_timestamp_seconds", 10.5),
                ("settings_pending_restart", 0.0),
                ("configuration_errors", 1.0),
            ]
        );
        let later = begun.after(second, 3).after(second, 1);
        assert_eq!(
            values(&later),
            [
                ("setting_changes_total", 4.0),
                ("configuration_loaded_timestamp_seconds", 70.0),
                ("settings_pending_restart", 2.0),
            ]
        );
    }
}
