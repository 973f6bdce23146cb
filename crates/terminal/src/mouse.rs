// SPDX-License-Identifier: PostgreSQL
//! Converts clicks to actions, from where the names of panes, the columns and the rows were drawn.

use std::ops::Range;

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use view::Sort;

use crate::keys::Action;

/// Number of rows for one step of the wheel.
const WHEEL: isize = 3;

/// What was drawn where, in cells from the upper left corner.
#[derive(Debug, Default)]
pub struct Spots {
    /// The line with the names of the panes.
    pub tabs_line: u16,
    /// The columns of the names on that line.
    pub tabs: Vec<Range<u16>>,
    /// The line with the column titles, if there is a table.
    pub heading_line: Option<u16>,
    /// The columns with a sort order.
    pub orders: Vec<(Range<u16>, Sort)>,
    /// The first line with a row.
    pub rows_line: u16,
    /// The row on this line and on each below it.
    pub rows: Vec<usize>,
}

/// The action of a mouse event, if any.
pub fn mouse_action(spots: &Spots, event: MouseEvent) -> Option<Action> {
    let (x, y) = (event.column, event.row);
    match event.kind {
        MouseEventKind::ScrollUp => return Some(Action::Move(-WHEEL)),
        MouseEventKind::ScrollDown => return Some(Action::Move(WHEEL)),
        MouseEventKind::Down(MouseButton::Left) => {}
        _ => return None,
    }
    if y == spots.tabs_line {
        return spots.tabs.iter().position(|tab| tab.contains(&x)).map(Action::Pane);
    }
    if Some(y) == spots.heading_line {
        let order = spots.orders.iter().find(|(column, _)| column.contains(&x));
        return order.map(|(_, sort)| Action::Order(sort.clone()));
    }
    let row = spots.rows.get(usize::from(y.checked_sub(spots.rows_line)?));
    row.map(|row| Action::Point(*row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::KeyModifiers;

    #[test]
    fn a_click_acts_on_what_was_drawn_there() {
        let spots = Spots {
            tabs_line: 4,
            tabs: vec![0..9, 9..12],
            heading_line: Some(5),
            orders: vec![(0..10, Sort::Name), (12..17, Sort::Time)],
            rows_line: 6,
            rows: (30..44).collect(),
        };
        let at = |kind, column, row| {
            mouse_action(&spots, MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
        };
        let click = |column, row| at(MouseEventKind::Down(MouseButton::Left), column, row);
        assert_eq!(click(9, 4), Some(Action::Pane(1)));
        assert_eq!(click(40, 4), None);
        assert_eq!(click(16, 5), Some(Action::Order(Sort::Time)));
        assert_eq!(click(11, 5), None);
        assert_eq!(click(3, 6), Some(Action::Point(30)));
        assert_eq!(click(3, 20), None);
        assert_eq!(at(MouseEventKind::ScrollDown, 0, 0), Some(Action::Move(3)));
        assert_eq!(at(MouseEventKind::Moved, 3, 6), None);
        assert_eq!(at(MouseEventKind::Down(MouseButton::Right), 3, 6), None);
    }
}
