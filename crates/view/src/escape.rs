// SPDX-License-Identifier: PostgreSQL
//! Makes characters visible that are invisible, or that change how others appear.
//!
//! Statements, names and paths may contain any character. Some characters control a terminal; others reverse the
//! direction of text (U+202E) or are invisible (U+200B), so that one text looks like another. In output for
//! people they become \uXXXX, as in psql. In JSON the same form is an escape, so a parser gets the original text.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, BufWriter, IsTerminal, Stderr, Stdout, StdoutLock, Write};
use std::os::fd::AsFd;

/// First and last of each range of format characters (Unicode's general category Cf), line and paragraph
/// separators, and others that are drawn as nothing (Default_Ignorable_Code_Point).
const UNSEEN: [(u32, u32); 25] = [
    (0xAD, 0xAD),
    (0x034F, 0x034F),
    (0x0600, 0x0605),
    (0x061C, 0x061C),
    (0x06DD, 0x06DD),
    (0x070F, 0x070F),
    (0x0890, 0x0891),
    (0x08E2, 0x08E2),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
];

/// Whether a character other than a control character is not visible as itself.
fn is_unseen(letter: char) -> bool {
    let code = u32::from(letter);
    // Fast path: most characters are ASCII.
    code >= UNSEEN[0].0
        && UNSEEN
            .binary_search_by(|(first, last)| {
                if *last < code {
                    std::cmp::Ordering::Less
                } else if *first > code {
                    std::cmp::Ordering::Greater
                } else {
                    std::cmp::Ordering::Equal
                }
            })
            .is_ok()
}

fn push_escaped(text: &mut String, letter: char) {
    let mut units = [0; 2];
    for unit in letter.encode_utf16(&mut units) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\u{unit:04X}");
    }
}

fn replaced(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match is_bad(letter) {
            true => push_escaped(&mut safe, letter),
            false => safe.push(letter),
        }
    }
    Cow::Owned(safe)
}

/// Prepares a text for people: invisible and control characters become visible. Line feeds and tabs are kept.
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_unseen(c) || c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Escapes the same characters in JSON, where they occur only within strings. This does not change the meaning of
/// the JSON.
pub fn json(text: &str) -> Cow<'_, str> {
    replaced(text, is_unseen)
}

/// Standard output for text and JSON that can neither control a terminal nor forge a line: [`Lines`].
pub fn stdout() -> Lines<StdoutLock<'static>> {
    coloured_stdout(false)
}

/// The same, but keeps the colours that renderers set, if any.
pub fn coloured_stdout(color: bool) -> Lines<StdoutLock<'static>> {
    Lines::coloured(process_stdout().lock(), color).wrapped(terminal_width())
}

/// The same for whole documents: writes are buffered, so it has to be flushed.
pub fn buffered_stdout(color: bool) -> Lines<BufWriter<Stdout>> {
    Lines::coloured(BufWriter::new(process_stdout()), color).wrapped(terminal_width())
}

/// Width of the terminal, in columns; `None`: standard output is not a terminal, or it has no size.
pub fn terminal_width() -> Option<usize> {
    columns(&process_stdout())
}

fn columns(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    let size = stream.is_terminal().then(|| rustix::termios::tcgetwinsize(stream).ok()).flatten();
    size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// Raw standard output, for output that is not our text: output of other programs, man pages, and queries about
/// the terminal.
pub fn process_stdout() -> Stdout {
    io::stdout()
}

/// Writes a message to standard error and ignores errors, because it may be closed. Lines after the first are
/// indented, so that the contents of a message cannot look like another message.
pub fn say(text: &str) {
    let text = without_error_codes(&visible(text)).trim_end().replace('\n', "\n  ");
    say_lines(&format!("tally: {text}\n"));
}

/// The text without the numbers that the standard library appends to the system's messages, as in "Permission denied
/// (os error 13)".
fn without_error_codes(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut kept = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        match part[digits..].strip_prefix(')') {
            Some(rest) if digits > 0 => kept += rest,
            _ => kept = kept + " (os error " + part,
        }
    }
    kept
}

fn process_stderr() -> Stderr {
    io::stderr()
}

