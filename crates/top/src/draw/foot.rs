// SPDX-License-Identifier: PostgreSQL
//! The last line: the keys that apply now, or the text being typed.

use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use crate::moment;
use crate::screen::{Mode, Screen};
use crate::View;
use view::table::{fit, fit_items};

/// The last line.
pub fn line<'a>(screen: &Screen, width: usize) -> Line<'a> {
    let typing = match &screen.mode {
        Mode::Filter(typed) => Some(format!("filter: {typed}_   Enter applies, Esc cancels")),
        Mode::Interval(typed) => Some(format!("interval in seconds: {typed}_   Enter, Esc")),
        Mode::Time(typed) => Some(format!("go to: {typed}_   {}; Enter, Esc", moment::FORMS)),
        Mode::Question(request) => Some(request.question()),
        Mode::Normal | Mode::Help(_) => None,
    };
    match typing {
        Some(text) => {
            Line::styled(fit(&text, width, false), Style::new().add_modifier(Modifier::BOLD))
        }
        None => Line::styled(
            fit_items(&keys(screen), width),
            Style::new().add_modifier(Modifier::REVERSED),
        ),
    }
}

fn keys(screen: &Screen) -> String {
    if screen.statement.is_some() || screen.trace.is_some() {
        return "q quit  ? help  Esc back  Up Down scroll  Left Right past  x export".to_string();
    }
    if screen.view() == View::Diagnoses {
        return "q quit  ? help  Tab pane  Up Down scroll  p pause  Left Right past  x export  \
                d interval  m mouse  W save"
            .to_string();
    }
    let order = screen.wish.sort.name();
    let turned = if screen.wish.reverse { " reversed" } else { "" };
    let session = match screen.view() {
        View::Sessions => "c cancel  k terminate  T trace  ",
        View::Locks if screen.below().is_some() => "c cancel  k terminate  T trace  ",
        _ => "",
    };
    format!(
        "q quit  ? help  {session}Tab pane  s sort: {order}{turned}  / filter  p pause  \
         Left Right past  x export  i idle  d interval  m mouse  W save"
    )
}
