// SPDX-License-Identifier: PostgreSQL
//! The fingerprint of a statement: the same for the same statement on all servers, while queryid differs by
//! version, database and OIDs (ADR 69).
//!
//! Rule `f1`: the text's tokens, separated by spaces, are hashed. Comments, whitespace and trailing semicolons are
//! ignored. Unquoted words are folded to lower case; quoted identifiers are kept. Constants and parameters become `?`,
//! including a sign before them if that cannot be an operator. A list of constants after `IN` or `ARRAY` counts as one
//! constant, and the rows after `VALUES` count as one row.

/// The name of the rule. A different rule needs a different name.
const RULE: &str = "f1";

/// A token of SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A word, in lower case unless quoted.
    Word(String),
    /// A constant or parameter.
    Constant,
    /// An operator, or another character.
    Sign(String),
}

impl Token {
    fn is_sign(&self, text: &str) -> bool {
        matches!(self, Token::Sign(sign) if sign == text)
    }

    fn is_word(&self, text: &str) -> bool {
        matches!(self, Token::Word(word) if word == text)
    }

    fn text(&self) -> &str {
        match self {
            Token::Word(text) | Token::Sign(text) => text,
            Token::Constant => "?",
        }
    }
}

/// The characters of operators, as in the server's scanner.
const OPERATORS: &str = "~!@#^&|`?+-*/%<>=";
/// An operator that contains one of these characters may end in a sign.
const SPECIAL: &str = "~!@#^&|`?%";

fn begins_word(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn is_of_word(c: char) -> bool {
    begins_word(c) || c.is_ascii_digit() || c == '$'
}

/// Splits a text into tokens.
struct Scanner<'t> {
    rest: &'t str,
    tokens: Vec<Token>,
    /// Where constants are: the number of bytes from there to the end, and how long each is.
    constants: Vec<(usize, usize)>,
    /// Where tokens are, before signs become part of constants: the numbers of bytes from their beginning and from their end to the
    /// end of the text.
    places: Vec<(usize, usize)>,
}

