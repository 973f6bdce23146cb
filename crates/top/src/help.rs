// SPDX-License-Identifier: PostgreSQL
//! The help page.

/// The text; lines have at most 76 characters.
pub const HELP: &str = "\
Tab 0 to 9    pane: diagnoses, ledger, waits, commands, sessions,
              lightweight locks, other locks, functions, statements, io
Up Down       move the cursor; PgUp PgDn Home End
Enter         open a row into its phases or contexts, or the page of a
              statement or session, which Esc leaves; e opens or closes all
< > s F6      sort by time, calls, mean, max, name; statements also by p99,
              rows, cpu, io, lock, lwlock, client, ipc; r reverses
c k           cancel the statement of the session under the cursor, or
              terminate the session (panes Sessions and Locks); asks first
T             trace that session for 3 s: everything it does, in order
/ F4          filter: rows that contain this text; Esc removes it
i             show or hide idle accounts and nested statements
p Space       pause or resume; intervals are still stored
Left Right    previous or next interval; , . do the same;
              Shift-Left Shift-Right [ ] move by ten
t             go to a time: 14:03, 14:03:30, 2026-03-01 14:03, -5min
l             back to the newest interval
+ -           replay twice as fast, half as fast
d             change the length of an interval, in seconds
x X           write the interval to a file: x as text, X as JSON
W             save pane, order and interval for the next start
m             mouse: click a pane, a column (sort), a row; wheel
? h F1        this page
q F10 Ctrl-C  quit

Diagnoses: problems in the last 10 s, the most severe first, with their
share of the sessions' time, the evidence, and what to do.

HISTORY one character for each interval, the newest on the right, scaled
        from zero to the maximum shown; blank if there is no interval
%TIME   share of the time in which sessions were not idle
S/S     seconds per second: the average number of sessions doing this
US/CMD  microseconds per handled command
Rates are per second of the time in which the level was not off (for locks,
in which the level was locks). A wait in progress counts up to now, also for
the maximum.

Idle: waiting for the client between commands, the main loops of
background processes, and unmeasured time. This time is hidden unless i
shows it.

unexplained: share of busy time in which a process was blocked where there
is no probe, estimated from samples and the kernel's own accounts.";

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
