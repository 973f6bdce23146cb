// SPDX-License-Identifier: PostgreSQL
//! The number of sessions by kind and state, which is all that is known about the sessions of a recorded
//! interval.

use segment::Interval;

use super::rows::{accepts, left, right, texts, RowOptions};
use super::table::{Row, Table, Tone};

/// The table; idle sessions and background processes only on request.
pub fn population(interval: &Interval, wish: &RowOptions) -> Table {
    let shown = interval.population.iter().filter(|row| {
        let busy = row.state != "idle" && row.state != "background";
        (busy || wish.idle) && accepts(wish, &[&row.process, row.state])
    });
    let rows = shown.map(|row| Row {
        key: format!("{} {}", row.process, row.state),
        cells: texts(vec![
            row.process.to_string(),
            row.state.to_string(),
            row.sessions.to_string(),
        ]),
        tone: if row.state == "active" { Tone::Plain } else { Tone::Faint },
        ..Row::default()
    });
    let columns = vec![left("KIND", 0), left("STATE", 0), right("SESSIONS", 0)];
    Table::from_rows(columns, rows.collect())
}

#[cfg(test)]
mod tests {
    use segment::Population;

    use super::*;
    use crate::rows::Open;
    use crate::sample;
    use crate::Sort;

    #[test]
    fn kinds_and_states_are_counted() {
        let mut interval = sample::interval();
        let of = |process: &str, state, sessions| Population {
            process: process.into(),
            state,
            sessions,
        };
        interval.population =
            vec![of("client backend", "active", 7), of("client backend", "idle", 90)];
        let mut wish = RowOptions {
            sort: Sort::Time,
            reverse: false,
            filter: String::new(),
            idle: false,
            open: Open::All,
        };
        let text = |wish: &RowOptions| population(&interval, wish).text(80);
        assert_eq!(
            text(&wish),
            "KIND            STATE   SESSIONS\nclient backend  active         7\n"
        );
        wish.idle = true;
        assert!(text(&wish).contains("idle          90"));
        wish.filter = "act".to_string();
        assert!(!text(&wish).contains("idle"));
    }
}
