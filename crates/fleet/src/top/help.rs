// SPDX-License-Identifier: PostgreSQL
//! The help page.

/// The text; lines have at most 76 characters.
pub const HELP: &str = "\
d             pane: each host's worst problem (with --root)
Tab 0 to 9 e  pane: hosts, load, statements, regressions, outliers,
              blocking, checkpoints, p99, capacity, waits, health
Up Down       move the cursor; PgUp PgDn Home End
Enter         on a problem: what to do, and the evidence; on a host: only
              that host; on another row, or again: the whole row with the
              full statement; Esc goes back
< > s F6      sort by the previous or next column, or as the engine
              returned the rows; r reverses
/ F4          filter: rows that contain this text; Esc removes it
p Space       pause or resume refreshing
l             refresh now
m             mouse: click a pane, a row (again to open it); wheel
? h F1        this page
q F10 Ctrl-C  quit

Only the query of the visible pane is run, again at each interval. A result
stays until there is a newer one; the second line shows its time range, and
the error if a refresh failed. Regressions compare with an equally long time
just before. docs/fleet.md explains the columns.";

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
