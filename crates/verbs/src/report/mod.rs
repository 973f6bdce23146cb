// SPDX-License-Identifier: PostgreSQL
//! `tally report`: reports on a recording as a page, text or JSON. The crate `report` builds the document; `view`
//! renders it.

mod args;

use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;

use error::Error;
use report::source::RecordingSelection;
use view::document::Document;
use view::{output, page};

use recording::CLIENT_DIRECTORY;
use report::RecordingPlace;

pub use args::ReportArgs;

/// Makes the report, and prints it or writes it to a file.
pub fn run(args: &ReportArgs, color: bool) -> Result<(), Error> {
    let (cluster, host) = (args.cluster.as_deref(), args.host.as_deref());
    let source = RecordingPlace::open(&args.directory, (cluster, host), (args.from, args.to))?;
    // `tally record --client` puts it there.
    let client = args.client.clone().or_else(|| {
        Some(source.directory().join(CLIENT_DIRECTORY))
            .filter(|directory| recording::About::read(directory).is_ok())
    });
    let wanted = RecordingSelection {
        directory: source.directory(),
        name: source.url(),
        // A copy in a bucket is of one host only.
        host: host.filter(|_| source.url().is_none()),
        from: args.from,
        to: args.to,
        client: client.as_deref(),
    };
    let document = make(&wanted, args.cost.as_deref(), args.trace.as_deref())?;
    args.output.write(&document, || &document, color)
}

/// Writes the page of a whole recording to `file`.
pub fn write_page(directory: &Path, file: &Path) -> Result<(), Error> {
    let document = make(
        &RecordingSelection {
            directory,
            name: None,
            host: None,
            from: None,
            to: None,
            client: None,
        },
        None,
        None,
    )?;
    output::write(file, page::page(&document)?.as_bytes())
}

/// Builds the document; shows progress if standard error is a terminal.
fn make(
    wanted: &RecordingSelection<'_>,
    cost: Option<&Path>,
    trace: Option<&Path>,
) -> Result<Document, Error> {
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(100));
    let document = report::of_recording(wanted, cost, trace, &|what| progress.set_message(what));
    progress.finish_and_clear();
    document
}
