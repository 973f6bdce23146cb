// SPDX-License-Identifier: PostgreSQL
//! The threads of the background, and the operations and rate of each.
//!
//! Each thread has one direction: fio 3.33 aborts when a thread that mixes reads and writes at a fixed
//! rate is stopped (io_u.c, assertion ddir_rw). Threads of one kind have equal rates.

use crate::storage::file::Background;

/// A thread of the background.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thread {
    /// Whether it reads or writes.
    pub reads: bool,
    /// Whether it processes one file after the other; otherwise each operation is on a random block of a random
    /// file.
    pub sequential: bool,
    /// Operations per second.
    pub rate: f64,
    /// Its start within the first period of its rate, in seconds, so that threads do not run in lockstep.
    pub offset: f64,
}

/// The threads of a background. Fails if there are fewer threads than kinds of operations.
pub fn plan_threads(load: &Background) -> Result<Vec<Thread>, String> {
    let (r, s) = (load.reads, load.sequential);
    let kinds = [(true, true), (true, false), (false, true), (false, false)];
    let shares: Vec<((bool, bool), f64)> = kinds
        .into_iter()
        .map(|(reads, sequential)| {
            let share = |is: bool, share: f64| if is { share } else { 1.0 - share };
            ((reads, sequential), share(reads, r) * share(sequential, s))
        })
        .filter(|(_, share)| *share > 0.0)
        .collect();
    if shares.len() > load.threads {
        return Err(format!(
            "background.threads must be {} or more: sequential and random reads and writes have \
             separate threads",
            shares.len()
        ));
    }
    let counts = apportioned(load.threads, &shares.iter().map(|share| share.1).collect::<Vec<_>>());
    let mut threads = Vec::new();
    for (((reads, sequential), share), count) in shares.into_iter().zip(counts) {
        let rate = load.rate * share / count as f64;
        for number in 0..count {
            let offset = number as f64 / count as f64 / rate;
            threads.push(Thread { reads, sequential, rate, offset });
        }
    }
    Ok(threads)
}

/// Divides a number by shares, with at least one for each, by the largest remainder method.
pub fn apportioned(total: usize, shares: &[f64]) -> Vec<usize> {
    let exact = |share: &f64| share * total as f64;
    let mut counts: Vec<usize> =
        shares.iter().map(|share| (exact(share) as usize).max(1)).collect();
    loop {
        let sum: usize = counts.iter().sum();
        let error = |at: &usize| exact(&shares[*at]) - counts[*at] as f64;
        let all = 0..counts.len();
        let next = match sum.cmp(&total) {
            std::cmp::Ordering::Equal => return counts,
            std::cmp::Ordering::Less => all.max_by(|a, b| error(a).total_cmp(&error(b))),
            std::cmp::Ordering::Greater => {
                all.filter(|at| counts[*at] > 1).min_by(|a, b| error(a).total_cmp(&error(b)))
            }
        };
        match next {
            Some(at) if sum < total => counts[at] += 1,
            Some(at) => counts[at] -= 1,
            None => return counts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::file::{Class, Size};

    fn load(rate: f64, threads: usize, reads: f64, sequential: f64) -> Background {
        let text = format!(
            "rate = {rate}\nthreads = {threads}\nreads = {reads}\nsequential = {sequential}\nfiles = 1\nsizes = []"
        );
        let mut load: Background = toml::from_str(&text).unwrap();
        load.sizes = vec![Class { size: Size(8192), share: 1.0 }];
        load
    }

    #[test]
    fn rates_and_mixes_are_exact_for_any_number_of_threads() {
        for threads in 4..40 {
            for (reads, sequential) in [(0.5, 0.5), (0.75, 0.5), (0.9, 0.1), (0.34, 0.77)] {
                let threads = plan_threads(&load(1234.5, threads, reads, sequential)).unwrap();
                let sum = |of: &dyn Fn(&&Thread) -> bool| {
                    threads.iter().filter(of).map(|thread| thread.rate).sum::<f64>()
                };
                assert!((sum(&|_| true) - 1234.5).abs() < 1e-9);
                assert!((sum(&|thread| thread.reads) - 1234.5 * reads).abs() < 1e-9);
                assert!((sum(&|thread| thread.sequential) - 1234.5 * sequential).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn kinds_without_a_share_have_no_threads() {
        let threads = plan_threads(&load(100.0, 1, 1.0, 0.0)).unwrap();
        assert_eq!(threads, [Thread { reads: true, sequential: false, rate: 100.0, offset: 0.0 }]);
        assert!(plan_threads(&load(100.0, 3, 0.5, 0.5)).unwrap_err().contains("must be 4 or more"));
    }

    #[test]
    fn the_original_studys_96_threads_are_divided_as_it_did() {
        let threads = plan_threads(&load(10_000.0, 96, 0.5, 0.5)).unwrap();
        assert_eq!(threads.len(), 96);
        assert!(threads.iter().all(|thread| (thread.rate - 10_000.0 / 96.0).abs() < 1e-9));
    }

    #[test]
    fn a_number_is_divided_by_shares() {
        assert_eq!(apportioned(10_000, &[0.6, 0.25, 0.1, 0.05]), [6000, 2500, 1000, 500]);
        assert_eq!(apportioned(7, &[0.6, 0.25, 0.1, 0.05]), [4, 1, 1, 1]);
        assert_eq!(apportioned(2, &[0.6, 0.25, 0.15]), [1, 1, 1]);
    }
}
