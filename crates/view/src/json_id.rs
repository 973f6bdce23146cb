// SPDX-License-Identifier: PostgreSQL
//! Ids of 64 bits in JSON: strings, as many programs read numbers as floating-point, of 53 bits.

use serde::Serializer;

/// For `serialize_with`.
pub fn id<S: Serializer>(id: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

/// The same of one that may be missing.
pub fn id_or_null<S: Serializer>(it: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    match it {
        Some(it) => id(it, serializer),
        None => serializer.serialize_none(),
    }
}
