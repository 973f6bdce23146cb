// SPDX-License-Identifier: PostgreSQL
//! A measured figure and half the width of its 95 % confidence interval.
//!
//! It reads "40 us ± 15": the half-width stands behind the figure, in the figure's own unit. A sentence that needs
//! a figure with a half-width gets it from here, and so does a change that is relative to what was there before.
//! Where that was nearly nothing, a percentage has more digits than meaning: from three times on, a change is a factor.

use std::fmt::Display;

use crate::units::{duration, percent, separated, two};

/// A relative change from which on it is a factor: three times as much.
const TRIPLE: f64 = 2.0;
/// No factor is larger: what was there before was nearly nothing.
const LARGEST: f64 = 10_000.0;
/// A relative half-width from which on it says only that the change is unknown.
const WHOLE: f64 = 1.0;

/// A figure and its half-width, both in the same unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The figure.
    pub value: f64,
    /// Half the width of its 95 % interval; `None` if unknown.
    pub half_width: Option<f64>,
}

impl Measured {
    /// A figure with this half-width, if it is known.
    pub fn new(value: f64, half_width: impl Into<Option<f64>>) -> Self {
        Self { value, half_width: half_width.into() }
    }

    /// A change in percent, with its sign: "+1.11 % ± 0.08", "12.3 times ± 0.5". Percentages have this many decimals. A
    /// half-width is left out of a factor that it exceeds: "roughly 1,025 times".
    pub fn change(self, decimals: usize) -> String {
        let (relative, half) = (self.value / 100.0, self.half_width.map(|half| half / 100.0));
        if relative < TRIPLE {
            let text = |half: f64| match half > WHOLE.max(relative.abs()) {
                true => "over 100".to_string(),
                false => format!("{:.decimals$}", half * 100.0),
            };
            return behind(signed_percent(relative, decimals), half.map(text));
        }
        let factor = 1.0 + relative;
        match half {
            Some(half) if half >= factor => format!("roughly {}", times(factor)),
            Some(half) if factor < LARGEST => behind(times(factor), Some(like(factor, half))),
            _ => times(factor),
        }
    }

    /// A part of one, as a percentage: "5.0 % ± 0.4".
    pub fn share(self) -> String {
        behind(format!("{} %", percent(self.value)), self.half_width.map(percent))
    }

    /// A number without a unit: "7.90 ± 0.10".
    pub fn number(self) -> String {
        behind(two(self.value), self.half_width.map(two))
    }

    /// A duration: "12.3 s ± 0.80", "0 ms ± 200". The unit is that of the larger of the two.
    pub fn duration(self) -> String {
        let text = duration(self.value);
        let Some(half_width) = self.half_width else { return text };
        let shows = self.value.abs() >= half_width;
        let unit = if shows { text.clone() } else { duration(half_width) };
        let unit = unit.rsplit(' ').next().filter(|unit| unit.chars().all(char::is_alphabetic));
        let size = match unit {
            Some("ns") => 1e-9,
            Some("us") => 1e-6,
            Some("ms") => 1e-3,
            Some("min") => 60.0,
            Some("h") => 3_600.0,
            Some("d") => 86_400.0,
            _ => 1.0,
        };
        // Two digits are enough for an error.
        let short = |n: f64| match n / size {
            0.0 => "0".to_string(),
            n if n.abs() < 0.95 => format!("{n:.2}"),
            n if n.abs() < 9.5 => format!("{n:.1}"),
            n => format!("{n:.0}"),
        };
        let figure = match shows {
            true => text,
            false => format!("{} {}", short(self.value), unit.unwrap_or("s")),
        };
        behind(figure, Some(short(half_width)))
    }
}

/// A change relative to what was there before, 0.2 for a fifth more: "+20.0 %", "12.3 times".
pub fn relative(change: f64) -> String {
    Measured::new(change * 100.0, None).change(1)
}

/// The half-width of such a change, in the change's own unit: "3.0 %", "0.5 times"; "over 100 %" where it says only that the
/// change is unknown.
pub fn relative_half_width(change: f64, half_width: f64) -> String {
    match change >= TRIPLE {
        _ if half_width > WHOLE.max(change.abs()) => "over 100 %".to_string(),
        true => format!("{} times", like(1.0 + change, half_width)),
        false => format!("{} %", percent(half_width)),
    }
}

/// The size of such a change, where words beside it say whether it is more or less: "20.0 %", "12.3 times as much".
pub fn relative_size(change: f64) -> String {
    match change >= TRIPLE {
        true => format!("{} as much", times(1.0 + change)),
        false => signed_percent(change, 1).trim_start_matches(['+', '-']).to_string(),
    }
}

