// SPDX-License-Identifier: PostgreSQL
//! Commands for psql that show how the server plans a statement whose text has `$n` in place of constants.
//!
//! A normalised text is not always one that the server accepts: where its grammar requires a constant, it refuses a parameter.
//! `interval '1 day'` has become `interval $1`, which is written as `$1::interval` here. Expressions of GROUP BY and ORDER BY
//! have kept the constants that are parameters in the same expressions of the select list, or have other numbers. What is known
//! to be beyond repair is said in words. The server may still be unable to infer a type that the original constant had.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use serde::Serialize;

/// Commands to type into psql, or why there are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatementExample {
    /// The commands, for each supported version.
    Commands(String),
    /// The reason, a sentence.
    Unavailable(&'static str),
}

/// Commands that PREPARE and EXPLAIN accept.
const PLANNED: [&str; 8] =
    ["select", "insert", "update", "delete", "merge", "values", "with", "table"];
/// Words that an expression follows. A parameter after any other word was a constant with its type in front.
const BEFORE_EXPRESSIONS: &str =
    " all and any array as asymmetric between both by case content default distinct document else escape except first for \
     from groups having ilike in intersect is leading like limit next not offset on operator or passing path placing range \
     returning row rows select set similar some symmetric then to trailing union using value values variadic when where with ";
/// Words that end the list of an ORDER BY or a GROUP BY.
const AFTER_LISTS: &str =
    " except fetch for group having intersect limit offset order range rows union window ";
/// The highest number of a parameter.
const MOST: usize = 65_535;

fn contains(list: &str, word: &str) -> bool {
    list.contains(&format!(" {word} "))
}

/// A token, folded to lower case unless it is quoted.
#[derive(Debug, Clone)]
struct ExampleToken {
    text: String,
    range: Range<usize>,
}

impl ExampleToken {
    fn parameter(&self) -> Option<usize> {
        let number = self.text.strip_prefix('$')?.parse().ok()?;
        (1..=MOST).contains(&number).then_some(number)
    }

    fn is_constant(&self) -> bool {
        self.text.starts_with(|c: char| c == '\'' || c.is_ascii_digit())
            || self.text.ends_with('\'')
    }

    fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '"')
            && !self.text.ends_with('\'')
    }
}

struct Rewriting<'t> {
    text: &'t str,
    tokens: Vec<ExampleToken>,
    /// Replacements of parts of the text, by where they begin.
    changes: BTreeMap<usize, (Range<usize>, String)>,
    /// Numbers of parameters after renumbering, by token.
    numbers: BTreeMap<usize, usize>,
}

impl<'t> Rewriting<'t> {
    fn new(text: &'t str) -> Rewriting<'t> {
        let tokens = recording::token_ranges(text).into_iter().map(|range| {
            let token = text.get(range.clone()).unwrap_or_default();
            let text = match token.starts_with('"') {
                true => token.to_string(),
                false => token.to_lowercase(),
            };
            ExampleToken { text, range }
        });
        let mut tokens: Vec<ExampleToken> = tokens.collect();
        while tokens.pop_if(|token| token.text == ";").is_some() {}
        let numbers = tokens.iter().enumerate();
        let numbers = numbers.filter_map(|(at, token)| Some((at, token.parameter()?))).collect();
        Rewriting { text, tokens, changes: BTreeMap::new(), numbers }
    }

    /// The token, or "" beyond the text.
    fn at(&self, at: Option<usize>) -> &str {
        at.and_then(|at| self.tokens.get(at)).map_or("", |token| &token.text)
    }

    fn before(&self, at: usize, distance: usize) -> &str {
        self.at(at.checked_sub(distance))
    }

    fn after(&self, at: usize, distance: usize) -> &str {
        self.at(at.checked_add(distance))
    }

    /// Why the server would refuse the text whatever it is replaced by.
    fn refusal(&self) -> Option<&'static str> {
        let first = self.tokens.iter().find(|token| token.text != "(");
        if !first.is_some_and(|first| PLANNED.contains(&&*first.text)) {
            return Some("EXPLAIN does not show plans of such commands.");
        }
        if self.tokens.iter().any(|token| token.text == ";") {
            return Some("The text has several commands.");
        }
        let is_table = |at: usize| {
            self.tokens[at].text == "into" && !["insert", "merge"].contains(&self.before(at, 1))
        };
        if (0..self.tokens.len()).any(is_table) {
            return Some(
                "PREPARE does not accept SELECT INTO; use EXPLAIN with the original statement.",
            );
        }
        if (0..self.tokens.len()).any(|at| self.is_placeholder(at)) {
            return Some("The text has ? in place of constants, which the server does not accept.");
        }
        for &at in self.numbers.keys() {
            if self.before(at, 2) == "extract" && self.after(at, 1) == "from" {
                return Some(
                    "The server does not accept a parameter as the field in extract(field from ...); \
                     use EXPLAIN with the original statement.",
                );
            }
            if self.after(at, 1) == "uescape" {
                return Some(
                    "The server does not accept UESCAPE after a parameter; \
                     use EXPLAIN with the original statement.",
                );
            }
        }
        None
    }

