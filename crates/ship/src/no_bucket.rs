// SPDX-License-Identifier: PostgreSQL
//! The interface of `bucket.rs` in builds without the library for object storage: no bucket can be opened.

use crate::error::Error;
use bytes::Bytes;
use std::time::Duration;

/// A type without values.
#[derive(Debug, Clone, Copy)]
enum Uninhabited {}

/// A bucket and a prefix.
#[derive(Debug)]
pub struct Bucket(Uninhabited);

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name relative to the prefix and version.
    pub key: String,
    /// Its length, bytes.
    pub bytes: u64,
    /// When it was written, according to the bucket's clock, microseconds since 1970.
    pub written_us: i64,
}

/// Sets the deadline of a bucket's requests.
#[derive(Debug, Clone)]
pub struct Deadline(Uninhabited);

/// The version of an object.
#[derive(Debug, Clone)]
pub(crate) struct UpdateVersion(Uninhabited);

impl Deadline {
    /// All requests end after this time.
    pub fn set(&self, _: Duration) {
        match self.0 {}
    }
}

impl Bucket {
    /// Always fails.
    pub fn open(text: &str) -> Result<Bucket, Error> {
        // The address may contain a password.
        let scheme = text.split("://").next().unwrap_or_default();
        Err(Error::Address {
            shown: format!("{scheme}://…"),
            reason: "the command that `make demo` builds does not support object storage; `make` builds one that does"
                .into(),
        })
    }

    /// The address, without credentials.
    pub fn url(&self) -> &str {
        match self.0 {}
    }

    /// Sets the deadline of requests, from any thread.
    pub fn deadline(&self) -> Deadline {
        match self.0 {}
    }

    /// Call a function with a time limit.
    pub fn within<T>(&self, _: Duration, _: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        match self.0 {}
    }

    pub(crate) fn put(&self, _: &str, _: Bytes) -> Result<(), Error> {
        match self.0 {}
    }

    pub(crate) fn create(&self, _: &str, _: Bytes) -> Result<bool, Error> {
        match self.0 {}
    }

    pub(crate) fn replace(&self, _: &str, _: Bytes, _: UpdateVersion) -> Result<bool, Error> {
        match self.0 {}
    }

    pub(crate) fn get(&self, _: &str) -> Result<Option<(Bytes, UpdateVersion)>, Error> {
        match self.0 {}
    }

    pub(crate) fn delete(&self, _: &str) -> Result<(), Error> {
        match self.0 {}
    }

    pub(crate) fn list(&self, _: &str) -> Result<Vec<Listed>, Error> {
        match self.0 {}
    }
}
