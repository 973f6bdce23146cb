// SPDX-License-Identifier: PostgreSQL
//! Draws the full-screen view from its state, and records in the state what was drawn where.

mod body;
mod diagnoses;
mod foot;
mod head;
mod row;
mod style;
mod tabs;

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};
use ratatui::Frame;

pub use row::{heading, line, Look, Viewport};
pub use tabs::{tabs, Tab};

use super::help::HELP;
use super::mouse::Spots;
use super::screen::{Mode, Screen};
use super::View;
use style::styled;
use view::table::wrap;

/// Minimum width and height of the terminal.
const MIN_SIZE: (u16, u16) = (40, 8);

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let area = frame.area();
    screen.spots = Spots::default();
    if too_small(frame, area) {
        return;
    }
    let head = head::lines(screen, usize::from(area.width), area.height);
    // The tables matter most: the head gets at most a third.
    let rows = (head.len() as u16).min((area.height / 3).max(1));
    let [top, tabs, body, foot] = Layout::vertical([
        Constraint::Length(rows),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(head), top);
    let names = head::tabs(screen, tabs);
    frame.render_widget(Paragraph::new(names), tabs);
    match screen.sections() {
        _ if screen.trace.is_some() => body::trace(frame, screen, body),
        _ if screen.view() == View::Diagnoses => diagnoses::draw(frame, screen, body),
        Some(page) => body::sections(frame, screen, &page, body),
        None => body::table(frame, screen, body),
    }
    frame.render_widget(Paragraph::new(foot::line(screen, usize::from(foot.width))), foot);
    if let Mode::Help(first) = screen.mode {
        screen.mode = Mode::Help(help(frame, area, ("tally top", HELP), first));
    }
}

/// Says so, if the terminal is too small to draw on.
pub fn too_small(frame: &mut Frame<'_>, area: Rect) -> bool {
    if area.width >= MIN_SIZE.0 && area.height >= MIN_SIZE.1 {
        return false;
    }
    let (width, height) = MIN_SIZE;
    let text = format!(
        "{} x {} is too small: {width} x {height} or more is needed. q quits.",
        area.width, area.height
    );
    let lines: Vec<Line<'_>> =
        wrap(&text, usize::from(area.width)).into_iter().map(Line::raw).collect();
    frame.render_widget(Paragraph::new(lines), area);
    true
}

/// Draws the help page from line `first`, or from an earlier one if the page would not be filled.
/// Returns the first line drawn.
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
        true => format!(" {name}: Up and Down for the rest, any other key goes back "),
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
