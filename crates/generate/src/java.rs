// SPDX-License-Identifier: PostgreSQL
//! The definitions for Java, of the members that the agent writes.

use std::fmt::Write;

use crate::spec::{Base, Layout, Member};

fn constant(out: &mut String, name: &str, value: u64) {
    let value = match i32::try_from(value) {
        Ok(value) => value.to_string(),
        Err(_) => format!("{value:#x}"),
    };
    let _ = writeln!(out, "    public static final int {} = {value};", name.to_uppercase());
}

/// `Layout.java`.
pub fn layout(layout: &Layout) -> String {
    let mut out = String::from(
        "// SPDX-License-Identifier: PostgreSQL\n\
         package org.pgtally.segment;\n\n\
         /**\n \
         * Offsets of the segment (format/FORMAT.md), in bytes, for the members that the agent writes.\n \
         * Generated from format/layout.toml by `make generate`; do not edit.\n \
         */\n\
         public final class Layout {\n",
    );
    for one in layout.constants.iter().filter(|one| u32::try_from(layout.constant(one)).is_ok()) {
        constant(&mut out, &one.0, layout.constant(one));
    }
    for one in layout.enums.iter().filter(|one| one.java) {
        let _ = writeln!(out);
        for (name, value, _) in &one.values {
            constant(&mut out, &format!("{}_{name}", one.name), *value);
        }
    }
    for one in layout.structs.iter().filter(|one| one.java) {
        let _ = writeln!(out);
        constant(&mut out, &format!("{}_SIZE", one.name), one.size);
        for Member(at, kind, name, _) in one.members() {
            constant(&mut out, &format!("{}_{name}", one.name), *at);
            if let (Base::Text, Ok((bytes, _))) = (&kind.of, layout.extent(kind)) {
                constant(&mut out, &format!("{}_{name}_BYTES", one.name), bytes);
            }
        }
    }
    out.push_str("\n    private Layout() {\n    }\n}\n");
    out
}
