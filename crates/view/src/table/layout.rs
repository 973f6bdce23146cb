// SPDX-License-Identifier: PostgreSQL
//! A table that fits the given width: columns of low priority are dropped first, never the one by which the rows are
//! ordered. In a text, what does not fit in its column continues on the next line, and where not even that helps, each
//! row is a list.

use std::borrow::Cow;
use std::ops::Range;

use super::{Row, Table};
use crate::escape::{terminal_width, visible, words};

/// Blanks between columns.
const GAP: usize = 2;
/// Minimum and maximum width of a bar.
const BAR: std::ops::RangeInclusive<usize> = 8..=30;
/// Other columns are dropped before running text becomes narrower than this.
const ELASTIC: usize = 24;
/// Where a text column would become shorter than this, a row is a list.
const SHORTEST: usize = 12;

/// A table's layout for a given width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Index and width of each visible column, in order.
    pub shown: Vec<(usize, usize)>,
    /// Width of the bars; 0 if there are none.
    pub bar: usize,
}

impl Table {
    /// The text of a cell; empty beyond the end of the row.
    fn text_of<'r>(&self, row: &'r Row, at: usize) -> Cow<'r, str> {
        row.cells
            .get(at)
            .map_or("".into(), |cell| cell.below(&self.columns[at].title, self.columns[at].unit))
    }

    /// The natural width of a column.
    fn widest(&self, at: usize) -> usize {
        let cells = self.rows.iter().map(|row| visible(&self.text_of(row, at)).chars().count());
        cells.max().unwrap_or(0).max(self.columns[at].title.chars().count())
    }

    /// When to drop a column; 0: it is kept.
    fn rank(&self, at: usize) -> u8 {
        let column = &self.columns[at];
        match self.sort {
            Some(key) if key == column.key => 0,
            _ => column.expendable,
        }
    }

    /// Whether no row has anything in this column.
    fn is_blank(&self, at: usize) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| self.text_of(row, at).is_empty())
    }

    /// Fits the table into `width` characters. Columns without any cell are dropped first, then those of low priority.
    /// When no more can be dropped, running text shrinks, then the other text columns, the widest first.
    pub fn layout(&self, width: usize) -> Layout {
        let mut shown: Vec<(usize, usize)> = (0..self.columns.len())
            .map(|at| {
                let widest = self.widest(at);
                (at, if self.columns[at].elastic { widest.min(ELASTIC) } else { widest })
            })
            .collect();
        let needed = |shown: &[(usize, usize)], bar: usize| {
            let text: usize = shown.iter().map(|s| s.1 + GAP).sum();
            text.saturating_sub(GAP) + if bar > 0 { bar + GAP } else { 0 }
        };
        let mut bar = if self.bars_after.is_some() { *BAR.start() } else { 0 };
        while needed(&shown, bar) > width {
            let worst_of = |is_in_question: &dyn Fn(usize) -> bool| {
                let all = shown.iter().enumerate().filter(|(_, s)| is_in_question(s.0));
                all.max_by_key(|(_, s)| self.rank(s.0)).map(|(at, _)| at)
            };
            let worst =
                worst_of(&|at| self.is_blank(at)).or_else(|| worst_of(&|at| self.rank(at) > 0));
            match worst {
                Some(at) => drop(shown.remove(at)),
                None if bar > 0 => bar = 0,
                None => {
                    let over = needed(&shown, bar).saturating_sub(width);
                    self.shrink(&mut shown, over);
                    break;
                }
            }
        }
        self.drop_zeros(&mut shown, |shown| width.saturating_sub(needed(shown, bar)));
        let spare = width.saturating_sub(needed(&shown, bar));
        if let Some(elastic) = shown.iter_mut().find(|s| self.columns[s.0].elastic) {
            elastic.1 = elastic.1.saturating_add(spare).min(self.widest(elastic.0));
        }
        if bar > 0 {
            let spare = width.saturating_sub(needed(&shown, bar));
            bar = bar.saturating_add(spare).min(*BAR.end());
        }
        Layout { shown, bar }
    }

    /// Takes this many characters from text columns: first from running text, then from the widest
    /// column.
    fn shrink(&self, shown: &mut [(usize, usize)], mut over: usize) {
        if let Some(elastic) = shown.iter_mut().find(|s| self.columns[s.0].elastic) {
            let taken = over.min(elastic.1.saturating_sub(1));
            elastic.1 -= taken;
            over -= taken;
        }
        let is_text = |at: usize| !self.columns[at].right() && !self.columns[at].elastic;
        while over > 0 {
            let texts = shown.iter_mut().filter(|s| is_text(s.0) && s.1 > 1);
            let Some(widest) = texts.max_by_key(|s| s.1) else { return };
            widest.1 -= 1;
            over -= 1;
        }
    }

    /// Running text that does not fit takes the place of columns without any figure, those of low priority first.
    fn drop_zeros(
        &self,
        shown: &mut Vec<(usize, usize)>,
        spare: impl Fn(&[(usize, usize)]) -> usize,
    ) {
        let Some((elastic, own)) = shown.iter().find(|s| self.columns[s.0].elastic).copied() else {
            return;
        };
        let wanted = self.widest(elastic);
        let is_zero = |at: usize| {
            self.rows.iter().all(|row| row.cells.get(at).is_none_or(super::Cell::is_nothing))
        };
        while own.saturating_add(spare(shown)) < wanted {
            let zeros = shown.iter().enumerate().filter(|(_, s)| {
                self.rank(s.0) > 0 && self.columns[s.0].unit.is_figure() && is_zero(s.0)
            });
            let Some(at) = zeros.max_by_key(|(_, s)| self.rank(s.0)).map(|z| z.0) else {
                return;
            };
            shown.remove(at);
        }
    }

    /// The line of column titles in this layout.
    pub fn heading(&self, layout: &Layout) -> String {
        let cells = layout.shown.iter().map(|&(at, width)| {
            (at, fit(&self.columns[at].title, width, self.columns[at].right()))
        });
        self.join(cells, layout, &" ".repeat(layout.bar)).concat()
    }

    /// The width of a line in this layout.
    pub fn width(&self, layout: &Layout) -> usize {
        let last = self.spans(layout).last().map_or(0, |(_, span)| span.end);
        let bars_last = layout.shown.last().map(|shown| shown.0) == self.bars_after;
        last + if layout.bar > 0 && bars_last { GAP + layout.bar } else { 0 }
    }

    /// The range of characters of each visible column in a line.
    pub fn spans(&self, layout: &Layout) -> Vec<(usize, Range<usize>)> {
        let mut at = 0;
        let mut spans = Vec::with_capacity(layout.shown.len());
        for &(column, width) in &layout.shown {
            spans.push((column, at..at + width));
            at += width + GAP;
            if layout.bar > 0 && self.bars_after == Some(column) {
                at += layout.bar + GAP;
            }
        }
        spans
    }

    /// The whole table as lines of text, `width` characters wide, with ASCII bars.
    pub fn text(&self, width: usize) -> String {
        self.drawn(width, true)
    }

    /// The whole table for standard output: as wide as the terminal, or as it is where that is none.
    pub fn for_stdout(&self) -> String {
        self.text(terminal_width().unwrap_or(usize::MAX))
    }

    /// As [`Self::text`], with bars of block characters unless `ascii`.
    pub fn drawn(&self, width: usize, ascii: bool) -> String {
        let layout = self.layout(width);
        let is_cramped = |&(at, wide): &(usize, usize)| {
            let column = &self.columns[at];
            !column.right() && !column.elastic && wide < self.widest(at).min(SHORTEST)
        };
        if self.width(&layout) > width || layout.shown.iter().any(is_cramped) {
            return self.listed(width);
        }
        let mut text = String::from(self.heading(&layout).trim_end());
        text.push('\n');
        for row in &self.rows {
            let bar = bar(row.bar.unwrap_or(0.0), layout.bar, ascii);
            let mut cells: Vec<(usize, usize, Vec<String>)> = layout
                .shown
                .iter()
                .map(|&(at, wide)| (at, wide, self.wrapped_cell(row, at, wide)))
                .collect();
            let lines = cells.iter().map(|(_, _, lines)| lines.len()).max().unwrap_or(0).max(1);
            for number in 0..lines {
                let parts = cells.iter_mut().map(|(at, wide, lines)| {
                    let part = lines.get_mut(number).map(std::mem::take).unwrap_or_default();
                    (*at, fit(&part, *wide, self.columns[*at].right()))
                });
                let blank = " ".repeat(layout.bar);
                let bar = if number == 0 { &bar } else { &blank };
                text.push_str(self.join(parts, &layout, bar).concat().trim_end());
                text.push('\n');
            }
        }
        text
    }

    /// A cell in lines of at most `width` characters. The text of a statement has one line.
    fn wrapped_cell(&self, row: &Row, at: usize, width: usize) -> Vec<String> {
        let text = self.text_of(row, at);
        let text = visible(&text);
        let column = &self.columns[at];
        let is_statement = column.elastic && !column.wrapped;
        if is_statement || text.chars().count() <= width {
            return vec![text.into_owned()];
        }
        let indent = text.len() - text.trim_start_matches(' ').len();
        let indent = if 2 * indent > width { 0 } else { indent };
        let lines = wrap(text.trim_start(), width - indent);
        lines.into_iter().map(|line| format!("{:indent$}{line}", "")).collect()
    }

    /// Each row as a list of headings and cells, with an empty line between rows.
    fn listed(&self, width: usize) -> String {
        let titles = self.columns.iter().map(|column| column.title.chars().count());
        let heading = titles.max().unwrap_or(0).min(width / 2);
        let space = width.saturating_sub(heading + GAP).max(1);
        let rows = self.rows.iter().map(|row| {
            let mut text = String::new();
            for (at, column) in self.columns.iter().enumerate() {
                let cell = self.text_of(row, at);
                let title = fit(&column.title, heading, false);
                for (number, line) in wrap(cell.trim_start(), space).iter().enumerate() {
                    let title = if number == 0 { &*title } else { "" };
                    let line = format!("{title:heading$}  {line}");
                    text.push_str(line.trim_end());
                    text.push('\n');
                }
            }
            text
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    /// A row in this layout, with `bar` between the columns.
    pub fn line(&self, row: &Row, layout: &Layout, bar: &str) -> String {
        self.parts(row, layout, bar).concat()
    }

    /// As [`Self::line`], in three parts: before the bar, the bar, and after it.
    pub fn parts(&self, row: &Row, layout: &Layout, bar: &str) -> [String; 3] {
        let cells = layout.shown.iter().map(|&(at, width)| {
            let text = self.text_of(row, at);
            (at, fit(&visible(&text), width, self.columns[at].right()))
        });
        self.join(cells, layout, bar)
    }

    fn join(
        &self,
        cells: impl Iterator<Item = (usize, String)>,
        layout: &Layout,
        bar: &str,
    ) -> [String; 3] {
        let mut parts = [String::new(), String::new(), String::new()];
        let mut part = 0;
        for (at, cell) in cells {
            if !parts[0].is_empty() {
                parts[part].push_str("  ");
            }
            parts[part].push_str(&cell);
            if layout.bar > 0 && self.bars_after == Some(at) {
                parts[0].push_str("  ");
                parts[1].push_str(bar);
                part = 2;
            }
        }
        parts
    }
}

/// Wraps `text` into lines of at most `width` characters, between [`words`] if possible.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in words(&visible(text), width) {
        let mut word: Vec<char> = word.strip_suffix(' ').unwrap_or(word).chars().collect();
        let last = lines.last_mut().map_or(0, |l| l.chars().count());
        if last > 0 && last + 1 + word.len() > width {
            lines.push(String::new());
        } else if last > 0 {
            lines.last_mut().into_iter().for_each(|l| l.push(' '));
        }
        while word.len() > width {
            let rest = word.split_off(width);
            lines.last_mut().into_iter().for_each(|l| l.extend(&word));
            lines.push(String::new());
            word = rest;
        }
        lines.last_mut().into_iter().for_each(|l| l.extend(&word));
    }
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines
}

