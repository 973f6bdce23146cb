// SPDX-License-Identifier: PostgreSQL
//! Compares two profiles: CPU time per unit of work, and which differences chance cannot explain.
//!
//! CPU samples are counts of rare events, so two counts are compared with the conditional test of their rates. Testing
//! many functions at once finds some by chance; their share is limited to [`Q`] (Benjamini and Hochberg). This covers
//! only the chance of sampling: two runs of the same server differ by more.

use std::collections::BTreeMap;

use segment::wait_names;
use serde::Serialize;
use stats::{discoveries, Counts};

use crate::profile::{Account, Profile};
use crate::sums::{by_function, by_image};

/// Limit for the false discovery rate.
pub const Q: f64 = 0.01;

/// The unit of work that times are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkUnit {
    /// Transactions.
    Transaction,
    /// Commands of the clients, if transactions are unknown.
    Command,
    /// Seconds, if there were neither.
    Second,
}

/// CPU time of an image or a function in both profiles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfileChange<K> {
    /// The image or function.
    pub key: K,
    /// Samples.
    pub samples: [u64; 2],
    /// CPU time per unit of work, seconds.
    pub seconds: [f64; 2],
    /// The second divided by the first; `None` if one has no samples.
    pub ratio: Option<f64>,
    /// The factor by which its 95 % interval extends to either side.
    pub factor: Option<f64>,
    /// Probability of such a difference by chance alone.
    pub p: f64,
    /// Whether it is beyond chance, corrected for the number of rows in the table.
    pub beyond_chance: bool,
}

/// Exact time of an account, from the ledger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AccountRow {
    /// The account.
    #[serde(flatten)]
    pub account: Account,
    /// Time per unit of work, seconds.
    pub seconds: [f64; 2],
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FunctionKey {
    /// Its file, without the directory.
    pub image: String,
    /// Its name.
    pub symbol: String,
}

/// The comparison of two profiles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfileComparison {
    /// The unit of work that times are divided by.
    pub per: WorkUnit,
    /// Number of units in each profile.
    pub units: [f64; 2],
    /// Changes by image, largest difference first.
    pub images: Vec<ProfileChange<String>>,
    /// Changes by innermost function, largest difference first.
    pub functions: Vec<ProfileChange<FunctionKey>>,
    /// Accounts that are not idle, largest difference first.
    pub accounts: Vec<AccountRow>,
}

/// Compares two profiles.
pub fn compare(a: &Profile, b: &Profile) -> ProfileComparison {
    let both = [a, b];
    let (per, units) = units(both);
    // The exposures of the two counts: units of work times the sampling rate.
    let amounts = [0, 1].map(|side| units[side] * both[side].hertz);
    let images = both.map(|profile| by_image(profile, |_| true));
    let functions = both.map(|profile| by_function(profile, |_| true));
    let images = both_sides(images.map(|sums| {
        sums.into_iter().map(|sum| (Profile::short(sum.key).to_string(), sum.samples)).collect()
    }));
    let functions = both_sides(functions.map(|sums| {
        let key = |symbol: &crate::Symbol| FunctionKey {
            image: Profile::short(&symbol.image).to_string(),
            symbol: symbol.name.clone(),
        };
        sums.into_iter().filter_map(|sum| Some((key(sum.key?), sum.samples))).collect()
    }));
    ProfileComparison {
        per,
        units,
        images: rows(images, amounts),
        functions: rows(functions, amounts),
        accounts: accounts(both, units),
    }
}

fn units(both: [&Profile; 2]) -> (WorkUnit, [f64; 2]) {
    let all_positive = |units: [f64; 2]| units.iter().all(|count| *count > 0.0);
    let transactions = both.map(|profile| profile.transactions.unwrap_or_default() as f64);
    if all_positive(transactions) {
        return (WorkUnit::Transaction, transactions);
    }
    let commands = both.map(|profile| profile.commands as f64);
    if all_positive(commands) {
        return (WorkUnit::Command, commands);
    }
    (WorkUnit::Second, both.map(|profile| profile.seconds.max(f64::MIN_POSITIVE)))
}

fn both_sides<K: Ord>(sides: [Vec<(K, u64)>; 2]) -> BTreeMap<K, [u64; 2]> {
    let mut all: BTreeMap<K, [u64; 2]> = BTreeMap::new();
    for (side, sums) in sides.into_iter().enumerate() {
        for (key, samples) in sums {
            all.entry(key).or_default()[side] += samples;
        }
    }
    all
}

