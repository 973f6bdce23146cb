// SPDX-License-Identifier: PostgreSQL
//! Draws `tally fleet top` from its state, and records in the state what was drawn.

use std::time::Instant;

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use ratatui::Frame;
use report::fleet::subject;
use view::table::{fit, fit_items, span, wrap, Cell, Row, Table, Tone};
use view::units::{duration, whole};

use super::help::HELP;
use super::screen::{FleetScreen, Mode, DOCTOR, PANES};
use crate::lines::one_line;
use terminal::{heading, help, line, tabs, too_small, Spots, Tab};

/// Draws everything, at this time.
pub fn draw(frame: &mut Frame<'_>, screen: &mut FleetScreen, now: Instant) {
    let area = frame.area();
    screen.spots = Spots::default();
    if too_small(frame, area) {
        return;
    }
    let width = usize::from(area.width);
    let head = head(screen, width, now);
    // The table matters the most.
    let lines = (head.len() as u16).min((area.height / 3).max(2));
    let [top, names, body, foot] = Layout::vertical([
        Constraint::Length(lines),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(head), top);
    let all: Vec<Tab> = PANES.iter().map(|(tab, _)| *tab).collect();
    let (names_line, columns) = tabs(&all, screen.pane, (&state(screen), Style::new()), width);
    (screen.spots.tabs_line, screen.spots.tabs) = (names.y, columns);
    frame.render_widget(Paragraph::new(names_line), names);
    match screen.opened.is_some() {
        true => opened(frame, screen, body),
        false if screen.is_doctor() => sentences(frame, screen, body),
        false => table(frame, screen, body),
    }
    frame.render_widget(Paragraph::new(keys(screen, width)), foot);
    if let Mode::Help(first) = screen.mode {
        screen.mode = Mode::Help(help(frame, area, ("tally fleet top", HELP), first));
    }
}

/// Hosts and time range, what the engine does, and why it failed.
fn head<'a>(screen: &FleetScreen, width: usize, now: Instant) -> Vec<Line<'a>> {
    let known = screen.known();
    let answer = known.answer.as_ref();
    let mut title = subject(&screen.only);
    if let Some(answer) = answer {
        let (from, to) = answer.window;
        title = format!("{title}, {}", span(from, to, &screen.zone));
    }
    let engine = format!("  {}", screen.engine);
    let title = fit(&title, width.saturating_sub(engine.chars().count()).max(width / 2), false);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut lines = vec![Line::styled(fit(&(title + &engine), width, false), bold)];
    let mut parts = Vec::new();
    if let Some(answer) = answer {
        let rows = &answer.value.rows;
        let took = duration(answer.seconds);
        parts.push(match screen.is_doctor() {
            true => {
                let bad = rows.iter().filter(|row| row.tone == Tone::Bad).count();
                let (bad, all) = (whole(bad as u64), whole(rows.len() as u64));
                format!("problems on {bad} of {all} hosts, diagnosed in {took}")
            }
            false => format!("{} rows, query took {took}", whole(rows.len() as u64)),
        });
    }
    if let Some((wanted, since)) = &screen.asking {
        let seconds = now.saturating_duration_since(*since).as_secs();
        let name = PANES[wanted.pane].0.name;
        let what = match PANES[wanted.pane].1 == DOCTOR {
            true => "diagnosing the hosts".to_owned(),
            false => format!("querying {name}"),
        };
        parts.push(format!("{what}, {seconds} s so far"));
    }
    lines.push(Line::raw(fit(&parts.join("; "), width, false)));
    if let Some(failure) = &known.failure {
        let loud = screen.look.styled(Color::Yellow, bold);
        let text = match answer {
            Some(_) => format!("Could not refresh: {}", failure.text),
            None => format!("Query failed: {}", failure.text),
        };
        lines.extend(wrap(&text, width).into_iter().map(|text| Line::styled(text, loud)));
    }
    lines
}

/// Filter, and how often the query is run.
fn state(screen: &FleetScreen) -> String {
    let mut state = String::new();
    if !screen.filter.is_empty() {
        state.push_str(&format!("filter \"{}\"  ", screen.filter));
    }
    match screen.paused {
        true => state.push_str("PAUSED"),
        false => state.push_str(&format!("every {}", duration(screen.interval.as_secs_f64()))),
    }
    state
}

fn table(frame: &mut Frame<'_>, screen: &mut FleetScreen, area: Rect) {
    let Some(mut table) = screen.table() else { return };
    one_line(&mut table);
    let width = usize::from(area.width);
    let rows = usize::from(area.height).saturating_sub(1);
    screen.page = rows;
    let shown = screen.sight.shown(rows, table.rows.len());
    let layout = table.layout(width);
    screen.columns = layout.shown.iter().map(|(column, _)| *column).collect();
    let mut lines = vec![heading(&table, &layout, width)];
    if table.rows.is_empty() {
        lines.push(Line::raw(match screen.filter().is_empty() {
            true => "no rows in this time",
            false => "no row matches the filter; Esc removes it",
        }));
    }
    screen.spots.rows_line = area.y + 1;
    screen.spots.rows = shown.clone().collect();
    for at in shown {
        let is_current = at == screen.sight.cursor;
        lines.push(line(screen.look, &table, &table.rows[at], &layout, is_current));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// The hosts with a sentence each, which is wrapped: what decides is not cut.
fn sentences(frame: &mut Frame<'_>, screen: &mut FleetScreen, area: Rect) {
    let Some(table) = screen.table() else { return };
    let width = usize::from(area.width);
    let cell = |row: &Row, key: &str| {
        let at = table.columns.iter().position(|column| column.key == key);
        at.and_then(|at| row.cells.get(at)).map(Cell::exact).unwrap_or_default()
    };
    let name = |row: &Row| format!("{}/{}", cell(row, "cluster"), cell(row, "host"));
    let longest = table.rows.iter().map(|row| name(row).chars().count()).max().unwrap_or(0);
    let names = longest.clamp(4, (width / 3).max(4));
    let blocks: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| {
            let parts = wrap(&cell(row, "finding"), width.saturating_sub(names + 2).max(1));
            let line = |(at, part): (usize, &String)| {
                let name = if at == 0 { name(row) } else { String::new() };
                format!("{}  {part}", fit(&name, names, false))
            };
            parts.iter().enumerate().map(line).collect()
        })
        .collect();
    let space = usize::from(area.height).saturating_sub(1);
    // As many hosts as fit, however many lines each has.
    let most = blocks.iter().map(Vec::len).max().unwrap_or(1).max(1);
    screen.page = (space / most).max(1);
    let shown = screen.sight.shown(screen.page, blocks.len());
    let title = format!("{}  WHAT IS WRONG", fit("HOST", names, false));
    let bold = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
    let mut lines = vec![Line::styled(fit(&title, width, false), bold)];
    let mut on_lines = Vec::new();
    if blocks.is_empty() {
        lines.push(Line::raw(match screen.filter().is_empty() {
            true => "no hosts in this time",
            false => "no row matches the filter; Esc removes it",
        }));
    }
    for (at, (block, row)) in blocks.iter().zip(&table.rows).enumerate().skip(shown.start) {
        let style = match row.tone {
            Tone::Bad => screen.look.styled(Color::Red, Style::new()),
            Tone::Good => screen.look.styled(Color::Green, Style::new()),
            _ => Style::new(),
        };
        let style = match at == screen.sight.cursor {
            true => style.add_modifier(Modifier::REVERSED),
            false => style,
        };
        lines.extend(block.iter().map(|line| Line::styled(fit(line, width, false), style)));
        on_lines.extend(std::iter::repeat_n(at, block.len()));
    }
    on_lines.truncate(space);
    (screen.spots.rows_line, screen.spots.rows) = (area.y + 1, on_lines);
    frame.render_widget(Paragraph::new(lines), area);
}

/// Shows one row alone: one or more lines for each column.
fn opened(frame: &mut Frame<'_>, screen: &mut FleetScreen, area: Rect) {
    let (Some(table), Some(row)) = (screen.known().answer.as_ref(), &screen.opened) else { return };
    let lines = row_lines(&table.value, row, usize::from(area.width), screen);
    screen.page = usize::from(area.height);
    screen.sight.cursor = screen.sight.cursor.min(lines.len().saturating_sub(screen.page));
    let lines: Vec<Line<'_>> =
        lines.into_iter().skip(screen.sight.cursor).take(screen.page).map(Line::raw).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn row_lines(table: &Table, row: &Row, width: usize, screen: &FleetScreen) -> Vec<String> {
    let wide =
        table.columns.iter().map(|column| column.title.chars().count()).max().unwrap_or(0) + 2;
    let mut lines = Vec::new();
    for (column, cell) in table.columns.iter().zip(&row.cells) {
        let text = cell.shown(column.unit, &screen.zone);
        let parts = text.lines().flat_map(|text| wrap(text, width.saturating_sub(wide)));
        for (at, part) in parts.enumerate() {
            let title = if at == 0 { &*column.title } else { "" };
            lines.push(format!("{}{part}", fit(title, wide, false)));
        }
    }
    lines
}

/// The last line: the keys that apply now, or the text being typed.
fn keys<'a>(screen: &FleetScreen, width: usize) -> Line<'a> {
    if let Mode::Filter(typed) = &screen.mode {
        let text = format!("filter: {typed}_   Enter applies, Esc cancels");
        return Line::styled(fit(&text, width, false), Style::new().add_modifier(Modifier::BOLD));
    }
    let text = if screen.opened.is_some() {
        "q quit  h help  Esc back  Up Down scroll".to_string()
    } else {
        let order = screen.order();
        let known = screen.known().answer.as_ref();
        let column = order.column.and_then(|at| known?.value.columns.get(at));
        let column = column.map_or("engine's", |column| &*column.title);
        let turned = if order.reverse { " reversed" } else { "" };
        format!(
            "q quit  h help  Tab pane  Enter opens  s sort: {column}{turned}  / filter  Esc back  p pause  l refresh  m mouse"
        )
    };
    Line::styled(fit_items(&text, width), Style::new().add_modifier(Modifier::REVERSED))
}
