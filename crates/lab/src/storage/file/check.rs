// SPDX-License-Identifier: PostgreSQL
//! Checks a study file beyond its syntax. Each message names the key and its permitted values.

use super::{Background, Class, StorageStudy};

/// With more threads, fio's reports every second would become too expensive.
const MAX_THREADS: usize = 256;
/// Name of the A/A control.
pub const AGAIN: &str = "again";

pub fn check(study: &StorageStudy) -> Result<(), String> {
    name("name", &study.name)?;
    if study.length.0.as_secs_f64() < 5.0 {
        return Err("for must be at least 5 s".into());
    }
    within("repeats", study.repeats as f64, 1.0, 1000.0)?;
    if study.background.is_none() && study.server.is_none() {
        return Err("the study has no load: add [background] or [server]".into());
    }
    study.background.as_ref().map_or(Ok(()), background)?;
    if let Some(archive) = &study.archive {
        match (&archive.sizes, &study.background) {
            (Some(sizes), _) => classes("archive.sizes", sizes)?,
            (None, Some(_)) => {}
            (None, None) => {
                return Err(
                    "archive.sizes is missing, and there is no [background] to take the sizes from"
                        .into(),
                )
            }
        }
    }
    if let Some(server) = &study.server {
        within("server.scale", f64::from(server.scale), 1.0, 10_000.0)?;
        within("server.clients", f64::from(server.clients), 1.0, 1000.0)?;
    }
    arms(study)?;
    victims(study)
}

fn arms(study: &StorageStudy) -> Result<(), String> {
    if study.arms.is_empty() {
        return Err("the study has no [[arm]]".into());
    }
    let names: Vec<&str> = study.arms.iter().map(|arm| arm.name.as_str()).collect();
    unique("arm", &names)?;
    for arm in &study.arms {
        name("arm.name", &arm.name)?;
        if arm.name == AGAIN {
            return Err(format!(
                "\"{AGAIN}\" is reserved for the A/A control; choose another name"
            ));
        }
        if arm.directory.is_some() && arm.file_system.is_some() {
            return Err(format!(
                "arm \"{}\": set either directory or file_system, not both",
                arm.name
            ));
        }
        let own = ["size", "mount", "raid", "scheduler", "limits"];
        let has = [
            arm.size.is_some(),
            arm.mount.is_some(),
            arm.raid.is_some(),
            arm.scheduler.is_some(),
            !arm.limits.is_empty(),
        ];
        if let (None, Some((key, _))) =
            (&arm.file_system, own.iter().zip(has).find(|(_, has)| *has))
        {
            return Err(format!(
                "arm \"{}\": {key} requires file_system, so that it affects no other files",
                arm.name
            ));
        }
        if let Some(why) = arm.raid.as_ref().and_then(|raid| raid.check().err()) {
            return Err(format!("arm \"{}\": raid: {why}", arm.name));
        }
        if arm.raid.is_some() && arm.file_system.as_deref() == Some("tmpfs") {
            return Err(format!(
                "arm \"{}\": raid cannot be used with tmpfs, which has no devices",
                arm.name
            ));
        }
        if arm.reads.or(arm.rate).is_some() && study.background.is_none() {
            return Err(format!("arm \"{}\": reads and rate require [background]", arm.name));
        }
        share("arm.reads", arm.reads.unwrap_or(0.5))?;
        within("arm.rate", arm.rate.unwrap_or(1.0), 0.1, 10_000_000.0)?;
        for limit in &arm.limits {
            let none = limit.write_bytes.is_none()
                && limit.read_bytes.is_none()
                && limit.write_operations.is_none()
                && limit.read_operations.is_none();
            if none {
                return Err(format!(
                    "arm \"{}\": a limit needs write_bytes, read_bytes, write_operations or read_operations",
                    arm.name
                ));
            }
            if limit.at.is_some() && limit.after.is_some() {
                return Err(format!(
                    "arm \"{}\": a limit needs either at or after, not both",
                    arm.name
                ));
            }
        }
    }
    Ok(())
}

fn victims(study: &StorageStudy) -> Result<(), String> {
    let names: Vec<&str> = study.victims.iter().map(|victim| victim.name.as_str()).collect();
    unique("victim", &names)?;
    for victim in &study.victims {
        name("victim.name", &victim.name)?;
        if victim.command.is_empty() || victim.setup.as_ref().is_some_and(Vec::is_empty) {
            return Err(format!("victim \"{}\" has an empty command", victim.name));
        }
        if victim.at.is_some() == victim.every.is_some() {
            return Err(format!("victim \"{}\" needs either at or every, not both", victim.name));
        }
        if victim.every.is_some_and(|every| every.0.is_zero()) {
            return Err(format!("victim \"{}\": every must be greater than 0", victim.name));
        }
        let words = victim.command.iter().chain(victim.setup.iter().flatten());
        let uses = |word: &str| words.clone().any(|text| text.contains(word));
        if uses("{archive}") && study.archive.is_none() {
            return Err(format!("victim \"{}\" uses {{archive}}: add [archive]", victim.name));
        }
        if study.server.is_none() && (uses("{host}") || uses("{port}")) {
            return Err(format!("victim \"{}\" uses a server: add [server]", victim.name));
        }
    }
    Ok(())
}

