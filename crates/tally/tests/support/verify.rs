// SPDX-License-Identifier: PostgreSQL
//! Claims about costs, shares and rates, which chance can break. They run in `make verify`, not in `make test`:
//!
//! ```text
//! #[test]
//! #[ignore = "verify: shares of CPU time agree with perf record"]
//! fn verify_shares_of_functions() {
//!     Claim { text: "shares of CPU time agree with perf record", alarm: 0.01, n: 2, m: 3 }
//!         .check(|seed| Trial { holds: ..., result: ..., half_width: ... });
//! }
//! ```
//!
//! `script/verify` runs these tests and makes a table from the lines that [`Claim::check`] prints.

/// A claim, and the rule by which it is tested.
pub struct Claim<'a> {
    /// The claim, as a sentence.
    pub text: &'a str,
    /// The probability that one trial fails although the claim holds.
    pub alarm: f64,
    /// How many trials must hold
    pub n: u32,
    /// of at most how many.
    pub m: u32,
}

/// The measurement of one trial.
pub struct Trial {
    /// Whether the claim held.
    pub holds: bool,
    /// The figure, with its unit.
    pub result: String,
    /// Its half-width at 95 %, with its unit; `-` for a count.
    pub half_width: String,
}

impl Claim<'_> {
    /// Runs trials until `n` of them held, or until `n` of `m` cannot hold any more, which fails the test. Prints one
    /// line: `verify`, claim, result, half-width, seed, false-alarm rate, separated by tabs. The trial gets its seed; the
    /// first one is PGTALLY_SEED, or random.
    pub fn check(&self, mut trial: impl FnMut(u64) -> Trial) {
        let first: u64 = std::env::var("PGTALLY_SEED")
            .ok()
            .map_or_else(rand::random, |seed| seed.parse().expect("PGTALLY_SEED is a number"));
        let (mut held, mut failed) = (0, 0);
        let mut results = Vec::new();
        let mut half_width = String::new();
        while held < self.n && failed <= self.m - self.n {
            let trial = trial(first.wrapping_add(u64::from(held + failed)));
            *if trial.holds { &mut held } else { &mut failed } += 1;
            results.push(trial.result + if trial.holds { "" } else { " (fails)" });
            half_width = trial.half_width;
        }
        println!(
            "verify\t{}\t{}\t{half_width}\t{first}\t{:.1e}",
            self.text,
            results.join("; "),
            self.false_alarm_rate()
        );
        assert!(held >= self.n, "{}: {} of {} trials failed", self.text, failed, held + failed);
    }

    /// The probability that fewer than `n` of `m` independent trials hold although the claim is true.
    fn false_alarm_rate(&self) -> f64 {
        let choose = |k: u32| (0..k).fold(1.0, |c, i| c * f64::from(self.m - i) / f64::from(i + 1));
        (0..self.n)
            .map(|held| {
                let failed = self.m - held;
                choose(held) * (1.0 - self.alarm).powi(held as i32) * self.alarm.powi(failed as i32)
            })
            .sum()
    }
}

#[test]
fn two_of_three_trials_fail_seldom() {
    let rule = |n, m| Claim { text: "", alarm: 0.01, n, m }.false_alarm_rate();
    // 3 p^2 (1 - p) + p^3; p
    assert!((rule(2, 3) - 2.98e-4).abs() < 1e-9);
    assert!((rule(1, 1) - 0.01).abs() < 1e-12);
}
