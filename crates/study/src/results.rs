// SPDX-License-Identifier: PostgreSQL
//! Computes the results of a run from the cells in its directory and writes them there.

use std::path::Path;

use crate::answer::{self, StudyResults};
use crate::cell::Cell;
use crate::file::Study;
use crate::plan::Plan;
use crate::{charts, page, tables, text};
use error::Error;
use experiment::journal;
use view::table::Table;

/// Parse a study. Errors name the file.
pub fn parse(name: &str, text: &str) -> Result<Study, Error> {
    Study::parse(text).map_err(|error| Error::Usage(format!("{name}: {error}")))
}

/// Whether a run's directory has any cells.
pub fn any(folder: &Path) -> bool {
    journal::read::<Cell>(folder).is_ok_and(|(_, cells, _)| !cells.is_empty())
}

/// Write the results into a run's directory: results.json, tables.txt, the tables as CSV, report.html.
pub fn write(folder: &Path) -> Result<(StudyResults, Vec<Table>), Error> {
    let (text, cells, kept) = journal::read(folder)?;
    let study = parse(&folder.join("study.toml").display().to_string(), &text)?;
    let plan = Plan::new(study, kept.head.quick, &kept.head.directories)?;
    let cells = answer::complete(&plan, cells);
    let answer = StudyResults::compute(&plan, &cells, &kept);
    let tables = tables::make_tables(&plan, &cells, &answer);
    let charts = charts::draw_charts(&plan, &cells, &answer);
    let put = |name: &str, text: &str| journal::replace(&folder.join(name), text.as_bytes());
    put("results.json", &(serde_json::to_string_pretty(&answer)? + "\n"))?;
    put("tables.txt", &text::render(&answer, &tables))?;
    for (number, table) in tables.iter().enumerate() {
        put(&format!("table-{}.csv", number + 1), &table.csv())?;
    }
    put("report.html", &page::render(&plan, &cells, &answer, &tables, &charts))?;
    Ok((answer, tables))
}
