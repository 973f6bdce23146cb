// SPDX-License-Identifier: PostgreSQL
//! The history of a row's figures, interval by interval, up to the one that is shown.

use segment::interval::{AccountRow, Interval};
use segment::WaitClass;

use super::history::History;
use super::View;
use view::session::SessionId;
use view::Reading;

/// One value for each interval, oldest first; `None` if there is no interval.
pub type Series = Vec<Option<f64>>;

/// Whether the rows of a view have a history.
pub fn has(view: View) -> bool {
    matches!(view, View::Ledger | View::Waits | View::Commands | View::Sessions | View::Statements)
}

fn series(history: &History, n: usize, figure: impl Fn(&Reading) -> f64) -> Series {
    let mut series: Series = history.back(n).map(|reading| reading.map(&figure)).collect();
    series.reverse();
    series
}

fn instrumented(interval: &Interval) -> f64 {
    interval.instrumented_seconds.max(1e-9)
}

/// Average number of active sessions.
pub fn active(history: &History, n: usize) -> Series {
    series(history, n, |reading| reading.interval.busy_seconds / instrumented(&reading.interval))
}

/// The class that took the most time of the active sessions in each interval; `None` without an interval or activity.
pub fn classes(history: &History, n: usize) -> Vec<Option<WaitClass>> {
    let most = |reading: &Reading| {
        let of = |class: WaitClass| {
            let rows = reading.interval.ledger.iter();
            let busy = rows.filter(|account| !account.idle && account.class.shown_as() == class);
            busy.fold(0.0, |sum, account| sum + account.timing.seconds)
        };
        let sums = WaitClass::ALL.map(|class| (class, of(class)));
        let most = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        most.filter(|(_, seconds)| *seconds > 0.0).map(|(class, _)| class)
    };
    let mut classes: Vec<_> = history.back(n).map(|reading| reading.and_then(most)).collect();
    classes.reverse();
    classes
}

/// Commands handled per second.
pub fn commands(history: &History, n: usize) -> Series {
    series(history, n, |reading| {
        reading.interval.commands_handled as f64 / instrumented(&reading.interval)
    })
}

/// The row with this key. Accounts, waits and statements: seconds per second; commands: number handled per
/// second; sessions: busy share of their time.
pub fn of_row(history: &History, view: View, key: &str, n: usize) -> Series {
    match view {
        View::Ledger => series(history, n, |reading| {
            let rows = reading.interval.ledger.iter().filter(|account| is_of(account, key));
            let seconds: f64 = rows.map(|account| account.timing.seconds).sum();
            seconds / instrumented(&reading.interval)
        }),
        View::Waits => series(history, n, |reading| {
            let wait = reading.interval.waits.iter().find(|wait| *wait.activity == *key);
            wait.map_or(0.0, |wait| wait.timing.seconds) / instrumented(&reading.interval)
        }),
        View::Commands => series(history, n, |reading| {
            let command = reading.interval.commands.iter().find(|command| command.kind == key);
            command.map_or(0.0, |command| command.handle.count as f64)
                / instrumented(&reading.interval)
        }),
        View::Sessions => {
            let wanted = key.parse::<SessionId>().ok();
            series(history, n, |reading| {
                let session = wanted.and_then(|id| id.row_of(&reading.interval.sessions));
                session.map_or(0.0, |s| s.busy_seconds / s.lived_seconds.max(1e-9))
            })
        }
        View::Statements => {
            // Comparing names is slow, so the first match gives the key.
            let shown = history.shown().and_then(|reading| reading.statements.as_ref());
            let row =
                shown.and_then(|statements| statements.rows.iter().find(|row| row.name() == key));
            let Some(wanted) = row.map(|row| row.key) else { return Series::new() };
            // Without statements, nothing is known; in a recording, statements come by detail interval.
            let figure = |reading: &Reading| {
                let statements = reading.statements.as_ref()?;
                let length = statements.interval_seconds.unwrap_or(0.0).max(1e-9);
                Some(statements.row(&wanted).map_or(0.0, |row| row.seconds) / length)
            };
            let back = history.back(n).map(|reading| reading.and_then(figure));
            let mut series: Series = back.collect();
            series.reverse();
            series
        }
        _ => Series::new(),
    }
}

/// Whether the account belongs to the row of the ledger with this key. The key is the activity, or "idle" if it
/// is idle; for a detail row, it is the phase.
fn is_of(account: &AccountRow, key: &str) -> bool {
    let rest = key.strip_prefix(&*account.activity);
    let rest = if account.idle { rest.and_then(|rest| rest.strip_prefix(" idle")) } else { rest };
    match rest {
        Some("") => true,
        Some(rest) => rest.strip_prefix(' ') == Some(&account.phase),
        None => false,
    }
}

