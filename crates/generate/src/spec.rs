// SPDX-License-Identifier: PostgreSQL
//! The layout of the segment from `format/layout.toml`, and its validation.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// The layout.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// The first bytes of a segment.
    pub magic: String,
    /// Constants.
    pub constants: Vec<Constant>,
    /// Enumerations.
    #[serde(rename = "enum")]
    pub enums: Vec<Enum>,
    /// Structs, each after the structs that it contains.
    #[serde(rename = "struct")]
    pub structs: Vec<Struct>,
    /// Tables of the documentation.
    #[serde(rename = "table", default)]
    pub tables: Vec<Table>,
    /// Members of `counts` that also form an array: its name, the first member, the number of members.
    #[serde(skip)]
    pub groups: Vec<(String, String, usize)>,
}

/// A constant: name, value, type, meaning.
#[derive(Debug, Deserialize)]
pub struct Constant(pub String, pub Value, pub ConstantType, pub String);

/// The value of a constant: a number, or a sum of products.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(u64),
    /// An expression.
    Expression(String),
}

/// The type of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConstantType {
    /// A number of things or bytes.
    Size,
    /// A `u32`.
    U32,
    /// A `u64`.
    U64,
}

/// An enumeration.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enum {
    /// Its name.
    pub name: String,
    /// Prefix of the values' names in C.
    pub prefix: String,
    /// The type in which it is stored.
    #[serde(default = "word", rename = "type")]
    pub kept_in: String,
    /// Whether the writer in Java uses it.
    #[serde(default)]
    pub java: bool,
    /// Description.
    #[serde(default)]
    pub comment: String,
    /// Name, number, meaning.
    pub values: Vec<(String, u64, String)>,
}

fn word() -> String {
    "u32".into()
}

impl Enum {
    /// The C name of a value, unique among all enumerations.
    pub fn value_name(&self, value: &str) -> String {
        match self.prefix.as_str() {
            "" => value.into(),
            prefix => format!("{prefix}_{value}"),
        }
    }
}

/// A struct.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Struct {
    /// Its name.
    pub name: String,
    /// Its name in C, if it is not `tally_` plus the name.
    c: Option<String>,
    /// Heading of the column of offsets in the documentation: "of the entry".
    pub title: String,
    /// Whether the writer in Java uses it.
    #[serde(default)]
    pub java: bool,
    /// Size, bytes.
    pub size: u64,
    /// Description.
    #[serde(default)]
    pub comment: String,
    #[serde(default)]
    members: Vec<Member>,
    /// Its members, in order of their offsets.
    #[serde(default, rename = "part")]
    pub parts: Vec<Section>,
    /// The alternatives of the member of type `union`: name and type.
    #[serde(default)]
    pub union: Vec<(String, Type)>,
}

impl Struct {
    /// Its name in C.
    pub fn c_name(&self) -> String {
        self.c.clone().unwrap_or_else(|| format!("tally_{}", self.name))
    }

    /// All members.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.parts.iter().flat_map(|part| &part.members)
    }
}

/// Members of a struct that belong together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// If it has a name, a table of the documentation begins here.
    #[serde(default)]
    pub name: String,
    /// Description of the section.
    #[serde(default)]
    pub comment: String,
    /// The members.
    pub members: Vec<Member>,
}

/// A member: offset, type, name, meaning.
#[derive(Debug, Deserialize)]
pub struct Member(pub u64, pub Type, pub String, pub String);

/// The type of a member.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Type {
    /// The element type.
    pub of: Base,
    /// Number of elements of an array: a number, or the name of a constant.
    pub count: Option<String>,
}

/// An element type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// A number: name and bytes.
    Number(&'static str, u64),
    /// A byte of a text whose length is in another member.
    Char,
    /// A byte of a zero-terminated text.
    Text,
    /// Another struct.
    Struct(String),
    /// One of several alternatives.
    Union,
}

