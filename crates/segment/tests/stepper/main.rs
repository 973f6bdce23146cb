// SPDX-License-Identifier: PostgreSQL
//! The reader, while writers of libtally or the Java agent are stopped between any two stores. At each stop of each
//! scenario, the reading is complete; at each phase of the reader, a writer may continue; and a writer that is killed
//! there loses nothing. Nothing here depends on a clock or on luck.
#![allow(missing_docs)]

mod java;
mod process;
mod scenario_segment;
mod sessions;
mod tables;
mod witness;
