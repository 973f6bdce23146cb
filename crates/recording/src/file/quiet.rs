// SPDX-License-Identifier: PostgreSQL
//! Catches a panic without printing its message: the Parquet library panics on damaged files, which are reported as
//! errors.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught below.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread is expected. If so, other panic hooks must do nothing.
pub fn panic_is_expected() -> bool {
    EXPECTED.get()
}

/// The result of `work`, or `None` if it panicked.
pub(super) fn catch<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !panic_is_expected() {
                others(info);
            }
        }));
    });
    let before = EXPECTED.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    EXPECTED.set(before);
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_expected_only_where_it_is_caught() {
        assert_eq!(catch(panic_is_expected), Some(true));
        assert_eq!(catch::<()>(|| panic!("of a library")), None);
        assert!(!panic_is_expected());
    }
}
