// SPDX-License-Identifier: PostgreSQL
//! Switches measurement in a server's running processes: in its segment if the server is on this machine and we may
//! write the segment, otherwise through the connection, by functions of the extension.

use error::Error;
use pq::{Client, Row};
use segment::{Level, LevelSwitch};

use crate::local_server::LocalServer;

/// SQLSTATEs if the library does not exist, or lacks the function because it is an earlier version.
const NO_LIBRARY: &str = "58P01";
const NO_FUNCTION: &str = "42883";

/// Where a clean shutdown stores the statements, within the data directory.
const SAVED_IN: &str = "pg_stat";

/// Set the level of the running processes, and whether their statements are saved for the next start, in their segment.
/// Returns whether there are such processes; `None` if only the server can do it.
pub fn in_segment(
    local: Option<&LocalServer>,
    level: Level,
    save: bool,
) -> Result<Option<bool>, Error> {
    let Some(segment_path) = local.map(LocalServer::segment_path) else { return Ok(None) };
    if !segment_path.is_owners() {
        return Ok(Some(false));
    }
    match LevelSwitch::open(segment_path) {
        Ok(switch) => {
            switch.set(level);
            switch.keep_statements(save);
            Ok(Some(true))
        }
        Err(segment::Error::NotFound { .. }) => Ok(Some(false)),
        Err(segment::Error::Permission { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The same through the server.
pub fn by_server(client: &mut Client, level: Level, save: bool) -> Result<bool, Error> {
    let made = define(client, "set_running(level integer, save boolean) returns boolean");
    if made.as_ref().is_err_and(|error| error.sqlstate() == Some(NO_LIBRARY)) {
        return Ok(false);
    }
    made.map_err(without_functions)?;
    let sql = format!("select pg_temp.set_running({}, {save})", level.number());
    Ok(client.query_one(&sql, &[])?.get(0)?)
}

/// Names of the files in which the server's last run saved its statements. A server with the library
/// reads and removes them at its start.
pub fn saved_statements(client: &mut Client) -> Result<Vec<String>, Error> {
    let rows = client.query(
        "select name from pg_ls_dir($1) as name \
         where name in ('pg_tally.statements', 'pg_tally.statements.new', \
                        'pg_tally.statements.damaged') order by name",
        &[&SAVED_IN],
    )?;
    let path = |row: &Row| Ok(format!("{SAVED_IN}/{}", row.get::<&str>(0)?));
    rows.iter().map(path).collect()
}

/// Have the server remove these files. Returns the files that were removed.
pub fn remove_saved_statements(
    client: &mut Client,
    names: &[String],
) -> Result<Vec<String>, Error> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    define(client, "remove_saved_statements() returns void").map_err(without_functions)?;
    client.query_one("select pg_temp.remove_saved_statements()", &[])?;
    let left = saved_statements(client)?;
    Ok(names.iter().filter(|name| !left.contains(name)).cloned().collect())
}

/// Makes a function of the library callable in this session.
fn define(client: &mut Client, signature: &str) -> Result<(), pq::Error> {
    let name = signature.split('(').next().unwrap_or_default();
    client.batch_execute(&format!(
        "create or replace function pg_temp.{signature} as 'pg_tally', 'pg_tally_{name}' language c strict"
    ))
}

fn without_functions(error: pq::Error) -> Error {
    match error.sqlstate() {
        Some(NO_LIBRARY) => Error::Failed(
            "the library pg_tally, which is needed for this, is no longer installed on the server's machine".into(),
        ),
        Some(NO_FUNCTION) => Error::Failed(
            "the server runs an earlier version of the library pg_tally, which does not support this".into(),
        ),
        _ => error.into(),
    }
}
