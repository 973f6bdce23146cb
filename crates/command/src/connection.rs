// SPDX-License-Identifier: PostgreSQL
//! The flags that select a server: those of psql, which every verb that reads or changes a server takes, and how to sample it.

use clap::{ArgAction, Args};
use error::Error;
use live::spec;
use live::target::{self, Budget, SampleRate, SegmentSource};
use pq::Conninfo;

/// The flags' heading in the help. It is set on each flag, because a heading of the group would apply to the
/// verb's options, too.
const HEADING: &str = "Connection options, as in psql";

/// Connection parameters, as in psql. Parameters that are not given come from the environment, a service file, or
/// libpq's defaults.
#[derive(Debug, Default, Args)]
#[command(disable_help_flag = true)]
pub struct ConnectionFlags {
    /// Database server host or socket directory [default: PGHOST, else the local socket]
    #[arg(short = 'h', long, help_heading = HEADING, value_name = "HOST")]
    pub host: Option<String>,
    /// Database server port [default: PGPORT, else 5432, else the only server's]
    #[arg(short = 'p', long, help_heading = HEADING, value_name = "PORT")]
    pub port: Option<String>,
    /// Role to connect as [default: PGUSER, else the operating system user]
    #[arg(short = 'U', long, help_heading = HEADING, value_name = "NAME")]
    pub username: Option<String>,
    /// Database to connect to, or a connection string or URI [default: PGDATABASE, else the role's name]
    #[arg(short = 'd', long, help_heading = HEADING, value_name = "DBNAME")]
    pub dbname: Option<String>,
    /// Print help
    #[arg(short = '?', long, action = ArgAction::Help)]
    pub help: Option<bool>,
}

impl ConnectionFlags {
    /// Merges the flags into TARGET. A connection string in TARGET or --dbname wins over the flags, as in psql.
    pub fn complete(&self, target: &mut Option<String>) -> Result<(), Error> {
        let mut flags = Conninfo::default();
        for (keyword, value) in
            [("host", &self.host), ("port", &self.port), ("user", &self.username)]
        {
            // An empty value counts as not given.
            if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
                flags.set(keyword, value);
            }
        }
        let mut string = Conninfo::default();
        match self.dbname.as_deref().filter(|name| !name.is_empty()) {
            Some(text) if is_string(text) => string = spec::connection(text)?,
            Some(name) => drop(flags.set("dbname", name)),
            None => {}
        }
        if flags.is_empty() && string.is_empty() {
            return Ok(());
        }
        if let Some(text) = target.as_deref() {
            if !spec::is_connection(text) {
                return Err(Error::Usage(format!(
                    "{text} is a file or directory, which already identifies the server; give either it or -h, -p, \
                     -U and -d"
                )));
            }
            if !string.is_empty() {
                return Err(Error::Usage(format!("both -d and \"{text}\" are connection strings")));
            }
            string = spec::connection(text)?;
        }
        *target = Some(string.or(&flags).to_string());
        Ok(())
    }
}

/// psql treats a database name that looks like a connection string as one.
fn is_string(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://") || text.contains('=')
}

/// How to sample a server.
#[derive(Debug, Default, Args)]
pub struct SamplingFlags {
    /// Sample the server N times per second, 1 to 100, even if it has pg_tally; a server without pg_tally is sampled in
    /// any case [default: 10]
    #[arg(long, value_name = "N")]
    pub samples: Option<SampleRate>,
    /// Sample less often, down to once per second, if sampling costs the server more than this share of one CPU, such as 0.5%
    /// [default: no limit]
    #[arg(long, value_name = "PERCENT")]
    pub budget: Option<Budget>,
}

impl SamplingFlags {
    /// Where TARGET leads: the segment of its server, or samples.
    pub fn source(&self, target: Option<&str>) -> Result<SegmentSource, Error> {
        target::source_or_samples(target, self.samples, self.budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(flags: &ConnectionFlags, target: Option<&str>) -> Result<Option<String>, Error> {
        let mut target = target.map(String::from);
        flags.complete(&mut target).map(|()| target)
    }

    #[test]
    fn a_connection_string_wins_over_flags() {
        let text = |text: &str| Some(text.to_string());
        let flags = ConnectionFlags { host: text("h"), dbname: text("d"), ..Default::default() };
        let made = |target: Option<&str>| completed(&flags, target).unwrap().unwrap();
        assert_eq!(made(None), "host='h' dbname='d'");
        assert_eq!(made(Some("host=x")), "host='x' dbname='d'");
        assert_eq!(made(Some("postgres:///y")), "dbname='y' host='h'");
        assert!(matches!(completed(&flags, Some("/tmp")), Err(Error::Usage(_))));
        let string = ConnectionFlags { dbname: text("port=1"), ..Default::default() };
        assert_eq!(completed(&string, None).unwrap(), text("port='1'"));
        assert!(matches!(completed(&string, Some("host=x")), Err(Error::Usage(_))));
        assert_eq!(completed(&ConnectionFlags::default(), None).unwrap(), None);
    }
}
