// SPDX-License-Identifier: PostgreSQL

//! Statistics: the half-widths and tests of costs, studies, reports and comparisons.

pub mod calls;
mod change_point;
mod correlation;
mod counts;
mod difference;
mod estimate;
mod family;
mod precision;
mod rank;
mod ratio;
mod separation;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
mod student;

pub use change_point::{change_point, ChangePoint};
pub use correlation::{explained, lag_one, likeness, Explained, Likeness};
pub use counts::Counts;
pub use difference::Difference;
pub use estimate::{Estimate, FEWEST_ROUNDS};
pub use family::{discoveries, holm};
pub use precision::{joint_error, Precision, POWER};
pub use ratio::{Ratio, FEWEST};
pub use separation::separation;
pub use student::{normal_two_sided, t_quantile, t_two_sided, Z95};