/// Puts `text` into exactly `width` characters; longer text is cut and ends in a tilde.
pub fn fit(text: &str, width: usize, right: bool) -> String {
    let length = text.chars().count();
    if length > width {
        let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
        cut.push('~');
        return cut;
    }
    let blanks = " ".repeat(width - length);
    if right {
        blanks + text
    } else {
        text.to_string() + &blanks
    }
}

/// The items of `text`, which are separated by two blanks, from the first one to the last one that fits into `width`,
/// padded to it.
pub fn fit_items(text: &str, width: usize) -> String {
    let mut length = 0;
    let items = text.split_inclusive("  ").take_while(|item| {
        length += item.chars().count();
        length - (item.len() - item.trim_end().len()) <= width
    });
    let kept: String = items.collect();
    fit(kept.trim_end(), width, false)
}

/// A bar of `width` characters, filled to `share`: in eighths of a character, or in ASCII.
pub fn bar(share: f64, width: usize, ascii: bool) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (share * width as f64 * 8.0).round() as usize;
    let mut text = String::new();
    if ascii {
        text.extend(std::iter::repeat_n('#', (eighths + 4) / 8));
    } else {
        text.extend(std::iter::repeat_n('█', eighths / 8));
        if !eighths.is_multiple_of(8) {
            text.push(EIGHTHS[eighths % 8]);
        }
    }
    let length = text.chars().count().min(width);
    text.extend(std::iter::repeat_n(' ', width - length));
    text
}

