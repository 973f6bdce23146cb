// SPDX-License-Identifier: PostgreSQL
//! `tally report`: what a recording holds, as one page, as text or as JSON.
//!
//! [`source`] reads the recording into [`material`]; [`assemble`] makes the [`document`] of it,
//! which says everything there is to say; [`html`] with [`page`], [`text`] and serde write it.

mod assemble;
mod charts;
mod document;
mod facts;
mod findings;
mod html;
mod latency;
mod marks;
mod material;
mod page;
mod point;
mod range;
#[cfg(test)]
mod sample;
mod seeds;
mod tables;
mod text;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_examples() {
        let document = sample::document(sample::material());
        std::fs::write("/tmp/b/report-example.json", serde_json::to_string(&document).unwrap())
            .unwrap();
        std::fs::write("/tmp/b/report-body.html", html::body(&document)).unwrap();
        std::fs::write("/tmp/b/report-page.html", page::page(&document).unwrap()).unwrap();
        let style =
            text::Style { width: 150, ascii: false, color: false, zone: jiff::tz::TimeZone::UTC };
        let mut out = Vec::new();
        text::write(&document, &style, &mut out).unwrap();
        std::fs::write("/tmp/b/report.txt", out).unwrap();
    }
}