/// Whether standard error shows each line as one: it is not a terminal, or wide enough.
pub fn fits_stderr(text: &str) -> bool {
    columns(&process_stderr())
        .is_none_or(|width| text.lines().all(|line| shown_length(line) <= width))
}

/// Writes a message of several lines to standard error, likewise.
pub fn say_lines(text: &str) {
    let mut stderr = process_stderr();
    let _ = stderr.write_all(wrap_text(text, columns(&stderr)).as_bytes());
}

/// `text` with each line wrapped that is longer than this.
pub fn wrap_text(text: &str, width: Option<usize>) -> Cow<'_, str> {
    match width {
        Some(width) => {
            let lines = text.split_inclusive('\n').map(|line| wrap_line(line, width));
            Cow::Owned(lines.collect())
        }
        None => Cow::Borrowed(text),
    }
}

/// The words of a line, each with the blank after it. A figure stays together with its unit and its half-width, as in
/// "40 us ± 15", unless that is wider than `width`: a reader must not take the half of a line for the figure.
pub fn words(line: &str, width: usize) -> Vec<&str> {
    let words: Vec<&str> = line.split_inclusive(' ').collect();
    let plain = |at: usize| without_colors(words[at].trim_end_matches(' '));
    let is_number = |at: usize| {
        plain(at).trim_start_matches(['(', '~', '+', '-']).starts_with(|c: char| c.is_ascii_digit())
    };
    let is_half_width = |at: usize| {
        at > 0
            && at + 1 < words.len()
            && plain(at) == "±"
            && is_number(at + 1)
            && !plain(at - 1).is_empty()
    };
    let mut all = Vec::with_capacity(words.len());
    // The first word that is not in `all` yet, and where it begins.
    let (mut next, mut begin) = (0, 0);
    for at in (0..words.len()).filter(|&at| is_half_width(at)) {
        let figure =
            if !is_number(at - 1) && at > 1 && is_number(at - 2) { at - 2 } else { at - 1 };
        let length =
            |from: usize, to: usize| words[from..=to].iter().map(|word| word.len()).sum::<usize>();
        if figure < next {
            continue;
        }
        let from = begin + words[next..figure].iter().map(|word| word.len()).sum::<usize>();
        let whole = &line[from..from + length(figure, at + 1)];
        if shown_length(whole.trim_end_matches(' ')) <= width {
            all.extend(&words[next..figure]);
            all.push(whole);
            (next, begin) = (at + 2, from + whole.len());
        }
    }
    all.extend(&words[next..]);
    all
}

/// A line in several, if it is longer than `width`: they end between [`words`], and continue below the first one's
/// beginning, indented by two more. Colours take no space. JSON and addresses stay whole, so that they can be copied.
fn wrap_line(line: &str, width: usize) -> Cow<'_, str> {
    let (line_text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
    let is_json = line_text.starts_with(['{', '[']) && line_text.ends_with(['}', ']']);
    if is_json || shown_length(line_text) <= width {
        return Cow::Borrowed(line);
    }
    let indent = below(line_text);
    let indent = if indent <= width / 2 { indent } else { 0 };
    let mut out = String::with_capacity(line.len() + 16);
    // Columns of the current line, and whether a word is in it.
    let (mut at, mut has_word) = (0, false);
    for piece in words(line_text, width - indent) {
        let word = piece.trim_end_matches(' ');
        let length = shown_length(word);
        if has_word && at + length > width {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            (at, has_word) = (indent, false);
        }
        if length > 0 && at + length > width && !word.contains("://") {
            // Longer than a line: in parts.
            let mut rest = word;
            while !rest.is_empty() {
                let colour = first_color(rest).filter(|(begin, _)| *begin == 0);
                let bytes = colour.map_or_else(
                    || rest.chars().next().map_or(1, char::len_utf8),
                    |(_, length)| length,
                );
                if colour.is_none() {
                    if at >= width {
                        out.push('\n');
                        out.extend(std::iter::repeat_n(' ', indent));
                        at = indent;
                    }
                    at += 1;
                }
                out.push_str(&rest[..bytes]);
                rest = &rest[bytes..];
            }
        } else {
            out.push_str(word);
            at += length;
        }
        has_word |= length > 0;
        for _ in word.len()..piece.len() {
            if at < width {
                out.push(' ');
                at += 1;
            }
        }
    }
    out.truncate(out.trim_end_matches(' ').len());
    Cow::Owned(out + end)
}

