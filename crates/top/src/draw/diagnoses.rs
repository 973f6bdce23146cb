// SPDX-License-Identifier: PostgreSQL
//! The pane of diagnoses: text that scrolls.

use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use ratatui::Frame;

use super::styled;
use crate::screen::Screen;
use crate::text::watched;
use view::table::wrap;

/// Draws the diagnoses. The cursor is the first visible line.
pub fn draw(frame: &mut Frame<'_>, screen: &mut Screen, area: Rect) {
    let Some(answer) = screen.answer() else { return };
    let width = usize::from(area.width);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let good = styled(screen, Color::Green, bold);
    let bad = styled(screen, Color::Red, bold);
    let mut lines: Vec<Line<'_>> =
        wrap(&watched(&answer), width).into_iter().map(Line::raw).collect();
    lines.push(Line::raw(""));
    let strong = if answer.healthy == Some(true) { good } else { bad };
    lines.extend(answer.lines(width).into_iter().map(|line| match line.strong {
        true => Line::styled(line.text, strong),
        false => Line::raw(line.text),
    }));
    screen.page = usize::from(area.height);
    screen.cursor = screen.cursor.min(lines.len().saturating_sub(screen.page));
    let shown: Vec<Line<'_>> = lines.into_iter().skip(screen.cursor).take(screen.page).collect();
    frame.render_widget(Paragraph::new(shown), area);
}