/// The series as a line of `width` characters, newest on the right, from zero to the maximum. A gap is a blank.
pub fn spark(series: &[Option<f64>], width: usize, ascii: bool) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII: [char; 8] = ['_', '.', ',', '-', '~', '=', '*', '#'];
    let levels = if ascii { ASCII } else { LEVELS };
    let seen = &series[series.len().saturating_sub(width)..];
    let most = max(seen);
    let level = |figure: f64| match most > 0.0 && figure > 0.0 {
        true => ((figure / most * 8.0).ceil() as usize).clamp(1, 8) - 1,
        false => 0,
    };
    let blanks = std::iter::repeat_n(' ', width - seen.len());
    blanks
        .chain(seen.iter().map(|value| value.map_or(' ', |figure| levels[level(figure)])))
        .collect()
}

/// The maximum; 0 if empty.
pub fn max(series: &[Option<f64>]) -> f64 {
    series.iter().flatten().fold(0.0, |most, &figure| if figure > most { figure } else { most })
}

#[cfg(test)]
mod tests {
    use super::*;
    use view::sample;

    /// Three seconds; the second was idle, and a gap follows it.
    fn history() -> History {
        let mut history = History::default();
        for second in 0..3 {
            let mut reading = Box::new(sample::reading());
            reading.interval.time += f64::from(second);
            if second == 1 {
                let interval = &mut reading.interval;
                interval.ledger.clear();
                interval.waits.clear();
                interval.commands.clear();
                interval.sessions.clear();
                (interval.busy_seconds, interval.commands_handled) = (0.0, 0);
                reading.statements = None;
            }
            if second == 2 {
                history.gap("no server".into());
            }
            history.push(reading);
        }
        history
    }

    #[test]
    fn every_row_has_figures_for_every_interval() {
        let history = history();
        let seen = |view, key: &str| of_row(&history, view, key, 99);
        let close = |series: Series, wanted: f64| {
            assert_eq!(series.len(), 4);
            assert!((series[0].unwrap() - wanted).abs() < 1e-9, "{series:?}");
            assert_eq!((series[1], series[2], series[3]), (Some(0.0), None, series[0]));
        };
        close(seen(View::Ledger, "cpu"), 0.4771);
        close(seen(View::Ledger, "cpu parse"), 0.027);
        close(seen(View::Ledger, "Client:ClientRead idle"), 1.0);
        close(seen(View::Waits, "IO:WALSync"), 0.11);
        close(seen(View::Commands, "Execute"), 1800.0);
        close(seen(View::Sessions, "4301 4301 1"), 0.75);
        let statements = sample::statements();
        let of_first = seen(View::Statements, &statements.rows[0].name());
        assert_eq!(of_first[1], None, "nobody had asked for them");
        assert_eq!((of_first[0], of_first[3]), (of_first[3], Some(statements.rows[0].seconds)));
        close(active(&history, 9), sample::interval().busy_seconds);
        close(commands(&history, 9), 3600.0);
        let cpu = Some(WaitClass::Cpu);
        assert_eq!(classes(&history, 9), [cpu, None, None, cpu]);
        assert_eq!(seen(View::Ledger, "Client:ClientRead").iter().flatten().sum::<f64>(), 0.0);
        assert!(seen(View::Io, "x").is_empty());
    }

    #[test]
    fn the_key_of_every_row_finds_its_accounts() {
        use view::panes;
        use view::rows::{Open, RowOptions};
        let reading = sample::reading();
        let wish = RowOptions {
            sort: view::Sort::Time,
            reverse: false,
            filter: String::new(),
            idle: true,
            open: Open::All,
        };
        let found: usize = (panes::ledger(&reading.interval, &wish).rows.iter())
            .map(|row| reading.interval.ledger.iter().filter(|a| is_of(a, &row.key)).count())
            .sum();
        let shared = reading.interval.ledger.len();
        assert!(found >= shared, "{found} {shared}");
        assert!(has(View::Ledger) && !has(View::Io));
    }

    #[test]
    fn a_line_is_scaled_from_zero_to_the_maximum() {
        let series = [Some(0.0), Some(0.1), None, Some(4.0), Some(8.0)];
        assert_eq!(spark(&series, 7, false), "  ▁▁ ▄█");
        assert_eq!(spark(&series, 7, true), "  __ -#");
        assert_eq!(spark(&series, 2, false), "▄█");
        assert_eq!(spark(&series, 0, false), "");
        assert_eq!(spark(&[None, Some(f64::NAN), Some(0.0)], 3, true), " __");
        assert_eq!(spark(&[], 2, true), "  ");
    }
}
