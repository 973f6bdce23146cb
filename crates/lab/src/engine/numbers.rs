// SPDX-License-Identifier: PostgreSQL
//! Numbers as tables and charts print them.

use view::measured::behind;
use view::table::{Cell, Tone};

/// A plain figure: its text, and its value for CSV.
pub fn rounded(text: String, exact: Option<f64>) -> Cell {
    Cell::Rounded { text: text.into(), exact, tone: Tone::Plain }
}

/// The cell of a missing figure.
pub fn none() -> Cell {
    Cell::Rounded { text: "-".into(), exact: None, tone: Tone::Faint }
}

/// Formats "41.3 ± 1.9": no more decimals than the interval supports, and none for a constant whole
/// number.
pub fn with_half_width(value: f64, digits: usize, half: f64) -> String {
    let supported = match half == 0.0 && value.fract() == 0.0 {
        true => 0,
        false => decimals(half, 2),
    };
    let text = separated(value, decimals(value, digits).min(supported));
    behind(text, Some(figures(half, 2)))
}

/// Formats a number with this number of significant digits and a thousands separator.
pub fn figures(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".into();
    }
    separated(value, decimals(value, digits))
}

/// The number of decimals among this number of digits; at most nine, which zero gets.
fn decimals(value: f64, digits: usize) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 9;
    }
    let size = value.abs().log10().floor() as i32 + 1;
    usize::try_from(digits as i32 - size).unwrap_or(0).min(9)
}

fn separated(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, whole) = whole.split_at(usize::from(whole.starts_with('-')));
    format!("{sign}{}{rest}", view::units::separated(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_wanted_digits() {
        assert_eq!(figures(1234567.8, 4), "1,234,568");
        assert_eq!(figures(12.3456, 4), "12.35");
        assert_eq!(figures(0.0123456, 3), "0.0123");
        assert_eq!(figures(-1234.5, 5), "-1,234.5");
        assert_eq!(figures(0.0, 3), "0");
        assert_eq!(figures(999.96, 4), "1,000.0");
        assert_eq!(with_half_width(41.2941, 4, 1.92), "41.3 ± 1.9");
        assert_eq!(with_half_width(0.000_751, 4, 0.000_402), "0.00075 ± 0.00040");
        assert_eq!(with_half_width(1234.56, 6, 412.0), "1,235 ± 412");
        assert_eq!(with_half_width(12.3456, 4, 0.000_123), "12.35 ± 0.00012");
        assert_eq!(with_half_width(7966.0, 7, 0.0), "7,966 ± 0");
        assert_eq!(with_half_width(0.5, 3, 0.0), "0.500 ± 0");
    }
}
