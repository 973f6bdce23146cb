// SPDX-License-Identifier: PostgreSQL
//! What each view is made of: a table, a page of several, and what is to be said beside it.

use super::feed::Reading;
use crate::cli::{Sort, TopArgs, View};
use crate::model::panes::{self, Open, Wish};
use crate::model::statements::Section;
use crate::model::table::Table;
use crate::model::{functions, io, locks, statements};

/// Whether a view shows anything of the statements.
pub fn of_statements(view: View) -> bool {
    matches!(view, View::Statements | View::Sessions | View::All)
}

/// Whether a view shows the storage side.
pub fn of_io(view: View) -> bool {
    matches!(view, View::Io | View::All)
}

/// A view that is no table but a page of several.
pub fn page(view: View, reading: &Reading, wish: &Wish) -> Option<Vec<Section>> {
    (view == View::Io).then(|| io::page(&reading.interval, reading.io.as_ref(), wish))
}

/// What is to be said of a view beside its figures.
pub fn remark(view: View, reading: &Reading) -> Option<String> {
    let interval = &reading.interval;
    match view {
        View::Lwlocks | View::Locks => locks::note(interval),
        View::Functions => functions::note(interval),
        View::Statements if !reading.asked => Some("the statements are being read".to_string()),
        View::Statements => statements::note(reading.statements.as_ref()),
        _ => None,
    }
}

/// The table of a view.
pub fn table(view: View, reading: &Reading, wish: &Wish) -> Table {
    let interval = &reading.interval;
    match view {
        View::Waits => panes::waits(interval, wish),
        View::Commands => panes::commands(interval, wish),
        View::Sessions => panes::sessions(interval, reading.statements.as_ref(), wish),
        View::Lwlocks => locks::lwlocks(interval, wish),
        View::Locks => locks::locks(interval, wish),
        View::Functions => functions::functions(interval, wish),
        View::Statements => match &reading.statements {
            Some(statements) => statements::statements(statements, wish),
            None => Table { columns: Vec::new(), rows: Vec::new(), bars_after: None },
        },
        View::Ledger | View::Io | View::All => panes::ledger(interval, wish),
    }
}

/// What the command line wishes for, with these rows open.
pub fn wish(args: &TopArgs, open: Open) -> Wish {
    Wish {
        sort: args.sort.clone().unwrap_or(Sort::Time),
        reverse: args.reverse,
        filter: args.filter.as_deref().unwrap_or("").to_lowercase(),
        idle: args.idle,
        open,
    }
}
