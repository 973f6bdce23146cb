// SPDX-License-Identifier: PostgreSQL
//! The time of the nodes of a plan: their waits, and their CPU time from samples of the running node.
//!
//! Waits and the CPU time of a whole plan are exact; the division of CPU time among the nodes is an estimate. A plan is
//! identified by the statement of a step and its depth, so the time of a nested statement belongs only to its own plan.

use std::collections::{HashMap, VecDeque};

/// Maximum number of samples that wait for the records of their time.
const MOST_SAMPLES: usize = 100_000;
/// Maximum number of plans kept: plans of cursors stay until their statement is executed again.
const MOST_PLANS: usize = 1000;

/// The time of a node. Times of several executions can be added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeUse {
    /// CPU time of the whole plan, including waits for a CPU, ticks.
    pub plan_ticks: u64,
    /// Samples in that time.
    pub plan_samples: u64,
    /// Samples of this node itself, without child nodes.
    pub samples: u64,
    /// Number of its own waits.
    pub waits: u64,
    /// Time in them, ticks.
    pub wait_ticks: u64,
}

impl NodeUse {
    /// The node's own CPU time and its half-width at 95 %, ticks; `None` if the plan has no samples.
    pub fn cpu(&self) -> Option<(u64, u64)> {
        if self.plan_samples == 0 {
            return None;
        }
        let (ticks, hits) = (self.plan_ticks as f64, self.samples.min(self.plan_samples));
        let share = hits as f64 / self.plan_samples as f64;
        let half_width = segment::kernel::half_width(hits, self.plan_samples);
        Some(((ticks * share).round() as u64, (ticks * half_width).round() as u64))
    }

    /// Adds another execution of the same plan.
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
    of: HashMap<NodeId, NodeSamples>,
}

#[derive(Debug, Clone, Copy, Default)]
struct NodeSamples {
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
    /// Adds a sample: at this tick this node ran, or none. Call it in order of time, before feeding the records of that
    /// time.
    pub fn sampled(&mut self, tick: u64, node: Option<NodeId>) {
        if self.samples.len() < MOST_SAMPLES {
            self.samples.push_back((tick, node));
        }
    }

    /// Records the start of a plan.
    pub fn starts(&mut self, plan: Plan) {
        if self.plans.len() >= MOST_PLANS {
            self.plans.clear();
        }
        self.plans.insert(plan, Execution::default());
    }

    /// Records that the process ran from `start` to `end`, in a step of this plan.
    pub fn ran(&mut self, plan: Option<Plan>, start: u64, end: u64) {
        let mut plan = plan.and_then(|plan| self.plans.get_mut(&plan));
        if let Some(plan) = &mut plan {
            plan.ticks += end.saturating_sub(start);
        }
        while let Some(&(tick, node)) = self.samples.front().filter(|(tick, _)| *tick < end) {
            self.samples.pop_front();
            // An earlier sample belongs to a wait.
            let Some(plan) = plan.as_deref_mut().filter(|_| tick >= start) else { continue };
            plan.samples += 1;
            if let Some(node) = node {
                plan.of.entry(node).or_default().samples += 1;
            }
        }
    }

    /// Records a wait of a node in a step of this plan.
    pub fn waited(&mut self, plan: Option<Plan>, node: NodeId, ticks: u64) {
        if let Some(plan) = plan.and_then(|plan| self.plans.get_mut(&plan)) {
            let node = plan.of.entry(node).or_default();
            (node.waits, node.wait_ticks) = (node.waits + 1, node.wait_ticks + ticks);
        }
    }

    /// The time of a node of this plan so far.
    pub fn use_of(&self, plan: Option<Plan>, node: NodeId) -> NodeUse {
        let Some(times) = plan.and_then(|plan| self.plans.get(&plan)) else {
            return NodeUse::default();
        };
        let NodeSamples { samples, waits, wait_ticks } =
            times.of.get(&node).copied().unwrap_or_default();
        NodeUse { plan_ticks: times.ticks, plan_samples: times.samples, samples, waits, wait_ticks }
    }

    /// Forgets the plans of earlier statements.
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
        // A wait from 20 to 40; then a nested statement.
        times.waited(Some(outer), 2, 20);
        times.starts(inner);
        times.ran(Some(inner), 40, 50);
        times.ran(Some(outer), 50, 100);
        let of = |plan, node| {
            let node_use = times.use_of(Some(plan), node);
            (
                node_use.plan_ticks,
                node_use.plan_samples,
                node_use.samples,
                node_use.waits,
                node_use.wait_ticks,
            )
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
