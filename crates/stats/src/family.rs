// SPDX-License-Identifier: PostgreSQL

//! Many tests at once: Y. Benjamini and Y. Hochberg, J. R. Statist. Soc. B 57 (1995), where many
//! things may have changed; S. Holm, Scand. J. Statist. 6 (1979), where no false word may be said.

/// Which of the hypotheses fall when no more than the share `q` of those that fall may, on
/// average, be true. Where all are true, one falls with a probability of at most `q`.
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

/// The probabilities raised by Holm's method: where all hypotheses are true, one falls below a
/// bound with no more than that probability.
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
    fn holm_raises_as_r_does() {
        let raised = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (ours, reference) in raised.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((ours - reference).abs() < 1e-12, "{raised:?}");
        }
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[0.7, 0.9]), [1.0, 1.0]);
    }

    // The example of the paper, section 3.2, at 0.05: the four least fall.
    #[test]
    fn it_finds_what_the_paper_finds() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let found = discoveries(&p, 0.05);
        assert_eq!(found.iter().filter(|found| **found).count(), 4);
        assert!(found[3] && !found[4]);
    }

    #[test]
    fn nothing_falls_where_nothing_is_unlikely() {
        assert_eq!(discoveries(&[0.02, 0.5, 1.0], 0.01), [false; 3]);
        assert!(discoveries(&[], 0.01).is_empty());
    }
}
