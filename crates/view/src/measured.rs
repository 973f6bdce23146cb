// SPDX-License-Identifier: PostgreSQL
//! A measured figure and half the width of its 95 % confidence interval.
//!
//! It reads "40 us ± 15": the half-width stands behind the figure, in the figure's own unit. A sentence that needs
//! a figure with a half-width gets it from here.

use std::fmt::Display;

use crate::units::{duration, percent, two};

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

    /// A change in percent, with its sign: "+1.11 % ± 0.08". Both numbers have this many decimals.
    pub fn change(self, decimals: usize) -> String {
        let figure = format!("{:+.decimals$} %", self.value);
        behind(figure, self.half_width.map(|half| format!("{half:.decimals$}")))
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
        assert_eq!(Measured::new(0.05, 0.004).share(), "5.0 % ± 0.4");
        assert_eq!(Measured::new(7.9, 0.1).number(), "7.90 ± 0.10");
        assert_eq!(Measured::new(7.9, None).duration(), "7.90 s");
    }
}
