// SPDX-License-Identifier: PostgreSQL
//! Constructors for findings of each weight.

use view::document::{Finding, Weight};

pub(super) fn note(section: &'static str, text: String) -> Finding {
    Finding {
        section,
        weight: Weight::Note,
        text,
        remedy: None,
        details: Vec::new(),
        statement: None,
        times: Vec::new(),
    }
}

pub(super) fn warning(section: &'static str, text: String) -> Finding {
    Finding { weight: Weight::Warning, ..note(section, text) }
}
