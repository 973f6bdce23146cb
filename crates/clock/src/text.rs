// SPDX-License-Identifier: PostgreSQL
//! Numbers in the verdict and the advice.

/// Formats "once" or "N times".
pub(crate) fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        n => format!("{n} times"),
    }
}

/// Formats seconds in a suitable unit.
pub(crate) fn ns(seconds: f64) -> String {
    match seconds {
        s if s < 999.5e-9 => format!("{:.0} ns", s * 1e9),
        s if s < 999.5e-6 => format!("{:.1} us", s * 1e6),
        s if s < 999.5e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_where_digits_round_up() {
        for (seconds, text) in [
            (999.4e-9, "999 ns"),
            (999.5e-9, "1.0 us"),
            (999.4e-6, "999.4 us"),
            (999.5e-6, "1.0 ms"),
            (0.9994, "999.4 ms"),
            (0.9995, "1.0 s"),
        ] {
            assert_eq!(ns(seconds), text);
        }
        assert_eq!((times(1), times(2)), ("once".to_string(), "2 times".to_string()));
    }
}