impl<'t> Scanner<'t> {
    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or("");
    }

    /// The length of a quoted token that starts after `opening` bytes and ends with `quote`; a doubled quote does not
    /// end it.
    fn quoted(&self, opening: usize, quote: char, escapes: bool) -> usize {
        let mut characters = self.rest[opening..].char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            if escapes && c == '\\' {
                characters.next();
            } else if c == quote {
                if characters.peek().is_none_or(|(_, next)| *next != quote) {
                    return opening + at + quote.len_utf8();
                }
                characters.next();
            }
        }
        self.rest.len()
    }

    /// The length of a block comment, which may be nested.
    fn comment(&self) -> usize {
        let bytes = self.rest.as_bytes();
        let (mut depth, mut at) = (0, 0);
        while at + 1 < bytes.len() {
            match &bytes[at..at + 2] {
                b"/*" => (depth, at) = (depth + 1, at + 2),
                b"*/" => (depth, at) = (depth - 1, at + 2),
                _ => at += 1,
            }
            if depth == 0 {
                return at;
            }
        }
        bytes.len()
    }

    /// The length of a dollar-quoted string; `None`: it is not one.
    fn dollar_quoted(&self) -> Option<usize> {
        let tag = self.rest[1..].find('$').map(|end| &self.rest[..end + 2])?;
        let inside = &tag[1..tag.len() - 1];
        let is_tag = inside.chars().all(|c| is_of_word(c) && c != '$')
            && !inside.starts_with(|c: char| c.is_ascii_digit());
        let end =
            self.rest[tag.len()..].find(tag).map_or(self.rest.len(), |end| end + 2 * tag.len());
        is_tag.then_some(end)
    }

    fn count(&self, matches: impl Fn(char) -> bool) -> usize {
        self.rest.find(|c| !matches(c)).unwrap_or(self.rest.len())
    }

    /// The length of a number.
    fn number(&self) -> usize {
        let bytes = self.rest.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let before = at.checked_sub(1).and_then(|before| bytes.get(before));
            let is_hex = matches!(bytes.get(1), Some(b'x' | b'X'));
            let is_exponent_sign =
                matches!(byte, b'+' | b'-') && !is_hex && matches!(before, Some(b'e' | b'E'));
            // "1..2" in a PL/pgSQL loop is not a number.
            let is_point = *byte == b'.' && bytes.get(at + 1) != Some(&b'.');
            if !byte.is_ascii_alphanumeric() && *byte != b'_' && !is_point && !is_exponent_sign {
                break;
            }
            at += 1;
        }
        at
    }

    /// The length of an operator; trailing signs belong to the next token, as in the server's scanner.
    fn operator(&self) -> usize {
        let mut length = self.count(|c| OPERATORS.contains(c));
        for comment in ["--", "/*"] {
            length = self.rest[..length].find(comment).map_or(length, |at| at.min(length));
        }
        let text = &self.rest[..length];
        if text.contains(|c| SPECIAL.contains(c)) {
            return length.max(1);
        }
        text.trim_end_matches(['+', '-']).len().max(1)
    }

    /// Whether a sign here cannot be a binary operator.
    fn expects_operand(&self) -> bool {
        match self.tokens.last() {
            None => true,
            Some(Token::Sign(sign)) => !matches!(sign.as_str(), ")" | "]" | "."),
            Some(_) => false,
        }
    }

    fn constant(&mut self, bytes: usize) {
        self.constants.push((self.rest.len(), bytes));
        self.skip(bytes);
        let is_signed =
            self.tokens.last().is_some_and(|last| last.is_sign("-") || last.is_sign("+"));
        if is_signed {
            let sign = self.tokens.pop();
            if !self.expects_operand() {
                self.tokens.extend(sign);
            }
        }
        self.tokens.push(Token::Constant);
    }

    fn scan(&mut self) {
        while let Some(c) = self.rest.chars().next() {
            let next = self.rest[c.len_utf8()..].chars().next();
            let begun = self.rest.len();
            let begins_string = |prefix: &str| {
                self.rest
                    .get(..prefix.len())
                    .is_some_and(|found| found.eq_ignore_ascii_case(prefix))
            };
            if c.is_whitespace() {
                self.skip(c.len_utf8());
                continue;
            }
            if self.rest.starts_with("--") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.skip(end);
                continue;
            }
            if self.rest.starts_with("/*") {
                let end = self.comment();
                self.skip(end);
                continue;
            }
            if c == '\'' {
                let end = self.quoted(1, '\'', false);
                self.constant(end);
            } else if ["e'", "b'", "x'", "n'"].into_iter().any(begins_string) {
                let end = self.quoted(2, '\'', c.eq_ignore_ascii_case(&'e'));
                self.constant(end);
            } else if begins_string("u&'") {
                let end = self.quoted(3, '\'', false);
                self.constant(end);
            } else if c == '"' {
                let end = self.quoted(1, '"', false);
                self.tokens.push(Token::Word(self.rest[..end].to_string()));
                self.skip(end);
            } else if c == '$' && next.is_some_and(|next| next.is_ascii_digit()) {
                let end = 1 + self.rest[1..]
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(self.rest.len() - 1);
                self.constant(end);
            } else if let Some(end) = (c == '$').then(|| self.dollar_quoted()).flatten() {
                self.constant(end);
            } else if begins_word(c) {
                let end = self.count(is_of_word);
                self.tokens.push(Token::Word(self.rest[..end].to_ascii_lowercase()));
                self.skip(end);
            } else if c.is_ascii_digit()
                || (c == '.' && next.is_some_and(|next| next.is_ascii_digit()))
            {
                let end = self.number();
                self.constant(end);
            } else if OPERATORS.contains(c) {
                let end = self.operator();
                match &self.rest[..end] {
                    // A placeholder that some drivers use.
                    "?" => self.tokens.push(Token::Constant),
                    operator => self.tokens.push(Token::Sign(operator.to_string())),
                }
                self.skip(end);
            } else {
                self.tokens.push(Token::Sign(c.to_string()));
                self.skip(c.len_utf8());
            }
            self.places.push((begun, self.rest.len()));
        }
    }

    fn scan_text(text: &'t str) -> Scanner<'t> {
        let mut scanner =
            Scanner { rest: text, tokens: Vec::new(), constants: Vec::new(), places: Vec::new() };
        scanner.scan();
        scanner
    }
}

/// The tokens of a text, without white space and comments, as ranges of bytes.
pub fn token_ranges(text: &str) -> Vec<std::ops::Range<usize>> {
    let places = Scanner::scan_text(text).places.into_iter();
    places.map(|(begin, end)| text.len() - begin..text.len() - end).collect()
}

/// A text with `?` for each constant, for one that the server has not normalized. Constants may be secrets.
pub fn without_constants(text: &str) -> String {
    replace(text, &Scanner::scan_text(text).constants)
}

/// The same, and the fingerprint, from one pass over the text.
pub fn normalized(text: &str) -> (String, String) {
    let Scanner { tokens, constants, .. } = Scanner::scan_text(text);
    (replace(text, &constants), of_tokens(&ended(shorten(tokens))))
}

