// SPDX-License-Identifier: PostgreSQL
//! A style, if the screen has colours.

use crate::screen::Screen;
use ratatui::style::{Color, Style};

pub(super) fn styled(screen: &Screen, color: Color, style: Style) -> Style {
    screen.look().styled(color, style)
}
