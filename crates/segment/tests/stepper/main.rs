// SPDX-License-Identifier: PostgreSQL
//! The reader, while libtally's writers, or the Java agent's, are stopped between any two stores: at each stop of each scenario what it reads is
//! whole, at each of the reader's own phases a writer may go on, and a writer that is killed there loses nothing.
//! Nothing here depends on a clock or on luck.
#![allow(missing_docs)]

mod java;
mod process;
mod scenario_segment;
mod sessions;
mod tables;
mod witness;
