// SPDX-License-Identifier: PostgreSQL
//! The terminal that standard output may be.

use std::io::IsTerminal;

/// Its width in columns; `None`: standard output is no terminal, or it has no size.
pub fn width() -> Option<usize> {
    let size =
        view::escape::process_stdout().is_terminal().then(|| crossterm::terminal::size().ok());
    size.flatten().map(|(width, _)| usize::from(width))
}