fn background(load: &Background) -> Result<(), String> {
    within("background.rate", load.rate, 0.1, 10_000_000.0)?;
    share("background.reads", load.reads)?;
    share("background.sequential", load.sequential)?;
    within("background.threads", load.threads as f64, 1.0, MAX_THREADS as f64)?;
    let sides = |share: f64| if share > 0.0 && share < 1.0 { 2 } else { 1 };
    let kinds = sides(load.reads) * sides(load.sequential);
    if load.threads < kinds {
        return Err(format!(
            "background.threads must be {kinds} or more: sequential and random reads and writes have separate threads"
        ));
    }
    within("background.files", load.files as f64, 1.0, 10_000_000.0)?;
    within("background.depth", load.depth as f64, 1.0, 8.0)?;
    within("background.width", load.width as f64, 1.0, 1000.0)?;
    let folders = (load.width as f64).powi(load.depth as i32);
    within("background.width to the power of depth", folders, 1.0, 100_000.0)?;
    if load.block.0 < 512 || !load.block.0.is_power_of_two() || load.block.0 > 16 << 20 {
        return Err("background.block must be a power of two from 512B to 16MB".into());
    }
    classes("background.sizes", &load.sizes)?;
    match load.sizes.iter().find(|class| class.size < load.block) {
        Some(class) => Err(format!(
            "background.sizes: files of {} are smaller than background.block, {}",
            class.size, load.block
        )),
        None => Ok(()),
    }
}

fn classes(key: &str, classes: &[Class]) -> Result<(), String> {
    let sum: f64 = classes.iter().map(|class| class.share).sum();
    if classes.iter().any(|class| class.size.0 == 0 || !(class.share > 0.0 && class.share <= 1.0)) {
        return Err(format!("{key}: sizes and shares must be greater than 0"));
    }
    if (sum - 1.0).abs() > 1e-6 {
        return Err(format!("{key}: shares must add up to 1, not {sum:.4}"));
    }
    Ok(())
}

fn share(key: &str, value: f64) -> Result<(), String> {
    within(key, value, 0.0, 1.0)
}

fn within(key: &str, value: f64, low: f64, high: f64) -> Result<(), String> {
    match value >= low && value <= high {
        true => Ok(()),
        false => Err(format!("{key} must be between {low} and {high}, not {value}")),
    }
}

fn name(key: &str, name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.len() <= 40 && name.chars().all(plain) {
        true => Ok(()),
        false => Err(format!("{key} \"{name}\" must be at most 40 letters, digits, - and _")),
    }
}

fn unique(what: &str, names: &[&str]) -> Result<(), String> {
    match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        Some((_, name)) => Err(format!("duplicate {what} \"{name}\"")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
name = "a"
title = "A"
question = "?"
for = "20s"
[background]
rate = 100
threads = 4
files = 10
sizes = [{ size = "8kB", share = 1.0 }]
[[victim]]
name = "copy"
command = ["cp", "a", "b"]
at = ["5s"]
[[arm]]
name = "one"
file_system = "ext4"
limits = [{ at = "3s", write_bytes = "1MB" }]
"#;

    fn why(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        StorageStudy::parse(&GOOD.replace(from, to)).expect_err(to)
    }

    #[test]
    fn a_good_file_is_accepted() {
        let study = StorageStudy::parse(GOOD).unwrap();
        assert_eq!(study.starts(&study.victims[0]), [5.0]);
    }

    #[test]
    fn errors_name_the_key() {
        for (from, to, says) in [
            ("rate = 100", "rate = 0", "background.rate"),
            ("rate = 100", "rate = 100\nrates = 3", "rates"),
            ("threads = 4", "threads = 1000", "background.threads"),
            ("threads = 4", "threads = 3", "background.threads must be 4"),
            ("share = 1.0", "share = 0.9", "add up to 1, not 0.9000"),
            ("\"8kB\"", "\"4kB\"", "smaller than background.block"),
            ("\"8kB\"", "\"8 kilo\"", "not a size"),
            ("name = \"one\"", "name = \"a/b\"", "arm.name"),
            ("name = \"one\"", "name = \"again\"", "A/A control"),
            ("file_system = \"ext4\"", "", "limits requires file_system"),
            (
                "file_system = \"ext4\"",
                "file_system = \"ext4\"\nraid = { level = 5, devices = 2 }",
                "level 5 needs 3 to 16 devices",
            ),
            (
                "file_system = \"ext4\"",
                "file_system = \"tmpfs\"\nraid = { level = 1, devices = 2 }",
                "cannot be used with tmpfs",
            ),
            (
                "file_system = \"ext4\"",
                "file_system = \"ext4\"\nraid = { level = 4, devices = 3 }",
                "level must be 0, 1, 5, 6 or 10",
            ),
            ("write_bytes = \"1MB\"", "after = \"1MB\"", "a limit needs"),
            ("at = [\"5s\"]", "", "at or every"),
            ("\"cp\", \"a\"", "\"cp\", \"{archive}\"", "add [archive]"),
            ("\"cp\", \"a\"", "\"cp\", \"{host}\"", "add [server]"),
            ("for = \"20s\"", "for = \"2s\"", "for must be"),
        ] {
            let text = why(from, to);
            assert!(text.contains(says), "{to}: {text}");
        }
    }
}
