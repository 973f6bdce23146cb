// SPDX-License-Identifier: PostgreSQL
//! README and the guide as their readers use them: blocks of commands, of SQL, and samples of output, in order.

use std::path::{Path, PathBuf};

/// A page of the guide.
#[derive(Debug)]
pub struct Document {
    /// "README.md", "docs/trace.md".
    pub name: String,
    /// Its blocks, in order.
    pub blocks: Vec<Block>,
}

/// What a block contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Commands for a shell.
    Commands,
    /// Statements, perhaps with what psql prints for the last one.
    Sql,
    /// What commands before it print.
    Sample,
    /// Something else: a configuration file, a formula, a synopsis.
    Other,
}

/// An indented or fenced block.
#[derive(Debug)]
pub struct Block {
    /// Where it begins, from 1.
    pub line: usize,
    /// What it contains.
    pub kind: Kind,
    /// Its text, without indentation.
    pub text: String,
}

/// The root of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README and docs/*.md, by name.
pub fn documents() -> Vec<Document> {
    let mut names = vec!["README.md".to_string()];
    let folder = std::fs::read_dir(root().join("docs")).unwrap().flatten();
    names.extend(folder.filter_map(|entry| {
        let name = entry.file_name().into_string().unwrap();
        name.ends_with(".md").then(|| format!("docs/{name}"))
    }));
    names.sort();
    names
        .into_iter()
        .map(|name| {
            let text = std::fs::read_to_string(root().join(&name)).unwrap();
            Document { blocks: blocks(&text), name }
        })
        .collect()
}

/// The blocks of a page.
pub fn blocks(text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found: Vec<Block> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let begin = at;
        if let Some(info) = lines[at].strip_prefix("```") {
            let end = (at + 1..lines.len()).find(|i| lines[*i].starts_with("```")).unwrap();
            let text = lines[at + 1..end].join("\n");
            let follows = found.last().is_some_and(|block| block.kind != Kind::Other);
            let kind = match info.trim() {
                "sql" => Kind::Sql,
                "" if is_sql(&text) => Kind::Sql,
                "" if follows || found.is_empty() => Kind::Sample,
                _ => Kind::Other,
            };
            found.push(Block { line: begin + 1, kind, text });
            at = end + 1;
        } else if lines[at].starts_with("    ") && (at == 0 || lines[at - 1].trim().is_empty()) {
            let indented = |i: usize| lines.get(i).is_some_and(|line| line.starts_with("    "));
            while indented(at)
                || lines.get(at).is_some_and(|line| line.trim().is_empty()) && indented(at + 1)
            {
                at += 1;
            }
            let text: Vec<&str> = lines[begin..at]
                .iter()
                .map(|line| line.strip_prefix("    ").unwrap_or(""))
                .collect();
            let text = text.join("\n");
            let kind = match &text {
                text if is_sql(text) => Kind::Sql,
                text if is_shell(text) => Kind::Commands,
                _ => Kind::Other,
            };
            found.push(Block { line: begin + 1, kind, text });
        } else {
            at += 1;
        }
    }
    found
}

/// The first word that is not in a comment.
fn first_word(text: &str) -> &str {
    let line = text.lines().find(|line| !line.is_empty() && !line.starts_with(['#', '-']));
    line.and_then(|line| line.split_whitespace().next()).unwrap_or("")
}

fn is_sql(text: &str) -> bool {
    ["select", "create", "alter", "insert", "update", "delete"]
        .contains(&first_word(text).to_lowercase().as_str())
}

/// Programs that the guide uses. A block that begins with another word is no block of commands.
const PROGRAMS: [&str; 16] = [
    "tally",
    "sudo",
    "make",
    "psql",
    "pgbench",
    "java",
    "openssl",
    "duckdb",
    "taskset",
    "ssh",
    "export",
    "cargo",
    "script/instructions",
    "printf",
    "git",
    "curl",
];

fn is_shell(text: &str) -> bool {
    let word = first_word(text);
    let assigns = word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    });
    assigns || PROGRAMS.contains(&word)
}

/// A command as somebody would type it: one line, or more where a quote is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedCommand {
    /// Line of the document.
    pub line: usize,
    /// What is typed.
    pub text: String,
}