    /// Whether it is a question mark without a second operand. Texts that the server has not normalised have these.
    fn is_placeholder(&self, at: usize) -> bool {
        let next = self.after(at, 1);
        let is_operand = next.starts_with(['$', '(', '\'', '"', '-', '+'])
            || next.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                && !contains(BEFORE_EXPRESSIONS, next)
                && !contains(AFTER_LISTS, next)
                && !["asc", "desc", "end", "nulls"].contains(&next);
        self.at(Some(at)) == "?" && !is_operand
    }

    /// Where the type of a constant begins that ends before token `at`; `None`: there is no type.
    fn type_before(&self, at: usize) -> Option<usize> {
        let mut begin = at.checked_sub(1)?;
        if self.at(Some(begin)) == "zone" {
            // timestamp (3) with time zone
            if !["with", "without"].contains(&self.before(at, 3)) {
                return None;
            }
            begin = at.checked_sub(4)?;
        }
        if self.at(Some(begin)) == ")" {
            let mut depth = 0usize;
            begin = (0..=begin).rev().find(|&at| {
                match self.at(Some(at)) {
                    ")" => depth += 1,
                    "(" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0
            })?;
            begin = begin.checked_sub(1)?;
        }
        let token = &self.tokens[begin];
        if !token.is_word() || contains(BEFORE_EXPRESSIONS, &token.text) {
            return None;
        }
        let words = (self.before(begin, 1), &*token.text);
        if matches!(words, ("double", "precision") | ("character" | "char" | "bit", "varying")) {
            begin -= 1;
        }
        while self.before(begin, 1) == "." && begin >= 2 {
            begin -= 2;
        }
        Some(begin)
    }

    /// Writes types behind the parameters.
    fn move_types(&mut self) {
        for at in self.numbers.keys().copied().collect::<Vec<_>>() {
            if let Some(begin) = self.type_before(at) {
                let start = self.tokens[begin].range.start;
                let end = self.tokens[at - 1].range.end;
                let name = self.text.get(start..end).unwrap_or_default();
                let range = start..self.tokens[at].range.end;
                self.changes.remove(&self.tokens[at].range.start);
                self.changes.insert(start, (range, format!("${}::{name}", self.numbers[&at])));
            } else if self.before(at, 2) == "count" && self.after(at, 1) == ")" {
                // Any type will do, but the server must know one.
                self.change(at, "::text");
            }
        }
    }

    /// Writes `= any(array[$1, $2])` as `in ($1, $2)`: an array of parameters has the type text[].
    fn write_lists(&mut self) {
        const OPENING: [&str; 5] = ["=", "any", "(", "array", "["];
        for at in 0..self.tokens.len() {
            if !(0..OPENING.len()).all(|i| self.after(at, i) == OPENING[i]) {
                continue;
            }
            let first = at + OPENING.len();
            let items =
                (first..).find(|&at| !self.numbers.contains_key(&at) && self.at(Some(at)) != ",");
            let Some(end) = items.filter(|&end| end > first) else { continue };
            if self.at(Some(end)) != "]" || self.after(end, 1) != ")" {
                continue;
            }
            let opening = self.tokens[at].range.start..self.tokens[first - 1].range.end;
            let closing = self.tokens[end].range.start..self.tokens[end + 1].range.end;
            self.changes.insert(opening.start, (opening, "in (".into()));
            self.changes.insert(closing.start, (closing, ")".into()));
        }
    }

    fn change(&mut self, at: usize, cast: &str) {
        let range = self.tokens[at].range.clone();
        self.changes.insert(range.start, (range, format!("${}{cast}", self.numbers[&at])));
    }

    /// The expressions of each GROUP BY and ORDER BY, as ranges of tokens.
    fn listed(&self) -> Vec<Range<usize>> {
        let mut listed = Vec::new();
        for by in 1..self.tokens.len() {
            if self.at(Some(by)) != "by" || !["group", "order"].contains(&self.before(by, 1)) {
                continue;
            }
            let (mut depth, mut begin) = (0usize, by + 1);
            for at in by + 1..=self.tokens.len() {
                let token = self.at(Some(at));
                let ends = at == self.tokens.len()
                    || (depth == 0 && (token == ")" || contains(AFTER_LISTS, token)));
                if depth == 0 && (ends || [",", "asc", "desc", "nulls", "using"].contains(&token)) {
                    listed.push(begin..at);
                    begin = at + 1;
                }
                match token {
                    "(" | "[" => depth += 1,
                    ")" | "]" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if ends {
                    break;
                }
            }
        }
        listed
    }

    /// Gives the expressions of GROUP BY and ORDER BY the parameters of the same expressions before them. The server has located
    /// the constants of only one of them.
    fn renumber(&mut self) {
        for expression in self.listed() {
            let length = expression.len();
            // A single number is the position of a column.
            if length < 2 {
                continue;
            }
            let same = |earlier: usize, at: usize| {
                let is_parameter = |at| self.numbers.contains_key(&at);
                self.at(Some(earlier)) == self.at(Some(at))
                    || is_parameter(earlier) && (is_parameter(at) || self.tokens[at].is_constant())
            };
            let earlier = (0..expression.start.saturating_sub(length))
                .find(|&begin| (0..length).all(|i| same(begin + i, expression.start + i)));
            let Some(earlier) = earlier else { continue };
            for (i, at) in expression.enumerate() {
                let number = self.numbers.get(&(earlier + i)).copied();
                if let Some(number) = number.filter(|number| self.numbers.get(&at) != Some(number))
                {
                    self.numbers.insert(at, number);
                    self.change(at, "");
                }
            }
        }
    }

    /// The text with its changes, from the beginning to the last token.
    fn written(&self) -> String {
        let end = self.tokens.last().map_or(0, |token| token.range.end);
        let mut written = String::new();
        let mut from = 0;
        for (range, replacement) in self.changes.values() {
            written.push_str(self.text.get(from..range.start).unwrap_or_default());
            written.push_str(replacement);
            from = range.end;
        }
        written.push_str(self.text.get(from..end).unwrap_or_default());
        written.trim_start().to_string()
    }
}

impl StatementExample {
    /// Commands that show the plan of the statement with this text, without executing it. `cut`: the text is truncated.
    pub fn for_text(text: &str, cut: bool) -> StatementExample {
        if cut {
            return StatementExample::Unavailable(
                "The text is truncated; pg_tally.max_statement_text sets the length that is kept.",
            );
        }
        let mut statement = Rewriting::new(text);
        if let Some(reason) = statement.refusal() {
            return StatementExample::Unavailable(reason);
        }
        let most = statement.numbers.values().copied().max().unwrap_or(0);
        statement.renumber();
        statement.move_types();
        statement.write_lists();
        let written = statement.written();
        if most == 0 {
            return StatementExample::Commands(format!("EXPLAIN (VERBOSE)\n{written};"));
        }
        // The server infers the types of parameters that it finds in the text.
        let used: Vec<usize> = statement.numbers.values().copied().collect();
        let is_unused = |number: &usize| !used.contains(number);
        let types = match (1..=most).any(|number| is_unused(&number)) {
            true => {
                let name = |number| if is_unused(&number) { "text" } else { "unknown" };
                format!(" ({})", (1..=most).map(name).collect::<Vec<_>>().join(", "))
            }
            false => String::new(),
        };
        let values = vec!["NULL"; most].join(", ");
        let mut commands =
            String::from("BEGIN;\nSET LOCAL plan_cache_mode = force_generic_plan;\n");
        let _ = write!(
            commands,
            "PREPARE example{types} AS\n{written};\n\
             -- If the server finds no type for $1, or a wrong one, write $1::type.\n\
             -- These types were found:\n\
             SELECT parameter_types FROM pg_prepared_statements WHERE name = 'example';\n\
             -- The plan for any values. To execute it, replace NULL by values,\n\
             -- and VERBOSE by ANALYZE, BUFFERS.\n\
             EXPLAIN (VERBOSE) EXECUTE example ({values});\n\
             ROLLBACK;\n\
             DEALLOCATE example;"
        );
        StatementExample::Commands(commands)
    }

    /// The lines to show.
    pub fn lines(&self) -> Vec<String> {
        let text = match self {
            StatementExample::Commands(commands) => commands,
            StatementExample::Unavailable(reason) => *reason,
        };
        text.lines().map(|line| line.replace('\t', "    ")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that is prepared, with the types of parameters.
    fn prepared(text: &str) -> String {
        match StatementExample::for_text(text, false) {
            StatementExample::Commands(commands) => {
                let begin = commands.find("PREPARE example").unwrap() + "PREPARE example".len();
                let end = commands.find(";\n-- If the server").unwrap();
                commands[begin..end].trim_start().replacen("AS\n", "", 1).to_string()
            }
            StatementExample::Unavailable(reason) => reason.to_string(),
        }
    }

    #[test]
    fn constants_with_their_type_in_front_become_parameters_with_a_cast() {
        for (text, expected) in [
            ("select now() - interval $1, DATE $2", "select now() - $1::interval, $2::DATE"),
            ("select interval $1 day to second", "select $1::interval day to second"),
            ("select interval (3) $1", "select $1::interval (3)"),
            ("select timestamp (0) with time zone $1", "select $1::timestamp (0) with time zone"),
            ("select a at time zone $1 from t", "select a at time zone $1 from t"),
            ("select double precision $1", "select $1::double precision"),
            ("select pg_catalog.\"Odd\" $1", "select $1::pg_catalog.\"Odd\""),
            ("select a operator(pg_catalog.+) $1", "select a operator(pg_catalog.+) $1"),
            ("select count($1), count(a)", "select count($1::text), count(a)"),
        ] {
            assert_eq!(prepared(text), expected, "{text}");
        }
    }

    #[test]
    fn lists_in_arrays_become_lists_that_take_the_type_of_what_they_are_compared_with() {
        for (text, expected) in [
            ("select a = any (array[$1, $2]) from t", "select a in ($1, $2) from t"),
            ("select a = any(array[$1 /*, ... */])", "select a in ($1 /*, ... */)"),
        ] {
            assert_eq!(prepared(text), expected);
        }
        for text in ["select a = any(array[b, $1])", "select a = any(array[$1, $2]::int[])"] {
            assert_eq!(prepared(text), text);
        }
    }

    #[test]
    fn other_parameters_stay_as_they_are() {
        for text in [
            "select * from t where a = $1 and b in ($2, $3) and c like $4 limit $5 offset $6",
            "select case when a then $1 else $2 end, substring(b from $3 for $4), trim(both $5 from c) from t",
            "select a from t where b between $1 and $2 fetch first $3 rows only",
            "insert into t values ($1, $2) on conflict do nothing returning $3",
            "update t set a = $1 where b is distinct from $2 or c = any($3)",
            "with a as (select $1) (table a union values ($2))",
            "select a ? $1, a ? b from t",
            "select '$2', \"$3\", $$ $4 $$, $x$ $5 $x$, a$6 /* $7 */ from t where a = $1",
        ] {
            assert_eq!(prepared(text), text);
        }
    }

    #[test]
    fn the_same_expressions_get_the_same_numbers() {
        assert_eq!(
            prepared(
                "select date_trunc($1, a), count(*) from t group by date_trunc($2, a), b + $3 \
                 order by date_trunc($4, a) desc limit $5"
            ),
            "(unknown, text, unknown, text, unknown) select date_trunc($1, a), count(*) from t \
             group by date_trunc($1, a), b + $3 order by date_trunc($1, a) desc limit $5"
        );
        let windows =
            "select row_number() over (partition by a order by b rows $1 preceding) from t";
        assert_eq!(prepared(windows), windows);
        assert_eq!(
            prepared("select interval $1, a from t group by interval $2, a"),
            "(unknown, text) select $1::interval, a from t group by $1::interval, a"
        );
    }

    #[test]
    fn comments_and_semicolons_after_the_statement_are_left_out_and_hints_stay() {
        assert_eq!(prepared("/*+ SeqScan(t) */ select $1; -- why"), "/*+ SeqScan(t) */ select $1");
        assert_eq!(
            StatementExample::for_text("select a -- b", false),
            StatementExample::Commands("EXPLAIN (VERBOSE)\nselect a;".into())
        );
        let StatementExample::Commands(commands) = StatementExample::for_text("select $2", false)
        else {
            panic!()
        };
        insta::assert_snapshot!(commands);
    }

    #[test]
    fn what_the_server_would_refuse_is_said_in_words() {
        for (text, word) in [
            ("vacuum t", "EXPLAIN"),
            ("", "EXPLAIN"),
            ("select extract($1 from a) from t", "extract"),
            ("select $1 uescape $2", "UESCAPE"),
            ("select $1 as a into t", "INTO"),
            ("select 1; select 2", "several"),
            ("select * from t where a = ? and b ? $1", "?"),
        ] {
            let StatementExample::Unavailable(reason) = StatementExample::for_text(text, false)
            else {
                panic!("{text}")
            };
            assert!(reason.contains(word), "{text}: {reason}");
        }
        assert!(matches!(
            StatementExample::for_text("select $1", true),
            StatementExample::Unavailable(_)
        ));
    }
}
