// SPDX-License-Identifier: PostgreSQL
//! Sums of samples by image and by function.

use std::collections::HashMap;

use stats::Z95;

use crate::profile::{Profile, Stack, Symbol};

/// The samples of an image or a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleCount<K> {
    /// The image or function.
    pub key: K,
    /// Number of samples.
    pub samples: u64,
}

/// CPU samples by the image of the innermost frame, most first. Modules count as the kernel.
pub fn by_image(profile: &Profile, wanted: impl Fn(&Stack) -> bool) -> Vec<SampleCount<&str>> {
    sum(profile.stacks.iter().filter(|stack| wanted(stack)), |stack| {
        profile.innermost(stack).map_or("(unknown)", |symbol| match symbol.is_kernel() {
            true => crate::KERNEL,
            false => symbol.image.as_str(),
        })
    })
}

/// CPU samples by the innermost function, most first.
pub fn by_function(
    profile: &Profile,
    wanted: impl Fn(&Stack) -> bool,
) -> Vec<SampleCount<Option<&Symbol>>> {
    sum(profile.stacks.iter().filter(|stack| wanted(stack)), |stack| profile.innermost(stack))
}

fn sum<'p, K: Eq + std::hash::Hash + Clone>(
    stacks: impl Iterator<Item = &'p Stack>,
    key: impl Fn(&'p Stack) -> K,
) -> Vec<SampleCount<K>> {
    let mut numbers: HashMap<K, usize> = HashMap::new();
    let mut sums: Vec<SampleCount<K>> = Vec::new();
    for stack in stacks {
        let key = key(stack);
        let number = *numbers.entry(key.clone()).or_insert_with(|| {
            sums.push(SampleCount { key, samples: 0 });
            sums.len() - 1
        });
        sums[number].samples += stack.samples;
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.samples));
    sums
}

impl Profile {
    /// The innermost function of a stack.
    pub fn innermost(&self, stack: &Stack) -> Option<&Symbol> {
        stack.frames.first().map(|index| &self.symbols[*index])
    }

    /// Whether a stack belongs to a process of the server.
    pub fn is_ours(&self, stack: &Stack) -> bool {
        self.processes[stack.process].server
    }
}

/// Half the width of the 95 % interval of a number of samples.
///
/// Sessions at one instant are not independent, since they wait for each other, but instants are. The variance is
/// therefore that of the count at an instant (cluster sampling: W. G. Cochran, Sampling Techniques, 1977, 9.2), but at
/// least that of one sample missed by chance.
pub fn half_width(samples: u64, squares: u64, instants: u64) -> f64 {
    let (n, sum) = (instants as f64, samples as f64);
    if instants == 0 {
        return 0.0;
    }
    let mean = sum / n;
    let variance = n * (squares as f64 / n - mean * mean).max(0.0);
    Z95 * variance.max(1.0).sqrt()
}

/// The same for CPU samples, all of which are equally likely.
pub fn cpu_half_width(samples: u64, of: u64) -> f64 {
    let share = samples as f64 / of.max(1) as f64;
    Z95 * (samples as f64 * (1.0 - share)).max(1.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_wait_together_count_as_one_observation() {
        // 100 instants, ten sessions; in half of them all ten wait.
        let together = half_width(500, 50 * 100, 100);
        assert!((together - 1.96 * 50.0).abs() < 1e-9, "{together}");
        // Always five of them: the only error is that of the edges.
        assert_eq!(half_width(500, 100 * 25, 100), 1.96);
        // One session, half of the time: binomial.
        assert!((half_width(50, 50, 100) - 1.96 * 5.0).abs() < 1e-9);
        assert_eq!(half_width(0, 0, 100), 1.96);
        assert_eq!(half_width(0, 0, 0), 0.0);
    }

    #[test]
    fn samples_are_summed_by_the_innermost_function_and_modules_are_the_kernels() {
        let mut profile = crate::sample::profile();
        profile.symbols[1].image = "kernel [ext4]".into();
        let stack = |frames: &[usize], samples| Stack {
            frames: frames.to_vec(),
            samples,
            ..profile.stacks[0].clone()
        };
        profile.stacks =
            vec![stack(&[], 1), stack(&[0, 1], 10), stack(&[1], 20), stack(&[2, 0], 30)];
        let images: Vec<_> =
            by_image(&profile, |_| true).iter().map(|sum| (sum.key, sum.samples)).collect();
        assert_eq!(images, [("kernel", 50), ("/usr/bin/postgres", 10), ("(unknown)", 1)]);
        let functions = by_function(&profile, |stack| stack.samples < 30);
        let names = functions
            .iter()
            .map(|sum| (sum.key.map(|function| function.name.as_str()), sum.samples));
        let expected = [(Some("main"), 20), (Some("leaf"), 10), (None, 1)];
        assert_eq!(names.collect::<Vec<_>>(), expected);
        // Binomial: the root of 25 * 0.75, and at least one sample.
        assert!((cpu_half_width(25, 100) - 1.96 * 18.75f64.sqrt()).abs() < 1e-12);
        assert_eq!((cpu_half_width(100, 100), cpu_half_width(0, 0)), (1.96, 1.96));
    }
}