/// The number types of members, and their sizes in bytes.
pub const NUMBERS: [(&str, u64); 7] =
    [("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8), ("i32", 4), ("i64", 8), ("f64", 8)];

impl TryFrom<String> for Type {
    type Error = String;

    fn try_from(text: String) -> Result<Type, String> {
        if let Some(count) = text.strip_prefix("text ") {
            return Ok(Type { of: Base::Text, count: Some(count.into()) });
        }
        let (of, count) = match text.split_once('[') {
            Some((of, rest)) => {
                let count =
                    rest.strip_suffix(']').ok_or(format!("{text}: missing ] at the end"))?;
                (of, Some(count.to_string()))
            }
            None => (text.as_str(), None),
        };
        let of = match (of, NUMBERS.iter().find(|number| number.0 == of)) {
            (_, Some((name, bytes))) => Base::Number(name, *bytes),
            ("char", _) if count.is_some() => Base::Char,
            ("union", _) => Base::Union,
            (name, _) => Base::Struct(name.into()),
        };
        Ok(Type { of, count })
    }
}

impl Layout {
    /// Parses the layout from `text`, without checking it. An error names the row.
    pub fn read(text: &str) -> Result<Layout, String> {
        let mut layout: Layout = toml::from_str(text).map_err(|error| error.to_string())?;
        for one in &mut layout.structs {
            let members = std::mem::take(&mut one.members);
            if !members.is_empty() {
                one.parts
                    .insert(0, Section { name: String::new(), comment: String::new(), members });
            }
        }
        Ok(layout)
    }

    /// The struct with this name.
    pub fn find(&self, name: &str) -> Option<&Struct> {
        self.structs.iter().find(|one| one.name == name)
    }

    /// The value of a sum of products of numbers, constants, values of enumerations, and sizes of structs.
    pub fn value(&self, expression: &str) -> Result<u64, String> {
        let too_large = || format!("{expression} is too large");
        let mut sum = 0u64;
        for product in expression.split('+') {
            let mut value = 1u64;
            for factor in product.split('*') {
                value = value.checked_mul(self.factor(factor.trim())?).ok_or_else(too_large)?;
            }
            sum = sum.checked_add(value).ok_or_else(too_large)?;
        }
        Ok(sum)
    }

    fn factor(&self, factor: &str) -> Result<u64, String> {
        if factor.starts_with(|c: char| c.is_ascii_digit()) {
            let parsed = match factor.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => factor.parse(),
            };
            return parsed.map_err(|_| format!("{factor} is not a number"));
        }
        if let Some(found) = factor.strip_suffix(".size").and_then(|name| self.find(name)) {
            return Ok(found.size);
        }
        if let Some(found) = self.constants.iter().find(|one| one.0 == factor) {
            return match &found.1 {
                Value::Number(number) => Ok(*number),
                Value::Expression(expression) => self.value(expression),
            };
        }
        self.enum_value(factor).ok_or_else(|| format!("{factor} is not defined"))
    }

    /// The value with this C name, or written as `enumeration.value`.
    fn enum_value(&self, name: &str) -> Option<u64> {
        self.enums.iter().find_map(|one| {
            let is_it = |value: &str| {
                one.value_name(value) == name
                    || name.split_once('.').is_some_and(|named| named == (&one.name, value))
            };
            one.values.iter().find(|value| is_it(&value.0)).map(|value| value.1)
        })
    }

    /// The value of a constant.
    pub fn constant(&self, constant: &Constant) -> u64 {
        // Every constant's value was computed by `check`.
        self.factor(&constant.0).unwrap_or(0)
    }

    /// The number of elements of a member, and the size of each in bytes.
    pub fn extent(&self, member: &Type) -> Result<(u64, u64), String> {
        let count = member.count.as_ref().map_or(Ok(1), |count| self.value(count))?;
        let bytes = match &member.of {
            Base::Number(_, bytes) => *bytes,
            Base::Char | Base::Text => 1,
            Base::Struct(name) => {
                self.find(name).ok_or_else(|| format!("struct {name} does not exist"))?.size
            }
            Base::Union => 0,
        };
        Ok((count, bytes))
    }

    /// The alignment of the member.
    fn alignment(&self, member: &Type) -> u64 {
        match &member.of {
            Base::Number(_, bytes) => *bytes,
            Base::Char | Base::Text => 1,
            Base::Struct(name) => self.find(name).map_or(1, |one| self.struct_alignment(one)),
            Base::Union => 8,
        }
    }

    fn struct_alignment(&self, one: &Struct) -> u64 {
        one.members().map(|member| self.alignment(&member.1)).max().unwrap_or(1)
    }

    /// The end offset of a member.
    pub fn end(&self, one: &Struct, member: &Member) -> Result<u64, String> {
        let alternatives = match member.1.of {
            Base::Union => one.union.iter().map(|alternative| &alternative.1).collect(),
            _ => vec![&member.1],
        };
        let mut end = member.0;
        for alternative in alternatives {
            let (count, bytes) = self.extent(alternative)?;
            end = end.max(member.0 + count * bytes);
        }
        Ok(end)
    }

    /// Checks that the layout is valid.
    pub fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        let mut is_new = |name: String| match names.insert(name.clone()) {
            true => Ok(()),
            false => Err(format!("duplicate name {name}")),
        };
        for one in &self.constants {
            is_new(one.0.clone())?;
            let value = self.factor(&one.0).map_err(|why| format!("constant {}: {why}", one.0))?;
            if one.2 == ConstantType::U32 && u32::try_from(value).is_err() {
                return Err(format!("constant {}: {value} is not a u32", one.0));
            }
        }
        for one in &self.enums {
            let mut values = BTreeMap::new();
            for (name, value, _) in &one.values {
                is_new(one.value_name(name))?;
                if let Some(other) = values.insert(value, name) {
                    return Err(format!(
                        "enumeration {}: {name} has the same value as {other}",
                        one.name
                    ));
                }
            }
        }
        let mut structs = BTreeSet::new();
        for one in &self.structs {
            self.check_struct(one, &structs)
                .map_err(|why| format!("struct {}: {why}", one.name))?;
            if !structs.insert(one.name.as_str()) {
                return Err(format!("duplicate struct {}", one.name));
            }
        }
        Ok(())
    }

    fn check_struct(&self, one: &Struct, known: &BTreeSet<&str>) -> Result<(), String> {
        let mut end = 0;
        let mut names = BTreeSet::new();
        for member in one.members() {
            let Member(at, kind, name, _) = member;
            let wrong = |why: String| format!("member {name} at {at}: {why}");
            if !names.insert(name) {
                return Err(wrong("duplicate name".into()));
            }
            if let Base::Struct(of) = &kind.of {
                if !known.contains(of.as_str()) {
                    return Err(wrong(format!(
                        "{of} is neither a type nor a struct defined above"
                    )));
                }
            }
            if *at < end {
                return Err(wrong(format!("the previous member ends at {end}")));
            }
            if !at.is_multiple_of(self.alignment(kind)) {
                return Err(wrong(format!("not a multiple of {}", self.alignment(kind))));
            }
            end = self.end(one, member).map_err(wrong)?;
        }
        if end > one.size {
            return Err(format!("its size is {}, but its last member ends at {end}", one.size));
        }
        if !one.size.is_multiple_of(self.struct_alignment(one)) {
            return Err(format!("its size is not a multiple of {}", self.struct_alignment(one)));
        }
        Ok(())
    }
}

