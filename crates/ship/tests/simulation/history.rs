// SPDX-License-Identifier: PostgreSQL
//! A history: a sequence of actions, generated from a seed, and shrunk.

use super::storage::Behaviour;

/// Pseudo-random numbers from a seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ (bits >> 31)) % end.max(1)
    }

    pub fn chance(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// A number up to `most`; small numbers are as likely as large ones.
    fn up_to(&mut self, most: u64) -> u64 {
        let limit = most >> self.below(u64::from(64 - most.leading_zeros()));
        1 + self.below(limit)
    }
}

/// An action in a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The recorder takes this many intervals of this length.
    Intervals { count: u64, milliseconds: i64 },
    /// Time passes without intervals.
    Pass { seconds: i64 },
    /// The time of day is set forward or back.
    SetClock { seconds: i64 },
    /// The server is started again.
    RestartServer,
    /// The recorder ends; `merge`: the hours are also merged.
    End { merge: bool },
    /// The recorder is killed at this system call, counted from now.
    Kill { call: u64 },
    /// The machine loses power at this call.
    LosePower { call: u64 },
    /// The disk has space for this many more bytes.
    Fill { bytes: u64 },
    /// There is space again.
    Free,
    /// The kernel writes all dirty pages to disk.
    WriteBack,
    /// Passes of the shipper that send this many files each.
    Ship { passes: u64, files: usize },
    /// The behavior of object storage for the next requests.
    Storage(Vec<Behaviour>),
}

/// Settings that hold throughout a history.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Hours after which intervals are rolled up, and after which the recording or the spool removes them.
    pub details: u64,
    pub tens: u64,
    pub sixties: u64,
    pub keep: Option<u64>,
    pub ships: bool,
    /// How long merged files stay in the bucket, seconds.
    pub grace: u64,
}

#[derive(Debug, Clone)]
pub struct History {
    pub seed: u64,
    pub settings: Settings,
    pub actions: Vec<Action>,
}

impl History {
    pub fn of_seed(seed: u64) -> History {
        let mut random = Random::new(seed);
        let r = &mut random;
        let never = 1 << 20;
        let ships = !r.chance(4);
        let clock = r.pick(&[0, 0, 1]);
        // Clocks that are set back further than a spool keeps files are a known limitation (docs/shipping.md).
        let keeps: &[Option<u64>] =
            if ships && clock > 0 { &[None] } else { &[None, Some(0), Some(2)] };
        let settings = Settings {
            details: r.pick(&[0, 0, 1, never]),
            tens: r.pick(&[1, 2, never]),
            sixties: r.pick(&[2, 3, never]),
            keep: r.pick(keeps),
            ships,
            grace: r.pick(&[0, 0, 900]),
        };
        // Most histories have few kinds of trouble, so that one does not hide another.
        let kill = r.pick(&[0, 1, 1, 3]);
        // Intervals that a power failure lost may have been sent, and their numbers are used again.
        let power = if settings.ships { 0 } else { r.pick(&[0, 1]) };
        let full = r.pick(&[0, 0, 1]);
        let storage = r.pick(&[0, 1, 3]);
        let lies = r.chance(4);
        let length = 4 + r.below(17);
        let actions = (0..length).map(|_| {
            let kinds: [u64; 12] =
                [9, 5, clock, 1, 1, 2 * kill, power, full, full, power, 6, storage];
            let mut drawn = r.below(kinds.iter().sum());
            let kind = kinds.iter().position(|weight| {
                let taken = drawn < *weight;
                drawn = drawn.saturating_sub(*weight);
                taken
            });
            match kind {
                Some(0) => Action::Intervals {
                    count: r.up_to(12),
                    milliseconds: r.pick(&[100, 1000, 1000, 10_000]),
                },
                Some(1) => Action::Pass { seconds: r.pick(&[1, 60, 60, 600, 3600, 3600, 7200]) },
                Some(2) => {
                    let seconds = r.pick(&[1, 30, 60, 3600, 7200, 86_400]);
                    Action::SetClock { seconds: r.pick(&[seconds, -seconds]) }
                }
                Some(3) => Action::RestartServer,
                Some(4) => Action::End { merge: r.chance(2) },
                Some(5) => Action::Kill { call: r.up_to(200) },
                Some(6) => Action::LosePower { call: r.up_to(200) },
                Some(7) => Action::Fill { bytes: r.up_to(1 << 17) },
                Some(8) => Action::Free,
                Some(9) => Action::WriteBack,
                Some(10) => Action::Ship { passes: r.up_to(8), files: r.pick(&[1, 3, 200]) },
                _ => Action::Storage((0..r.up_to(40)).map(|_| behaviour(r, lies)).collect()),
            }
        });
        let actions = actions.collect();
        History { seed, settings, actions }
    }

    /// The shortest history found that has a violation, with the violation; `fails` runs a history.
    pub fn shrink(
        mut self,
        mut violation: String,
        fails: impl Fn(&History) -> Option<String>,
    ) -> (History, String) {
        let mut length = self.actions.len().div_ceil(2);
        loop {
            let mut at = 0;
            while at < self.actions.len() {
                let mut fewer = self.clone();
                fewer.actions.drain(at..(at + length).min(self.actions.len()));
                match fails(&fewer) {
                    Some(text) => (self, violation) = (fewer, text),
                    None => at += length,
                }
            }
            if length == 1 {
                break;
            }
            length = length.div_ceil(2);
        }
        // Smaller numbers.
        for at in 0..self.actions.len() {
            while let Some(smaller) = self.actions[at].smaller() {
                let mut simpler = self.clone();
                simpler.actions[at] = smaller;
                let Some(text) = fails(&simpler) else { break };
                (self, violation) = (simpler, text);
            }
        }
        (self, violation)
    }
}

fn behaviour(r: &mut Random, lies: bool) -> Behaviour {
    use Behaviour::{AnswerIsLost, Lies, Refuses, Works};
    match r.below(8) {
        0 | 1 => Refuses,
        2 | 3 => AnswerIsLost,
        4 | 5 if lies => Lies,
        _ => Works,
    }
}

impl Action {
    fn smaller(&self) -> Option<Action> {
        match self.clone() {
            Action::Intervals { count, milliseconds } if count > 1 => {
                Some(Action::Intervals { count: count - 1, milliseconds })
            }
            Action::Ship { passes, files } if passes > 1 => {
                Some(Action::Ship { passes: passes - 1, files })
            }
            Action::Storage(mut all) if all.len() > 1 => {
                all.pop();
                Some(Action::Storage(all))
            }
            _ => None,
        }
    }
}
