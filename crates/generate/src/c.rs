// SPDX-License-Identifier: PostgreSQL
//! The definitions for C.

use std::fmt::Write;

use crate::spec::{Base, Constant, ConstantType, Enum, Layout, Member, Struct, Type, Value};
use crate::words::{expand, wrapped, Language};

/// Column of a comment after a member, and maximum line width.
const COMMENT: usize = 36;
const WIDTH: usize = 124;

struct C;

impl Language for C {
    fn enumeration(&self, one: &Enum) -> String {
        format!("tally_{}", one.name)
    }

    fn number(&self, expression: &str, value: u64) -> String {
        match expression.strip_suffix(".size") {
            _ if expression.contains(['*', '+', ' ']) => value.to_string(),
            Some(name) => format!("sizeof(tally_{name})"),
            None if expression.contains('.') => value.to_string(),
            None => constant_name(expression),
        }
    }
}

fn constant_name(name: &str) -> String {
    format!("TALLY_{}", name.to_uppercase())
}

/// A meaning without Markdown.
fn plain(layout: &Layout, meaning: &str) -> Result<String, String> {
    Ok(expand(layout, meaning, &C)?.replace(['`', '*'], ""))
}

/// `text`, followed by tabs up to this column, or by a space if it is longer.
fn to_column(text: &str, column: usize) -> String {
    let at = text.chars().fold(0, |at, c| if c == '\t' { at / 4 * 4 + 4 } else { at + 1 });
    match at < column {
        true => format!("{text}{}", "\t".repeat((column - at).div_ceil(4))),
        false => format!("{text} "),
    }
}

/// A block comment with its paragraphs separated by empty lines.
fn block(out: &mut String, indent: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    let line = format!("{indent}/* {} */\n", text.split_whitespace().collect::<Vec<_>>().join(" "));
    if line.len() <= WIDTH && !text.trim().contains("\n\n") {
        out.push_str(&line);
        return;
    }
    let paragraphs = text.trim().split("\n\n").map(|text| wrapped(text, 118 - indent.len()));
    let lines = paragraphs.collect::<Vec<_>>().join(&String::new());
    let _ = writeln!(out, "{indent}/*");
    for line in lines {
        let _ = writeln!(out, "{}", format!("{indent} * {line}").trim_end());
    }
    let _ = writeln!(out, "{indent} */");
}

/// `code` with a comment after it, or above it if the line would be too long.
fn commented(out: &mut String, code: &str, comment: &str) {
    let indent: String = code.chars().take_while(|&c| c == '\t').collect();
    let line = match comment {
        "" => code.to_string(),
        _ => format!("{}/* {comment} */", to_column(code, COMMENT)),
    };
    let columns = line.chars().fold(0, |at, c| if c == '\t' { at / 4 * 4 + 4 } else { at + 1 });
    if columns <= WIDTH {
        let _ = writeln!(out, "{line}");
    } else {
        block(out, &indent, comment);
        let _ = writeln!(out, "{code}");
    }
}

fn constant(out: &mut String, layout: &Layout, one: &Constant) -> Result<(), String> {
    let Constant(name, value, of, meaning) = one;
    let suffix = match of {
        ConstantType::Size => "",
        _ => "u",
    };
    let value = match value {
        Value::Number(number) => format!("{number}{suffix}"),
        Value::Expression(text) if text == "0xffffffff" => "UINT32_MAX".into(),
        Value::Expression(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{text}{suffix}")
        }
        Value::Expression(text) => {
            let words = text.split(' ').map(|word| match word.strip_suffix(".size") {
                Some(name) => {
                    let of = layout.find(name).map_or_else(String::new, Struct::c_name);
                    format!("sizeof({of})")
                }
                None if word.starts_with(|c: char| c.is_ascii_alphabetic()) => constant_name(word),
                None => word.into(),
            });
            format!("({})", words.collect::<Vec<_>>().join(" "))
        }
    };
    commented(out, &format!("#define {} {value}", constant_name(name)), &plain(layout, meaning)?);
    Ok(())
}

fn enumeration(out: &mut String, layout: &Layout, one: &Enum) -> Result<(), String> {
    let _ = writeln!(out);
    block(out, "", &plain(layout, &one.comment)?);
    let _ = writeln!(out, "typedef enum tally_{}\n{{", one.name);
    for (at, (name, value, meaning)) in one.values.iter().enumerate() {
        let comma = if at + 1 < one.values.len() { "," } else { "" };
        let code = format!("\t{} = {value}{comma}", constant_name(&one.value_name(name)));
        commented(out, &code, &plain(layout, meaning)?);
    }
    let _ = writeln!(out, "}} tally_{};", one.name);
    Ok(())
}

fn type_name(layout: &Layout, of: &Base) -> String {
    match of {
        Base::Number("f64", _) => "double".into(),
        Base::Number(name, _) => {
            let sign = if name.starts_with('i') { "int" } else { "uint" };
            format!("{sign}{}_t", &name[1..])
        }
        Base::Char | Base::Text => "char".into(),
        Base::Struct(name) => layout.find(name).map_or_else(String::new, Struct::c_name),
        Base::Union => "union".into(),
    }
}

