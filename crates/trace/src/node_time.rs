// SPDX-License-Identifier: PostgreSQL
//! What the nodes of a plan took: their waits, and their processor time by samples of the node that runs.
//!
//! Waits and the processor time of a plan are exact; how the latter is divided among its nodes is an estimate. A plan is that of a step's statement at its depth, so the time
//! of a statement within another belongs to its own plan only.

use std::collections::{HashMap, VecDeque};

/// Samples that wait for the records of their time.
const MOST_SAMPLES: usize = 100_000;
/// Plans that are kept: those of cursors stay until their statement is executed again.
const MOST_PLANS: usize = 1000;
/// Of the normal distribution: 95 % are within so many standard deviations.
const Z: f64 = 1.96;

/// What a node took. Those of several executions can be added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeUse {
    /// Processor time of the whole plan, ticks; waits for a processor included.
    pub plan_ticks: u64,
    /// Samples in that time.
    pub plan_samples: u64,
    /// Of these, samples of this node itself, without the nodes below it.
    pub samples: u64,
    /// Its own waits.
    pub waits: u64,
    /// Time in them, ticks.
    pub wait_ticks: u64,
}

impl NodeUse {
    /// The node's own processor time and its half-width at 95 %, ticks; `None`: there is no sample of the plan.
    pub fn cpu(&self) -> Option<(u64, u64)> {
        if self.plan_samples == 0 {
            return None;
        }
        let (ticks, all) = (self.plan_ticks as f64, self.plan_samples as f64);
        let share = (self.samples as f64 / all).min(1.0);
        // Wilson's interval, which is not empty where no sample or every one is the node's.
        let spread = (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).sqrt();
        let half_width = Z * spread / (1.0 + Z * Z / all);
        Some(((ticks * share).round() as u64, (ticks * half_width).round() as u64))
    }

    /// Of another execution of the same plan.
    pub fn add(&mut self, other: &NodeUse) {
        self.plan_ticks += other.plan_ticks;
        self.plan_samples += other.plan_samples;
        self.samples += other.samples;
        self.waits += other.waits;
        self.wait_ticks += other.wait_ticks;
    }
}

/// A step's depth and statement.
pub type Plan = (usize, u64);

#[derive(Debug, Default)]
struct Execution {
    ticks: u64,
    samples: u64,
    of: HashMap<NodeId, Node>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Node {
    samples: u64,
    waits: u64,
    wait_ticks: u64,
}

/// The plans that a process executes.
#[derive(Debug, Default)]
pub struct NodeTimes {
    samples: VecDeque<(u64, Option<NodeId>)>,
    plans: HashMap<Plan, Execution>,
}

impl NodeTimes {
    /// At that tick this node ran, or none. In the order of time, before the records of that time are fed.
    pub fn sampled(&mut self, tick: u64, node: Option<NodeId>) {
        if self.samples.len() < MOST_SAMPLES {
            self.samples.push_back((tick, node));
        }
    }

    /// A plan starts.
    pub fn starts(&mut self, plan: Plan) {
        if self.plans.len() >= MOST_PLANS {
            self.plans.clear();
        }
        self.plans.insert(plan, Execution::default());
    }

    /// From `start` to `end` the process ran, in a step of this plan.
    pub fn ran(&mut self, plan: Option<Plan>, start: u64, end: u64) {
        let mut plan = plan.and_then(|plan| self.plans.get_mut(&plan));
        if let Some(plan) = &mut plan {
            plan.ticks += end.saturating_sub(start);
        }
        while let Some(&(tick, node)) = self.samples.front().filter(|(tick, _)| *tick < end) {
            self.samples.pop_front();
            // One before was of a wait.
            let Some(plan) = plan.as_deref_mut().filter(|_| tick >= start) else { continue };
            plan.samples += 1;
            if let Some(node) = node {
                plan.of.entry(node).or_default().samples += 1;
            }
        }
    }

    /// In a step of this plan a node waited.
    pub fn waited(&mut self, plan: Option<Plan>, node: NodeId, ticks: u64) {
        if let Some(plan) = plan.and_then(|plan| self.plans.get_mut(&plan)) {
            let node = plan.of.entry(node).or_default();
            (node.waits, node.wait_ticks) = (node.waits + 1, node.wait_ticks + ticks);
        }
    }

    /// What is known of a node of this plan.
    pub fn use_of(&self, plan: Option<Plan>, node: NodeId) -> NodeUse {
        let Some(it) = plan.and_then(|plan| self.plans.get(&plan)) else {
            return NodeUse::default();
        };
        let Node { samples, waits, wait_ticks } = it.of.get(&node).copied().unwrap_or_default();
        NodeUse { plan_ticks: it.ticks, plan_samples: it.samples, samples, waits, wait_ticks }
    }

    /// Statements of before are over.
    pub fn forget(&mut self) {
        self.plans.clear();
    }
}

/// A node of a plan, as far as the trace has named it.
pub type NodeId = u16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_plan_is_divided_by_its_samples_and_waits_are_left_out() {
        let (outer, inner) = ((0, 11), (1, 22));
        let mut times = NodeTimes::default();
        times.starts(outer);
        for tick in 0..100 {
            times.sampled(tick, Some(if tick < 60 { 1 } else { 2 }));
        }
        times.ran(Some(outer), 0, 20);
        // A wait from 20 to 40; then a statement within.
        times.waited(Some(outer), 2, 20);
        times.starts(inner);
        times.ran(Some(inner), 40, 50);
        times.ran(Some(outer), 50, 100);
        let of = |plan, node| {
            let it = times.use_of(Some(plan), node);
            (it.plan_ticks, it.plan_samples, it.samples, it.waits, it.wait_ticks)
        };
        assert_eq!(of(outer, 1), (70, 70, 30, 0, 0));
        assert_eq!(of(outer, 2), (70, 70, 40, 1, 20));
        assert_eq!(of(inner, 1), (10, 10, 10, 0, 0));
        assert_eq!(times.use_of(None, 1), NodeUse::default());
    }

    #[test]
    fn an_execution_begins_at_zero() {
        let plan = (0, 11);
        let mut times = NodeTimes::default();
        times.starts(plan);
        times.sampled(5, Some(1));
        times.ran(Some(plan), 0, 10);
        times.starts(plan);
        assert_eq!(times.use_of(Some(plan), 1), NodeUse::default());
    }

    #[test]
    fn an_estimate_has_a_half_width_even_without_a_sample_of_the_node() {
        let cpu = |samples| NodeUse {
            plan_ticks: 1_000_000,
            plan_samples: 100,
            samples,
            ..NodeUse::default()
        };
        assert_eq!(NodeUse::default().cpu(), None);
        let (none, wide) = cpu(0).cpu().unwrap();
        assert_eq!(none, 0);
        assert!((10_000..30_000).contains(&wide), "{wide}");
        let (half, wide) = cpu(50).cpu().unwrap();
        assert_eq!(half, 500_000);
        assert!((90_000..100_000).contains(&wide), "{wide}");
    }
}
