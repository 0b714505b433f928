//! Tables of what a command lists.

use std::io::Write;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, Width};

use super::{OutputFormat, Screen, TITLE, shown};

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// Whether numbers stand in it, which are aligned to the right.
    pub(crate) is_number: bool,
    /// Whether it is left out unless every column is asked for.
    pub(crate) is_wide: bool,
}

impl Column {
    /// Returns the same column, shown only if every column is asked for.
    pub(crate) const fn wide(self) -> Self {
        Self { is_wide: true, ..self }
    }
}

/// Returns a column of text.
pub(crate) const fn text(title: &'static str) -> Column {
    Column { title, is_number: false, is_wide: false }
}

/// Returns a column of numbers.
pub(crate) const fn number(title: &'static str) -> Column {
    Column { title, is_number: true, is_wide: false }
}

/// A table that is printed as a whole.
#[derive(Debug)]
pub(crate) struct Table {
    columns: &'static [Column],
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &'static [Column]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row: one cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Returns the lines: those of a narrow terminal break within cells, but not within words if all words fit. Wide tables never break.
    pub(crate) fn lines(&self, is_wide: bool, width: usize) -> Vec<String> {
        let mut table = comfy_table::Table::new();
        table.load_preset(NOTHING);
        if is_wide {
            table.set_content_arrangement(ContentArrangement::Disabled);
        } else {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(u16::try_from(width).unwrap_or(u16::MAX));
        }
        let kept: Vec<bool> = self.columns.iter().map(|column| is_wide || !column.is_wide).collect();
        let cell = |text: &str, column: &Column| {
            let alignment = if column.is_number { CellAlignment::Right } else { CellAlignment::Left };
            comfy_table::Cell::new(shown(text)).set_alignment(alignment)
        };
        let kept_cells = |cells: &mut dyn Iterator<Item = comfy_table::Cell>| -> Row {
            cells.zip(&kept).filter(|(_, is_kept)| **is_kept).map(|(cell, _)| cell).collect::<Vec<_>>().into()
        };
        table.set_header(kept_cells(&mut self.columns.iter().map(|column| cell(column.title, column))));
        for row in &self.rows {
            table.add_row(kept_cells(&mut row.iter().zip(self.columns).map(|(text, column)| cell(text, column))));
        }
        let cells = |at: usize| self.rows.iter().filter_map(move |row| row.get(at)).map(String::as_str);
        let longest_word = |(at, column): (usize, &Column)| {
            let words = cells(at).chain([column.title]).flat_map(str::split_whitespace);
            words.map(|word| word.chars().count()).max().unwrap_or_default()
        };
        let columns = self.columns.iter().enumerate().zip(&kept).filter(|(_, is_kept)| **is_kept);
        let words: Vec<usize> = columns.map(|(column, _)| longest_word(column)).collect();
        let paddings = (words.len() * 2).saturating_sub(1);
        let do_words_fit = words.iter().sum::<usize>() + paddings <= width;
        for (at, (column, word)) in table.column_iter_mut().zip(words).enumerate() {
            let left = u16::from(at > 0);
            column.set_padding((left, 1));
            if !is_wide && do_words_fit {
                let least = u16::try_from(word).unwrap_or(u16::MAX).saturating_add(left + 1);
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            }
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Writes the table, its titles in bold where there is colour.
    pub(crate) fn write(&self, out: &mut impl Write, screen: Screen, format: OutputFormat) -> std::io::Result<()> {
        for (at, line) in self.lines(format == OutputFormat::Wide, screen.size().0).iter().enumerate() {
            let line = if at == 0 { screen.paint(TITLE, line) } else { line.clone() };
            writeln!(out, "{line}")?;
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[text("thread"), number("bytes"), text("touched").wide()];

    #[test]
    fn a_table_holds_what_fits_and_a_wide_one_everything() {
        let mut table = Table::new(COLUMNS);
        table.row(vec!["a\u{1b}[31m".to_owned(), "7".to_owned(), "now".to_owned()]);
        table.row(vec!["nightly-deploy".to_owned(), "1234".to_owned(), "3 min ago".to_owned()]);
        assert_eq!(table.lines(false, 40), ["thread          bytes", "a?[31m              7", "nightly-deploy   1234"]);
        assert_eq!(
            table.lines(true, 10),
            ["thread          bytes  touched", "a?[31m              7  now", "nightly-deploy   1234  3 min ago"]
        );
        let mut of_words = Table::new(COLUMNS);
        of_words.row(vec!["a rule and a second rule of them".to_owned(), "safety-stop-user-1".to_owned(), String::new()]);
        let lines = of_words.lines(false, 28);
        assert!(lines.iter().any(|line| line.contains("safety-stop-user-1")), "a word that has room is broken: {lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 28), "{lines:?}");
        assert!(table.lines(false, 14).iter().all(|line| line.chars().count() <= 14), "{:?}", table.lines(false, 14));
    }
}
