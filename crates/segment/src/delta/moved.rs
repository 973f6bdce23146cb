// SPDX-License-Identifier: PostgreSQL
//! Time that a writer moved late from one account to another.

use crate::directory::StatId;

/// A writer may learn late which account its running time belongs to: after the wait for a command, the
/// time is the command's. It then moves the time. Or it was stopped between reading the clock and its
/// update, and the account ends earlier than it was seen to run. If the earlier snapshot had such time in
/// the former account, the time was already reported, and is counted again in the new one. This function
/// subtracts it from the largest accounts, and calls `taken` with each.
pub(crate) fn take_back<'t>(
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
