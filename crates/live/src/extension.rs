// SPDX-License-Identifier: PostgreSQL
//! The extension's SQL in a database: created or updated by `enable --database`, dropped by `disable`.
//!
//! `enable` leaves a note in the extension's comment, which only the extension's owner can write.
//! `disable` drops the extensions with this note and keeps others.

use pq::Client;

use error::Error;

/// The end of the comment on an extension that `enable` created.
const NOTE: &str = " (created by \"tally enable\")";

/// Otherwise, an open transaction that has read a view or created a schema of our name would keep us waiting.
const PATIENCE: &str = "/* tally */ SET lock_timeout = '5s'";
/// SQLSTATE lock_not_available: the lock timed out.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// What `enable` did in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtensionChange {
    /// Created the extension.
    New,
    /// Updated the extension from the first version to the second.
    Updated(String, String),
    /// Nothing, because the database has the installed version.
    Nothing,
}

/// What `disable` found in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dropped {
    /// No extension.
    None,
    /// `enable` had created the extension, so it was dropped.
    Done,
    /// The extension was kept, for this reason.
    Kept(String),
}

/// Only functions that belong to the extension are ours: its owner is a superuser.
const FUNCTION: &str = "/* tally */ select exists (select from pg_proc p join pg_namespace n on n.oid = p.pronamespace \
        join pg_depend d on d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e' \
        join pg_extension e on d.refclassid = 'pg_extension'::regclass and e.oid = d.refobjid \
    where e.extname = 'pg_tally' and n.nspname = 'tally' and p.proname = $1)";

/// Whether this session's database has the extension with this function in schema tally. A function of the same name
/// that another role created would run with our privileges.
pub fn has_function(client: &mut Client, name: &str) -> Result<bool, Error> {
    Ok(client.query_one(FUNCTION, &[&name])?.get(0)?)
}

/// Create the extension, or update an earlier version of it.
///
/// Fails if the schema of that name belongs to another owner: its functions would be called by mistake, with
/// the caller's privileges.
pub fn create(client: &mut Client, database: &str) -> Result<ExtensionChange, Error> {
    client.batch_execute(PATIENCE)?;
    let row = client.query_one(
        "select exists (select from pg_extension where extname = 'pg_tally'), \
                (select pg_get_userbyid(nspowner)::text from pg_namespace where nspname = 'tally'), \
                exists (select from pg_depend d join pg_namespace n on n.oid = d.objid \
                                               join pg_extension e on e.oid = d.refobjid \
                        where d.classid = 'pg_namespace'::regclass and n.nspname = 'tally' and \
                              d.refclassid = 'pg_extension'::regclass and \
                              e.extname = 'pg_tally' and d.deptype = 'e')",
        &[],
    )?;
    let (there, owner, member): (bool, Option<&str>, bool) =
        (row.get(0)?, row.get(1)?, row.get(2)?);
    if let Some(owner) = owner.filter(|_| !member) {
        let first = if there { "DROP EXTENSION pg_tally, then " } else { "" };
        return Err(Error::Failed(format!(
            "database {database} already has a schema \"tally\" that does not belong to the extension; its owner, \
             role {owner}, could create functions in it that run with the privileges of their \
             callers. Check what it contains, then {first}DROP SCHEMA tally or ALTER SCHEMA tally RENAME \
             TO another name"
        )));
    }
    if there {
        return update(client);
    }
    let comment = client.query_opt(
        "select coalesce(comment, '') from pg_available_extensions where name = 'pg_tally'",
        &[],
    )?;
    let comment: String = comment.map_or(Ok(String::new()), |row| row.get(0))?;
    let comment = format!("{comment}{NOTE}").replace('\'', "''");
    // One transaction.
    client.batch_execute(&format!(
        "CREATE EXTENSION pg_tally; COMMENT ON EXTENSION pg_tally IS '{comment}'"
    ))?;
    Ok(ExtensionChange::New)
}

/// Update the extension to the installed version, if there is an update path.
fn update(client: &mut Client) -> Result<ExtensionChange, Error> {
    let row = client.query_opt(
        "select e.extversion, a.default_version::text \
         from pg_extension e join pg_available_extensions a on a.name = e.extname \
              cross join lateral pg_extension_update_paths(a.name) p \
         where e.extname = 'pg_tally' and p.source = e.extversion and p.target = a.default_version \
               and p.path is not null",
        &[],
    )?;
    let Some(row) = row else { return Ok(ExtensionChange::Nothing) };
    let made = ExtensionChange::Updated(row.get(0)?, row.get(1)?);
    client.batch_execute("ALTER EXTENSION pg_tally UPDATE")?;
    Ok(made)
}

/// The databases that allow connections.
pub fn databases(client: &mut Client) -> Result<Vec<String>, Error> {
    let rows = client
        .query("select datname::text from pg_database where datallowconn order by datname", &[])?;
    Ok(rows.iter().map(|row| row.get(0)).collect::<Result<_, _>>()?)
}

/// Drop the extension in this session's database if `enable` created it.
pub fn drop(client: &mut Client) -> Result<Dropped, Error> {
    let found = client.query_opt(
        "select coalesce(obj_description(oid, 'pg_extension'), '') from pg_extension \
         where extname = 'pg_tally'",
        &[],
    )?;
    let Some(found) = found else { return Ok(Dropped::None) };
    let comment: &str = found.get(0)?;
    if !comment.ends_with(NOTE) {
        return Ok(Dropped::Kept("not created by `tally enable`".into()));
    }
    client.batch_execute(PATIENCE)?;
    match client.batch_execute("DROP EXTENSION pg_tally") {
        Ok(()) => Ok(Dropped::Done),
        Err(error) if error.sqlstate() == Some(LOCK_NOT_AVAILABLE) => Err(error.into()),
        Err(error) if error.sqlstate().is_some() => {
            Ok(Dropped::Kept(Error::from(error).to_string()))
        }
        Err(error) => Err(error.into()),
    }
}