/// Replaces constants, which are at a number of bytes from the end, and so long.
fn replace(text: &str, constants: &[(usize, usize)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for (to_end, bytes) in constants {
        let begin = text.len() - to_end;
        out.push_str(text.get(end..begin).unwrap_or_default());
        out.push('?');
        end = (begin + bytes).min(text.len());
    }
    out.push_str(text.get(end..).unwrap_or_default());
    out
}

/// The end of a list of constants in brackets that begins here; `None`: the list contains something else.
fn list_end(tokens: &[Token], at: usize, [open, close]: [&str; 2]) -> Option<usize> {
    if !tokens.get(at)?.is_sign(open) {
        return None;
    }
    let mut at = at + 1;
    loop {
        if *tokens.get(at)? != Token::Constant {
            return None;
        }
        let after = tokens.get(at + 1)?;
        if after.is_sign(close) {
            return Some(at + 2);
        }
        if !after.is_sign(",") {
            return None;
        }
        at += 2;
    }
}

/// Reduces each list of constants to one constant, and rows of constants to one row.
fn shorten(tokens: Vec<Token>) -> Vec<Token> {
    let mut short = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        short.push(tokens[at].clone());
        let word = &tokens[at];
        at += 1;
        let brackets = match () {
            () if word.is_word("in") || word.is_word("values") => ["(", ")"],
            () if word.is_word("array") => ["[", "]"],
            () => continue,
        };
        let Some(mut end) = list_end(&tokens, at, brackets) else { continue };
        while word.is_word("values") && tokens.get(end).is_some_and(|comma| comma.is_sign(",")) {
            match list_end(&tokens, end + 1, brackets) {
                Some(further) => end = further,
                None => break,
            }
        }
        let [open, close] = brackets.map(|bracket| Token::Sign(bracket.to_string()));
        short.extend([open, Token::Constant, close]);
        at = end;
    }
    short
}

/// The tokens that are hashed.
fn tokens(text: &str) -> Vec<Token> {
    ended(shorten(Scanner::scan_text(text).tokens))
}

/// Without semicolons at the end.
fn ended(mut tokens: Vec<Token>) -> Vec<Token> {
    while tokens.last().is_some_and(|last| last.is_sign(";")) {
        tokens.pop();
    }
    tokens
}

fn joined(tokens: &[Token]) -> String {
    tokens.iter().map(Token::text).collect::<Vec<_>>().join(" ")
}

fn of_tokens(tokens: &[Token]) -> String {
    format!("{RULE}:{:016x}", hash(&joined(tokens)))
}

/// The text that is hashed.
#[cfg(test)]
fn normal(text: &str) -> String {
    joined(&tokens(text))
}

/// A spelling of the command that is the same for all versions of the server; `None`: no such command. Since 16, the
/// server treats END as COMMIT and keeps the text that came first; since 17, the name of a savepoint or prepared
/// statement is a constant.
fn command(tokens: &[Token]) -> Option<String> {
    let Some(Token::Word(verb)) = tokens.first() else { return None };
    let is = |at: usize, words: &[&str]| {
        tokens.get(at).is_some_and(|token| words.iter().any(|word| token.is_word(word)))
    };
    let after = |at: usize, optional: &[&str]| at + usize::from(is(at, optional));
    let of_name = |command: &str, at: usize| {
        (tokens.len() == at + 1 && !is(at, &["all"])).then(|| format!("{command} ?"))
    };
    let after_work = after(1, &["work", "transaction"]);
    let rest = joined(tokens.get(after_work..).unwrap_or_default());
    let ended = |command: &str| match rest.as_str() {
        "" | "and no chain" => Some(command.to_string()),
        "and chain" => Some(format!("{command} and chain")),
        _ => None,
    };
    match verb.as_str() {
        "begin" => Some(format!("begin {rest}").trim_end().to_string()),
        "commit" | "end" => ended("commit"),
        "rollback" | "abort" if is(after_work, &["to"]) => {
            of_name("rollback to", after(after_work + 1, &["savepoint"]))
        }
        "rollback" | "abort" => ended("rollback"),
        "savepoint" => of_name("savepoint", 1),
        "release" => of_name("release", after(1, &["savepoint"])),
        "deallocate" => of_name("deallocate", after(1, &["prepare"])),
        _ => None,
    }
}

/// FNV-1a, 64 bits: <http://www.isthe.com/chongo/tech/comp/fnv/>.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The fingerprint of a statement's text: `f1:` and 16 hexadecimal digits.
pub fn fingerprint(text: &str) -> String {
    of_tokens(&tokens(text))
}

