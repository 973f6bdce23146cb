// SPDX-License-Identifier: PostgreSQL
//! Colours of the classes of activities.
//!
//! Generated from format/classes.toml by `make generate`; do not edit.

use ratatui::style::Color;
use segment::WaitClass;

/// The colour of a class: the nearest to that of the pages.
pub fn class_color(class: WaitClass) -> Color {
    match class.shown_as() {
        WaitClass::Cpu => Color::Green,
        WaitClass::Io => Color::LightBlue,
        WaitClass::Lwlock => Color::Yellow,
        WaitClass::Lock => Color::Red,
        WaitClass::Client => Color::Magenta,
        WaitClass::Ipc => Color::LightYellow,
        _ => Color::DarkGray,
    }
}
