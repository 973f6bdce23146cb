// SPDX-License-Identifier: PostgreSQL
//! The definitions for Rust.

use std::fmt::Write;

use crate::spec::{Base, ConstantType, Enum, Layout, Member, Type};
use crate::words::{expand, grouped, Language};

struct Rust;

impl Language for Rust {
    fn enumeration(&self, one: &Enum) -> String {
        format!("[`crate::layout::{}`]", one.name)
    }

    fn number(&self, _: &str, value: u64) -> String {
        grouped(value)
    }
}

/// The type of a member, for its documentation.
fn shape(kind: &Type) -> String {
    let of = match &kind.of {
        Base::Number(name, _) => name.to_string(),
        Base::Char => "bytes".into(),
        Base::Text => "text".into(),
        Base::Struct(name) => format!("[`crate::layout::{name}`]"),
        Base::Union => "by kind".into(),
    };
    let count = |count: &str| match count.starts_with(|c: char| c.is_ascii_digit()) {
        true => count.to_string(),
        false => format!("`{}`", count.to_uppercase()),
    };
    match &kind.count {
        Some(many) => format!("{of}, {}", count(many)),
        None => of,
    }
}

fn documented(out: &mut String, indent: &str, text: &str) {
    let lines = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = writeln!(
        out,
        "{indent}/// {}",
        if lines.is_empty() { "No more than its name says." } else { &lines }
    );
}

/// `offsets.rs`.
pub fn offsets(layout: &Layout) -> Result<String, String> {
    let mut out = String::from(
        "// SPDX-License-Identifier: PostgreSQL\n\
         //! Constants, enumerations, and the offsets of members.\n\
         //!\n\
         //! Generated from format/layout.toml and format/counters.toml by `make generate`; do not edit.\n\n\
         /// The first bytes of a segment.\n",
    );
    let _ =
        writeln!(out, "pub const MAGIC: &[u8; {}] = b\"{}\";", layout.magic.len(), layout.magic);
    for one in &layout.constants {
        documented(&mut out, "", &expand(layout, &one.3, &Rust)?);
        let of = match one.2 {
            ConstantType::Size => "usize",
            ConstantType::U32 => "u32",
            ConstantType::U64 => "u64",
        };
        let _ =
            writeln!(out, "pub const {}: {of} = {};", one.0.to_uppercase(), layout.constant(one));
    }
    for one in &layout.enums {
        let comment = match one.comment.as_str() {
            "" => format!("Values of a {}.", one.name.replace('_', " ")),
            text => text.into(),
        };
        let _ = writeln!(out);
        documented(&mut out, "", &expand(layout, &comment, &Rust)?);
        let _ = writeln!(out, "pub mod {} {{", one.name);
        for (name, value, meaning) in &one.values {
            let meaning = match meaning.as_str() {
                "" => name.replace('_', " "),
                text => expand(layout, text, &Rust)?,
            };
            documented(&mut out, "    ", &meaning);
            let _ =
                writeln!(out, "    pub const {}: {} = {value};", name.to_uppercase(), one.kept_in);
        }
        let _ = writeln!(out, "}}");
    }
    for one in &layout.structs {
        let _ = writeln!(out, "\n/// Offsets in a `{}`.", one.c_name());
        let _ = writeln!(
            out,
            "pub mod {} {{\n    /// Bytes.\n    pub const SIZE: usize = {};",
            one.name, one.size
        );
        for Member(at, kind, name, meaning) in one.members() {
            let mut text = shape(kind);
            if !meaning.is_empty() {
                text = format!("{text}: {}", expand(layout, meaning, &Rust)?);
            }
            documented(&mut out, "    ", &text);
            let name = name.to_uppercase();
            let _ = writeln!(out, "    pub const {name}: usize = {at};");
            if kind.of == Base::Text {
                let (bytes, _) = layout.extent(kind)?;
                documented(&mut out, "    ", &format!("Bytes of [`{name}`]."));
                let _ = writeln!(out, "    pub const {name}_BYTES: usize = {bytes};");
            }
        }
        let _ = writeln!(out, "}}");
    }
    Ok(out)
}
