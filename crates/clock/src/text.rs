// SPDX-License-Identifier: PostgreSQL
//! Numbers as the verdict and the advice print them.

/// "once" or "N times".
pub(crate) fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        n => format!("{n} times"),
    }
}

/// Seconds, in the unit that suits them.
pub(crate) fn ns(seconds: f64) -> String {
    match seconds {
        s if s < 999.5e-9 => format!("{:.0} ns", s * 1e9),
        s if s < 999.5e-6 => format!("{:.1} us", s * 1e6),
        s if s < 999.5e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}
