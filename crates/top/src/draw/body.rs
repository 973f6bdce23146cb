// SPDX-License-Identifier: PostgreSQL
//! The contents of a pane: a table, a page of several tables, or diagnoses, which are text that scrolls.

use std::ops::Range;

use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use ratatui::Frame;

use crate::screen::{of_heading, Screen};
use crate::text::watched;
use crate::trend;
use terminal::{heading, line, Viewport};
use view::escape::wrap_text;
use view::table::{fit, wrap, Column, Layout, PaneSection, Table, Unit};

/// Minimum width of a history; free space makes it wider.
const MIN_WIDTH: usize = 10;
const MAX_WIDTH: usize = 60;

/// Draws the pane's table. The cursor stays visible, and the rows fill the screen.
pub fn table(frame: &mut Frame<'_>, screen: &mut Screen, area: Rect) {
    let Some(mut table) = screen.table() else { return };
    let mut area = area;
    if let Some(section) = screen.below() {
        let lines = section_lines(screen, &section, usize::from(area.width));
        // The table above gets at most all lines but those below, and at least half of the space.
        let above =
            (table.rows.len() as u16 + 2).min(area.height.saturating_sub(lines.len() as u16));
        let above = above.max(area.height / 2);
        let rest = Rect { y: area.y + above, height: area.height - above, ..area };
        frame.render_widget(Paragraph::new(lines), rest);
        area.height = above;
    }
    if let Some(note) = screen.note().filter(|_| !table.rows.is_empty() && area.height > 3) {
        let text = fit(&note, usize::from(area.width), false);
        frame.render_widget(Paragraph::new(text), Rect { height: 1, ..area });
        area = Rect { y: area.y + 1, height: area.height - 1, ..area };
    }
    let rows = usize::from(area.height).saturating_sub(1);
    screen.page = rows;
    let mut sight = Viewport { cursor: screen.cursor, top: screen.top };
    let shown = sight.shown(rows, table.rows.len());
    (screen.cursor, screen.top) = (sight.cursor, sight.top);
    let layout = with_history(screen, &mut table, shown.clone(), usize::from(area.width));
    record_spots(screen, &table, &layout, area, shown.len());
    let mut lines = Vec::with_capacity(rows + 1);
    lines.push(heading(&table, &layout, usize::from(area.width)));
    if table.rows.is_empty() {
        let text = screen.note().unwrap_or_else(|| empty(screen).to_string());
        lines.extend(wrap(&text, usize::from(area.width)).into_iter().map(Line::raw));
    }
    for at in shown {
        lines.push(line(screen.look(), &table, &table.rows[at], &layout, at == screen.cursor));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Adds a history to the visible rows if there is space, and lays out the table.
fn with_history(screen: &Screen, table: &mut Table, shown: Range<usize>, width: usize) -> Layout {
    let view = screen.view();
    if !trend::has(view) || table.rows.is_empty() {
        return table.layout(width);
    }
    // Running text stays the last column.
    let last = table.columns.len();
    let at = table.columns.iter().position(|column| column.elastic).unwrap_or(last);
    let column = Column::new("history", "HISTORY", Unit::Text).expendable(3);
    table.columns.insert(at, column);
    for row in &mut table.rows {
        row.cells.insert(at, " ".repeat(MIN_WIDTH).into());
    }
    let mut layout = table.layout(width);
    let spare = width.saturating_sub(table.width(&layout));
    let Some((_, wide)) = layout.shown.iter_mut().find(|(column, _)| *column == at) else {
        return layout;
    };
    *wide = (*wide + spare).min(MAX_WIDTH);
    let wide = *wide;
    for row in &mut table.rows[shown] {
        let series = trend::of_row(&screen.history, view, &row.key, wide);
        row.cells[at] = trend::spark(&series, wide, screen.ascii).into();
    }
    layout
}

/// Records the positions that can be clicked.
fn record_spots(screen: &mut Screen, table: &Table, layout: &Layout, area: Rect, rows: usize) {
    let view = screen.view();
    let spots = &mut screen.spots;
    spots.heading_line = Some(area.y);
    spots.rows_line = area.y + 1;
    spots.rows = (screen.top..screen.top + rows).collect();
    spots.orders = table
        .spans(layout)
        .into_iter()
        .filter_map(|(column, span)| {
            let columns = area.x + span.start as u16..area.x + span.end as u16;
            of_heading(view, &table.columns[column].title).map(|sort| (columns, sort))
        })
        .collect();
}

/// Draws a page of several tables. The cursor is the first visible line.
pub fn sections(frame: &mut Frame<'_>, screen: &mut Screen, page: &[PaneSection], area: Rect) {
    let width = usize::from(area.width);
    let mut lines = Vec::new();
    for section in page {
        lines.extend(section_lines(screen, section, width));
        lines.push(Line::raw(""));
    }
    if page.is_empty() {
        // Inactive statements are not stored in past intervals.
        lines.push(Line::raw(match screen.history.is_past() {
            _ if screen.session.is_some() => match screen.play {
                Some(_) => "this session was idle or did not exist in this interval; Esc goes back",
                None => "this session did not exist in this interval; Esc goes back",
            },
            true => "not active in this interval; Esc goes back to the table",
            false => "no longer in the table; Esc goes back",
        }));
    }
    screen.page = usize::from(area.height);
    screen.cursor = screen.cursor.min(lines.len().saturating_sub(screen.page));
    let lines: Vec<Line<'_>> = lines.into_iter().skip(screen.cursor).take(screen.page).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// Draws a trace. The cursor is the first visible line.
pub fn trace(frame: &mut Frame<'_>, screen: &mut Screen, area: Rect) {
    let Some(text) = &screen.trace else { return };
    screen.page = usize::from(area.height);
    let wrapped: Vec<String> =
        text.iter().flat_map(|line| continued(line, usize::from(area.width))).collect();
    screen.cursor = screen.cursor.min(wrapped.len().saturating_sub(screen.page));
    let shown = wrapped.into_iter().skip(screen.cursor).take(screen.page);
    let lines: Vec<Line<'_>> = shown.map(Line::raw).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// A line in several, which continue below the first one's beginning.
fn continued(line: &str, width: usize) -> Vec<String> {
    wrap_text(line, Some(width)).lines().map(String::from).collect()
}

/// A section of a page.
fn section_lines(screen: &Screen, section: &PaneSection, width: usize) -> Vec<Line<'static>> {
    let title = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
    let mut lines = vec![Line::styled(fit(&section.title, width, false), title)];
    let text = section.lines.iter().flat_map(|line| wrap(line, width));
    lines.extend(text.map(Line::raw));
    if let Some(table) = &section.table {
        let layout = table.layout(width);
        let heading = fit(&table.heading(&layout), width, false);
        lines.push(Line::styled(heading, Style::new().add_modifier(Modifier::BOLD)));
        lines.extend(table.rows.iter().map(|row| line(screen.look(), table, row, &layout, false)));
    }
    lines
}

fn empty(screen: &Screen) -> &'static str {
    if screen.wish.filter.is_empty() {
        "no activity in this interval; i shows idle accounts"
    } else {
        "no row matches the filter; Esc removes it"
    }
}

/// Draws the diagnoses. The cursor is the first visible line.
pub fn diagnoses(frame: &mut Frame<'_>, screen: &mut Screen, area: Rect) {
    let Some(answer) = screen.answer() else { return };
    let width = usize::from(area.width);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let good = screen.look().styled(Color::Green, bold);
    let bad = screen.look().styled(Color::Red, bold);
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