/// Where a line continues: below the text after a name in front, as in "server      PostgreSQL", else two columns after its
/// beginning.
fn below(line: &str) -> usize {
    let begin = line.len() - line.trim_start_matches(' ').len();
    let gap = line[begin..].find("  ").map(|at| begin + at);
    let after = gap.and_then(|gap| Some(gap + line[gap..].find(|c| c != ' ')?));
    match after {
        Some(after) if begin == 0 && after <= LONGEST_NAME => shown_length(&line[..after]),
        _ => begin + 2,
    }
}

/// Columns of a name and the blanks after it.
const LONGEST_NAME: usize = 20;

/// Characters without colours.
fn shown_length(text: &str) -> usize {
    without_colors(text).chars().count()
}

fn without_colors(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((at, of)) = first_color(rest) {
        kept.push_str(&rest[..at]);
        rest = &rest[at + of..];
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(kept + rest)
}

/// The same, preceded by the target that the user specified.
pub fn say_of(target: Option<&str>, text: &str) {
    match target {
        Some(target) => say(&format!("{target}: {text}")),
        None => say(text),
    }
}

/// A writer of text that contains names and messages of other users.
///
/// It escapes control characters, and what [`json`] escapes, which does not change the meaning of JSON. Each
/// `write!` or `writeln!` writes one line: a line feed before its end is escaped, too, so that no name can
/// forge a line. For several lines, whose parts must be clean already, use `write_all`.
///
/// Lines that are longer than the terminal is wide are wrapped.
#[derive(Debug)]
pub struct Lines<W: Write> {
    inner: W,
    /// Whether colours are kept, that is, sequences of `ESC [ DIGITS m`.
    color: bool,
    /// The first bytes of a character that is not complete yet.
    begun: Vec<u8>,
    /// Columns of the terminal; `None`: lines are not wrapped.
    width: Option<usize>,
    /// What is to be wrapped: the line that has not ended yet.
    pending: String,
}

impl<W: Write> Lines<W> {
    /// Wraps another writer, without colours.
    pub fn new(inner: W) -> Lines<W> {
        Lines { inner, color: false, begun: Vec::new(), width: None, pending: String::new() }
    }

    /// Wraps lines at this width.
    pub fn wrapped(mut self, width: Option<usize>) -> Lines<W> {
        self.width = width;
        self
    }

    /// The same, but may keep colours.
    pub fn coloured(inner: W, color: bool) -> Lines<W> {
        let mut lines = Lines::new(inner);
        lines.color = color;
        lines
    }

    fn put(&mut self, text: &str) -> io::Result<()> {
        if self.width.is_none() {
            return self.inner.write_all(text.as_bytes());
        }
        for part in text.split_inclusive('\n') {
            self.pending.push_str(part);
            if part.ends_with('\n') {
                self.put_pending()?;
            }
        }
        Ok(())
    }

    /// Writes the line that has not ended yet.
    fn put_pending(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.pending);
        self.inner.write_all(wrap_text(&line, self.width).as_bytes())
    }

    fn escaped(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        // Text between colours.
        while let Some((at, length)) = self.color.then(|| first_color(rest)).flatten() {
            self.put(&visible(&rest[..at]))?;
            self.put(&rest[at..at + length])?;
            rest = &rest[at + length..];
        }
        self.put(&visible(rest))
    }
}

