// SPDX-License-Identifier: PostgreSQL
//! Each file and each name in the code spans of the pages about structure exists.

use std::collections::HashSet;
use std::path::Path;

const PAGES: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "format/FORMAT.md"];

/// Files that an example makes.
const EXAMPLES: [&str; 2] = ["crates/verbs/src/hello.rs", "pg_tally/pg_tally--0.3--0.4.sql"];

const ENDS: [&str; 14] = [
    ".rs", ".c", ".h", ".S", ".ts", ".mjs", ".java", ".sql", ".toml", ".css", ".md", ".t", ".json",
    "/",
];

/// Whether a span is an identifier, or a path of identifiers.
fn is_name(span: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && word.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    span.split("::").all(|word| word.is_empty() || is_word(word))
}

/// The tree: paths as `/a/b.rs`, and the words of its sources.
#[derive(Default)]
struct Tree {
    paths: Vec<String>,
    words: HashSet<String>,
}

impl Tree {
    fn read(&mut self, folder: &Path, path: &str) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().unwrap();
            let here = format!("{path}/{name}");
            if kind.is_dir() && !matches!(&*name, ".git" | "build" | "node_modules" | "target") {
                self.read(&entry.path(), &here);
            } else if kind.is_file() {
                self.add(&here, &std::fs::read(entry.path()).unwrap_or_default());
            }
        }
    }

    /// Pages name a file without the folders that each crate and library has.
    fn add(&mut self, path: &str, text: &[u8]) {
        let short = ["/src", "/include", "/server"].iter();
        let short =
            short.fold(path.to_string(), |path, part| path.replace(&format!("{part}/"), "/"));
        if !path.ends_with(".md") {
            let text = String::from_utf8_lossy(text);
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            self.words.extend(words.filter(|word| word.len() > 2).map(str::to_string));
        }
        self.paths.extend([path.to_string(), short]);
    }

    /// Whether a path ends with this one, in which a `*` stands for any part of a name.
    fn has(&self, path: &str) -> bool {
        let folder = path.ends_with('/');
        let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        let same = |pattern: &str, name: &str| match pattern.split_once('*') {
            None => pattern == name,
            Some((begin, end)) => {
                name.len() >= begin.len() + end.len()
                    && name.starts_with(begin)
                    && name.ends_with(end)
            }
        };
        self.paths.iter().any(|path| {
            let names: Vec<&str> = path.split('/').collect();
            let mut runs = names.windows(parts.len());
            let fits = |run: &[&str]| parts.iter().zip(run).all(|(part, name)| same(part, name));
            match folder {
                true => runs.any(fits),
                false => runs.next_back().is_some_and(fits),
            }
        })
    }

    /// The files and names of a page that do not exist.
    fn missing(&self, page: &str, text: &str) -> Vec<String> {
        let mut missing = Vec::new();
        for (number, line) in super::links::prose(text) {
            for span in line.split('`').skip(1).step_by(2) {
                let is_path = |c: char| c.is_alphanumeric() || "_./*-".contains(c);
                let known =
                    if ENDS.iter().any(|end| span.ends_with(end)) && span.chars().all(is_path) {
                        EXAMPLES.contains(&span) || self.has(span)
                    } else if is_name(span) {
                        let mut words = span.split(':').filter(|word| word.len() > 2);
                        words.all(|word| self.words.contains(word))
                    } else {
                        true
                    };
                if !known {
                    missing.push(format!("{page}:{}: `{span}`", number + 1));
                }
            }
        }
        missing
    }
}

#[test]
fn each_file_and_name_of_the_pages_about_structure_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tree = Tree::default();
    tree.read(&root, "");
    assert!(tree.paths.len() > 2000, "{}", tree.paths.len());
    let missing: Vec<String> = PAGES
        .iter()
        .flat_map(|page| tree.missing(page, &std::fs::read_to_string(root.join(page)).unwrap()))
        .collect();
    assert!(
        missing.is_empty(),
        "no such file, or no such name in a source:\n{}",
        missing.join("\n")
    );
}

#[test]
fn a_file_or_name_that_is_gone_is_found() {
    let mut tree = Tree::default();
    tree.add("/crates/a/src/b_one.rs", b"mod b_one; fn first_thing() {}");
    tree.add("/libtally/include/x.h", b"");
    let page = "`crates/a/b_*.rs` `a/` `x.h` `first_thing` `b_one::first_thing`, other words\n\
                `a/b.rs` `b/` `y.h` `second_thing`\n\n    `in/code.rs`\n";
    let expected = ["P:2: `a/b.rs`", "P:2: `b/`", "P:2: `y.h`", "P:2: `second_thing`"];
    assert_eq!(tree.missing("P", page), expected);
}
