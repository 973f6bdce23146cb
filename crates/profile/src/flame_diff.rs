// SPDX-License-Identifier: PostgreSQL
//! The stacks of two profiles as one tree for each grouping: CPU time per unit of work of both, and which
//! frames differ by more than chance would explain.

use std::collections::BTreeMap;

use serde::Serialize;
use stats::{discoveries, Counts};

use crate::compare::{ProfileComparison, WorkUnit, Q};
use crate::profile::{Profile, Stack};

/// Frames with a smaller share of both profiles cannot be seen.
const NARROWEST: f64 = 0.0006;

/// Two profiles as flame graphs.
#[derive(Debug, Serialize)]
pub struct FlameDiff<'p> {
    /// Tells it from a profile.
    pub format: &'static str,
    /// The servers of both profiles.
    pub servers: [&'p str; 2],
    /// The unit of work that times are divided by.
    pub per: WorkUnit,
    /// Number of units in each profile.
    pub units: [f64; 2],
    /// Units times samples per second: samples divided by this are seconds of CPU time per unit.
    pub amounts: [f64; 2],
    /// Limit for the share of frames that are marked by chance.
    pub false_discovery_rate: f64,
    /// A tree for each grouping and direction.
    pub trees: Vec<FlameDiffTree<'p>>,
}

/// What is below the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grouping {
    /// Phases, then activities, then functions.
    Phase,
    /// Statements, then phases and activities.
    Statement,
    /// Functions.
    Function,
}

/// A tree.
#[derive(Debug, Serialize)]
pub struct FlameDiffTree<'p> {
    /// What is below its root.
    pub grouping: Grouping,
    /// Whether it goes from the innermost frame to its callers.
    pub inverted: bool,
    /// Its root.
    pub root: FlameDiffNode<'p>,
}

/// A frame.
#[derive(Debug, Serialize)]
pub struct FlameDiffNode<'p> {
    /// Its name.
    pub name: &'p str,
    /// The file of a function, or the kind of another frame.
    pub from: &'p str,
    /// Samples.
    pub samples: [u64; 2],
    /// B's time divided by A's; `None` if one has no samples.
    pub ratio: Option<f64>,
    /// The factor by which its 95 % interval extends to either side.
    pub factor: Option<f64>,
    /// Whether the difference is beyond chance, corrected for the number of frames in the tree.
    pub beyond_chance: bool,
    /// The frames above it, in the order of names.
    pub children: Vec<FlameDiffNode<'p>>,
}

/// Name and origin of a frame.
type Frame<'p> = (&'p str, &'p str);

#[derive(Debug, Default)]
struct Sums<'p> {
    samples: [u64; 2],
    children: BTreeMap<Frame<'p>, Sums<'p>>,
}

impl<'p> Sums<'p> {
    fn add(&mut self, path: impl Iterator<Item = Frame<'p>>, side: usize, samples: u64) {
        let mut at = self;
        at.samples[side] += samples;
        for frame in path {
            at = at.children.entry(frame).or_default();
            at.samples[side] += samples;
        }
    }

    /// The tree without what cannot be seen; appends the probability of each frame's difference, in the order of [`mark`].
    fn node(
        self,
        (name, from): Frame<'p>,
        amounts: [f64; 2],
        narrowest: f64,
        p: &mut Vec<f64>,
    ) -> FlameDiffNode<'p> {
        let [a, b] = [0, 1].map(|side| (self.samples[side], amounts[side]));
        let counts = Counts::compare(a, b);
        p.push(counts.p);
        let seen = |sums: &Sums<'_>| time(sums.samples, amounts) >= narrowest;
        let children = self.children.into_iter().filter(|(_, sums)| seen(sums));
        FlameDiffNode {
            name,
            from,
            samples: self.samples,
            ratio: counts.ratio,
            factor: counts.factor,
            beyond_chance: false,
            children: children
                .map(|(frame, sums)| sums.node(frame, amounts, narrowest, p))
                .collect(),
        }
    }
}

/// The time of both profiles together, per unit of work.
fn time(samples: [u64; 2], amounts: [f64; 2]) -> f64 {
    samples[0] as f64 / amounts[0] + samples[1] as f64 / amounts[1]
}

fn mark(node: &mut FlameDiffNode<'_>, found: &mut impl Iterator<Item = bool>) {
    node.beyond_chance = found.next().unwrap_or(false);
    node.children.iter_mut().for_each(|child| mark(child, found));
}

/// The flame graphs of two profiles that were compared.
pub fn flame_diff<'p>(a: &'p Profile, b: &'p Profile, found: &ProfileComparison) -> FlameDiff<'p> {
    let amounts = [found.units[0] * a.hertz, found.units[1] * b.hertz];
    let groupings = [Grouping::Phase, Grouping::Statement, Grouping::Function];
    let trees = groupings.into_iter().flat_map(|grouping| {
        [false, true].map(|inverted| FlameDiffTree {
            grouping,
            inverted,
            root: tree([a, b], amounts, grouping, inverted),
        })
    });
    FlameDiff {
        format: "pgtally profile diff",
        servers: [&a.server, &b.server],
        per: found.per,
        units: found.units,
        amounts,
        false_discovery_rate: Q,
        trees: trees.collect(),
    }
}

