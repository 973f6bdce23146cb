// SPDX-License-Identifier: PostgreSQL
//! A table that fits the given width; columns of low priority are dropped first.

use std::borrow::Cow;
use std::ops::Range;

use super::{Row, Table};
use crate::escape::visible;

/// Blanks between columns.
const GAP: usize = 2;
/// Minimum and maximum width of a bar.
const BAR: std::ops::RangeInclusive<usize> = 8..=30;
/// Other columns are dropped before running text becomes narrower than this.
const ELASTIC: usize = 24;

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
        row.cells.get(at).map_or("".into(), |cell| cell.brief(self.columns[at].unit))
    }

    /// The natural width of a column.
    fn widest(&self, at: usize) -> usize {
        let cells = self.rows.iter().map(|row| visible(&self.text_of(row, at)).chars().count());
        cells.max().unwrap_or(0).max(self.columns[at].title.chars().count())
    }

    /// Fits the table into `width` characters. If no more columns can be dropped, running text shrinks first,
    /// then the first column.
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
            let worst = shown
                .iter()
                .enumerate()
                .filter(|(_, s)| self.columns[s.0].expendable > 0)
                .max_by_key(|(_, s)| self.columns[s.0].expendable)
                .map(|(at, _)| at);
            match worst {
                Some(at) => drop(shown.remove(at)),
                None if bar > 0 => bar = 0,
                None => {
                    let elastic = shown.iter().position(|s| self.columns[s.0].elastic);
                    for at in elastic.into_iter().chain([0]) {
                        let over = needed(&shown, bar).saturating_sub(width);
                        if let Some(column) = shown.get_mut(at) {
                            column.1 = column.1.saturating_sub(over).max(1);
                        }
                    }
                    break;
                }
            }
        }
        self.drop_zeros(&mut shown, |shown| width.saturating_sub(needed(shown, bar)));
        let spare = width.saturating_sub(needed(&shown, bar));
        if let Some(elastic) = shown.iter_mut().find(|s| self.columns[s.0].elastic) {
            elastic.1 = (elastic.1 + spare).min(self.widest(elastic.0));
        }
        if bar > 0 {
            bar = (bar + width - needed(&shown, bar)).min(*BAR.end());
        }
        Layout { shown, bar }
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
        while own + spare(shown) < wanted {
            let zeros = shown.iter().enumerate().filter(|(_, s)| {
                let column = &self.columns[s.0];
                column.expendable > 0 && column.unit.is_figure() && is_zero(s.0)
            });
            let Some(at) = zeros.max_by_key(|(_, s)| self.columns[s.0].expendable).map(|z| z.0)
            else {
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

    /// As [`Self::lines`], with bars of block characters unless `ascii`.
    pub fn drawn(&self, width: usize, ascii: bool) -> String {
        let layout = self.layout(width);
        let mut text = String::from(self.heading(&layout).trim_end());
        text.push('\n');
        for row in &self.rows {
            let bar = bar(row.bar.unwrap_or(0.0), layout.bar, ascii);
            text.push_str(self.line(row, &layout, &bar).trim_end());
            text.push('\n');
        }
        text
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

/// Wraps `text` into lines of at most `width` characters, at blanks if possible.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in visible(text).split(' ') {
        let mut word: Vec<char> = word.chars().collect();
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
            let cell = table.rows[0].cells[column].brief(table.columns[column].unit);
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
