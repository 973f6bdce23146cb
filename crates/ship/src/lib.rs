// SPDX-License-Identifier: PostgreSQL
//! Recordings in object storage: S3, Google Cloud Storage, Azure or a directory.
//!
//! A recorder writes an ordinary recording into its spool directory. A [`Shipper`], a thread of the
//! recorder, copies finished files into the bucket in passes: first new files, then files that earlier
//! ones were merged into; later it removes the merged files. Names determine which files are valid
//! ([`layout`]), so at no moment is a row duplicated or missing, and a pass may end anywhere and be
//! repeated. `sent.rs` keeps track of the objects that have arrived.
//!
//! Nothing here blocks the recorder: only the shipper's thread uses the network.

// Without the feature `buckets`, nothing is shipped.
#![cfg_attr(not(feature = "buckets"), allow(dead_code))]

mod backoff;
#[cfg(feature = "buckets")]
mod bucket;
#[cfg(not(feature = "buckets"))]
#[path = "no_bucket.rs"]
mod bucket;
mod error;
mod fetch;
pub mod layout;
mod owner;
mod pass;
mod sent;
mod shipper;
mod spool;
mod upkeep;

pub use self::error::Error;
pub use bucket::{Bucket, Deadline, Listed};
pub use fetch::{origins, Copied, Shipped};
pub use owner::{claim, Claim, Claimant, Owner};
pub use pass::{Dropped, Pass, Passed};
pub use shipper::{Shipper, ShippingNews};
pub use spool::{default_directory, Spool};
pub use upkeep::{upkeep, Removed, Rules};

/// Whether an argument is a bucket URL rather than a directory.
pub fn is_url(text: &str) -> bool {
    text.contains("://")
}

/// The time of day, microseconds since 1970.
pub fn now_us() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}
