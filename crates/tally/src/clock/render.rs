// SPDX-License-Identifier: PostgreSQL
use super::Outcome;
use std::io::{self, Write};
pub fn text(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_string_pretty(outcome).unwrap_or_default())
}
