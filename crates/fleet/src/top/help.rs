// SPDX-License-Identifier: PostgreSQL
//! The help page.

/// The text; lines have at most 76 characters.
pub const HELP: &str = "\
Tab 0 to 9    pane: hosts, load, statements, regressions, outliers,
              blocking, checkpoints, p99, capacity, waits
Up Down       move the cursor; PgUp PgDn Home End
Enter         on a host: that host alone; on another row, or once more:
              all of the row, with the whole statement; Esc goes back
< > s F6      order: by the column before or after, or as the engine
              gave it; r reverses it
/ F4          filter: rows that contain a text; Esc removes it
p Space       pause, resume: whether the engine is asked again
l             ask now
? h F1        this page
q F10 Ctrl-C  quit

The engine is asked about the pane that is shown, again at each interval.
An answer stays until there is a newer one; the second line says of when it
is, and why there is no newer one. Regressions compare with as long a time
just before. What the columns mean: docs/fleet.md.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_fits_into_a_frame_on_eighty_columns() {
        for line in HELP.lines() {
            assert!(line.chars().count() <= 76, "{line}");
        }
    }
}
