// SPDX-License-Identifier: PostgreSQL
//! The application of the session that executed a statement, if statements are counted separately
//! for each application.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::{Serialize, Serializer};

/// An application_name, or none. One name is kept once, until the process ends: a segment has a few hundred at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Application(Option<&'static str>);

/// All names so far.
static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl Application {
    /// The application of this name; an empty one is none.
    pub fn from_name(name: &str) -> Application {
        if name.is_empty() {
            return Application::default();
        }
        // A panic elsewhere leaves the set as it was, or with one more.
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name) {
            return Application(Some(known));
        }
        let kept: &'static str = Box::leak(name.into());
        names.insert(kept);
        Application(Some(kept))
    }

    /// Its name; `None`: applications are not counted separately, or the session has none.
    pub fn name(self) -> Option<&'static str> {
        self.0
    }
}

impl Serialize for Application {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_an_empty_one_is_none() {
        let [one, again, other] = ["shop", "shop", "billing"].map(Application::from_name);
        assert_eq!((one, one.name()), (again, Some("shop")));
        assert!(std::ptr::eq(one.name().unwrap(), again.name().unwrap()));
        assert!(other < one && Application::from_name("") < other);
        assert_eq!(Application::from_name(""), Application::default());
    }
}