/// A change of this size, which may go either way: "a change of 20.0 %", "a change by a factor of 12.3".
pub fn change_of(size: f64) -> String {
    match size >= TRIPLE {
        true => format!("a change by a factor of {}", times(1.0 + size).trim_end_matches(" times")),
        false => format!("a change of {} %", percent(size)),
    }
}

/// A factor: "12.3 times", "1,025 times", and no more than "more than 10,000 times", because what was there before was nearly nothing.
pub fn times(factor: f64) -> String {
    match factor < LARGEST {
        true => format!("{} times", like(factor, factor)),
        false => format!("more than {} times", separated(&format!("{LARGEST:.0}"))),
    }
}

/// A number with as many decimals as a factor of this size has.
fn like(factor: f64, number: f64) -> String {
    match factor {
        _ if factor < 9.995 => format!("{number:.2}"),
        _ if factor < 99.95 => format!("{number:.1}"),
        _ => separated(&format!("{number:.0}")),
    }
}

/// "+20.0 %". A fall to nearly nothing has as many decimals as tell it from nothing: "-99.97 %".
fn signed_percent(relative: f64, decimals: usize) -> String {
    /// More say no more.
    const MOST: usize = 4;
    let rest = 1.0 + relative;
    let same = |decimals: usize| {
        format!("{:.decimals$}", relative * 100.0) == format!("{:.decimals$}", -100.0)
    };
    let decimals = match rest > 0.0 {
        true => (decimals..MOST).find(|decimals| !same(*decimals)).unwrap_or(decimals.max(MOST)),
        false => decimals,
    };
    format!("{:+.decimals$} %", relative * 100.0)
}

/// Puts a half-width behind its figure, the only place that says how. The figure has the unit of both.
pub fn behind(figure: impl Display, half_width: Option<impl Display>) -> String {
    match half_width {
        Some(half_width) => format!("{figure} ± {half_width}"),
        None => figure.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_width_has_the_unit_of_its_figure() {
        let durations = [
            (12.34, 0.8, "12.3 s ± 0.80"),
            (0.25, 0.12, "250 ms ± 120"),
            (0.1, 0.25, "100 ms ± 250"),
            (0.0, 0.2, "0 ms ± 200"),
            (186.0, 6.0, "3.10 min ± 0.10"),
            (5.0, 0.0, "5 s ± 0"),
            (-0.000_04, 0.000_014_5, "-40 us ± 14"),
        ];
        for (value, half, text) in durations {
            assert_eq!(Measured::new(value, half).duration(), text);
        }
        assert_eq!(Measured::new(1.1111, 0.0789).change(2), "+1.11 % ± 0.08");
        assert_eq!(Measured::new(-12.0, None).change(1), "-12.0 %");
        let changes = [
            (1.234, Some(0.5), "+1.2 % ± 0.5"),
            (50.0, Some(300.0), "+50.0 % ± over 100"),
            (185.0, Some(12.0), "+185.0 % ± 12.0"),
            (1_130.0, Some(45.0), "12.3 times ± 0.5"),
            (1_130.0, None, "12.3 times"),
            (102_371.1, Some(341_018.8), "roughly 1,025 times"),
            (5e9, Some(1.0), "more than 10,000 times"),
            (-99.5, None, "-99.5 %"),
            (-99.97, None, "-99.97 %"),
            (-99.999_999_9, None, "-100.0000 %"),
            (-100.0, None, "-100.0 %"),
        ];
        for (value, half, text) in changes {
            assert_eq!(Measured::new(value, half).change(1), text);
        }
        let sizes = [0.2, -0.825, 11.3, -0.9997, 2e6].map(relative_size);
        let expected =
            ["20.0 %", "82.5 %", "12.3 times as much", "99.97 %", "more than 10,000 times as much"];
        assert_eq!(sizes, expected);
        assert_eq!(relative_half_width(0.2, 0.03), "3.0 %");
        assert_eq!(relative_half_width(11.3, 0.5), "0.5 times");
        assert_eq!(relative_half_width(1_023.7, 3_410.2), "over 100 %");
        assert_eq!(change_of(0.2), "a change of 20.0 %");
        assert_eq!(change_of(11.3), "a change by a factor of 12.3");
        assert_eq!(Measured::new(0.05, 0.004).share(), "5.0 % ± 0.4");
        assert_eq!(Measured::new(7.9, 0.1).number(), "7.90 ± 0.10");
        assert_eq!(Measured::new(7.9, None).duration(), "7.90 s");
    }
}
