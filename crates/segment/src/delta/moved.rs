// SPDX-License-Identifier: PostgreSQL
//! Time that a writer moved late from one account to another.

use crate::directory::StatId;

/// A writer may learn late what its running time is for, and then moves it to that account:
/// since the end of the wait for a command it was the command's. If the earlier snapshot had
/// it where it was before, it has been reported already, and the account it went to holds it a
/// second time. Take it from where most is, and say from where.
pub(super) fn take_back<'t>(
    mut moved: u64,
    accounts: impl Iterator<Item = (StatId, &'t mut u64)>,
    mut taken: impl FnMut(StatId, u64),
) {
    if moved == 0 {
        return;
    }
    let mut accounts: Vec<_> = accounts.collect();
    accounts.sort_by_key(|(_, total)| std::cmp::Reverse(**total));
    for (stat, total) in accounts {
        let part = moved.min(*total);
        *total -= part;
        moved -= part;
        taken(stat, part);
    }
}
