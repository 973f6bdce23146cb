// SPDX-License-Identifier: PostgreSQL
//! A load of many distinct statements.
//!
//! Query identifiers ignore constants and output names, but not columns. pgbench substitutes
//! variables even within a name, so two random numbers choose one of up to 10,000 statements.

/// Columns of the table without its key.
const COLUMNS: u32 = 100;
const ROWS: u32 = 1_000;

/// SQL that creates the table.
pub(crate) fn table() -> String {
    let columns = |what: &str| -> String {
        (1..=COLUMNS).map(|n| what.replace('#', &n.to_string())).collect()
    };
    format!(
        "create table wide (id int primary key{});\n\
         insert into wide select id{} from generate_series(1, {ROWS}) id;\n\
         analyze wide;\n",
        columns(", c# int not null"),
        columns(", id + #")
    )
}

/// The script for `hundreds` x 100 statements.
pub(crate) fn script(hundreds: u32) -> String {
    format!(
        "\\set x random(1, {})\n\\set y random(1, {COLUMNS})\n\\set id random(1, {ROWS})\n\
         select c:x, c:y from wide where id = :id;\n",
        hundreds.clamp(1, COLUMNS)
    )
}