fn declaration(layout: &Layout, indent: &str, kind: &Type, name: &str) -> String {
    let of = to_column(&format!("{indent}{}", type_name(layout, &kind.of)), 12 + 4 * indent.len());
    match &kind.count {
        None => format!("{of}{name};"),
        Some(count) if count.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{of}{name}[{count}];")
        }
        Some(count) => format!("{of}{name}[{}];", constant_name(count)),
    }
}

/// Padding from `at`.
fn padding(out: &mut String, number: &mut u32, at: u64, bytes: u64) {
    if bytes == 0 {
        return;
    }
    let _ = match (at % 4, bytes) {
        (0, 4) => writeln!(out, "\tuint32_t\tpad{number};"),
        _ => writeln!(out, "\tunsigned char pad{number}[{bytes}];"),
    };
    *number += 1;
}

fn structure(out: &mut String, layout: &Layout, one: &Struct) -> Result<(), String> {
    let _ = writeln!(out);
    block(out, "", &plain(layout, &one.comment)?);
    let _ = writeln!(
        out,
        "{}/* {} bytes */\n{{",
        to_column(&format!("typedef struct {}", one.c_name()), COMMENT),
        one.size
    );
    let (mut end, mut pads, mut in_group) = (0, 0, 0);
    for part in &one.parts {
        let first = part.members.first().map_or(end, |member| member.0);
        padding(out, &mut pads, end, first - end);
        end = first;
        if !part.comment.is_empty() {
            let _ = writeln!(out);
            block(out, "\t", &plain(layout, &part.comment)?);
        }
        for member in &part.members {
            let Member(at, kind, name, meaning) = member;
            padding(out, &mut pads, end, at - end);
            let meaning = match plain(layout, meaning)? {
                text if text.is_empty() => at.to_string(),
                text => format!("{at}: {text}"),
            };
            if kind.of == Base::Union {
                commented(out, "\tunion", &meaning);
                let _ = writeln!(out, "\t{{");
                for (name, kind) in &one.union {
                    let _ = writeln!(out, "{}", declaration(layout, "\t\t", kind, name));
                }
                let _ = writeln!(out, "\t}};");
            } else {
                let group =
                    layout.groups.iter().find(|group| one.name == "counts" && group.1 == *name);
                if let Some((array, _, count)) = group {
                    let many = Type { count: Some(count.to_string()), ..kind.clone() };
                    let _ = writeln!(
                        out,
                        "\tunion\n\t{{\n{}\n\t\tstruct\n\t\t{{",
                        declaration(layout, "\t\t", &many, array)
                    );
                    in_group = *count;
                }
                let indent = if in_group > 0 { "\t\t\t" } else { "\t" };
                commented(out, &declaration(layout, indent, kind, name), &meaning);
                if in_group == 1 {
                    out.push_str("\t\t};\n\t};\n");
                }
                in_group = in_group.saturating_sub(1);
            }
            end = layout.end(one, member)?;
        }
    }
    padding(out, &mut pads, end, one.size - end);
    let _ = writeln!(out, "}} {};", one.c_name());
    Ok(())
}

fn asserts(out: &mut String, one: &Struct) {
    let c_name = one.c_name();
    let _ = writeln!(out, "\nTALLY_ASSERT(sizeof({c_name}) == {});", one.size);
    for Member(at, kind, name, _) in one.members() {
        let name = match kind.of {
            Base::Union => one.union.first().map_or(name, |first| &first.0),
            _ => name,
        };
        let _ = writeln!(out, "TALLY_ASSERT(offsetof({c_name}, {name}) == {at});");
    }
}

const START: &str = r#"/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_format.h
 *	  The segment, byte for byte: constants, enumerations and structs.
 *
 * Generated from format/layout.toml and format/counters.toml by `make generate`; do not edit.
 *
 * Who may write what, and in which order, is in tally_layout.h, tally_statements.h, tally_files.h, tally_plans.h and
 * tally_trace.h. The number in a member's comment is its offset in bytes.
 */
#ifndef TALLY_FORMAT_H
#define TALLY_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

"#;

/// `tally_format.h`.
pub fn header(layout: &Layout) -> Result<String, String> {
    let mut out = String::from(START);
    let magic = format!("#define TALLY_MAGIC \"{}\"", layout.magic);
    commented(&mut out, &magic, &format!("{} bytes, no terminator", layout.magic.len()));
    for one in &layout.constants {
        constant(&mut out, layout, one)?;
    }
    for one in &layout.enums {
        enumeration(&mut out, layout, one)?;
    }
    for one in &layout.structs {
        structure(&mut out, layout, one)?;
    }
    out.push_str("\n#define TALLY_ASSERT(what) _Static_assert(what, #what)\n#ifndef __cplusplus\n");
    for one in &layout.structs {
        asserts(&mut out, one);
    }
    out.push_str("#endif\n\n#endif\t\t\t\t\t\t\t/* TALLY_FORMAT_H */\n");
    Ok(out)
}
