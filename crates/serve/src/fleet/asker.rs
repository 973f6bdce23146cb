// SPDX-License-Identifier: PostgreSQL
//! Finds out about each part that is being viewed: one thread runs all queries, one after another; another one diagnoses the hosts.

use std::time::Instant;

use error::Error;
use fleet_sql::{HostFilter, CHARTS, QUERIES};
use report::fleet::{is_asked, Failure, Fleet, FleetQueryResult, Question, DOCTOR, ROWS, SERIES};
use report::Edge;
use segment::clock::realtime_ns;

use super::board::{Board, Work};
use fleet::{asked, diagnosed, window, Asking};

/// Does this work until the board is closed.
pub fn work(asking: &Asking, board: &Board, since: Option<Edge>, work: Work) {
    while let Some(only) = board.next(work) {
        let round = Round { asking, board, only: &only, window: window(since, None) };
        match work {
            Work::Queries => round.ask(),
            Work::Diagnoses => round.diagnose(),
        }
        board.done(&only, work);
    }
}

/// The work on one part; all results cover the same time.
struct Round<'r> {
    asking: &'r Asking,
    board: &'r Board,
    only: &'r HostFilter,
    window: (f64, f64),
}

impl Round<'_> {
    fn ask(&self) {
        let asked = |limit| asked(self.window, None, self.only, limit);
        // The list of hosts comes first, then the charts.
        let (hosts, others) = QUERIES.split_at(1);
        for query in hosts {
            self.put(
                query.name,
                |fleet| &mut fleet.tables,
                || self.asking.query(query, &asked(ROWS)?),
            );
        }
        for chart in CHARTS {
            let ask = || self.asking.chart(chart, &asked(SERIES)?);
            self.put(chart.name, |fleet| &mut fleet.courses, ask);
        }
        for query in others.iter().filter(|other| is_asked(other.name, self.only)) {
            self.put(
                query.name,
                |fleet| &mut fleet.tables,
                || self.asking.query(query, &asked(ROWS)?),
            );
        }
    }

    /// Diagnoses the hosts as long as somebody looks.
    fn diagnose(&self) {
        let Some(root) = self.asking.root() else { return };
        let wanted = || !self.asking.is_stopped() && self.board.is_viewed(self.only);
        let begun = Instant::now();
        if let Some(table) = diagnosed(root, self.only, self.window, wanted).transpose() {
            self.keep(DOCTOR, |fleet| &mut fleet.tables, table, begun);
        }
    }

    /// Runs a query, and puts its result or its error on the board.
    fn put<T>(
        &self,
        name: &'static str,
        of: fn(&mut Fleet) -> &mut Vec<Question<T>>,
        ask: impl FnOnce() -> Result<T, Error>,
    ) {
        if self.asking.is_stopped() {
            return;
        }
        let begun = Instant::now();
        self.keep(name, of, ask(), begun);
    }

    /// Puts a result or an error on the board.
    fn keep<T>(
        &self,
        name: &'static str,
        of: fn(&mut Fleet) -> &mut Vec<Question<T>>,
        result: Result<T, Error>,
        begun: Instant,
    ) {
        let seconds = begun.elapsed().as_secs_f64();
        let result = match result {
            Ok(value) => Ok(FleetQueryResult { value, window: self.window, seconds }),
            Err(error) => {
                Err(Failure { time: realtime_ns() as f64 * 1e-9, text: error.to_string() })
            }
        };
        self.board.put(self.only, |fleet| {
            if let Some(question) = of(fleet).iter_mut().find(|question| question.name == name) {
                question.take(result);
            }
        });
    }
}
