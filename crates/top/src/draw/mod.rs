// SPDX-License-Identifier: PostgreSQL
//! Draws the full-screen view from its state, and records in the state what was drawn where.

mod body;
mod foot;
mod head;

use ratatui::layout::{Constraint, Layout};
use ratatui::widgets::Paragraph;
use ratatui::Frame;

use terminal::{help, too_small, Spots};

use super::help::HELP;
use super::screen::{Mode, Screen};
use super::View;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let area = frame.area();
    screen.spots = Spots::default();
    if too_small(frame, area) {
        return;
    }
    let head = head::lines(screen, usize::from(area.width), area.height);
    // The tables matter the most: the head gets at most a third.
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
        _ if screen.view() == View::Diagnoses => body::diagnoses(frame, screen, body),
        Some(page) => body::sections(frame, screen, &page, body),
        None => body::table(frame, screen, body),
    }
    frame.render_widget(Paragraph::new(foot::line(screen, usize::from(foot.width))), foot);
    if let Mode::Help(first) = screen.mode {
        screen.mode = Mode::Help(help(frame, area, ("tally top", HELP), first));
    }
}
