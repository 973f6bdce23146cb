// SPDX-License-Identifier: PostgreSQL
//! Draws the full-screen view.

use clap::ValueEnum;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use ratatui::Frame;

use super::keys::HELP;
use super::live::{Mode, Screen, PANES};
use crate::cli::Sort;
use crate::model::headline::{self, Weight};
use crate::model::statements::Section;
use crate::model::table::{bar, fit, wrap, Table, Tone};
use crate::model::units::duration;

/// Draw everything.
pub fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let area = frame.area();
    let head = head(screen, usize::from(area.width));
    // The tables are what one came for: the head gets a third at most.
    let rows = (head.len() as u16).min((area.height / 3).max(1));
    let [top, tabs, body, foot] = Layout::vertical([
        Constraint::Length(rows),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(head), top);
    frame.render_widget(Paragraph::new(pane_tabs(screen, usize::from(tabs.width))), tabs);
    match screen.sections() {
        Some(page) => sections(frame, screen, &page, body),
        None => table(frame, screen, body),
    }
    frame.render_widget(Paragraph::new(footer(screen, usize::from(foot.width))), foot);
    if screen.mode == Mode::Help {
        help(frame, area);
    }
}

fn styled(screen: &Screen, color: Color, style: Style) -> Style {
    if screen.color {
        style.fg(color)
    } else {
        style
    }
}

fn head<'a>(screen: &Screen, width: usize) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    let loud = styled(screen, Color::Yellow, Style::new().add_modifier(Modifier::BOLD));
    if let Some(message) = &screen.message {
        lines.extend(wrap(message, width).into_iter().map(|text| Line::styled(text, loud)));
    }
    match &screen.reading {
        None => lines.push(Line::raw("the first interval is being measured")),
        Some(reading) => {
            // Warnings first: on a low screen they must not be cut off.
            let (warnings, plain): (Vec<_>, Vec<_>) = headline::lines(&reading.interval)
                .into_iter()
                .partition(|line| line.weight == Weight::Warning);
            for line in warnings {
                let parts = wrap(&line.text, width);
                lines.extend(parts.into_iter().map(|text| Line::styled(text, loud)));
            }
            for line in plain {
                lines.extend(wrap(&line.text, width).into_iter().map(Line::raw));
            }
        }
    }
    lines
}

fn pane_tabs<'a>(screen: &Screen, width: usize) -> Line<'a> {
    let state = state(screen);
    // Where there is no room for all names, only the shown pane has one.
    let all: usize = PANES.iter().map(|(name, _)| name.len() + 3).sum();
    let short = all + 2 + state.chars().count() > width;
    let mut spans = Vec::new();
    let mut used = 0;
    for (at, (name, _)) in PANES.iter().enumerate() {
        let name = if short && at != screen.pane { "" } else { name };
        let text = format!(" {} {name}", at + 1);
        used += text.len();
        let style = if at == screen.pane {
            Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
        } else {
            Style::new()
        };
        spans.push(Span::styled(text, style));
    }
    let style = if screen.paused {
        styled(screen, Color::Yellow, Style::new().add_modifier(Modifier::BOLD))
    } else {
        Style::new()
    };
    spans.push(Span::styled(fit(&state, width.saturating_sub(used), true), style));
    Line::from(spans)
}

/// How the figures are chosen, and how often.
fn state(screen: &Screen) -> String {
    let mut state = String::new();
    if !screen.wish.filter.is_empty() {
        state.push_str(&format!("filter \"{}\"  ", screen.wish.filter));
    }
    if screen.wish.idle {
        state.push_str("with idle  ");
    }
    if screen.paused {
        state.push_str("PAUSED  ");
    }
    state.push_str(&format!("every {}", duration(screen.length.as_secs_f64())));
    state
}

fn tone_color(tone: Tone) -> Color {
    match tone {
        Tone::Cpu => Color::Green,
        Tone::Io => Color::LightBlue,
        Tone::Latch => Color::Magenta,
        Tone::Lock => Color::Red,
        Tone::Client => Color::Cyan,
        Tone::Ipc => Color::Yellow,
        Tone::Timeout | Tone::Quiet => Color::DarkGray,
        Tone::Other => Color::Reset,
    }
}