/// Position and length of the first colour.
fn first_color(text: &str) -> Option<(usize, usize)> {
    text.match_indices("\x1b[").find_map(|(at, begin)| {
        let codes = text[at + begin.len()..].find(|c: char| !c.is_ascii_digit() && c != ';')?;
        let end = at + begin.len() + codes;
        text[end..].starts_with('m').then_some((at, end + 1 - at))
    })
}

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        if self.width.is_none() && self.begun.is_empty() && bytes.iter().all(plain) {
            return self.inner.write(bytes);
        }
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.escaped(chunk.valid())?;
            match chunk.invalid() {
                [] => {}
                // The rest may follow.
                begun if chunks.peek().is_none() && is_begun(begun) => self.begun = begun.to_vec(),
                _ => self.put("\u{fffd}")?,
            }
        }
        Ok(bytes.len())
    }

    fn write_fmt(&mut self, arguments: fmt::Arguments<'_>) -> io::Result<()> {
        if let Some(literal) = arguments.as_str() {
            return self.write_all(literal.as_bytes());
        }
        let text = arguments.to_string();
        match text.strip_suffix('\n').map_or((&*text, ""), |line| (line, "\n")) {
            (line, end) if line.contains('\n') => {
                self.write_all((line.replace('\n', "\\u000A") + end).as_bytes())
            }
            _ => self.write_all(text.as_bytes()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.put_pending()?;
        self.inner.flush()
    }
}

impl<W: Write> Drop for Lines<W> {
    fn drop(&mut self) {
        let _ = self.put_pending();
    }
}

/// Whether these are the first bytes of a character.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped_and_others_are_kept() {
        for (text, shown) in [
            ("select 1 -- Grüße, שלום, 日本, 😀", "select 1 -- Grüße, שלום, 日本, 😀"),
            ("a\u{202e}b\u{2066}c\u{2069}", "a\\u202Eb\\u2066c\\u2069"),
            ("\u{200b}\u{200e}\u{200f}\u{61c}\u{feff}", "\\u200B\\u200E\\u200F\\u061C\\uFEFF"),
            ("\u{1b}[31m\u{9b}\r\n\t", "\\u001B[31m\\u009B\\u000D\n\t"),
            ("\u{2028}\u{ad}\u{e0041}", "\\u2028\\u00AD\\uDB40\\uDC41"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn the_ranges_are_in_order() {
        assert!(UNSEEN.windows(2).all(|pair| pair[0].1 < pair[1].0));
        assert!(UNSEEN.iter().all(|(first, last)| first <= last));
    }

    #[test]
    fn escaped_json_has_the_same_meaning() {
        let text = "a\u{202e}\u{e0041}\"\\ü";
        let json = serde_json::to_string(text).unwrap();
        let escaped = super::json(&json);
        assert!(!escaped.chars().any(is_unseen));
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }

    fn written(lines: Lines<Vec<u8>>, write: impl Fn(&mut dyn Write)) -> String {
        let mut lines = lines;
        write(&mut lines);
        lines.flush().unwrap();
        String::from_utf8(std::mem::take(&mut lines.inner)).unwrap()
    }

    #[test]
    fn a_message_has_the_systems_words_without_their_number() {
        let error = io::Error::from_raw_os_error(2).to_string();
        assert!(error.contains("(os error 2)"), "{error}");
        let text = format!("a: {error}; b (os error x) (os error )");
        let words = "a: No such file or directory; b (os error x) (os error )";
        assert_eq!(without_error_codes(&text), words);
    }

    #[test]
    fn lines_are_wrapped_at_blanks_and_continue_indented() {
        let wrapped = |line: &str| wrap_text(line, Some(20)).into_owned();
        assert_eq!(wrapped("  one two three four five\n"), "  one two three four\n    five\n");
        assert_eq!(wrapped("as long as it may be\n"), "as long as it may be\n");
        assert_eq!(wrapped("exactly as long as t x\n"), "exactly as long as t\n  x\n");
        // Below the text after a name.
        assert_eq!(wrapped("a     b c d e f g h i j"), "a     b c d e f g h\n      i j");
        // Long words are divided, addresses are not.
        assert_eq!(
            wrapped("a /very/long/path/of/a/file x"),
            "a\n  /very/long/path/of\n  /a/file x"
        );
        let address = "Open\n  http://127.0.0.1:9188/?token=1";
        assert_eq!(wrapped("Open http://127.0.0.1:9188/?token=1"), address);
        let json = "{\"key\": \"a long value of a key\"}\n";
        assert_eq!(wrapped(json), json);
        // Colours take no space.
        let coloured = "\x1b[1mone\x1b[0m two three four five";
        assert_eq!(wrapped(coloured), "\x1b[1mone\x1b[0m two three four\n  five");
        assert_eq!(wrap_text("one two", None), "one two");
    }

    #[test]
    fn a_half_width_stays_with_its_figure() {
        let figures = [
            "40 us ± 15",
            "+1.11 % ± 0.08",
            "7.90 ± 0.10",
            "(20.1 % ± 3.0,",
            "~0.25 ± 0.12",
            "\x1b[1m40 us ± 15\x1b[0m",
        ];
        for figure in figures {
            let line =
                format!("B takes {figure} more per command than A, ± is half of an interval.");
            let length = shown_length(figure);
            for width in 0..100 {
                let lines = wrap_text(&line, Some(width)).into_owned();
                let other = crate::table::wrap(&without_colors(&line), width);
                let plain = without_colors(figure);
                // The continuation is indented by two.
                if width >= length + 2 {
                    assert!(lines.contains(figure), "{width}: {lines}");
                }
                if width >= length {
                    assert!(other.iter().any(|line| line.contains(&*plain)), "{width}: {other:?}");
                }
                let fits = |line: &str| shown_length(line) <= width.max(1) || width < 3;
                assert!(lines.lines().all(fits), "{width}: {lines}");
                assert!(other.iter().all(|line| fits(line)), "{width}: {other:?}");
            }
        }
        let divided = ["a ", "± ", "b"];
        assert_eq!(words("a ± b", 80), divided);
        assert_eq!(words("1 s ± 2 ± 3  x", 80), ["1 s ± 2 ", "± ", "3 ", " ", "x"]);
    }

    #[test]
    fn a_writer_wraps_lines_written_in_parts() {
        let shown = written(Lines::new(Vec::new()).wrapped(Some(10)), |out| {
            write!(out, "one two ").unwrap();
            out.write_all("three\nfour fünf sechs\nsi".as_bytes()).unwrap();
            write!(out, "eben").unwrap();
        });
        assert_eq!(shown, "one two\n  three\nfour fünf\n  sechs\nsieben");
    }

    #[test]
    fn a_writer_escapes_wherever_the_text_is_split() {
        let text = "ab\u{202e}ü\u{e0041}😀\u{9b}0m\u{7f}".as_bytes();
        let broken = [text, &[0xff, b'x', 0xe2, 0x80]].concat();
        for cut in 0..text.len() {
            let shown = written(Lines::new(Vec::new()), |lines| {
                lines.write_all(&broken[..cut]).unwrap();
                lines.write_all(&broken[cut..]).unwrap();
            });
            assert_eq!(shown, "ab\\u202Eü\\uDB40\\uDC41😀\\u009B0m\\u007F\u{fffd}x", "{cut}");
        }
    }

    #[test]
    fn a_name_forges_no_line_and_controls_no_terminal() {
        let name = "a\x1b[2J\nforged\r\x1b]0;title\x07\x1b[31m";
        let shown = "a\\u001B[2J\\u000Aforged\\u000D\\u001B]0;title\\u0007\\u001B[31m";
        let plain = written(Lines::new(Vec::new()), |out| {
            writeln!(out, "{name} is\tit").unwrap();
            write!(out, "{name}, ").unwrap();
            out.write_all(b"one\ntwo\n").unwrap();
            writeln!(out, "\nliteral").unwrap();
        });
        assert_eq!(plain, format!("{shown} is\tit\n{shown}, one\ntwo\n\nliteral\n"));
        // Colours that renderers set are kept.
        let coloured = written(Lines::coloured(Vec::new(), true), |out| {
            writeln!(out, "\x1b[1;31mx\x1b[0m\x1b[2J\x1b[\x1b[3").unwrap();
        });
        assert_eq!(coloured, "\x1b[1;31mx\x1b[0m\\u001B[2J\\u001B[\\u001B[3\n");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let text = "a\x1b\u{9b}\u{7f}\u{202e}\u{e0041}\"\\\nü";
        let shown = written(Lines::new(Vec::new()), |out| {
            serde_json::to_writer(out, text).unwrap();
        });
        assert!(!shown.chars().any(|c| is_unseen(c) || c.is_control()), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }
}
