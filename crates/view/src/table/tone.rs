// SPDX-License-Identifier: PostgreSQL
//! The colour of a row or a figure, by its meaning.

use segment::WaitClass;

/// The class of a row or the significance of a figure, for its colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// No colour.
    #[default]
    Plain,
    /// A class of activity.
    Class(WaitClass),
    /// A significant change for the better.
    Good,
    /// A significant change for the worse.
    Bad,
    /// Idle, inconclusive, or not of interest.
    Faint,
}

impl Tone {
    /// Waiting for storage.
    pub const IO: Tone = Tone::Class(WaitClass::Io);
    /// No class that has a colour, in a table whose rows have classes.
    pub const OTHER: Tone = Tone::Class(WaitClass::Other);

    /// The tone of a class of activity; background processes between their work are idle.
    pub fn from_class(class: WaitClass) -> Tone {
        match class {
            WaitClass::Activity => Tone::Faint,
            class => Tone::Class(class),
        }
    }
}
