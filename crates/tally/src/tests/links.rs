// SPDX-License-Identifier: PostgreSQL
//! Every link of our pages leads to a file that exists, and every anchor to a heading of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The pages: Markdown files that git knows, or would add, by their path in the tree.
fn pages() -> BTreeMap<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut git = Command::new("git");
    git.arg("-C").arg(&root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "*.md",
    ]);
    let listed = git.output().expect("git").stdout;
    let mut names: Vec<PathBuf> = listed
        .split(|byte| *byte == 0)
        .map(|name| String::from_utf8_lossy(name).into_owned().into())
        .collect();
    if !names.iter().any(|name| name.as_os_str() == "README.md") {
        // An unpacked archive.
        let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
        let folders = ["", "docs", "docs/adr", "format"].map(PathBuf::from);
        names = folders
            .iter()
            .flat_map(|folder| {
                let entries = std::fs::read_dir(root.join(folder)).unwrap().flatten();
                entries
                    .map(|entry| folder.join(entry.file_name()))
                    .filter(is_page)
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    names
        .into_iter()
        .filter_map(|name| Some((name.clone(), std::fs::read_to_string(root.join(&name)).ok()?)))
        .collect()
}

/// The lines that are no code.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    let mut after_blank = true;
    text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        let indented = line.starts_with("    ") && after_blank;
        after_blank = line.trim().is_empty() || indented;
        !fenced && !fence && !indented
    })
}

/// A heading's anchor, as GitHub and GitLab make it: lower case, without punctuation, spaces as hyphens.
fn anchor(heading: &str) -> String {
    // A link in a heading counts by its text.
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        text += &before.replace('[', "");
        rest = after.split_once(')').map_or("", |parts| parts.1);
    }
    text += rest;
    text.to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// The anchors of a page; of several equal ones, the later ones have a number.
fn anchors(text: &str) -> HashSet<String> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut found = HashSet::new();
    for (_, line) in prose(text) {
        let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
        if (1..=6).contains(&hashes) && line[hashes..].starts_with(' ') {
            let anchor = anchor(line[hashes..].trim());
            let before = times.entry(anchor.clone()).or_default();
            found.insert(match *before {
                0 => anchor,
                n => format!("{anchor}-{n}"),
            });
            *before += 1;
        }
        let ids = line.split("id=\"").skip(1).chain(line.split("<a name=\"").skip(1));
        found.extend(ids.filter_map(|rest| Some(rest.split_once('"')?.0.to_string())));
    }
    found
}

/// The targets of a line's links, of images too; a link within code is none.
fn targets(line: &str) -> Vec<&str> {
    let code = |at: usize| line[..at].matches('`').count() % 2 == 1;
    let inline = line.match_indices("](").filter(|(at, _)| !code(*at)).filter_map(|(at, _)| {
        line[at + 2..].split_once(')').map(|parts| parts.0.split_whitespace().next().unwrap_or(""))
    });
    let reference = line.starts_with('[').then(|| line.split_once("]: ")).flatten();
    inline.chain(reference.map(|parts| parts.1.trim())).collect()
}

/// The path without `.` and `..`; `None`: it leads out of the tree.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => found.pop().then_some(())?,
            Component::Normal(name) => found.push(name),
            _ => {}
        }
    }
    Some(found)
}

/// What is wrong with a page's links.
fn dead(
    name: &Path,
    text: &str,
    pages: &BTreeMap<PathBuf, String>,
    exists: impl Fn(&Path) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for target in targets(line) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target
                .split_once('#')
                .map_or((target, None), |(path, anchor)| (path, Some(anchor)));
            let folder = name.parent().unwrap_or(Path::new(""));
            let to = match path {
                "" => Some(name.to_path_buf()),
                path => normal(&folder.join(path)),
            };
            let mut bad = |why: &str| {
                found.push(format!("{}:{}: {target}: {why}", name.display(), number + 1))
            };
            match (to, anchor) {
                (Some(to), None) if exists(&to) => {}
                (Some(to), Some(anchor)) if exists(&to) => match pages.get(&to) {
                    Some(page) if anchors(page).contains(anchor) => {}
                    Some(_) => bad("no such heading"),
                    None => {} // lines of a source file
                },
                _ => bad("no such file"),
            }
        }
    }
    found
}

#[test]
fn every_link_and_anchor_of_the_pages_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = pages();
    assert!(pages.len() > 100, "{}", pages.len());
    let exists = |path: &Path| root.join(path).exists();
    let all: Vec<String> =
        pages.iter().flat_map(|(name, text)| dead(name, text, &pages, exists)).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn each_decision_and_each_guide_is_in_its_index() {
    let pages = pages();
    for (folder, index) in [("docs/adr", "docs/adr/README.md"), ("docs", "docs/README.md")] {
        let text = &pages[Path::new(index)];
        for name in pages.keys().filter(|name| name.parent() == Some(Path::new(folder))) {
            let file = name.file_name().unwrap().to_string_lossy();
            let listed = file == "README.md" || text.contains(&format!("({file}"));
            assert!(listed, "{index} does not list {file}");
        }
    }
}

#[test]
fn a_dead_link_is_found_wherever_it_is() {
    let pages: BTreeMap<PathBuf, String> = [
        ("README.md", "# A\n[1](docs/a.md#b-c-d) [2](docs/b.md) `[x](y)`\n\n    [in code](nowhere)\n"),
        ("docs/a.md", "# B: `c` (d)\n## Same\n## Same\n[3](#same-1) [4](#same-2) [5](../../x) [6](../README.md#a)\n```\n[7](no)\n```\n"),
    ]
    .map(|(name, text)| (name.into(), text.to_string()))
    .into();
    let all: Vec<String> = pages
        .iter()
        .flat_map(|(name, text)| dead(name, text, &pages, |path| pages.contains_key(path)))
        .collect();
    let expected = [
        "README.md:2: docs/b.md: no such file",
        "docs/a.md:4: #same-2: no such heading",
        "docs/a.md:4: ../../x: no such file",
    ];
    assert_eq!(all, expected);
}
