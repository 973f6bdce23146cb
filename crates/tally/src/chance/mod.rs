// SPDX-License-Identifier: PostgreSQL

//! What chance can do: the one room from which costs, studies, reports and comparisons take their
//! half-widths and their tests.

mod correlation;
#[cfg(test)]
pub(crate) mod dice;
mod difference;
mod estimate;
mod family;
mod rank;
mod ratio;
mod student;

pub(crate) use correlation::lag_one;
pub(crate) use difference::Difference;
pub(crate) use estimate::{Estimate, FEWEST_ROUNDS};
pub(crate) use family::{discoveries, holm};
pub(crate) use ratio::{Ratio, FEWEST};
pub(crate) use student::{normal_two_sided, t_quantile, t_two_sided};