fn tree<'p>(
    both: [&'p Profile; 2],
    amounts: [f64; 2],
    grouping: Grouping,
    inverted: bool,
) -> FlameDiffNode<'p> {
    let mut sums = Sums::default();
    for (side, profile) in both.into_iter().enumerate() {
        for stack in &profile.stacks {
            let mut path = path_of(profile, stack, grouping);
            if inverted {
                path.reverse();
            }
            sums.add(path.into_iter(), side, stack.samples);
        }
    }
    let narrowest = NARROWEST * time(sums.samples, amounts);
    let mut p = Vec::new();
    let mut root = sums.node(("all", ""), amounts, narrowest, &mut p);
    mark(&mut root, &mut discoveries(&p, Q).into_iter());
    root
}

/// The frames of a stack, outermost first.
fn path_of<'p>(profile: &'p Profile, stack: &'p Stack, grouping: Grouping) -> Vec<Frame<'p>> {
    let mut path: Vec<Frame<'p>> = Vec::new();
    let process = &profile.processes[stack.process];
    let account = [
        (or_unknown(&stack.account.phase), "phase"),
        (or_unknown(&stack.account.activity), "activity"),
    ];
    match (process.server, grouping) {
        (_, Grouping::Function) => {}
        (false, _) => path.push((&process.name, "process")),
        (true, Grouping::Phase) => path.extend(account),
        (true, Grouping::Statement) => {
            let text = stack.statement.and_then(|at| profile.statements[at].query.as_deref());
            path.push((text.unwrap_or("no statement, or unknown"), "statement"));
            path.extend(account);
        }
    }
    path.extend(stack.frames.iter().rev().map(|frame| {
        let symbol = &profile.symbols[*frame];
        (symbol.name.as_str(), Profile::short(&symbol.image))
    }));
    path
}

fn or_unknown(name: &str) -> &str {
    if name.is_empty() {
        "unknown account"
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::sample::profile;

    fn find<'n, 'p>(node: &'n FlameDiffNode<'p>, path: &[&str]) -> &'n FlameDiffNode<'p> {
        path.iter().fold(node, |node, name| {
            node.children.iter().find(|child| child.name == *name).unwrap_or_else(|| {
                panic!(
                    "no {name} in {:?}",
                    node.children.iter().map(|one| one.name).collect::<Vec<_>>()
                )
            })
        })
    }

    #[test]
    fn both_profiles_are_one_tree_for_each_grouping() {
        let a = profile();
        let mut b = a.clone();
        // Three times the samples of `leaf` alone, in twice the work.
        b.stacks[0].samples = 600;
        b.stacks[1].samples = 60;
        b.commands = 2_000;
        let diff = flame_diff(&a, &b, &compare(&a, &b));
        let tree = |grouping, inverted| {
            let is =
                |tree: &&FlameDiffTree<'_>| tree.grouping == grouping && tree.inverted == inverted;
            &diff.trees.iter().find(is).unwrap().root
        };
        let root = tree(Grouping::Phase, false);
        assert_eq!(root.samples, [40, 660]);
        let read = find(root, &["execute", "cpu", "main", "leaf", "do_read"]);
        assert_eq!((read.samples, read.ratio, read.beyond_chance), ([30, 60], Some(1.0), false));
        assert_eq!(read.from, crate::KERNEL);
        let leaf = find(root, &["execute", "cpu", "main", "leaf"]);
        assert!(leaf.beyond_chance && leaf.ratio.unwrap() > 5.0, "{leaf:?}");
        let of_statement = find(tree(Grouping::Statement, false), &["select 1", "execute", "cpu"]);
        assert_eq!(of_statement.samples, [40, 660]);
        // From the innermost frame: `leaf` by itself is another frame than `leaf` below `do_read`.
        let inverted = tree(Grouping::Function, true);
        assert_eq!(find(inverted, &["leaf"]).samples, [10, 600]);
        assert_eq!(find(inverted, &["do_read", "leaf", "main"]).samples, [30, 60]);
    }

    #[test]
    fn a_profile_has_no_difference_from_itself() {
        let a = profile();
        let diff = flame_diff(&a, &a, &compare(&a, &a));
        fn none_beyond(node: &FlameDiffNode<'_>) -> bool {
            !node.beyond_chance && node.children.iter().all(none_beyond)
        }
        assert!(diff.trees.iter().all(|tree| none_beyond(&tree.root)));
    }

    #[test]
    fn what_cannot_be_seen_is_left_out() {
        let mut a = profile();
        a.stacks[0].samples = 1_000_000;
        let diff = flame_diff(&a, &a, &compare(&a, &a));
        let root = &diff.trees[0].root;
        assert!(find(root, &["execute", "cpu", "main", "leaf"]).children.is_empty());
    }
}
