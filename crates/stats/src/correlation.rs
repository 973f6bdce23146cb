// SPDX-License-Identifier: PostgreSQL

//! Correlation of values that follow each other in time.

/// Lag-1 correlation of the values; 0 for fewer than two. They are winsorised first, this share at
/// either end, so that no single value decides.
pub fn lag_one(values: &[f64], share: f64) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = (share * values.len() as f64).floor() as usize;
    let (low, high) = (sorted[cut], sorted[values.len() - cut - 1]);
    let tame: Vec<f64> = values.iter().map(|v| v.clamp(low, high)).collect();
    let mean = tame.iter().sum::<f64>() / tame.len() as f64;
    let all: f64 = tame.iter().map(|v| (v - mean).powi(2)).sum();
    let next: f64 = tame.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    if all > 0.0 {
        next / all
    } else {
        0.0
    }
}