/// The fingerprint for comparing statements of several servers: if versions spell a command differently, that of the
/// latest version's text.
pub fn comparable_fingerprint(text: &str) -> String {
    let tokens = tokens(text);
    let text = command(&tokens).unwrap_or_else(|| joined(&tokens));
    format!("{RULE}:{:016x}", hash(&text))
}

/// Fingerprints of alternative spellings of commands, each with the one to compare by. Commands that contain names are
/// missing.
pub fn synonyms() -> Vec<(String, String)> {
    const MODES: [&str; 9] = [
        "",
        "read only",
        "read write",
        "deferrable",
        "not deferrable",
        "isolation level serializable",
        "isolation level repeatable read",
        "isolation level read committed",
        "isolation level read uncommitted",
    ];
    let verbs = ["commit", "end", "rollback", "abort"];
    let ends = verbs.iter().map(|verb| (*verb, &["", "and chain", "and no chain"][..]));
    let mut found = Vec::new();
    for (verb, endings) in ends.chain([("begin", &MODES[..])]) {
        for noise in ["", "work", "transaction"] {
            for ending in endings {
                let text = format!("{verb} {noise} {ending}");
                found.push((fingerprint(&text), comparable_fingerprint(&text)));
            }
        }
    }
    found.retain(|(own, comparable)| own != comparable);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fingerprint_is_that_of_its_rule_for_ever() {
        assert_eq!(
            normal("SELECT a FROM \"T\" -- x\n WHERE b=-1 AND c IN (1,'x', $3);"),
            "select a from \"T\" where b = ? and c in ( ? )"
        );
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fingerprint("select 1"), fingerprint("SELECT  $1 ;"));
    }

    #[test]
    fn a_text_and_its_fingerprint_come_from_one_pass() {
        let text = "select * from t where a in (1, 2) and b = 'secret';";
        assert_eq!(normalized(text), (without_constants(text), fingerprint(text)));
    }

    #[test]
    fn what_versions_and_drivers_write_differently_is_the_same() {
        for (a, b) in [
            (
                "select * from t where a in ($1, $2, $3)",
                "select * from t where a in ($1 /*, ... */)",
            ),
            ("insert into t values (1, 'a'), (2, 'b')", "INSERT INTO t VALUES ($1,$2)"),
            ("select array[1, 2, 3]", "select array[$1]"),
            ("select E'it\\'s', $$a'b$$, $x$ $$ $x$", "select 'a', 'b', 'c'"),
            ("select /* a /* b */ c */ 1", "select 1"),
            ("select -- 'x\n 1", "select 1"),
            ("select a<-1", "select a < $1"),
            ("select x'ff', 1.5e-10, .5, 0x1F, 1_000", "select $1, $2, $3, $4, $5"),
            ("update T set A = A + $1", "update t set a=a+5"),
            ("select '' || 'it''s'", "select $1 || $2"),
        ] {
            assert_eq!(normal(a), normal(b));
        }
    }

    #[test]
    fn different_statements_differ() {
        for (a, b) in [
            ("select a from t", "select b from t"),
            ("select a from t", "select a from \"T\""),
            ("select f($1)", "select f($1, $2)"),
            ("select a - $1", "select a + $1"),
            ("select a, -1", "select a - 1"),
            ("select a from t where b in (1, c)", "select a from t where b in (1)"),
            ("values (1), (2)", "values (1), (a)"),
            ("select a -> 'x'", "select a ->> 'x'"),
        ] {
            assert_ne!(fingerprint(a), fingerprint(b), "{a} and {b}");
        }
    }

    #[test]
    fn commands_that_a_version_takes_for_the_same_are_compared_as_one() {
        for (a, b) in [
            ("END", "commit;"),
            ("end transaction", "COMMIT WORK"),
            ("COMMIT AND NO CHAIN", "commit"),
            ("abort and chain", "ROLLBACK WORK AND CHAIN"),
            (
                "begin transaction isolation level serializable",
                "BEGIN ISOLATION LEVEL SERIALIZABLE",
            ),
            ("SAVEPOINT a", "SAVEPOINT $1"),
            ("rollback to savepoint \"A b\"", "ROLLBACK TO $1"),
            ("release savepoint a", "RELEASE b"),
            ("deallocate prepare a", "DEALLOCATE $1"),
            ("select 1", "SELECT $1"),
        ] {
            assert_eq!(comparable_fingerprint(a), comparable_fingerprint(b), "{a} and {b}");
        }
        for (a, b) in [
            ("commit", "rollback"),
            ("commit", "commit and chain"),
            ("commit prepared 'a'", "commit"),
            ("begin", "start transaction"),
            ("begin", "begin read only"),
            ("rollback", "rollback to a"),
            ("deallocate all", "deallocate a"),
            ("end_of_day()", "end"),
            ("select end", "select commit"),
        ] {
            assert_ne!(comparable_fingerprint(a), comparable_fingerprint(b), "{a} and {b}");
        }
        let known = synonyms();
        let of = |text| {
            known
                .iter()
                .find(|synonym| synonym.0 == fingerprint(text))
                .map(|synonym| synonym.1.clone())
        };
        assert_eq!(of("END"), Some(fingerprint("COMMIT")));
        assert_eq!(of("abort work and chain"), Some(fingerprint("rollback and chain")));
        assert_eq!(of("begin work read only"), Some(fingerprint("begin read only")));
        assert_eq!([of("commit"), of("begin"), of("select 1")], [None, None, None]);
    }

    /// A statement's tokens, with constants marked.
    fn statement() -> impl Strategy<Value = Vec<String>> {
        let token = prop_oneof![
            "[a-z_][a-z0-9_]{0,6}",
            Just("?".to_string()),
            prop_oneof![
                Just("="),
                Just("||"),
                Just("<="),
                Just("->>"),
                Just("("),
                Just(")"),
                Just(",")
            ]
            .prop_map(str::to_string),
            "\"[A-Za-z ]{1,5}\"",
        ];
        // Tokens that form a string with the quote after them, or that make a sign part of a constant, are left out.
        let plain = |tokens: &Vec<String>| {
            tokens.iter().all(|token| !["e", "b", "x", "n", "u"].contains(&token.as_str()))
        };
        prop::collection::vec(token, 1..20).prop_filter("no prefix of a string", plain)
    }

    fn gap() -> impl Strategy<Value = String> {
        prop_oneof![
            Just(" ".to_string()),
            "[ \t\n]{1,3}",
            "[a-z '\"$]{0,5}".prop_map(|text| format!(" /* {text} /* ' */ */ ")),
            "[a-z '\"$]{0,5}".prop_map(|text| format!(" -- {text}\n")),
        ]
    }

    fn constant() -> impl Strategy<Value = String> {
        prop_oneof![
            (0u32..1_000_000).prop_map(|n| n.to_string()),
            (1u32..99).prop_map(|n| format!("${n}")),
            "'([a-z; -]|''){0,6}'",
            "\\$q\\$[a-z'; ]{0,6}\\$q\\$",
            Just("1.5e-3".to_string()),
        ]
    }

    proptest! {
        #[test]
        fn blanks_comments_case_and_constants_do_not_count(
            tokens in statement(),
            gaps in prop::collection::vec(gap(), 20),
            constants in prop::collection::vec(constant(), 20),
            upper in any::<bool>(),
        ) {
            let plain = tokens.join(" ");
            let mut other = String::new();
            for (at, token) in tokens.iter().enumerate() {
                let written = match token.as_str() {
                    "?" => constants[at].clone(),
                    quoted if quoted.starts_with('"') => quoted.to_string(),
                    word if upper => word.to_uppercase(),
                    word => word.to_string(),
                };
                other.push_str(&written);
                other.push_str(&gaps[at]);
            }
            prop_assert_eq!(normal(&plain), normal(&other), "{}", other);
        }

        #[test]
        fn any_text_has_one_and_its_normal_form_has_the_same(text in "\\PC{0,60}") {
            let once = normal(&text);
            let shown = fingerprint(&text);
            prop_assert!(shown.len() == 19 && shown.starts_with("f1:"));
            prop_assert_eq!(normal(&once), once);
        }

        #[test]
        fn the_length_of_a_list_does_not_count(a in 1usize..50, b in 1usize..50) {
            let list = |n: usize| vec!["$1"; n].join(", ");
            let sql = |n| format!("select a from t where b in ({}) and c = $1", list(n));
            prop_assert_eq!(fingerprint(&sql(a)), fingerprint(&sql(b)));
            let rows = |n: usize| format!("insert into t (a, b) values {}", vec!["(1, 'x')"; n].join(", "));
            prop_assert_eq!(fingerprint(&rows(a)), fingerprint(&rows(b)));
        }

        #[test]
        fn another_word_is_another_statement(tokens in statement(), at in 0usize..20) {
            let at = at % tokens.len();
            let mut other = tokens.clone();
            other[at] = "another_word".to_string();
            prop_assert_ne!(normal(&tokens.join(" ")), normal(&other.join(" ")));
        }
    }
}