/// A table of the documentation. Words in braces are replaced.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The heads of its columns.
    pub head: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "magic = 'M'\nenum = []\nconstants = [['n', 3, 'size', ''], ['all', 'n * a.size + 0x10', 'size', '']]\n";

    fn layout(members: &str) -> Result<Layout, String> {
        let layout = Layout::read(&format!(
            "{START}[[struct]]\nname = 'a'\ntitle = 'at'\nsize = 24\nmembers = [{members}]"
        ))?;
        layout.check()?;
        Ok(layout)
    }

    #[test]
    fn values_are_sums_of_products() {
        let layout = layout("[0, 'u32', 'x', ''], [8, 'u32[n]', 'y', '']").unwrap();
        assert_eq!(layout.value("all"), Ok(3 * 24 + 16));
        assert_eq!(layout.value("a.size + b"), Err("b is not defined".into()));
        assert_eq!(
            layout.value("0xffffffffffffffff + 1"),
            Err("0xffffffffffffffff + 1 is too large".into())
        );
    }

    #[test]
    fn what_cannot_be_a_struct_is_refused_with_the_row() {
        let refused = |members: &str| layout(members).map(|_| ()).unwrap_err();
        assert_eq!(
            refused("[0, 'u64', 'x', ''], [4, 'u32', 'y', '']"),
            "struct a: member y at 4: the previous member ends at 8"
        );
        assert_eq!(refused("[2, 'u32', 'x', '']"), "struct a: member x at 2: not a multiple of 4");
        assert_eq!(
            refused("[0, 'u64[n]', 'x', ''], [24, 'u8', 'y', '']"),
            "struct a: its size is 24, but its last member ends at 25"
        );
        assert_eq!(
            refused("[0, 'u32', 'x', ''], [4, 'u32', 'x', '']"),
            "struct a: member x at 4: duplicate name"
        );
        assert_eq!(
            refused("[0, 'b', 'x', '']"),
            "struct a: member x at 0: b is neither a type nor a struct defined above"
        );
        assert_eq!(refused("[0, 'u8[m]', 'x', '']"), "struct a: member x at 0: m is not defined");
        assert!(refused("[0, 'u8[2', 'x', '']").contains("u8[2: missing ] at the end"));
    }
}
