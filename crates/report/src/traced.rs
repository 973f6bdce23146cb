// SPDX-License-Identifier: PostgreSQL
//! A trace of sessions in a report: a file of `tally trace -o FILE.jsonl`.

use std::path::Path;

use error::Error;
use view::document::{Document, Section, Trace};

/// Maximum size of a file to read, bytes.
const LARGEST: u64 = 1 << 30;

/// Adds the trace in `file` to a report, as its second section.
pub fn add(document: &mut Document, file: &Path) -> Result<(), Error> {
    let failed = |why: &dyn std::fmt::Display| Error::Failed(format!("{}: {why}", file.display()));
    let mut trace = Trace::default();
    let text = files::read_named_text(file, LARGEST).map_err(|error| failed(&error))?;
    for (at, line) in text.lines().enumerate() {
        trace.push(line).map_err(|error| {
            let at = at + 1;
            failed(&format!("line {at} is not output of `tally trace -o NAME.jsonl` ({error})"))
        })?;
    }
    if trace.lines.is_empty() {
        return Err(failed(&"the file is empty; use `tally trace -o NAME.jsonl` to make one"));
    }
    let section = Section {
        id: Trace::SECTION,
        title: "Trace of sessions",
        note: Some(format!("From {}; click a message to see its waterfall.", file.display())),
        ..Section::default()
    };
    document.sections.insert(document.sections.len().min(1), section);
    document.trace = Some(trace);
    Ok(())
}
