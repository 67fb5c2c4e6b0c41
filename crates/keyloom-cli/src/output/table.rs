//! Tables for people, cut to the width of their terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::visible::visible;

/// The space between two columns.
const GAP: usize = 2;
/// The least width of a column.
const COLUMN_MIN: usize = 6;
/// Below this width, each value has a line of its own.
const TABLE_MIN: usize = 24;

/// Rows under titles.
pub(crate) struct Table {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(titles: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let titles = titles.into_iter().map(|title| visible(title.as_ref())).collect();
        Table { titles, rows: Vec::new() }
    }

    /// Adds a row. Missing cells are empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        let mut row: Vec<String> = cells.into_iter().map(|cell| visible(cell.as_ref())).collect();
        row.resize(self.titles.len(), String::new());
        self.rows.push(row);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The width that the whole table needs.
    pub(crate) fn width(&self) -> usize {
        let columns = (0..self.titles.len()).map(|column| self.natural(column));
        columns.sum::<usize>() + GAP * self.titles.len().saturating_sub(1)
    }

    /// The lines of the table, the titles first. Every line fits the width. If the terminal is too
    /// narrow for a table, each value has a line of its own.
    pub(crate) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let width = width.unwrap_or(usize::MAX);
        if width < TABLE_MIN {
            return self.list();
        }
        let widths = self.widths(width);
        let is_cut = widths.len() < self.titles.len();
        let mut lines = vec![line(&self.titles, &widths, is_cut)];
        lines.extend(self.rows.iter().map(|row| line(row, &widths, is_cut)));
        lines
    }

    /// The widths of the columns that fit, from left to right.
    fn widths(&self, width: usize) -> Vec<usize> {
        let natural: Vec<usize> =
            (0..self.titles.len()).map(|column| self.natural(column)).collect();
        let mut count = natural.len();
        while count > 1 && least(&natural[..count], count < natural.len()) > width {
            count -= 1;
        }
        let mark = if count < natural.len() { GAP + 1 } else { 0 };
        let room = width.saturating_sub(GAP * count.saturating_sub(1) + mark);
        let fitting = &natural[..count];
        match fitting.split_first() {
            // The first column names the row, and people copy it: the other columns shrink first.
            Some((first, others)) if *first <= room / 2 => {
                let others = narrowed(others, room - first);
                std::iter::once(*first).chain(others).collect()
            }
            _ => narrowed(fitting, room),
        }
    }

    fn natural(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.chain(self.titles.get(column)).map(|cell| cell.width()).max().unwrap_or(0)
    }

    fn list(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for row in &self.rows {
            let named = self.titles.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            lines.extend(named.map(|(title, cell)| format!("{title}: {cell}")));
            lines.push(String::new());
        }
        lines
    }
}

/// The least width that these columns need.
fn least(natural: &[usize], is_cut: bool) -> usize {
    let columns: usize = natural.iter().map(|width| (*width).min(COLUMN_MIN)).sum();
    columns + GAP * natural.len().saturating_sub(1) + if is_cut { GAP + 1 } else { 0 }
}

/// Widths that fit into the room together: the widest columns shrink first.
fn narrowed(natural: &[usize], room: usize) -> Vec<usize> {
    let total: usize = natural.iter().fold(0, |sum, width| sum.saturating_add(*width));
    if total <= room {
        return natural.to_vec();
    }
    // The largest limit on the width with which all columns fit.
    let sum = |cap: usize| natural.iter().map(|width| (*width).min(cap)).sum::<usize>();
    let (mut low, mut high) = (0, room);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if sum(middle) <= room { low = middle } else { high = middle - 1 }
    }
    let mut spare = room - sum(low);
    let widen = |width: &usize| {
        let wider = *width > low && spare > 0;
        spare -= usize::from(wider);
        (*width).min(low) + usize::from(wider)
    };
    natural.iter().map(widen).collect()
}

fn line(cells: &[String], widths: &[usize], is_cut: bool) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let shown = cut(cell, *width);
        let pad = width.saturating_sub(shown.width()) + GAP;
        line.push_str(&shown);
        line.extend(std::iter::repeat_n(' ', pad));
    }
    if is_cut {
        line.push('…');
    }
    line.truncate(line.trim_end().len());
    line
}

/// As much of a text as fits, with a mark if it was cut.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut used = 0;
    for letter in text.chars() {
        used += letter.width().unwrap_or(0);
        if used + 1 > width {
            break;
        }
        shown.push(letter);
    }
    if width > 0 {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(["key", "text", "tags"]);
        table.row(["n1", "short", "[\"a\"]"]);
        table.row(["n2", "日本語のとても長い文章がここにあります、終わりがない", "[]"]);
        table
    }

    #[test]
    fn a_table_fits_every_width() {
        let table = sample();
        for width in TABLE_MIN..120 {
            for line in table.lines(Some(width)) {
                assert!(line.width() <= width, "{} > {width}: {line:?}", line.width());
            }
        }
        assert_eq!(
            table.lines(None)[1],
            "n1   short                                                 [\"a\"]"
        );
    }

    #[test]
    fn what_does_not_fit_is_marked() {
        let mut table = Table::new((0..20).map(|column| format!("column{column}")));
        table.row((0..20).map(|_| "a long value"));
        let lines = table.lines(Some(40));
        assert!(lines.iter().all(|line| line.ends_with('…') && line.width() <= 40), "{lines:?}");
    }

    #[test]
    fn a_narrow_terminal_gets_a_line_for_each_value() {
        let lines = sample().lines(Some(1));
        assert_eq!(lines[..3], ["key: n1", "text: short", "tags: [\"a\"]"]);
    }
}
