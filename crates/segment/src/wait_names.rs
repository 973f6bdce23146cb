// SPDX-License-Identifier: PostgreSQL
//! The names of the server's wait events, as activities: "IO:WalSync".
//!
//! Up to version 16 they were written by hand, from 17 on they are generated, so an event may have two names:
//! "IO:WALSync" and "IO:WalSync". Whatever shows one server keeps that server's names, which its manual explains.
//! Whatever compares servers, or looks for a certain event, uses [`canonical`].

use std::cmp::Ordering;
use std::sync::LazyLock;

/// An event a line: its last name and the versions that have it; then each earlier name, with its versions.
/// Made by script/wait-names from what the servers answer.
const EVENTS: &str = include_str!("wait_names.txt");

/// Types to which extensions, or pg_tally itself, add events.
const OPEN: [&str; 4] = ["Call", "Extension", "InjectionPoint", "LWLock"];

/// How many names [`check`] proposes.
const PROPOSED: usize = 3;

/// Each name with the last one of its event, in the order of [`compare`].
static NAMES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let mut names: Vec<(&str, &str)> =
        lines().flat_map(|(last, all)| all.map(move |name| (name, last))).collect();
    names.sort_by(|a, b| compare(a.0, b.0));
    names
});

/// The last name of each event, and all of its names.
fn lines() -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
    let events = EVENTS.lines().filter(|line| !line.starts_with('#'));
    events.map(|line| (line.split('|').next().unwrap_or(line), line.split('|').step_by(2)))
}

/// Compares without regard to case.
fn compare(a: &str, b: &str) -> Ordering {
    a.bytes()
        .map(|byte| byte.to_ascii_lowercase())
        .cmp(b.bytes().map(|byte| byte.to_ascii_lowercase()))
}

/// The name of this event in the latest version that has it, whatever the case of `activity`. Other activities are
/// returned as they are.
pub fn canonical(activity: &str) -> &str {
    let found = NAMES.binary_search_by(|(name, _)| compare(name, activity));
    found.map_or(activity, |at| NAMES[at].1)
}

/// Whether an activity is this event, on whichever version.
pub fn is(activity: &str, event: &str) -> bool {
    canonical(activity) == canonical(event)
}

/// The names that differ from the canonical one, each with that.
pub fn earlier_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES.iter().copied().filter(|(name, last)| name != last)
}

/// An error with the nearest names if no server can have this event: if its type has no such event, or the type is
/// unknown. Extensions may add events to some types.
pub fn check(activity: &str) -> Result<(), String> {
    let kind = activity.split(':').next().unwrap_or(activity);
    let may_have_it = is_known(activity) || OPEN.iter().any(|open| open.eq_ignore_ascii_case(kind));
    if may_have_it {
        Ok(())
    } else {
        Err(refusal(activity, &[]))
    }
}

/// The same, for the server that has these activities besides.
pub fn check_on(activity: &str, others: &[&str]) -> Result<(), String> {
    let is_there =
        is_known(activity) || others.iter().any(|other| other.eq_ignore_ascii_case(activity));
    if is_there {
        Ok(())
    } else {
        Err(refusal(activity, others))
    }
}

fn is_known(activity: &str) -> bool {
    NAMES.binary_search_by(|(name, _)| compare(name, activity)).is_ok()
}

/// Names the nearest events, of the same type if there is such a type.
fn refusal(activity: &str, others: &[&str]) -> String {
    let kind_of = |name: &str| name.split(':').next().unwrap_or(name).to_ascii_lowercase();
    let all = || lines().map(|(last, _)| last).chain(others.iter().copied());
    let of_kind = all().filter(|name| kind_of(name) == kind_of(activity)).collect::<Vec<_>>();
    let mut nearest = if of_kind.is_empty() { all().collect() } else { of_kind };
    nearest.sort_by_cached_key(|name| (distance(name, activity), name.to_string()));
    nearest.dedup();
    nearest.truncate(PROPOSED);
    format!("unknown wait event \"{activity}\"; similar names are {}", nearest.join(", "))
}

/// How many letters have to be inserted, removed or replaced to make one of the other, without regard to case.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, letter) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// The names that each version has, with the versions that EVENTS gives as "15-17,19".
    fn by_version() -> BTreeMap<u32, Vec<&'static str>> {
        let mut names: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for line in EVENTS.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split('|').collect();
            for pair in cells.chunks(2) {
                for span in pair[1].split(',') {
                    let (first, last) = span.split_once('-').unwrap_or((span, span));
                    for version in first.parse().unwrap()..=last.parse().unwrap() {
                        names.entry(version).or_default().push(pair[0]);
                    }
                }
            }
        }
        names
    }

    #[test]
    fn two_events_of_a_version_never_share_a_name_and_a_canonical_name_is_its_own() {
        let versions = by_version();
        assert_eq!(versions.keys().copied().collect::<Vec<_>>(), [15, 16, 17, 18, 19]);
        for (version, names) in versions {
            let events: BTreeSet<&str> = names.iter().map(|name| canonical(name)).collect();
            assert_eq!(events.len(), names.len(), "{version}");
            assert!(events.iter().all(|event| canonical(event) == *event));
            assert!(names.len() > 230, "{version}: {}", names.len());
        }
    }

    #[test]
    fn versions_write_an_event_differently_and_mean_the_same() {
        for (earlier, last) in [
            ("IO:WALSync", "IO:WalSync"),
            ("IO:BufFileRead", "IO:BuffileRead"),
            ("IPC:BufferIO", "IPC:BufferIo"),
            ("IPC:HashGrowBucketsAllocate", "IPC:HashGrowBucketsReallocate"),
            ("BufferPin:BufferPin", "Buffer:BufferCleanup"),
            ("Call:commit_delay", "Timeout:CommitDelay"),
            ("io:walsync", "IO:WalSync"),
        ] {
            assert_eq!(canonical(earlier), last);
        }
        // What only looks alike, and what no server names.
        for other in ["IO:RelationMapSync", "LWLock:WALWrite", "cpu", "Call:open", "IO:Read"] {
            assert_eq!(canonical(other), other);
        }
        let earlier: Vec<_> = earlier_names().collect();
        assert!(earlier.contains(&("IO:WALSync", "IO:WalSync")));
        assert!(earlier.iter().all(|(name, last)| canonical(name) == *last && name != last));
    }

    #[test]
    fn an_unknown_event_is_refused_with_the_nearest_names() {
        for known in
            ["IO:WalSync", "io:walsync", "IO:WALSync", "LWLock:of_an_extension", "Call:open"]
        {
            assert_eq!(check(known), Ok(()));
        }
        let refused = check("IO:DataFileReed").unwrap_err();
        assert!(
            refused.contains("\"IO:DataFileReed\"; similar names are IO:DataFileRead, "),
            "{refused}"
        );
        assert!(check("Disk:WalSync").unwrap_err().contains("IO:WalSync"));
        let others = ["LWLock:of_an_extension"];
        assert_eq!(check_on("lwlock:Of_An_Extension", &others), Ok(()));
        let refused = check_on("LWLock:of_an_extensoin", &others).unwrap_err();
        assert!(refused.contains("nearest are LWLock:of_an_extension, "), "{refused}");
    }
}
