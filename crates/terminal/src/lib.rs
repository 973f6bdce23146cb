// SPDX-License-Identifier: PostgreSQL
//! Code shared by full-screen views: the terminal, keys, the loop that draws and waits, rows, tabs and pages
//! of text.

mod class_color;
mod drive;
mod input;
mod keys;
mod mouse;
mod pages;
mod row;
mod tabs;
mod take;
mod typing;

pub use class_color::class_color;
pub use drive::{drive, App, NAP};
pub use keys::{action, Action, Form};
pub use mouse::{mouse_action, Spots};
pub use pages::{help, too_small};
pub use row::{heading, line, Look, Viewport};
pub use tabs::{tabs, Tab};
pub use take::Terminal;
pub use typing::{edit, Edit};
