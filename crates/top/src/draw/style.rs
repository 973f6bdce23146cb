// SPDX-License-Identifier: PostgreSQL
//! Styles, if the screen uses colour.

use crate::screen::Screen;
use ratatui::style::{Color, Style};

pub(super) fn styled(screen: &Screen, color: Color, style: Style) -> Style {
    screen.look().styled(color, style)
}
