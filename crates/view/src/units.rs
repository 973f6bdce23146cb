// SPDX-License-Identifier: PostgreSQL
//! Figures for people: three significant digits and a unit.

/// A duration: "312 ns", "4.31 us", "12.3 ms", "1.24 s", "3.1 min", "5.2 h".
pub fn duration(seconds: f64) -> String {
    let s = seconds.abs();
    if s == 0.0 {
        return "0".to_string();
    }
    // The limits are where three digits would round up to the next unit.
    match s {
        _ if s < 999.5e-9 => format!("{} ns", digits(seconds * 1e9)),
        _ if s < 999.5e-6 => format!("{} us", digits(seconds * 1e6)),
        _ if s < 999.5e-3 => format!("{} ms", digits(seconds * 1e3)),
        _ if s < 119.5 => format!("{} s", digits(seconds)),
        _ if s < 7_170.0 => format!("{} min", digits(seconds / 60.0)),
        _ if s < 172_000.0 => format!("{} h", digits(seconds / 3_600.0)),
        _ => format!("{} d", digits(seconds / 86_400.0)),
    }
}

/// Like [`duration`]; "-" if there is no value, for a table. A sentence leaves out what is unknown: [`clause`].
pub fn maybe_duration(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_string(), duration)
}

/// Part of a sentence: a duration between two texts; empty if there is no value.
pub fn clause(before: &str, seconds: Option<f64>, behind: &str) -> String {
    seconds.map_or_else(String::new, |seconds| format!("{before}{}{behind}", duration(seconds)))
}

/// A count: "7", "0.25", "12.3k", "4.5M".
pub fn count(n: f64) -> String {
    let a = n.abs();
    match a {
        _ if a == 0.0 => "0".to_string(),
        _ if a < 999.5 => digits(n),
        _ if a < 999.5e3 => format!("{}k", digits(n / 1e3)),
        _ if a < 999.5e6 => format!("{}M", digits(n / 1e6)),
        _ => format!("{}G", digits(n / 1e9)),
    }
}

/// An amount of memory: "512 B", "1.5 kB", "12.3 MB"; 1 kB is 1024 bytes, as in PostgreSQL.
pub fn bytes(n: f64) -> String {
    let mut n = n;
    for unit in ["B", "kB", "MB", "GB"] {
        if n < 999.5 {
            return format!("{} {unit}", digits(n));
        }
        n /= 1024.0;
    }
    format!("{} TB", digits(n))
}

/// A whole number with thousands separators: "12,345".
pub fn whole(n: u64) -> String {
    separated(&n.to_string())
}

/// "1 other", "7 others": the name of a row that is the sum of this many rows.
pub fn others(n: usize) -> String {
    format!("{n} {}", if n == 1 { "other" } else { "others" })
}

/// The digits of a whole number, with thousands separators.
pub fn separated(digits: &str) -> String {
    let mut apart = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    apart
}

/// A share as a percentage with one decimal.
pub fn percent(share: f64) -> String {
    unsigned_zero(format!("{:.1}", share * 100.0))
}

/// A small number with two decimals.
pub fn two(n: f64) -> String {
    unsigned_zero(format!("{n:.2}"))
}

/// The sum of no numbers is -0.0, and small negative numbers are rounded to it.
fn unsigned_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => rest.to_string(),
        _ => text,
    }
}

/// Three significant digits, without an exponent; whole numbers stay whole.
fn digits(n: f64) -> String {
    let a = n.abs();
    if n.fract() == 0.0 && a < 1000.0 {
        format!("{n:.0}")
    } else if a < 9.995 {
        format!("{n:.2}")
    } else if a < 99.95 {
        format!("{n:.1}")
    } else {
        format!("{n:.0}")
    }
}

/// A text that begins a sentence.
pub fn capitalise(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().collect()).unwrap_or_default();
    first + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_a_unit() {
        for (seconds, text) in [
            (0.0, "0"),
            (3.12e-7, "312 ns"),
            (9.996e-7, "1.00 us"),
            (4.3125e-6, "4.31 us"),
            (0.0123, "12.3 ms"),
            (0.5, "500 ms"),
            (0.9996, "1.00 s"),
            (61.2, "61.2 s"),
            (186.0, "3.10 min"),
            (7_200.0, "2 h"),
            (864_000.0, "10 d"),
        ] {
            assert_eq!(duration(seconds), text);
        }
        assert_eq!(maybe_duration(None), "-");
        assert_eq!(clause(", p99 ", None, " each"), "");
        assert_eq!(clause(", p99 ", Some(0.25), " each"), ", p99 250 ms each");
        assert_eq!(maybe_duration(Some(-2.5)), "-2.50 s");
    }

    #[test]
    fn units_change_where_three_digits_round_up() {
        for (seconds, text) in [
            (999.4e-9, "999 ns"),
            (999.5e-9, "1.00 us"),
            (999.4e-6, "999 us"),
            (999.5e-6, "1.00 ms"),
            (0.9994, "999 ms"),
            (0.9995, "1.00 s"),
            (9.994, "9.99 s"),
            (9.995, "10.0 s"),
            (99.94, "99.9 s"),
            (99.95, "100 s"),
            (119.4, "119 s"),
            (119.5, "1.99 min"),
            (7_169.0, "119 min"),
            (7_170.0, "1.99 h"),
            (171_900.0, "47.8 h"),
            (172_000.0, "1.99 d"),
        ] {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
        for (n, text) in [
            (999.4, "999"),
            (999.5, "1.00k"),
            (1_000.0, "1k"),
            (999_400.0, "999k"),
            (999_500.0, "1.00M"),
            (999.4e6, "999M"),
            (999.5e6, "1.00G"),
            (-1_500.0, "-1.50k"),
        ] {
            assert_eq!(count(n), text, "{n}");
        }
        assert_eq!([bytes(999.4), bytes(999.5)], ["999 B", "0.98 kB"]);
        assert_eq!(bytes(1024.0 * 999.5), "0.98 MB");
        assert_eq!([whole(999), whole(1000), whole(999_999)], ["999", "1,000", "999,999"]);
        assert_eq!([percent(0.125), percent(1.0), percent(-0.0)], ["12.5", "100.0", "0.0"]);
        assert_eq!((&*two(0.125), &*two(-0.0)), ("0.12", "0.00"));
        assert_eq!(
            [two(-0.004), two(-0.006), percent(-0.0004), percent(-0.0006)],
            ["0.00", "-0.01", "0.0", "-0.1"]
        );
    }

    #[test]
    fn counts_are_short_and_whole_numbers_stay_whole() {
        for (n, text) in [
            (0.0, "0"),
            (7.0, "7"),
            (0.25, "0.25"),
            (12_345.0, "12.3k"),
            (999_600.0, "1.00M"),
            (4.5e6, "4.50M"),
        ] {
            assert_eq!(count(n), text);
        }
        for (n, text) in [
            (0.0, "0 B"),
            (8192.0, "8 kB"),
            (1000.0, "0.98 kB"),
            (1.5e9, "1.40 GB"),
            (2e14, "182 TB"),
        ] {
            assert_eq!(bytes(n), text);
        }
        assert_eq!(whole(1_234_567), "1,234,567");
        assert_eq!(whole(12), "12");
    }
}
