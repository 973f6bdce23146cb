// SPDX-License-Identifier: PostgreSQL
//! What documents and help texts show of the command line is parsed here: each option exists, and its value is valid.
//! The tests `documented_commands::` run most of it.

use std::collections::HashSet;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::cli::Cli;

#[path = "../../tests/support/documents.rs"]
#[allow(dead_code)]
mod documents;
#[path = "../../tests/support/documented.rs"]
#[allow(dead_code)] // most of it is for those who run the commands
mod entries;

use documents::{commands, documents, root, words, Kind};

/// The arguments of `tally` if that is the program; others may call it.
fn arguments(words: &[String]) -> Option<&[String]> {
    let mut rest = words;
    loop {
        let (first, after) = rest.split_first()?;
        let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
        rest = match first.as_str() {
            "tally" | "target/demo/tally" => return Some(after),
            "sudo" if after.first().is_some_and(|word| word == "-u") => after.get(2..)?,
            "sudo" | "nice" => after,
            "taskset" => after.get(2..)?,
            "ssh" => after.get(1..)?,
            setting
                if setting.split_once('=').is_some_and(|(name, _)| name.chars().all(is_name)) =>
            {
                after
            }
            _ => return None,
        };
    }
}

/// Parses the calls of `tally` in this command; returns how many there are. An error of one of these kinds is allowed.
fn parse(place: &str, command: &str, allowed: &[ErrorKind]) -> usize {
    let programs = words(command).unwrap_or_else(|| panic!("{place}: a quote is open: {command}"));
    let calls = programs.iter().filter_map(|words| arguments(words));
    calls
        .map(|call| {
            let call = std::iter::once("tally").chain(call.iter().map(String::as_str));
            if let Err(error) = Cli::try_parse_from(call) {
                let fine = !error.use_stderr() || allowed.contains(&error.kind());
                assert!(fine, "{place}: {command}\n{error}");
            }
        })
        .count()
}

/// A directory that may be the root of a fleet's recordings.
fn fleet() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("v1/frames")).unwrap();
    folder
}

/// What {names} stand for, where nothing is run; the root of a fleet has to exist.
fn valid(text: &str, fleet: &tempfile::TempDir) -> String {
    let fleet = fleet.path().display().to_string();
    let text = text.replace("/srv/fleet", &fleet).replace("{fleet}", &fleet);
    ["{pid}", "{port}", "{free}", "{statement}"]
        .iter()
        .fold(text, |text, name| text.replace(name, "4711"))
        .replace(['{', '}'], "")
}

#[test]
fn every_documented_command_is_valid() {
    let (mut parsed, fleet) = (0, fleet());
    for document in documents() {
        for block in document.blocks.iter().filter(|block| block.kind != Kind::Sample) {
            let listed = entries::NOT_COMMANDS;
            if block.kind != Kind::Commands
                || listed.iter().any(|entry| entry.is_about(&document.name, &block.text))
            {
                continue;
            }
            for command in commands(block) {
                let place = format!("{}:{}", document.name, command.line);
                let text = entries::instead(&document.name, &command.text);
                parsed += parse(&place, &valid(&text, &fleet), &[]);
            }
        }
    }
    assert!(parsed > 150, "{parsed}");
}

/// `tally x --y` within sentences: the verb and its options exist, whatever is left out.
#[test]
fn every_command_in_text_is_valid() {
    const INCOMPLETE: [ErrorKind; 6] = [
        ErrorKind::MissingSubcommand,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
        ErrorKind::MissingRequiredArgument,
        ErrorKind::InvalidValue,
        ErrorKind::ValueValidation,
        ErrorKind::ArgumentConflict,
    ];
    let (mut parsed, fleet) = (0, fleet());
    for document in documents() {
        let text = std::fs::read_to_string(root().join(&document.name)).unwrap();
        let text = text.replace('\n', " ");
        for code in text.split('`').skip(1).step_by(2) {
            let open = ["...", "…", "<", "COMMAND", "VERB"].iter().any(|mark| code.contains(mark));
            if !open && words(code).is_some() {
                let text = entries::instead(&document.name, code);
                parsed += parse(&document.name, &valid(&text, &fleet), &INCOMPLETE);
            }
        }
    }
    assert!(parsed > 100, "{parsed}");
}

/// The examples of every `--help`.
#[test]
fn every_example_of_the_help_is_valid() {
    fn texts(command: &clap::Command, found: &mut Vec<(String, String)>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        found.push((command.get_name().to_string(), help));
        command.get_subcommands().for_each(|verb| texts(verb, found));
    }
    let mut all = Vec::new();
    texts(&Cli::command(), &mut all);
    let (mut parsed, fleet) = (0, fleet());
    for (name, help) in &all {
        for line in help.lines().filter(|line| line.starts_with("  ")) {
            // A comment may follow after some spaces.
            let example = line.trim().split("   ").next().unwrap_or("");
            let example = ["PID", "DIR", "NAME"]
                .iter()
                .fold(valid(example, &fleet), |text, name| text.replace(name, "4711"));
            if !example.contains("...") && words(&example).is_some() {
                parsed += parse(&format!("help of {name}"), &example, &[]);
            }
        }
    }
    assert!(parsed > 60, "{parsed}");
}

/// Numbered sentences, such as "1. A statement reads ...", each up to the line that ends with a full stop.
fn headlines(sample: &str) -> Vec<String> {
    let mut lines = sample.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some((number, begin)) = line.split_once(". ") else { continue };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let mut headline = begin.to_owned();
        while !headline.ends_with('.') {
            let Some(next) = lines.next() else { break };
            headline += " ";
            headline += next.trim();
        }
        found.push(headline);
    }
    found
}

/// The words of a sentence that do not depend on the server: no numbers, units or names, nothing in quotes or brackets.
fn fixed_words(sentence: &str) -> Vec<String> {
    let (mut quoted, mut depth, mut text) = (false, 0, String::new());
    for c in sentence.chars() {
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ if quoted || depth > 0 => {}
            _ => text.push(c),
        }
    }
    text.split_whitespace()
        .map(|word| word.trim_matches(|c: char| c.is_ascii_punctuation()))
        .filter(|word| word.len() > 2 && word.chars().all(|c| c.is_alphabetic() || c == '_'))
        .map(str::to_owned)
        .collect()
}

/// The headline of each diagnosis in a sample is in a snapshot of a recording, with other figures and names.
#[test]
fn every_diagnosis_in_a_sample_is_one_that_is_printed() {
    let recordings = std::fs::read_dir(root().join("crates/tally/tests/recordings")).unwrap();
    let snapshots = recordings
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "snap"));
    let mut printed = HashSet::new();
    for snapshot in snapshots {
        printed.extend(std::fs::read_to_string(snapshot).unwrap().lines().map(fixed_words));
    }
    let mut compared = 0;
    for document in documents() {
        for block in document.blocks.iter().filter(|block| block.kind == Kind::Sample) {
            for headline in headlines(&block.text) {
                let place = format!("{}:{}", document.name, block.line);
                assert!(printed.contains(&fixed_words(&headline)), "{place}: {headline}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 4, "{compared}");
}