/// Whether the locale suggests that the terminal can show block characters.
pub fn speaks_utf8() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    locale.is_some_and(|l| {
        let l = l.to_lowercase();
        l.contains("utf-8") || l.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Cell, Column, Unit};
    use super::*;

    fn table() -> Table {
        let columns = vec![
            Column::new("", "ACTIVITY", Unit::Text),
            Column::new("", "%TIME", Unit::Share),
            Column::new("", "MEAN", Unit::Seconds).expendable(1),
            Column::new("", "P50", Unit::Seconds).expendable(2),
        ];
        let cells = ["LWLock:WALWrite", "12.5", "1.2 ms", "1.1 ms"].map(Cell::from);
        let row = Row { bar: Some(0.5), ..Row::new("", cells.to_vec()) };
        Table { bars_after: Some(1), ..Table::from_rows(columns, vec![row]) }
    }

    #[test]
    fn items_are_kept_whole() {
        let text = "q quit  ? help  Tab pane";
        assert_eq!(fit_items(text, 30), format!("{text}      "));
        assert_eq!(fit_items(text, 24), text);
        assert_eq!(fit_items(text, 23), "q quit  ? help         ");
        assert_eq!(fit_items(text, 14), "q quit  ? help");
        assert_eq!(fit_items(text, 13), "q quit       ");
    }

    #[test]
    fn the_lowest_priority_columns_are_dropped_first() {
        let table = table();
        let columns = |width| -> (Vec<usize>, usize) {
            let layout = table.layout(width);
            (layout.shown.iter().map(|s| s.0).collect(), layout.bar)
        };
        assert_eq!(columns(200), (vec![0, 1, 2, 3], 30));
        assert_eq!(columns(50), (vec![0, 1, 2, 3], 10));
        assert_eq!(columns(45), (vec![0, 1, 2], 13));
        assert_eq!(columns(33), (vec![0, 1], 9));
        assert_eq!(columns(25), (vec![0, 1], 0));
        assert_eq!(table.layout(15).shown, [(0, 8), (1, 5)]);
        // The column by which the rows are ordered stays.
        let mut sorted = table.clone();
        (sorted.columns[3].key, sorted.sort) = ("p50", Some("p50"));
        let shown: Vec<usize> = sorted.layout(33).shown.iter().map(|s| s.0).collect();
        assert_eq!(shown, [0, 1, 3]);
        assert_eq!(table.layout(0).shown[0].1, 1);
    }

    #[test]
    fn running_text_takes_the_remaining_width() {
        let mut table = table();
        table.columns.push(Column::new("query", "QUERY", Unit::Text).elastic());
        table.rows[0].cells.push("select ".repeat(20).into());
        table.bars_after = None;
        let widths =
            |width| -> Vec<usize> { table.layout(width).shown.iter().map(|s| s.1).collect() };
        assert_eq!(widths(100), [15, 5, 6, 6, 60]);
        assert_eq!(widths(1000), [15, 5, 6, 6, 140]);
        assert_eq!(widths(60), [15, 5, 6, 28]);
        assert_eq!(widths(40), [15, 5, 16]);
        assert_eq!(widths(20), [10, 5, 1]);
        assert_eq!(widths(2), [1, 5, 1]);
    }

    #[test]
    fn running_text_takes_the_place_of_columns_without_figures() {
        let mut table = table();
        table.columns.push(Column::new("query", "QUERY", Unit::Text).elastic());
        table.rows[0].cells.push("select ".repeat(8).into());
        table.bars_after = None;
        let shown = |table: &Table, width| -> Vec<usize> {
            table.layout(width).shown.iter().map(|s| s.0).collect()
        };
        table.rows[0].cells[3] = Cell::Number(0.0);
        assert_eq!(shown(&table, 97), [0, 1, 2, 3, 4]);
        assert_eq!(shown(&table, 90), [0, 1, 2, 4], "the query is cut otherwise");
        table.rows[0].cells[2] = Cell::Empty;
        assert_eq!(shown(&table, 82), [0, 1, 4]);
        table.rows[0].cells[3] = Cell::Number(0.1);
        assert_eq!(shown(&table, 82), [0, 1, 3, 4]);
    }

    #[test]
    fn a_column_without_any_cell_is_dropped_first() {
        let mut table = table();
        table.columns.push(Column::new("", "A CALL", Unit::Share));
        table.rows[0].cells.push("".into());
        let shown =
            |table: &Table| -> Vec<usize> { table.layout(50).shown.iter().map(|s| s.0).collect() };
        assert_eq!(shown(&table), [0, 1, 2, 3]);
        table.rows[0].cells[4] = Cell::Number(0.5);
        assert_eq!(shown(&table), [0, 1, 2, 4]);
    }

    #[test]
    fn a_text_that_does_not_fit_continues_below_or_the_row_is_a_list() {
        let headings = ["NAME", "N", "WHAT"];
        let mut table = Table::with_headings(&headings, 1..2);
        table.push_texts(["one", "12345", "a sentence of some length"]);
        table.push_texts(["two", "1", "x"]);
        assert_eq!(
            table.text(28),
            "NAME      N  WHAT\none   12345  a sentence of\n             some length\n\
             two       1  x\n"
        );
        assert_eq!(
            table.text(22),
            "NAME  one\nN     12345\nWHAT  a sentence of\n      some length\n\n\
             NAME  two\nN     1\nWHAT  x\n"
        );
        for width in 20..60 {
            let text = table.text(width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            let words =
                |text: &str| text.split_whitespace().filter(|w| !headings.contains(w)).count();
            assert_eq!(words(&text), 10, "{width}: {text}");
        }
    }

    #[test]
    fn every_line_is_as_long_as_the_layout_says() {
        let table = table();
        for width in 20..120 {
            let layout = table.layout(width);
            let line = table.line(&table.rows[0], &layout, &bar(0.5, layout.bar, false));
            assert!(line.chars().count() <= width, "{width}: {line:?}");
            assert_eq!(line.chars().count(), table.heading(&layout).chars().count());
            assert_eq!(line.chars().count(), table.width(&layout));
            let (column, span) = table.spans(&layout).pop().unwrap();
            let found: String = line.chars().skip(span.start).take(span.len()).collect();
            let of = &table.columns[column];
            let cell = table.rows[0].cells[column].below(&of.title, of.unit);
            assert_eq!(found.trim(), fit(&cell, span.len(), true).trim());
        }
    }

    #[test]
    fn a_bar_has_its_width_for_any_share() {
        for share in [-1.0, 0.0, 0.001, 0.33, 0.5, 0.999, 1.0, 7.0, f64::NAN] {
            for ascii in [false, true] {
                assert_eq!(bar(share, 9, ascii).chars().count(), 9);
            }
        }
        assert_eq!(bar(0.5, 4, true), "##  ");
        assert_eq!(bar(0.5, 3, false), "█▌ ");
    }
}
