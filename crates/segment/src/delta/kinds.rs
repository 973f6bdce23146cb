// SPDX-License-Identifier: PostgreSQL
//! The totals of each kind of process.

use crate::total::Total;
use std::sync::Arc;

/// Totals of the processes of one kind.
#[derive(Debug, Clone)]
pub struct KindTotals {
    /// "client backend", ...
    pub kind: Arc<str>,
    /// By statistic.
    pub totals: Vec<Total>,
}

/// The totals of a kind of process among `kinds`, added if missing. There are few kinds.
pub(super) fn totals_of<'k>(
    kinds: &'k mut Vec<KindTotals>,
    kind: &str,
    size: usize,
) -> &'k mut [Total] {
    let at = kinds.iter().position(|k| &*k.kind == kind).unwrap_or_else(|| {
        kinds.push(KindTotals { kind: kind.into(), totals: vec![Total::default(); size] });
        kinds.len() - 1
    });
    &mut kinds[at].totals
}

/// Adds `more` to the known kinds.
pub(super) fn merge_kinds(kinds: &mut Vec<KindTotals>, more: Vec<KindTotals>) {
    for part in more {
        match kinds.iter_mut().find(|k| k.kind == part.kind) {
            Some(known) => {
                let changed = known.totals.iter_mut().zip(&part.totals);
                changed.filter(|(_, t)| !t.change.is_zero()).for_each(|(sum, t)| sum.merge(t));
            }
            None => kinds.push(part),
        }
    }
}
