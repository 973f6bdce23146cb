// SPDX-License-Identifier: PostgreSQL
//! IDs of 64 bits in JSON: as strings, because many programs read numbers as floating point with 53 bits.

use serde::Serializer;

/// For `serialize_with`.
pub fn id<S: Serializer>(id: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

/// The same for an ID that may be missing.
pub fn id_or_null<S: Serializer>(number: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => id(number, serializer),
        None => serializer.serialize_none(),
    }
}
