// SPDX-License-Identifier: PostgreSQL
//! Pages that all screens have: help, and the message that the terminal is too small.

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};
use ratatui::Frame;
use view::table::wrap;

/// Minimum width and height of the terminal.
pub const MIN_SIZE: (u16, u16) = (40, 8);

/// Draws a message if the terminal is too small, and returns whether it is.
pub fn too_small(frame: &mut Frame<'_>, area: Rect) -> bool {
    if area.width >= MIN_SIZE.0 && area.height >= MIN_SIZE.1 {
        return false;
    }
    let (width, height) = MIN_SIZE;
    let text = format!(
        "{} x {} is too small: at least {width} x {height} is required. q quits.",
        area.width, area.height
    );
    let lines: Vec<Line<'_>> =
        wrap(&text, usize::from(area.width)).into_iter().map(Line::raw).collect();
    frame.render_widget(Paragraph::new(lines), area);
    true
}

/// Draws the help page from line `first`, or from an earlier line if the page would not fill the screen. Returns
/// the first line that was drawn.
pub fn help(frame: &mut Frame<'_>, area: Rect, (name, text): (&str, &str), first: usize) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let wide = lines.iter().map(|l| l.chars().count()).max().unwrap_or(0) as u16 + 4;
    let high = (lines.len() as u16 + 2).min(area.height);
    let [_, middle, _] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(high), Constraint::Fill(1)])
            .areas(area);
    let [_, middle, _] = Layout::horizontal([
        Constraint::Fill(1),
        Constraint::Length(wide.min(area.width)),
        Constraint::Fill(1),
    ])
    .areas(middle);
    let shown = usize::from(high.saturating_sub(2));
    let first = first.min(lines.len().saturating_sub(shown));
    let title = match shown < lines.len() {
        true => format!(" {name}: Up and Down scroll, any other key goes back "),
        false => format!(" {name}: any key goes back "),
    };
    let text = lines.iter().skip(first).map(|line| Line::raw(format!(" {line}")));
    frame.render_widget(Clear, middle);
    frame.render_widget(
        Paragraph::new(text.collect::<Vec<_>>()).block(Block::bordered().title(title)),
        middle,
    );
    first
}
