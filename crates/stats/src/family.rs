// SPDX-License-Identifier: PostgreSQL

//! Corrections for many tests at once. Y. Benjamini and Y. Hochberg, J. R. Statist. Soc. B 57 (1995)
//! limit the share of false discoveries; S. Holm, Scand. J. Statist. 6 (1979) limits the probability of
//! any.

/// Which null hypotheses to reject so that, on average, at most the share `q` of the rejected ones is
/// true. If all are true, the probability of any rejection is at most `q`.
pub fn discoveries(p: &[f64], q: f64) -> Vec<bool> {
    let mut order: Vec<f64> = p.to_vec();
    order.sort_by(f64::total_cmp);
    let all = p.len() as f64;
    let limit = order
        .iter()
        .enumerate()
        .rev()
        .find(|(at, p)| **p <= q * (at + 1) as f64 / all)
        .map(|(_, p)| *p);
    p.iter().map(|p| limit.is_some_and(|limit| *p <= limit)).collect()
}

/// The probabilities adjusted by Holm's method: if all null hypotheses are true, the probability
/// that any adjusted value is below `x` is at most `x`.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut raised = vec![1.0; p.len()];
    let mut highest = 0.0f64;
    for (at, index) in order.into_iter().enumerate() {
        highest = highest.max((p[index] * (p.len() - at) as f64).min(1.0));
        raised[index] = highest;
    }
    raised
}

#[cfg(test)]
mod tests {
    use super::*;

    // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
    #[test]
    fn holm_agrees_with_r() {
        let raised = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (ours, reference) in raised.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((ours - reference).abs() < 1e-12, "{raised:?}");
        }
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[0.7, 0.9]), [1.0, 1.0]);
    }

    // The example of the paper, section 3.2, at 0.05: the four smallest are rejected.
    #[test]
    fn discoveries_agree_with_the_paper() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let found = discoveries(&p, 0.05);
        assert_eq!(found.iter().filter(|found| **found).count(), 4);
        assert!(found[3] && !found[4]);
    }

    #[test]
    fn likely_values_reject_nothing() {
        assert_eq!(discoveries(&[0.02, 0.5, 1.0], 0.01), [false; 3]);
        assert!(discoveries(&[], 0.01).is_empty());
    }

    #[test]
    fn a_probability_at_its_limit_is_rejected_and_equal_ones_share_their_fate() {
        assert_eq!(discoveries(&[0.01], 0.01), [true]);
        assert_eq!(discoveries(&[0.0101], 0.01), [false]);
        // The second of three may be 2/3 of 0.03; the first is then rejected although it is above 1/3.
        assert_eq!(discoveries(&[0.5, 0.02, 0.015], 0.03), [false, true, true]);
        assert_eq!(discoveries(&[0.02, 0.5, 0.02], 0.03), [true, false, true]);
    }
}
