// SPDX-License-Identifier: PostgreSQL
//! The progress line of a run.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar on standard error, counting cells; invisible unless that is a terminal.
pub fn cells(cells: usize, found: usize) -> ProgressBar {
    let bar = ProgressBar::new(cells as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} cell {pos} of {len}, {msg}") {
        bar.set_style(style);
    }
    bar.set_position(found as u64);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Formats a duration for someone who is waiting.
pub fn length(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::length;

    #[test]
    fn lengths_have_the_unit_that_people_use() {
        for (seconds, text) in
            [(89.4, "89 s"), (90.0, "2 min"), (5399.0, "90 min"), (5400.0, "1.5 h")]
        {
            assert_eq!(length(seconds), text);
        }
    }
}
