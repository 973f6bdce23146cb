// SPDX-License-Identifier: PostgreSQL
//! The page of help.

/// All of it; no line is longer than 76 characters.
pub const HELP: &str = "\
Tab 1 to 9    pane: ledger, waits, commands, sessions, lightweight locks,
              other locks, functions, statements, storage (io)
Up Down j k   move the cursor; PgUp PgDn Home End
Enter         open a row into its phases or contexts, or the page of a
              statement, which Esc leaves; e opens or shuts all
< > s F6      order: time, calls, mean, max, name; of statements also p99,
              rows, cpu, io, lock, lwlock, client, ipc; r turns it round
/ F4          filter: rows that contain a text; Esc takes it off
i             show or hide what is idle, and nested statements
p Space       stand still, go on; intervals are kept meanwhile
Left Right    the interval before or after; , . do the same;
              Shift-Left Shift-Right [ ] ten of them
t             look at a time: 14:03, 14:03:30, 2026-03-01 14:03, -5min
l             back to the newest interval
+ -           of a recording: twice as fast, half as fast
d             another interval, in seconds
x X           write what is shown into a file: x as text, X as JSON
W             save pane, order and interval for the next time
m             mouse: click a pane, a column (order), a row; wheel
? h F1        this page
q F10 Ctrl-C  leave

HISTORY one character an interval, the newest on the right, from nothing
        to the greatest that is seen; a blank: no interval
%TIME   share of the time in which sessions were not idle
S/S     seconds per second: how many do this on average
US/CMD  microseconds per handled command
Rates are per second of the time in which the level was on; of locks, was
locks. A stretch that is still running counts up to this instant, and as
the longest.

Idle is: waiting for the client between commands, the main loops of
background processes, and uninstrumented time. It is folded away unless i
shows it.

unexplained: share of busy time in which a process was blocked where no
probe looks, by samples and by the kernel's own accounts.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fits_into_a_frame_on_eighty_columns() {
        for line in HELP.lines() {
            assert!(line.chars().count() <= 76, "{line}");
        }
    }
}
