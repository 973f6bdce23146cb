// SPDX-License-Identifier: PostgreSQL
//! `tally report`: what a recording holds, as one page, as text or as JSON.
//!
//! [`source`] reads the recording into [`material`]; [`assemble`] makes the [`document`] of it,
//! which says everything there is to say; [`html`] with [`page`], [`text`] and serde write it.

mod assemble;
mod charts;
mod document;
mod facts;
mod findings;
mod html;
mod latency;
mod marks;
mod material;
mod output;
mod page;
mod point;
mod range;
#[cfg(test)]
mod sample;
mod seeds;
mod tables;
#[cfg(test)]
mod tests;
mod text;
