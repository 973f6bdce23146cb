// SPDX-License-Identifier: PostgreSQL

//! Sets the kernel's clock source for an arm and restores it.
//!
//! The clock source applies to the whole machine, so a study changes it only with the user's permission
//! (`--set-clock-source`). It is restored even if this process is killed.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

use scratch::Undo;

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

const UNDO: &str = r#"echo "$1" >"$2""#;

/// Restores the previous clock source when dropped.
#[derive(Debug)]
pub struct ClockSource {
    _undo: Undo,
}

impl ClockSource {
    /// Sets the clock source. The error tells the user why the arm is left out.
    pub fn set(wanted: &str, permitted: bool) -> Result<Self, String> {
        Self::set_in(Path::new(FOLDER), wanted, permitted)
    }

    fn set_in(folder: &Path, wanted: &str, permitted: bool) -> Result<Self, String> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path)
                .map(|text| text.trim().to_string())
                .map_err(|error| format!("{}: {error}", path.display()))
        };
        let available = read("available_clocksource")?;
        if !available.split_whitespace().any(|name| name == wanted) {
            return Err(format!(
                "clock source {wanted} is not available on this machine; available: {available}"
            ));
        }
        if !permitted {
            return Err(format!(
                "setting clock source {wanted} affects the whole machine; use --set-clock-source to \
                 allow it"
            ));
        }
        let path = folder.join("current_clocksource");
        let before = read("current_clocksource")?;
        let undo = Undo::start(UNDO, &[OsStr::new(&before), path.as_os_str()])
            .map_err(|error| error.to_string())?;
        // From here on, a drop restores the previous one.
        let set = Self { _undo: undo };
        std::fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(wanted.as_bytes()))
            .map_err(|error| format!("could not set clock source {wanted}: {error}"))?;
        let now = read("current_clocksource")?;
        if now != wanted {
            return Err(format!("could not set clock source {wanted}: the kernel keeps {now}"));
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("available_clocksource"), "tsc hpet acpi_pm \n").unwrap();
        std::fs::write(folder.path().join("current_clocksource"), "tsc").unwrap();
        folder
    }

    fn current(folder: &Path) -> String {
        std::fs::read_to_string(folder.join("current_clocksource")).unwrap().trim().into()
    }

    #[test]
    fn the_clock_source_is_set_and_restored() {
        let machine = machine();
        std::fs::write(machine.path().join("current_clocksource"), "ack").unwrap();
        let source = ClockSource::set_in(machine.path(), "tsc", true).unwrap();
        assert_eq!(current(machine.path()), "tsc");
        drop(source);
        assert_eq!(current(machine.path()), "ack");
    }

    #[test]
    fn the_clock_source_is_not_set_without_permission() {
        let machine = machine();
        let refused =
            |wanted, permitted| ClockSource::set_in(machine.path(), wanted, permitted).unwrap_err();
        assert!(refused("hpet", false).contains("--set-clock-source"));
        assert!(refused("kvm-clock", true).contains("tsc hpet acpi_pm"));
        assert_eq!(current(machine.path()), "tsc");
        assert!(ClockSource::set_in(Path::new("/nowhere"), "tsc", true).is_err());
    }
}
