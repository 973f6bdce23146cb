// SPDX-License-Identifier: PostgreSQL
//! Rows of a table as lines of a terminal.

use std::ops::Range;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use view::table::{bar, fit, Layout, Row, Table, Tone};

use super::class_color::class_color;

/// What a terminal can show.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Whether to use colour.
    pub color: bool,
    /// Whether to draw bars in ASCII.
    pub ascii: bool,
}

impl Look {
    /// The style in this colour, if colours are used.
    pub fn styled(self, color: Color, style: Style) -> Style {
        if self.color {
            style.fg(color)
        } else {
            style
        }
    }
}

/// Cursor, first visible row and number of rows of a list.
#[derive(Debug, Clone, Copy, Default)]
pub struct Viewport {
    /// The row under the cursor.
    pub cursor: usize,
    /// The first visible row.
    pub top: usize,
}

impl Viewport {
    /// The visible range of a list of this many rows: it contains the cursor, and fills the space.
    pub fn shown(&mut self, space: usize, all: usize) -> Range<usize> {
        self.cursor = self.cursor.min(all.saturating_sub(1));
        self.top = self.top.clamp(self.cursor.saturating_sub(space.saturating_sub(1)), self.cursor);
        self.top = self.top.min(all.saturating_sub(space));
        self.top..(self.top + space).min(all)
    }
}

/// The line of column titles.
pub fn heading<'a>(table: &Table, layout: &Layout, width: usize) -> Line<'a> {
    let style = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
    Line::styled(fit(&table.heading(layout), width, false), style)
}

fn tone_color(tone: Tone) -> Color {
    match tone {
        Tone::Class(class) => class_color(class),
        Tone::Good => Color::Green,
        Tone::Bad => Color::Red,
        Tone::Faint => Color::DarkGray,
        Tone::Plain => Color::Reset,
    }
}

/// One row of a table; `cursor` says whether the cursor is on it.
pub fn line<'a>(look: Look, table: &Table, row: &Row, layout: &Layout, cursor: bool) -> Line<'a> {
    let bar = bar(row.bar.unwrap_or(0.0), layout.bar, look.ascii);
    let [before, bar, after] = table.parts(row, layout, &bar);
    let toned = look.styled(tone_color(row.tone), Style::new());
    let quiet = row.tone == Tone::Faint;
    let first = layout.shown.first().map_or(0, |s| s.1);
    let split = before.char_indices().nth(first).map_or(before.len(), |(at, _)| at);
    let (name, figures) = before.split_at(split);
    let figure = if quiet { toned } else { Style::new() };
    let line = Line::from(vec![
        Span::styled(name.to_string(), toned),
        Span::styled(figures.to_string(), figure),
        Span::styled(bar, toned),
        Span::styled(after, figure),
    ]);
    if cursor {
        line.style(Style::new().add_modifier(Modifier::REVERSED))
    } else {
        line
    }
}
