// SPDX-License-Identifier: PostgreSQL
//! The lines above the table: the shown interval, the server, and the names of the panes.

use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::screen::{Play, Screen};
use crate::views::PANES;
use crate::{moment, trend};
use terminal::{class_color, Tab};
use view::blocking::Forest;
use view::headline::{self, Weight};
use view::table::{fit, wrap};
use view::units::{count, duration, two, whole};

/// Index of the line with the server's load among the lines that are not warnings.
const LOAD: usize = 2;
/// Screens of at least this height show whole lines (others short ones, where they are too long), and the history of the load below
/// its line instead of at its end.
const TALL: u16 = 30;
/// Maximum width of a history.
const WIDEST: usize = 60;
/// Minimum width of a history at the end of a line, and the blanks before it.
const NARROWEST: usize = 8;
const GAP: usize = 2;

fn loud(screen: &Screen) -> Style {
    screen.look().styled(Color::Yellow, Style::new().add_modifier(Modifier::BOLD))
}

/// The lines, most important first, because a low screen cuts off the last ones.
pub fn lines<'a>(screen: &Screen, width: usize, height: u16) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    let loud = loud(screen);
    if let Some(place) = which_interval(screen) {
        let style = loud.add_modifier(Modifier::REVERSED);
        lines.push(Line::styled(fit(&place, width, false), style));
    }
    let looks_back = screen.play.is_some() || !screen.history.is_live();
    let gap = screen.history.gap_before().filter(|_| looks_back);
    let gap = gap.map(|reason| format!("gap before this interval: {reason}"));
    for text in [&screen.notice, &screen.message, &gap].into_iter().flatten() {
        lines.extend(wrap(text, width).into_iter().map(|text| Line::styled(text, loud)));
    }
    let Some(reading) = screen.reading() else {
        lines.push(Line::raw("measuring the first interval"));
        return lines;
    };
    if let Some(blocked) = reading.blocking.as_ref().and_then(Forest::headline) {
        let style = screen.look().styled(Color::Red, Style::new().add_modifier(Modifier::BOLD));
        lines.extend(wrap(&blocked, width).into_iter().map(|text| Line::styled(text, style)));
    }
    let (warnings, plain): (Vec<_>, Vec<_>) = headline::lines(&reading.interval)
        .into_iter()
        .partition(|line| line.weight == Weight::Warning);
    for line in warnings {
        let parts = wrap(&line.text, width);
        lines.extend(parts.into_iter().map(|text| Line::styled(text, loud)));
    }
    for (at, line) in plain.iter().enumerate() {
        if height < TALL {
            let text = match line.text.chars().count() <= width {
                true => &line.text,
                false => &line.short,
            };
            let mut line = Line::raw(fit(text, width, false).trim_end().to_string());
            let left = width.saturating_sub(line.width() + GAP);
            if at == LOAD && left >= NARROWEST {
                line.push_span(" ".repeat(GAP));
                line.spans.extend(active(screen, left.min(WIDEST)));
            }
            lines.push(line);
            continue;
        }
        lines.extend(wrap(&line.text, width).into_iter().map(Line::raw));
        if at == LOAD {
            lines.push(history(screen, width));
        }
    }
    lines
}

/// The shown interval, unless it is always the newest.
fn which_interval(screen: &Screen) -> Option<String> {
    if let Some(play) = &screen.play {
        return replayed(screen, play);
    }
    let position = screen.history.position().filter(|_| !screen.history.is_live())?;
    let time = moment::of_day(position.time, &screen.zone);
    let (first, last) = position.kept;
    if !screen.history.is_past() {
        return Some(format!("PAUSED at {time}, the newest interval; Left goes back, p resumes"));
    }
    let number = |n: u64| whole(n + 1 - first);
    Some(format!(
        "PAST {time}, {} ago: interval {} of {}; Left Right t move, l resumes",
        duration(position.ago_seconds.max(0.0).round()),
        number(position.number),
        number(last),
    ))
}

/// The position in a recording.
fn replayed(screen: &Screen, play: &Play) -> Option<String> {
    let time = moment::full(screen.history.position()?.time, &screen.zone);
    let index = screen.shown_index().map_or(0, |index| index as u64);
    Some(format!(
        "REPLAY x{}{}: {time}, interval {} of {}, {}",
        speed(play.speed),
        if play.on { "" } else { ", stopped" },
        whole(index + 1),
        whole(play.of as u64),
        play.what,
    ))
}

/// "1,024", "0.5".
fn speed(times: f64) -> String {
    match times.fract() == 0.0 {
        true => whole(times as u64),
        false => times.to_string(),
    }
}

/// The active sessions of each interval, in the colour of the class that took most of their time.
fn active<'a>(screen: &Screen, width: usize) -> Vec<Span<'a>> {
    let classes = trend::classes(&screen.history, width);
    let spark = trend::spark(&trend::active(&screen.history, width), width, screen.ascii);
    // Both end with the shown interval.
    let blanks = std::iter::repeat_n(None, width.saturating_sub(classes.len()));
    let of = |(level, class): (char, Option<_>)| {
        let color = class.map_or(Color::Reset, class_color);
        Span::styled(level.to_string(), screen.look().styled(color, Style::new()))
    };
    spark.chars().zip(blanks.chain(classes)).map(of).collect()
}

/// The history of the server's load.
fn history<'a>(screen: &Screen, width: usize) -> Line<'a> {
    // Leaves space for the words; both histories are equally wide.
    let width = (width.saturating_sub(46) / 2).min(WIDEST);
    let commands = trend::commands(&screen.history, width);
    let max = trend::max;
    let mut line = Line::raw("active ");
    line.spans.extend(active(screen, width));
    if screen.reading().is_some_and(|reading| reading.interval.sampling.is_some()) {
        // Samples do not count commands.
        line.push_span(format!(" max ~{}", two(max(&trend::active(&screen.history, width)))));
        return line;
    }
    line.push_span(format!(
        " max {}  commands/s {} max {}",
        two(max(&trend::active(&screen.history, width))),
        trend::spark(&commands, width, screen.ascii),
        count(max(&commands)),
    ));
    line
}

/// The names of the panes, and the current filter and order.
pub fn tabs<'a>(screen: &mut Screen, area: Rect) -> Line<'a> {
    let all = PANES.iter().enumerate().map(|(key, &(name, short, _))| Tab {
        key: char::from(b'0' + key as u8),
        name,
        short,
    });
    let all: Vec<Tab> = all.collect();
    let style = if which_interval(screen).is_none() { Style::new() } else { loud(screen) };
    let state = state(screen);
    let (line, ranges) =
        terminal::tabs(&all, screen.pane, (&state, style), usize::from(area.width));
    screen.spots.tabs_line = area.y;
    screen.spots.tabs =
        ranges.into_iter().map(|range| area.x + range.start..area.x + range.end).collect();
    line
}

/// Filter, order and interval.
fn state(screen: &Screen) -> String {
    let mut state = String::new();
    if !screen.wish.filter.is_empty() {
        state.push_str(&format!("filter \"{}\"  ", screen.wish.filter));
    }
    if screen.wish.idle {
        state.push_str("with idle  ");
    }
    match &screen.play {
        Some(play) if play.on => state.push_str(&format!("REPLAY x{}", speed(play.speed))),
        Some(_) => state.push_str("STOPPED"),
        None => {
            if screen.history.is_past() {
                state.push_str("PAST  ");
            } else if !screen.history.is_live() {
                state.push_str("PAUSED  ");
            }
            state.push_str(&format!("every {}", duration(screen.length.as_secs_f64())));
        }
    }
    state
}
