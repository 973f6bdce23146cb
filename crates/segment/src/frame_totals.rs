// SPDX-License-Identifier: PostgreSQL
//! Totals of all processes by statistic, from which most views start.

use crate::clock::ClockInfo;
use crate::delta::Total;
use crate::directory::Stat;
use crate::frame::{Frame, FrameStat};
use std::borrow::Cow;
use std::collections::HashMap;

/// The statistics of a frame, added up over all kinds of process.
#[derive(Debug)]
pub struct FrameTotals<'f> {
    clock: ClockInfo,
    sums: Vec<(&'f Stat, Cow<'f, Total>)>,
}

impl<'f> FrameTotals<'f> {
    /// Add up all statistics.
    pub fn add_up(frame: &'f Frame) -> FrameTotals<'f> {
        FrameTotals::of_those(frame, |_| true)
    }

    /// Add up only the selected statistics.
    pub fn of_those(frame: &'f Frame, wanted: impl Fn(&FrameStat) -> bool) -> FrameTotals<'f> {
        let mut indexes: HashMap<&Stat, usize> = HashMap::with_capacity(frame.statistics.len());
        let mut sums: Vec<(&Stat, Cow<'_, Total>)> = Vec::new();
        for statistic in frame.statistics.iter().filter(|statistic| wanted(statistic)) {
            match indexes.get(&*statistic.stat) {
                Some(&at) => sums[at].1.to_mut().merge(&statistic.total),
                None => {
                    indexes.insert(&statistic.stat, sums.len());
                    sums.push((&statistic.stat, Cow::Borrowed(&statistic.total)));
                }
            }
        }
        FrameTotals { clock: frame.clock, sums }
    }

    /// The clock of the ticks.
    pub fn clock(&self) -> &ClockInfo {
        &self.clock
    }

    /// Each statistic with its total, in no particular order.
    pub fn changed(&self) -> impl Iterator<Item = (&'f Stat, &Total)> {
        self.sums.iter().map(|(stat, total)| (*stat, &**total))
    }
}
