// SPDX-License-Identifier: PostgreSQL

//! What chance can do: the one room from which costs, reports and comparisons take their
//! half-widths and their tests.

mod correlation;
#[cfg(test)]
pub(crate) mod dice;
mod difference;
mod family;
mod ratio;
mod student;

pub(crate) use correlation::lag_one;
pub(crate) use difference::Difference;
pub(crate) use family::discoveries;
pub(crate) use ratio::{Ratio, FEWEST};
pub(crate) use student::{normal_two_sided, t_quantile, t_two_sided};