/// The commands of a block; comments of whole lines are left out.
pub fn commands(block: &Block) -> Vec<TypedCommand> {
    let mut all: Vec<TypedCommand> = Vec::new();
    let mut open = false;
    for (number, line) in block.text.lines().enumerate() {
        if open {
            let last = all.last_mut().unwrap();
            last.text += "\n";
            last.text += line;
        } else if line.trim().is_empty() || line.starts_with('#') {
            continue;
        } else {
            all.push(TypedCommand { line: block.line + number, text: line.to_string() });
        }
        open = words(&all.last().unwrap().text).is_none();
    }
    all
}

/// A command as a shell divides it: a list for each program that is called, without redirections. `None`: a quote is
/// open, or the line is continued.
pub fn words(text: &str) -> Option<Vec<Vec<String>>> {
    let mut programs = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut skips = false; // the name of a file
    let mut rest = text.chars().peekable();
    let mut depth = 0;
    while let Some(c) = rest.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_with(String::new);
                loop {
                    match rest.next()? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_with(String::new);
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => word.push(rest.next()?),
                        other => word.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_with(String::new).push(rest.next()?),
            '(' | ')' => {
                depth += if c == '(' { 1 } else { -1 };
                word.get_or_insert_with(String::new).push(c);
            }
            _ if depth > 0 => word.get_or_insert_with(String::new).push(c),
            '#' if word.is_none() => break,
            '|' | '&' | ';' | '<' | '>' | ' ' | '\t' | '\n' => {
                if let Some(word) = word.take() {
                    let is_file = std::mem::take(&mut skips);
                    if !is_file {
                        programs.last_mut().unwrap().push(word);
                    }
                }
                match c {
                    '<' | '>' => skips = true,
                    '|' | '&' | ';' => programs.push(Vec::new()),
                    _ => {}
                }
            }
            _ => word.get_or_insert_with(String::new).push(c),
        }
    }
    if let Some(word) = word.filter(|_| !skips) {
        programs.last_mut().unwrap().push(word);
    }
    programs.retain(|words| !words.is_empty());
    Some(programs)
}

/// The columns of a sample's table: the words of its first line that looks like a heading.
pub fn heading(sample: &str) -> Option<Vec<&str>> {
    let columns =
        |line: &&str| line.split("  ").filter(|cell| !cell.trim().is_empty()).count() >= 4;
    let named = |line: &&str| {
        line.split_whitespace().all(|word| {
            !word.contains(|c: char| c.is_ascii_digit()) || ["P50", "P95", "P99"].contains(&word)
        })
    };
    let line = sample
        .lines()
        .filter(|line| !line.starts_with(' '))
        .find(|line| columns(line) && named(line))?;
    Some(line.split_whitespace().collect())
}

/// Whether the output has a line with these words, in this order; others may be between them.
pub fn has_heading(output: &str, heading: &[&str]) -> bool {
    output.lines().any(|line| {
        let mut words = line.split_whitespace();
        heading.iter().all(|word| words.any(|found| found == *word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_divided_as_a_shell_does() {
        let words = |text: &str| {
            words(text).map(|all| all.iter().map(|words| words.join("|")).collect::<Vec<_>>())
        };
        let of = |all: &[&str]| Some(all.iter().map(|word| word.to_string()).collect::<Vec<_>>());
        assert_eq!(words("tally x --a 'b c' # d"), of(&["tally|x|--a|b c"]));
        assert_eq!(words("a > f | jq '.x | y' && b"), of(&["a", "jq|.x | y", "b"]));
        assert_eq!(words("a $(b c)-d"), of(&["a|$(b c)-d"]));
        assert_eq!(words("a 'b"), None);
    }

    #[test]
    fn a_heading_is_found_among_other_lines() {
        let sample = "processes 14: 4 active  a  b  c\n\nA     P50  %B   C/S\nx  1 2  3\n";
        assert_eq!(heading(sample), Some(vec!["A", "P50", "%B", "C/S"]));
        assert!(has_heading("A NEW P50 %B C/S", &["A", "P50", "%B", "C/S"]));
        assert!(!has_heading("A %B P50 C/S", &["A", "P50", "%B", "C/S"]));
        assert_eq!(heading("1. Sorts or hashes"), None);
    }
}
