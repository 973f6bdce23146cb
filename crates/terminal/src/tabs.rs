// SPDX-License-Identifier: PostgreSQL
//! The line with the names of the panes.

use std::ops::Range;

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use view::table::fit;

/// A pane's key and names.
#[derive(Debug, Clone, Copy)]
pub struct Tab {
    /// The key that shows it.
    pub key: char,
    /// Its name.
    pub name: &'static str,
    /// A shorter name, for 80 columns.
    pub short: &'static str,
}

/// The names of all panes with the current one marked and, as far as it fits, the other choices at the right.
/// Also returns the range of columns of each name.
pub fn tabs<'a>(
    panes: &[Tab],
    current: usize,
    (state, style): (&str, Style),
    width: usize,
) -> (Line<'a>, Vec<Range<u16>>) {
    let rest = 2 + state.chars().count();
    let long: usize = panes.iter().map(|tab| tab.name.len() + 3).sum();
    let short: usize = panes.iter().map(|tab| tab.short.len() + 2).sum();
    let (mut spans, mut ranges) = (Vec::new(), Vec::new());
    let mut used = 0;
    for (at, tab) in panes.iter().enumerate() {
        let text = if long + rest <= width {
            format!(" {} {}", tab.key, tab.name)
        } else if short + rest <= width {
            format!(" {}{}", tab.key, tab.short)
        } else {
            // Only the current one is shown with its name.
            format!(" {} {}", tab.key, if at == current { tab.name } else { "" })
        };
        let style = if at == current {
            Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
        } else {
            Style::new()
        };
        let end = used + text.len();
        ranges.push(used as u16..end as u16);
        used = end;
        spans.push(Span::styled(text, style));
    }
    spans.push(Span::styled(fit(state, width.saturating_sub(used), true), style));
    (Line::from(spans), ranges)
}