fn table(frame: &mut Frame<'_>, screen: &mut Screen, area: Rect) {
    let Some(table) = screen.table() else { return };
    let mut area = area;
    if let Some(note) = screen.note().filter(|_| !table.rows.is_empty() && area.height > 3) {
        let text = fit(&note, usize::from(area.width), false);
        frame.render_widget(Paragraph::new(text), Rect { height: 1, ..area });
        area = Rect { y: area.y + 1, height: area.height - 1, ..area };
    }
    let rows = usize::from(area.height).saturating_sub(1);
    screen.page = rows;
    screen.cursor = screen.cursor.min(table.rows.len().saturating_sub(1));
    // Keep the cursor on the screen, and the screen full.
    screen.top =
        screen.top.clamp(screen.cursor.saturating_sub(rows.saturating_sub(1)), screen.cursor);
    screen.top = screen.top.min(table.rows.len().saturating_sub(rows));
    let mut lines = Vec::with_capacity(rows + 1);
    let layout = table.layout(usize::from(area.width));
    let heading = fit(&table.heading(&layout), usize::from(area.width), false);
    lines.push(Line::styled(
        heading,
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
    ));
    if table.rows.is_empty() {
        let text = screen.note().unwrap_or_else(|| empty(screen).to_string());
        lines.extend(wrap(&text, usize::from(area.width)).into_iter().map(Line::raw));
    }
    for (at, row) in table.rows.iter().enumerate().skip(screen.top).take(rows) {
        lines.push(line(screen, &table, row, &layout, at == screen.cursor));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// A page of several tables. The cursor is the first line that is drawn.
fn sections(frame: &mut Frame<'_>, screen: &mut Screen, page: &[Section], area: Rect) {
    let width = usize::from(area.width);
    let title = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
    let mut lines = Vec::new();
    for section in page {
        lines.push(Line::styled(fit(&section.title, width, false), title));
        let text = section.lines.iter().flat_map(|line| wrap(line, width));
        lines.extend(text.map(Line::raw));
        if let Some(table) = &section.table {
            let layout = table.layout(width);
            let heading = fit(&table.heading(&layout), width, false);
            lines.push(Line::styled(heading, Style::new().add_modifier(Modifier::BOLD)));
            lines.extend(table.rows.iter().map(|row| line(screen, table, row, &layout, false)));
        }
        lines.push(Line::raw(""));
    }
    if page.is_empty() {
        lines.push(Line::raw("it is not in the table any more; Esc goes back"));
    }
    screen.page = usize::from(area.height);
    screen.cursor = screen.cursor.min(lines.len().saturating_sub(screen.page));
    let lines: Vec<Line<'_>> = lines.into_iter().skip(screen.cursor).take(screen.page).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn empty(screen: &Screen) -> &'static str {
    if screen.wish.filter.is_empty() {
        "nothing in this interval; i shows what is idle"
    } else {
        "nothing that contains the filter; Esc takes it off"
    }
}

fn line<'a>(
    screen: &Screen,
    table: &Table,
    row: &crate::model::table::Row,
    layout: &crate::model::table::Layout,
    cursor: bool,
) -> Line<'a> {
    let bar = bar(row.bar.unwrap_or(0.0), layout.bar, screen.ascii);
    let [before, bar, after] = table.parts(row, layout, &bar);
    let toned = styled(screen, tone_color(row.tone), Style::new());
    let quiet = row.tone == Tone::Quiet;
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

/// As it is said on the command line.
fn sort_name(sort: &Sort) -> String {
    match (sort, sort.to_possible_value()) {
        (Sort::Activity(name), _) => name.clone(),
        (_, Some(value)) => value.get_name().to_string(),
        (_, None) => String::new(),
    }
}

fn footer<'a>(screen: &Screen, width: usize) -> Line<'a> {
    let text = match &screen.mode {
        Mode::Filter(typed) => format!("filter: {typed}_   Enter keeps it, Esc drops it"),
        Mode::Interval(typed) => format!("seconds between readings: {typed}_   Enter, Esc"),
        _ if screen.statement.is_some() => {
            "q quit  ? help  Esc back  Up Down scroll  p pause  d interval".to_string()
        }
        _ => {
            let order = sort_name(&screen.wish.sort);
            let turned = if screen.wish.reverse { " reversed" } else { "" };
            format!(
                "q quit  ? help  Tab pane  s order: {order}{turned}  / filter  i idle  p pause  d interval"
            )
        }
    };
    let text = fit(&text, width, false);
    match screen.mode {
        Mode::Filter(_) | Mode::Interval(_) => {
            Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
        }
        _ => Line::styled(text, Style::new().add_modifier(Modifier::REVERSED)),
    }
}

fn help(frame: &mut Frame<'_>, area: Rect) {
    let lines: Vec<&str> = HELP.lines().collect();
    let wide = lines.iter().map(|l| l.len()).max().unwrap_or(0) as u16 + 4;
    let high = lines.len() as u16 + 2;
    let [_, middle, _] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(high.min(area.height)),
        Constraint::Fill(1),
    ])
    .areas(area);
    let [_, middle, _] = Layout::horizontal([
        Constraint::Fill(1),
        Constraint::Length(wide.min(area.width)),
        Constraint::Fill(1),
    ])
    .areas(middle);
    let block = Block::bordered().title(" tally top: any key goes back ");
    frame.render_widget(Clear, middle);
    frame.render_widget(Paragraph::new(HELP).block(block), middle);
}
