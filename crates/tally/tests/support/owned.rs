// SPDX-License-Identifier: PostgreSQL
//! A program that does not outlive its test, even if the test fails.

use std::ops::Deref;
use std::process::{Child, Output};

/// It is killed when this is dropped, unless it has ended.
pub struct Owned(Option<Child>);

impl Owned {
    pub fn new(child: Child) -> Owned {
        Owned(Some(child))
    }

    /// Its output, once it has ended.
    pub fn wait(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Deref for Owned {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().unwrap()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
