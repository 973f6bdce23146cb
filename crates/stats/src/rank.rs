// SPDX-License-Identifier: PostgreSQL

//! Wilcoxon's signed ranks: F. Wilcoxon, Biometrics Bulletin 1 (1945).

use super::normal_two_sided;

/// Up to this number of values the distribution is enumerated; beyond it the normal approximation is accurate.
const EXACT: usize = 25;

/// Result of the signed-rank test.
pub struct SignedRank {
    /// Standard score; positive if the values lie above the centre.
    pub z: f64,
    /// Two-sided probability.
    pub two_sided: f64,
}

/// Tests whether the values lie around `centre`; values equal to it are ignored. The probability is exact for up to
/// [`EXACT`] values, including ties; for more it is the normal approximation, with the variance corrected for ties.
pub fn signed_rank(values: &[f64], centre: f64) -> SignedRank {
    let mut differences: Vec<f64> =
        values.iter().map(|v| v - centre).filter(|d| *d != 0.0).collect();
    differences.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let n = differences.len() as f64;

    let (mut positive, mut ties, mut start) = (0.0, 0.0, 0);
    // Twice each rank, because tied ranks can end in a half.
    let mut doubled = Vec::with_capacity(differences.len());
    while start < differences.len() {
        let size = differences[start].abs();
        let end = start + differences[start..].partition_point(|d| d.abs() <= size);
        let rank = 0.5 * (start + 1 + end) as f64;
        let above = differences[start..end].iter().filter(|d| **d > 0.0).count();
        positive += rank * above as f64;
        let tied = (end - start) as f64;
        ties += tied.powi(3) - tied;
        doubled.resize(end, start + 1 + end);
        start = end;
    }
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
    let z = if variance > 0.0 { (positive - n * (n + 1.0) / 4.0) / variance.sqrt() } else { 0.0 };
    let two_sided = match doubled.len() {
        0 => 1.0,
        1..=EXACT => exact_two_sided(&doubled, (2.0 * positive) as usize),
        _ => normal_two_sided(z),
    };
    SignedRank { z, two_sided }
}

/// Probability of a rank sum at least this far from the middle if each rank counts with probability 1/2.
fn exact_two_sided(doubled: &[usize], sum: usize) -> f64 {
    let all: usize = doubled.iter().sum();
    let mut ways = vec![0.0f64; all + 1];
    ways[0] = 1.0;
    for rank in doubled {
        for at in (*rank..=all).rev() {
            ways[at] += ways[at - rank];
        }
    }
    let tail = sum.min(all - sum);
    let below: f64 = ways[..=tail].iter().sum();
    (2.0 * below / 2f64.powi(doubled.len() as i32)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(values: &[f64]) -> f64 {
        signed_rank(values, 0.0).two_sided
    }

    fn close(ours: f64, reference: f64) {
        assert!((ours / reference - 1.0).abs() < 1e-9, "{ours} is not {reference}");
    }

    // scipy.stats.wilcoxon(x, mode="exact").pvalue, SciPy 1.17.1
    #[test]
    fn exact_probabilities_agree_with_scipy() {
        close(p(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 0.03125);
        close(p(&[0.3, -0.1, 0.7, 1.1, -0.2, 0.9, 0.4, 1.3]), 0.0390625);
        close(
            p(&[-1.5, 2.5, 3.5, -4.5, 5.5, 6.5, 7.5, 8.5, 9.5, -10.5, 11.5, 12.5]),
            0.063_964_843_75,
        );
    }

    // All sign patterns of five ranks with one tie, counted by hand: 1.5 1.5 3 4 5.
    #[test]
    fn tied_ranks_have_exact_probabilities() {
        // Only the empty set and {1.5} (in two ways) are at most 1.5.
        close(p(&[-1.0, 1.0, 2.0, 3.0, 4.0]), 2.0 * 3.0 / 32.0);
    }

    #[test]
    fn values_around_the_centre_have_probability_one() {
        assert_eq!(p(&[]), 1.0);
        assert_eq!(p(&[0.0; 9]), 1.0);
        assert_eq!(p(&[1.0, -1.0]), 1.0);
    }
}
