// SPDX-License-Identifier: PostgreSQL
//! An engine that is asked about recordings.

use std::fmt::{Display, Formatter};

use error::Error;
use fleet_sql::{table, Chart, Course, Dialect, Only, Query, QueryParams, Root, Window};
use report::Edge;
use view::table::Table;

use super::engine::{Engine, Running};

/// An engine, and where the recordings lie that it reads.
#[derive(Debug)]
pub struct Asking {
    engine: Engine,
    root: Option<Root>,
    running: Running,
}

impl Asking {
    /// Without a root the engine is a server that has the views.
    pub fn new(engine: Engine, root: Option<Root>) -> Result<Asking, Error> {
        if let Some(root) = &root {
            readable(engine.dialect(), root)?;
        } else if !engine.is_server() {
            return Err(Error::Usage(
                "give --root, the directory or bucket of the recordings; only a ClickHouse server keeps the views \
                 of `tally fleet schema`"
                    .into(),
            ));
        }
        Ok(Asking { engine, root, running: Running::default() })
    }

    /// Fails if the engine cannot be asked at all.
    pub fn check(&self) -> Result<(), Error> {
        self.engine.check()
    }

    /// The answer to a query.
    pub fn query(&self, query: &Query, asked: &QueryParams) -> Result<Table, Error> {
        let sql = query.sql(self.engine.dialect(), self.root.as_ref(), asked);
        table(query, &self.engine.ask(&sql, &self.running)?).map_err(Error::Failed)
    }

    /// The figures of a chart; the limit is that of hosts with a series of their own.
    pub fn chart(&self, chart: &Chart, asked: &QueryParams) -> Result<Course, Error> {
        let sql = chart.sql(self.engine.dialect(), self.root.as_ref(), asked);
        let answer = self.engine.ask(&sql, &self.running)?;
        chart.course(&asked.window, &answer).map_err(Error::Failed)
    }

    /// Ends what the engine does now; later questions fail.
    pub fn stop(&self) {
        self.running.stop();
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.running.is_stopped()
    }
}

impl Display for Asking {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        match &self.root {
            Some(root) => write!(to, "{}, reads {root}", self.engine),
            None => self.engine.fmt(to),
        }
    }
}

/// Whether this engine reads such a root; the error has the remedy.
pub fn readable(dialect: Dialect, root: &Root) -> Result<(), Error> {
    if root.is_read_by(dialect) {
        return Ok(());
    }
    Err(Error::Usage(format!("{dialect} does not read http(s) addresses as object storage; give the root as s3://BUCKET/PREFIX")))
}

/// A time's beginning and end, seconds since 1970: the last hour, unless others are named.
pub fn window(since: Option<Edge>, until: Option<Edge>) -> (f64, f64) {
    let now = jiff::Timestamp::now().as_millisecond() as f64 / 1e3;
    let until = until.map_or(now, |edge| edge.resolve(now));
    (since.map_or(until - 3600.0, |edge| edge.resolve(until)), until)
}

/// A question of this time, compared with another; `None`: as long, just before.
pub fn asked(
    (since, until): (f64, f64),
    against: Option<(f64, f64)>,
    only: &Only,
    limit: u32,
) -> Result<QueryParams, Error> {
    let ms = |seconds: f64| (seconds * 1e3).round() as i64;
    let window =
        |(since, until)| Window::new(ms(since), ms(until), only.clone()).map_err(Error::Usage);
    let against = against.unwrap_or((since - (until - since), since));
    Ok(QueryParams { window: window((since, until))?, against: window(against)?, limit })
}
