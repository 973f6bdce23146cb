// SPDX-License-Identifier: PostgreSQL
//! An engine and the recordings that it queries.

use std::fmt::{Display, Formatter};

use error::Error;
use fleet_sql::{table, Chart, Course, Dialect, HostFilter, Query, QueryParams, Root, Window};
use report::Edge;
use view::table::Table;

use super::engine::{Engine, Running};

/// An engine, and the location of the recordings that it reads.
#[derive(Debug)]
pub struct Asking {
    engine: Engine,
    root: Option<Root>,
    running: Running,
}

impl Asking {
    /// Without a root, the engine must be a server that has the views.
    pub fn new(engine: Engine, root: Option<Root>) -> Result<Asking, Error> {
        if let Some(root) = &root {
            readable(engine.dialect(), root)?;
        } else if !engine.is_server() {
            return Err(Error::Usage(
                "specify --root, the directory or bucket of the recordings; only a ClickHouse server stores the views \
                 of `tally fleet schema`"
                    .into(),
            ));
        }
        Ok(Asking { engine, root, running: Running::default() })
    }

    /// Fails if the engine cannot run queries at all.
    pub fn check(&self) -> Result<(), Error> {
        self.engine.check()
    }

    /// Runs a query and returns its result.
    pub fn query(&self, query: &Query, asked: &QueryParams) -> Result<Table, Error> {
        let sql = query.sql(self.engine.dialect(), self.root.as_ref(), asked);
        table(query, &self.engine.ask(&sql, &self.running)?).map_err(Error::Failed)
    }

    /// The figures of a chart; the limit is the number of hosts with a series of their own.
    pub fn chart(&self, chart: &Chart, asked: &QueryParams) -> Result<Course, Error> {
        let sql = chart.sql(self.engine.dialect(), self.root.as_ref(), asked);
        let answer = self.engine.ask(&sql, &self.running)?;
        chart.course(&asked.window, &answer).map_err(Error::Failed)
    }

    /// Where it reads the recordings, if it reads them itself.
    pub fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// Stops what the engine is doing; later queries fail.
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

/// Whether this engine can read this root; the error says what to do.
pub fn readable(dialect: Dialect, root: &Root) -> Result<(), Error> {
    if root.is_read_by(dialect) {
        return Ok(());
    }
    Err(Error::Usage(format!("{dialect} does not read object storage by http(s) URLs; specify the root as s3://BUCKET/PREFIX")))
}

/// Start and end of a time range, seconds since 1970; the last hour by default.
pub fn window(since: Option<Edge>, until: Option<Edge>) -> (f64, f64) {
    let now = jiff::Timestamp::now().as_millisecond() as f64 / 1e3;
    let until = until.map_or(now, |edge| edge.resolve(now));
    (since.map_or(until - 3600.0, |edge| edge.resolve(until)), until)
}

/// The parameters of a query for this window, compared with another; `None` for an equally long one just before.
pub fn asked(
    (since, until): (f64, f64),
    against: Option<(f64, f64)>,
    only: &HostFilter,
    limit: u32,
) -> Result<QueryParams, Error> {
    let ms = |seconds: f64| (seconds * 1e3).round() as i64;
    let window =
        |(since, until)| Window::new(ms(since), ms(until), only.clone()).map_err(Error::Usage);
    let against = against.unwrap_or((since - (until - since), since));
    Ok(QueryParams { window: window((since, until))?, against: window(against)?, limit })
}
