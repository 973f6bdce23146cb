// SPDX-License-Identifier: PostgreSQL
//! Makes a report's document from a recording, or from a server's last few minutes.
//!
//! [`source`] reads a recording into [`material`]; [`assemble`] makes the document, which holds everything that
//! text, page and JSON show.

pub mod assemble;
mod charts;
pub mod client;
mod cost;
pub mod courses;
mod facts;
mod findings;
pub mod fleet;
pub mod histories;
mod latency;
mod load;
pub mod marks;
pub mod material;
pub mod measured_cost;
pub mod parts;
mod place;
pub mod point;
mod range;
pub mod rankings;
#[cfg(test)]
mod sample;
pub mod source;
pub mod statement_id;
pub mod sums;
mod tables;
#[cfg(test)]
mod tests;
mod text_tables;
mod traced;

pub use charts::main_axis;
pub use place::RecordingPlace;
pub use range::Edge;

use std::path::Path;

use error::Error;
use jiff::tz::TimeZone;
use view::document::Document;

/// What a report says is wrong in a recording's time range, and what bounds the load there. Times are local.
pub fn diagnoses(wanted: &source::RecordingSelection<'_>) -> Result<diagnose::Diagnoses, Error> {
    Ok(findings::diagnosed(&source::read(wanted, &|_| {})?, &TimeZone::system()))
}

/// The document of a recording's time range; `cost` is a result of `tally cost --json`. `progress` is called with
/// the current step.
pub fn of_recording(
    wanted: &source::RecordingSelection<'_>,
    cost: Option<&Path>,
    trace: Option<&Path>,
    progress: &dyn Fn(&'static str),
) -> Result<Document, Error> {
    let cost = cost.map(measured_cost::MeasuredCost::read).transpose()?;
    let material = source::read(wanted, progress)?;
    let material = material::Material { cost, ..material };
    let mut document = assemble::document(material, &TimeZone::system())?;
    trace.map(|file| traced::add(&mut document, file)).transpose()?;
    Ok(document)
}
