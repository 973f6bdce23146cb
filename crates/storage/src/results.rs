// SPDX-License-Identifier: PostgreSQL
//! Computes the results of a run from the logs in its directory and writes them there.

use std::path::Path;
use std::time::Duration;

use error::Error;
use experiment::journal;
use view::table::Table;

use crate::answer::course::Course;
use crate::answer::StorageResults;
use crate::arms::{arms, variant, Done};
use crate::file::Study;
use crate::log;
use crate::{charts, page, tables, text};

/// Parse a study. Errors name the file.
pub fn parse(name: &str, text: &str) -> Result<Study, Error> {
    Study::parse(text).map_err(|error| Error::Usage(format!("{name}: {error}")))
}

/// Whether a run's directory has anything to report, be it of an incomplete cell.
pub fn any(folder: &Path) -> bool {
    std::fs::read_dir(folder.join("cells")).is_ok_and(|mut all| all.next().is_some())
}

/// Write the results into a run's directory: results.json, tables.txt, the tables as CSV, report.html.
pub fn write(folder: &Path) -> Result<(StorageResults, Vec<Table>), Error> {
    let (file, _, kept) = journal::read::<Done>(folder)?;
    let length = kept.head.seconds.map(Duration::from_secs_f64);
    let study = variant(&file, kept.head.quick, length)
        .map_err(|error| Error::Failed(format!("{}/study.toml: {error}", folder.display())))?;
    let mut courses = Vec::new();
    for block in 0..study.repeats {
        for arm in arms(&study) {
            let lines = log::read(&log::path(folder, &arm.name, block))?;
            courses.extend(Course::from_events(&lines));
        }
    }
    let answer = StorageResults::compute(&study, &courses, &kept, folder)?;
    let tables = tables::make_tables(&answer);
    let charts = charts::draw_charts(&answer, &courses);
    let put = |name: &str, text: &str| journal::replace(&folder.join(name), text.as_bytes());
    put("results.json", &(serde_json::to_string_pretty(&answer)? + "\n"))?;
    put("tables.txt", &text::render(&answer, &tables))?;
    for (number, table) in tables.iter().enumerate() {
        put(&format!("table-{}.csv", number + 1), &table.csv())?;
    }
    put("report.html", &page::render(&answer, &tables, &charts, &file))?;
    Ok((answer, tables))
}