fn rows<K>(all: BTreeMap<K, [u64; 2]>, amounts: [f64; 2]) -> Vec<ProfileChange<K>> {
    let mut rows: Vec<ProfileChange<K>> = all
        .into_iter()
        .map(|(key, samples)| {
            let counts = Counts::compare((samples[0], amounts[0]), (samples[1], amounts[1]));
            ProfileChange {
                key,
                samples,
                seconds: [0, 1].map(|side| samples[side] as f64 / amounts[side]),
                ratio: counts.ratio,
                factor: counts.factor,
                p: counts.p,
                beyond_chance: false,
            }
        })
        .collect();
    let p: Vec<f64> = rows.iter().map(|row| row.p).collect();
    for (row, found) in rows.iter_mut().zip(discoveries(&p, Q)) {
        row.beyond_chance = found;
    }
    rows.sort_by(|a, b| {
        let key =
            |row: &ProfileChange<K>| (row.beyond_chance, (row.seconds[1] - row.seconds[0]).abs());
        key(b).0.cmp(&key(a).0).then(key(b).1.total_cmp(&key(a).1))
    });
    rows
}

fn accounts(both: [&Profile; 2], units: [f64; 2]) -> Vec<AccountRow> {
    let mut all: BTreeMap<Account, [f64; 2]> = BTreeMap::new();
    for (side, profile) in both.into_iter().enumerate() {
        for row in profile.ledger.iter().filter(|row| !row.idle) {
            // The servers may have different versions.
            let activity = wait_names::canonical(&row.account.activity).to_string();
            let account = Account { activity, ..row.account.clone() };
            all.entry(account).or_default()[side] += row.seconds / units[side];
        }
    }
    let mut rows: Vec<AccountRow> =
        all.into_iter().map(|(account, seconds)| AccountRow { account, seconds }).collect();
    let change = |row: &AccountRow| (row.seconds[1] - row.seconds[0]).abs();
    rows.sort_by(|a, b| change(b).total_cmp(&change(a)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::profile;

    #[test]
    fn a_profile_does_not_differ_from_itself_even_at_another_rate() {
        let a = profile();
        let same = compare(&a, &a);
        assert!(
            same.functions.iter().all(|function| !function.beyond_chance && function.p > 0.5),
            "{same:#?}"
        );
        // Twice the work in twice the time.
        let mut twice = a.clone();
        twice.commands *= 2;
        twice.stacks.iter_mut().for_each(|stack| stack.samples *= 2);
        assert!(compare(&a, &twice).functions.iter().all(|function| function.ratio == Some(1.0)));
    }

    #[test]
    fn what_grew_comes_first_and_is_beyond_chance() {
        let a = profile();
        let mut b = a.clone();
        b.stacks[0].samples *= 6;
        let found = compare(&a, &b);
        assert_eq!(found.functions[0].key.symbol, "leaf");
        assert!(found.functions[0].beyond_chance);
        assert!(found.functions[1..].iter().all(|function| !function.beyond_chance));
        assert_eq!(found.per, WorkUnit::Command);
    }

    #[test]
    fn times_are_per_transaction_else_per_command_else_per_second() {
        let a = profile();
        let mut b = a.clone();
        (b.commands, b.seconds) = (2_000, 4.0);
        // The time of `leaf`: 10 samples at 100 Hz.
        let check = |a: &Profile, b: &Profile, per: WorkUnit, seconds: [f64; 2]| {
            let found = compare(a, b);
            let leaf =
                found.functions.iter().find(|function| function.key.symbol == "leaf").unwrap();
            assert_eq!(found.per, per);
            for side in [0, 1] {
                assert!(
                    (leaf.seconds[side] / seconds[side] - 1.0).abs() < 1e-12,
                    "{per:?} {leaf:?}"
                );
            }
            found
        };
        let found = check(&a, &b, WorkUnit::Command, [1e-4, 5e-5]);
        let accounts: Vec<_> =
            found.accounts.iter().map(|row| (&*row.account.activity, row.seconds)).collect();
        assert_eq!(accounts, [("IO:DataFileRead", [6e-4, 3e-4]), ("cpu", [4e-4, 2e-4])]);
        assert_eq!(found.functions[0].key.image, "kernel");
        assert_eq!(found.functions[1].key.image, "postgres");
        let images: Vec<&str> = found.images.iter().map(|image| image.key.as_str()).collect();
        assert_eq!(images, ["kernel", "postgres"]);
        let (mut x, mut y) = (a.clone(), b.clone());
        (x.transactions, y.transactions) = (Some(10), Some(100));
        check(&x, &y, WorkUnit::Transaction, [1e-2, 1e-3]);
        (x.transactions, x.commands) = (Some(0), 0);
        check(&x, &y, WorkUnit::Second, [0.1, 0.025]);
        x.ledger[1].idle = true;
        y.ledger[1].idle = true;
        assert_eq!(compare(&x, &y).accounts.len(), 1, "idle time is left out");
    }
}
