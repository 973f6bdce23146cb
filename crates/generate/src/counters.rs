// SPDX-License-Identifier: PostgreSQL
//! The counters of statements from `format/counters.toml`, and everything generated from them.

use std::fmt::Write;

use serde::Deserialize;

use crate::spec::{Base, Layout, Member, Type};

/// The counters, and their public figures.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    counters: Vec<Counter>,
    groups: Vec<(String, String, usize)>,
    reserved: (u64, u64),
    json: Vec<(String, String)>,
    sql: Vec<(String, String, String)>,
    before: Vec<RecordedColumn>,
    after: Vec<RecordedColumn>,
}

/// Name, offset in the counts, type, unit, first major version that reports it, meaning.
#[derive(Debug, Deserialize)]
struct Counter(String, u64, Type, Unit, u32, String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Count,
    Bytes,
    Ticks,
    Ns,
}

impl Unit {
    fn is_time(self) -> bool {
        matches!(self, Unit::Ticks | Unit::Ns)
    }
}

/// A column of recordings: name, type, unit, rule, meaning.
#[derive(Debug, Deserialize)]
struct RecordedColumn(String, String, String, String, String);

/// The counters of a public figure.
enum FigureSource<'c> {
    One(&'c Counter),
    /// The sum of the time measured by probes and the time reported by the server.
    Sum(&'c Counter, &'c Counter),
    Difference(&'c Counter, &'c Counter),
    /// Null if no CPU time was measured.
    Measured(&'c Counter),
    /// Something other than a counter.
    Other(&'c str),
}

/// The group of failed calls by class, the only counters of four bytes.
const FAILED: &str = "failed";

impl<'c> FigureSource<'c> {
    fn counters(&self) -> [Option<&'c Counter>; 2] {
        match *self {
            FigureSource::One(one) | FigureSource::Measured(one) => [Some(one), None],
            FigureSource::Sum(a, b) | FigureSource::Difference(a, b) => [Some(a), Some(b)],
            FigureSource::Other(_) => [None, None],
        }
    }
}

impl Counter {
    fn is_wide(&self) -> bool {
        matches!(self.2.of, Base::Number(_, 8))
    }

    fn constant(&self) -> String {
        self.0.to_uppercase()
    }

    /// Its column in recordings.
    fn column(&self) -> String {
        match self.0.strip_suffix("_ticks") {
            Some(name) => format!("{name}_ns"),
            None => self.0.clone(),
        }
    }

    /// Its name where times have another unit, which `suffix` says.
    fn shown(&self, suffix: &str) -> String {
        let time = self.0.strip_suffix("_ticks").or(self.0.strip_suffix("_ns"));
        time.map_or_else(|| self.0.clone(), |time| format!("{time}{suffix}"))
    }

    /// Its meaning, with `unknown` for servers that do not report it.
    fn meaning(&self, unknown: &str) -> String {
        match self.4 {
            0 => self.5.clone(),
            since => format!("{}; {unknown} before {since}", self.5),
        }
    }
}

impl Counters {
    /// Parses the counters from `text`.
    pub fn read(text: &str) -> Result<Counters, String> {
        let mut counters: Counters = toml::from_str(text).map_err(|error| error.to_string())?;
        counters.show_all();
        // All others are summed as words of eight bytes.
        let failed = counters.groups.iter().find(|(name, ..)| name == FAILED);
        let narrow = failed.map_or(Ok(0..0), |(_, first, count)| {
            counters.find(first).map(|first| first.1..first.1 + 4 * *count as u64)
        })?;
        for one in &counters.counters {
            if one.is_wide() == narrow.contains(&one.1) {
                return Err(format!(
                    "{}: group {FAILED} has counters of 4 bytes, all others of 8",
                    one.0
                ));
            }
        }
        for (name, of) in &counters.json {
            counters.operand(of).map_err(|why| format!("json {name}: {why}"))?;
        }
        for (name, _, of) in &counters.sql {
            let of = counters.operand(of).map_err(|why| format!("sql {name}: {why}"))?;
            // The extension reads a counter as one word of eight bytes.
            if let Some(narrow) = of.counters().into_iter().flatten().find(|one| !one.is_wide()) {
                return Err(format!("sql {name}: {} has 4 bytes", narrow.0));
            }
        }
        for (name, first, count) in &counters.groups {
            let first = counters.find(first).map_err(|why| format!("group {name}: {why}"))?;
            for i in 0..*count as u64 {
                let at = first.1 + i * if first.is_wide() { 8 } else { 4 };
                if !counters.counters.iter().any(|one| one.1 == at) {
                    return Err(format!("group {name}: no counter at {at}"));
                }
            }
        }
        Ok(counters)
    }

    /// Adds a row for each counter that no row of `json` or `sql` names.
    fn show_all(&mut self) {
        let names = |of: &str, name: &str| of.split(' ').any(|word| word == name);
        for one in self.counters.iter().filter(|one| one.is_wide()) {
            if !self.json.iter().any(|(_, of)| names(of, &one.0)) {
                self.json.push((one.shown("_seconds"), one.0.clone()));
            }
            if !self.sql.iter().any(|(.., of)| names(of, &one.0)) {
                let kind = if one.3.is_time() { "double precision" } else { "bigint" };
                self.sql.push((one.shown("_time"), kind.into(), one.0.clone()));
            }
        }
    }

    fn find(&self, name: &str) -> Result<&Counter, String> {
        let found = self.counters.iter().find(|one| one.0 == name);
        found.ok_or_else(|| format!("counter {name} does not exist"))
    }

    fn operand<'c>(&'c self, of: &'c str) -> Result<FigureSource<'c>, String> {
        let words: Vec<&str> = of.split(' ').collect();
        Ok(match words[..] {
            [a, "+", b] => FigureSource::Sum(self.find(a)?, self.find(b)?),
            [a, "-", b] => FigureSource::Difference(self.find(a)?, self.find(b)?),
            [a, "measured"] => FigureSource::Measured(self.find(a)?),
            [a] => self.find(a).map_or(FigureSource::Other(of), FigureSource::One),
            _ => FigureSource::Other(of),
        })
    }

    /// Puts them into the struct `counts` of the layout.
    pub fn complete(&self, layout: &mut Layout) -> Result<(), String> {
        let counts = layout.structs.iter_mut().find(|one| one.name == "counts");
        let part = counts.and_then(|counts| counts.parts.first_mut());
        let members: &mut Vec<Member> = &mut part.ok_or("struct counts does not exist")?.members;
        for Counter(name, at, kind, unit, since, meaning) in &self.counters {
            let unit = match unit {
                Unit::Ticks => "ticks: ",
                Unit::Ns => "ns: ",
                Unit::Count | Unit::Bytes => "",
            };
            let reported = if *since > 0 { format!("; 0 before {since}") } else { String::new() };
            members.push(Member(
                *at,
                kind.clone(),
                name.clone(),
                format!("{unit}{meaning}{reported}"),
            ));
        }
        let (mut reserved, mut words) = self.reserved;
        while words > 0 && self.counters.iter().any(|one| one.1 == reserved) {
            (reserved, words) = (reserved + 8, words - 1);
        }
        if words > 0 {
            let kind = Type::try_from(format!("u64[{words}]"))?;
            members.push(Member(reserved, kind, "reserved".into(), "for future counters".into()));
        }
        members.sort_by_key(|member| member.0);
        layout.groups = self.groups.clone();
        layout.check()
    }

    /// Generates `counters.rs` of the reader.
    pub fn reader(&self) -> Result<String, String> {
        let count = self.counters.len();
        let mut out = format!(
            "// SPDX-License-Identifier: PostgreSQL\n\
             //! The counters of a statement, and their form in `--json`.\n\
             //!\n\
             //! Generated from format/counters.toml by `make generate`; do not edit.\n\n\
             use std::collections::BTreeMap;\n\n\
             use serde::Serialize;\n\n\
             use super::counted::{{failed_by_class, Counter, Unit}};\n\
             use crate::layout::counts;\n\n\
             /// Number of counters.\n\
             pub const COUNTERS: usize = {count};\n\n\
             /// All counters.\n\
             pub static COUNTER: [Counter; COUNTERS] = [\n"
        );
        for one in &self.counters {
            let unit = match one.3 {
                Unit::Count | Unit::Bytes => "Count",
                Unit::Ticks => "Ticks",
                Unit::Ns => "Nanos",
            };
            let _ = writeln!(
                out,
                "    Counter {{ name: \"{}\", at: counts::{}, wide: {}, unit: Unit::{unit} }},",
                one.0,
                one.constant(),
                one.is_wide()
            );
        }
        out.push_str("];\n\n/// Indexes of the counters.\npub mod counter {\n");
        for (at, one) in self.counters.iter().enumerate() {
            let _ = writeln!(
                out,
                "    /// {}.\n    pub const {}: usize = {at};",
                capital(&one.meaning("0")),
                one.constant()
            );
        }
        out.push_str("}\n");
        self.reader_structs(&mut out)?;
        Ok(out)
    }

    fn reader_structs(&self, out: &mut String) -> Result<(), String> {
        // Structs in order of their first field; "" is the top-level struct.
        let mut structs: Vec<(String, String)> = Vec::new();
        let mut fields: Vec<(String, String, String, String)> = Vec::new();
        for (path, of) in &self.json {
            let (inner, name) = path.split_once('.').unwrap_or(("", path));
            if !inner.is_empty() && !structs.iter().any(|one| one.0 == inner) {
                structs.push((inner.into(), capital(inner)));
                fields.push((
                    String::new(),
                    inner.into(),
                    capital(inner),
                    format!("{}::from_counters(counters, second)", capital(inner)),
                ));
            }
            let seconds = |one: &Counter| match one.3 {
                Unit::Ticks => format!("counters[counter::{}] as f64 * second", one.constant()),
                _ => format!("counters[counter::{}] as f64 * 1e-9", one.constant()),
            };
            let (kind, value) = match self.operand(of)? {
                FigureSource::One(one) if one.3.is_time() => ("f64", seconds(one)),
                FigureSource::One(one) => ("u64", format!("counters[counter::{}]", one.constant())),
                FigureSource::Sum(a, b) => ("f64", format!("{} + {}", seconds(a), seconds(b))),
                FigureSource::Measured(one) => {
                    ("Option<f64>", format!("measured.then(|| {})", seconds(one)))
                }
                FigureSource::Other("failed by class") => (
                    "BTreeMap<&'static str, u64>",
                    "failed_by_class(&counters[counter::FAILED_CONNECTION..])".into(),
                ),
                FigureSource::Difference(..) | FigureSource::Other(_) => {
                    return Err(format!("json {path}: unknown {of}"))
                }
            };
            fields.push((inner.into(), name.into(), kind.into(), value));
        }
        structs.push((String::new(), "StatementCounters".into()));
        for (inner, type_name) in &structs {
            let (copy, doc) = match inner.as_str() {
                "" => ("", "The counters of a statement, as `--json` prints them".to_string()),
                inner => (" Copy,", format!("`{inner}` of [`StatementCounters`]")),
            };
            let _ = writeln!(out, "\n/// {doc}.\n#[derive(Debug, Clone,{copy} Default, PartialEq, Serialize)]\npub struct {type_name} {{");
            let own = || fields.iter().filter(|field| field.0 == *inner);
            for (_, name, kind, _) in own() {
                let path = if inner.is_empty() { name.clone() } else { format!("{inner}.{name}") };
                let of = self.json.iter().find(|row| row.0 == path).map(|row| row.1.as_str());
                let meaning = match of.map(|of| self.operand(of)).transpose()? {
                    Some(
                        FigureSource::One(one)
                        | FigureSource::Sum(one, _)
                        | FigureSource::Measured(one),
                    ) => one.meaning("0"),
                    Some(_) => "part of `errors`, by class of SQLSTATE".into(),
                    None => format!("see [`{kind}`]"),
                };
                let _ = writeln!(out, "    /// {}.\n    pub {name}: {kind},", capital(&meaning));
            }
            let used = own().any(|field| field.3.contains("second"));
            let second = if used { "second" } else { "_second" };
            let _ = writeln!(out, "}}\n\nimpl {type_name} {{\n    pub(super) fn from_counters(counters: &[u64; COUNTERS], {second}: f64) -> {type_name} {{");
            if own().any(|field| field.3.starts_with("measured")) {
                out.push_str("        let measured = counters[counter::USER_NS] != 0 || counters[counter::SYSTEM_NS] != 0;\n");
            }
            let _ = writeln!(out, "        {type_name} {{");
            for (_, name, _, value) in own() {
                let _ = writeln!(out, "            {name}: {value},");
            }
            out.push_str("        }\n    }\n}\n");
        }
        Ok(())
    }

    /// Generates `recorded_statement.rs`.
    pub fn recorded(&self) -> String {
        let mut out = String::from(
            "// SPDX-License-Identifier: PostgreSQL\n\
             //! The table of statements.\n\
             //!\n\
             //! Generated from format/counters.toml by `make generate`; do not edit.\n\n\
             use std::sync::Arc;\n\n\
             use segment::statements::COUNTERS;\n\n\
             use crate::table::{table, Cell, Cells, Column, Columns, Table, Unit};\n\n\
             table! {\n    /// A statement in a detail interval.\n    RecordedStatementRow in \"statements\" by |a, b| {\n        \
             (a.key(), a.frame).cmp(&(b.key(), b.frame))\n    }, histogram buckets counts;\n",
        );
        let fixed = |out: &mut String, columns: &[RecordedColumn]| {
            for RecordedColumn(name, kind, unit, rule, meaning) in columns {
                let rule = if rule.is_empty() { String::new() } else { format!(", {rule}") };
                let _ =
                    writeln!(out, "    {name}: {kind}, {unit}{rule}, \"{}.\";", capital(meaning));
            }
        };
        fixed(&mut out, &self.before);
        for one in &self.counters {
            let unit = match one.3 {
                Unit::Count => "Count",
                Unit::Bytes => "Bytes",
                Unit::Ticks | Unit::Ns => "Ns",
            };
            let _ = writeln!(
                out,
                "    {}: u64, {unit}, sum, \"{}.\";",
                one.column(),
                capital(&one.meaning("0"))
            );
        }
        fixed(&mut out, &self.after);
        out.push_str("}\n\nimpl RecordedStatementRow {\n");
        for (name, reference) in [("counters", "&"), ("counters_mut", "&mut ")] {
            let of = if name == "counters" { "u64" } else { "&mut u64" };
            let each = if name == "counters" { "" } else { "&mut " };
            let _ = writeln!(
                out,
                "    /// The counters, in the order of [`segment::statements::COUNTER`].\n    pub(crate) fn {name}({reference}self) -> [{of}; COUNTERS] {{\n        ["
            );
            for one in &self.counters {
                let _ = writeln!(out, "            {each}self.{},", one.column());
            }
            out.push_str("        ]\n    }\n");
            if name == "counters" {
                out.push('\n');
            }
        }
        out.push_str("}\n");
        out
    }

    /// Generates the table of docs/reference-recording.md.
    pub fn recorded_table(&self) -> String {
        let mut out = String::from("| column | type | unit | |\n|---|---|---|---|\n");
        let fixed = |out: &mut String, columns: &[RecordedColumn]| {
            for RecordedColumn(name, kind, unit, _, meaning) in columns {
                let (kind, unit) = match (kind.as_str(), unit.as_str()) {
                    (_, "Time") => ("timestamp", "UTC"),
                    (kind, unit) => (
                        match kind {
                            "Option<u64>" => "int64 or null",
                            "bool" => "boolean",
                            "Arc<str>" => "text",
                            "f64" => "double",
                            "Vec<u64>" => "list of int64",
                            _ => "int64",
                        },
                        match unit {
                            "Ns" => "ns",
                            "Id" => "id",
                            "Flag" => "yes/no",
                            "Text" => "text",
                            "NsSquared" => "ns²",
                            _ => "count",
                        },
                    ),
                };
                let _ = writeln!(out, "| `{name}` | {kind} | {unit} | {meaning} |");
            }
        };
        fixed(&mut out, &self.before);
        for one in &self.counters {
            let unit = match one.3 {
                Unit::Count => "count",
                Unit::Bytes => "bytes",
                Unit::Ticks | Unit::Ns => "ns",
            };
            let _ = writeln!(out, "| `{}` | int64 | {unit} | {} |", one.column(), one.meaning("0"));
        }
        fixed(&mut out, &self.after);
        out
    }

    /// Generates the table of docs/reference-sql.md, which says where each counter is shown.
    pub fn shown_table(&self) -> Result<String, String> {
        let mut out = String::from(
            "| counter | `tally.statements` | JSON | recordings | meaning |\n|---|---|---|---|---|\n",
        );
        for one in &self.counters {
            let is_of = |of: &str| -> Result<bool, String> {
                Ok(match self.operand(of)? {
                    FigureSource::One(a) | FigureSource::Measured(a) => a.0 == one.0,
                    FigureSource::Sum(a, b) | FigureSource::Difference(a, b) => {
                        a.0 == one.0 || b.0 == one.0
                    }
                    FigureSource::Other(of) => {
                        of == "failed by class" && one.0.starts_with("failed_")
                    }
                })
            };
            let mut names = [Vec::new(), Vec::new()];
            for (name, _, of) in &self.sql {
                if is_of(of)? {
                    names[0].push(format!("`{name}`"));
                }
            }
            for (name, of) in &self.json {
                if is_of(of)? {
                    names[1].push(format!("`{name}`"));
                }
            }
            let [sql, json] = names.map(|names| names.join(", "));
            let _ = writeln!(
                out,
                "| {} | {sql} | {json} | `{}` | {} |",
                one.0.replace('_', " "),
                one.column(),
                one.meaning("not reported")
            );
        }
        Ok(out)
    }

    /// Generates `statement_columns.h` of the extension.
    pub fn columns_header(&self) -> Result<String, String> {
        let mut out = String::from(
            "/* SPDX-License-Identifier: PostgreSQL */\n\
             /*\n * statement_columns.h\n *\t  The columns of tally.statement_rows, sorted by name, from which statement_views.c fills a row.\n *\n \
             * Generated from format/counters.toml by `make generate`; do not edit.\n */\n\
             #define COUNTS(member) offsetof(tally_counts, member)\n\n\
             static const statement_column statement_columns[] = {\n",
        );
        let mut rows = Vec::new();
        for (name, kind, of) in &self.sql {
            let oid = match kind.as_str() {
                "oid" => "OIDOID",
                "boolean" => "BOOLOID",
                "bigint" => "INT8OID",
                "integer" => "INT4OID",
                "text" => "TEXTOID",
                "numeric" => "NUMERICOID",
                "double precision" => "FLOAT8OID",
                "timestamptz" => "TIMESTAMPTZOID",
                "jsonb" => "JSONBOID",
                _ => return Err(format!("sql {name}: unknown type {kind}")),
            };
            let reported = |one: &Counter| match one.4 {
                0 => String::new(),
                since => format!(", .known = PG_VERSION_NUM >= {since}0000"),
            };
            let (column, more, known) = match self.operand(of)? {
                FigureSource::One(one) => {
                    let column = match (one.3, kind.as_str()) {
                        (Unit::Ticks, _) => "TICKS",
                        (Unit::Ns, _) => "NS",
                        (_, "numeric") => "NUMERIC",
                        _ => "COUNT",
                    };
                    (column, format!(", COUNTS({})", one.0), reported(one))
                }
                FigureSource::Sum(a, b) => {
                    ("TICKS_AND_NS", format!(", COUNTS({}), COUNTS({})", a.0, b.0), reported(b))
                }
                FigureSource::Difference(a, b) => {
                    ("NS_LESS_NS", format!(", COUNTS({}), COUNTS({})", a.0, b.0), reported(b))
                }
                FigureSource::Measured(one) => {
                    ("MEASURED_NS", format!(", COUNTS({})", one.0), reported(one))
                }
                FigureSource::Other(of) => {
                    let words: Vec<&str> = of.split(' ').collect();
                    let (column, more) = match words[..] {
                        ["quantile", part] => {
                            ("QUANTILE".to_string(), format!(", .quantile = {part}"))
                        }
                        ["class", class] => {
                            ("CLASS".to_string(), format!(", TALLY_CLASS_{}", class.to_uppercase()))
                        }
                        ["instant", member] => {
                            ("INSTANT".to_string(), format!(", COUNTS({member})"))
                        }
                        [moments @ ("exec" | "plan"), what] => (
                            format!("MOMENTS_{}", what.to_uppercase()),
                            format!(", COUNTS({moments})"),
                        ),
                        _ => (of.to_uppercase().replace(' ', "_"), String::new()),
                    };
                    rows.push((name, format!("{{\"{name}\", {oid}, COLUMN_{column}{more}}}")));
                    continue;
                }
            };
            rows.push((name, format!("{{\"{name}\", {oid}, COLUMN_{column}{more}{known}}}")));
        }
        rows.sort();
        for (_, row) in rows {
            let row =
                if row.contains(".known") { row } else { row.replace('}', ", .known = true}") };
            let _ = writeln!(out, "\t{row},");
        }
        out.push_str("};\n\n#undef COUNTS\n");
        Ok(out)
    }

    /// Generates the SQL declarations of the columns.
    pub fn sql_columns(&self) -> String {
        let mut out = String::new();
        let mut line = String::from("   ");
        for (at, (name, kind, _)) in self.sql.iter().enumerate() {
            let end = if at + 1 < self.sql.len() { "," } else { ")" };
            let column = format!(" OUT {name} {kind}{end}");
            if line.len() + column.len() > 100 {
                out.push_str(&line);
                out.push('\n');
                line = String::from("   ");
            }
            line.push_str(&column);
        }
        out.push_str(&line);
        out.push('\n');
        out
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Replaces the columns in a script, if it declares them.
pub fn refill_script(script: &str, columns: &str) -> Option<String> {
    let (before, rest) = script.split_once("    -- generated: statement columns\n")?;
    let (_, after) = rest.split_once("    -- end\n")?;
    Some(format!("{before}    -- generated: statement columns\n{columns}    -- end\n{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(from: &str, to: &str) -> Result<(Counters, Layout), String> {
        let read = |name: &str| {
            let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../format");
            std::fs::read_to_string(root.join(name)).unwrap()
        };
        let text = read("counters.toml");
        assert!(text.contains(from), "{from}");
        let counters = Counters::read(&text.replace(from, to))?;
        let mut layout = Layout::read(&read("layout.toml"))?;
        counters.complete(&mut layout)?;
        Ok((counters, layout))
    }

    #[test]
    fn what_does_not_fit_together_is_refused_with_the_row() {
        let refused = |from: &str, to: &str| changed(from, to).map(|_| ()).unwrap_err();
        assert_eq!(
            refused(
                "\"read_ticks + server_read_ns\"],\n  [\"io",
                "\"read_ticks + reads\"],\n  [\"io"
            ),
            "json io.read_seconds: counter reads does not exist"
        );
        assert_eq!(
            refused("\"failed_connection\", 10]", "\"failed_connection\", 11]"),
            "group failed: no counter at 536"
        );
        assert!(refused("reserved = [4", "reserved = [3").starts_with("struct counts: member "));
        assert_eq!(
            refused(
                "\"errors\",                     \"bigint\",           \"errors\"",
                "\"errors\", \"bigint\", \"failed_data\""
            ),
            "sql errors: failed_data has 4 bytes"
        );
        assert_eq!(
            refused("312, \"u64\"", "312, \"u32\""),
            "errors: group failed has counters of 4 bytes, all others of 8"
        );
    }

    #[test]
    fn a_counter_without_rows_of_its_own_is_shown_under_its_name() {
        let row = "]\n\n# Adjacent";
        let new = "  [\"spill_ticks\", 480, \"u64\", \"ticks\", 18, \"time\"],\n  [\"spills\", 488, \"u64\", \"bytes\", 0, \"bytes\"],\n";
        let (counters, layout) = changed(row, &format!("{new}{row}")).unwrap();
        assert!(counters
            .sql_columns()
            .ends_with("OUT spill_time double precision, OUT spills bigint)\n"));
        let header = counters.columns_header().unwrap();
        let column = "{\"spill_time\", FLOAT8OID, COLUMN_TICKS, COUNTS(spill_ticks), .known = PG_VERSION_NUM >= 180000},";
        assert!(header.contains(column), "{header}");
        let reader = counters.reader().unwrap();
        assert!(reader.contains("pub spill_seconds: f64") && reader.contains("pub spills: u64"));
        let names = |at| {
            layout
                .structs
                .iter()
                .find(|one| one.name == "counts")?
                .members()
                .find(|m| m.0 == at)
                .map(|m| m.2.clone())
        };
        assert_eq!(
            [472, 480, 488].map(names).map(Option::unwrap),
            ["deadlocks", "spill_ticks", "spills"]
        );
    }

    #[test]
    fn columns_are_declared_in_their_order_and_found_by_their_names() {
        let (counters, layout) = changed("custom_plan_calls", "a_column").unwrap();
        let declared = counters.sql_columns();
        assert!(
            declared.starts_with("    OUT userid oid,") && declared.ends_with(")\n"),
            "{declared}"
        );
        let header = counters.columns_header().unwrap();
        let names: Vec<&str> = header
            .lines()
            .filter_map(|line| line.strip_prefix("\t{\"")?.split('"').next())
            .collect();
        assert!(names.is_sorted() && names[0] == "a_column", "{names:?}");
        assert_eq!(names.len(), declared.matches(" OUT ").count());
        assert_eq!(layout.value("cache_size"), Ok(165_568));
    }
}
