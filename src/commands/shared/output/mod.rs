//! What commands print on a terminal and what in a pipe: colour, width, tables, and times as people read them.
//!
//! Data goes to stdout: nothing here panics, and every write returns its error.

mod file;
mod live;
mod table;
mod text;
mod time;

use std::io::{BufWriter, IsTerminal, Write as _};

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use serde::Serialize;

pub(crate) use file::{Finding, check as check_output, create as create_output, is_reader_gone, stdout_error};
pub(crate) use live::LiveLine;
pub(crate) use table::{Column, Table, number, text};
pub(crate) use text::{fit, hash_text, shown};
pub(crate) use time::{ago, clock, read_duration, read_since, read_until};
pub(crate) use tollgate_operations::units::{bytes, count, seconds, stamp};
pub(crate) use tollgate_worker::host_time::now_ms;

/// The width that is assumed where a terminal does not say its own.
const WIDTH: usize = 80;
/// The width where there is no terminal: lines are as long as they need to be.
const WIDTH_MAX: usize = 400;

/// When to use colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    #[default]
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

/// How a command lists things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// A table in the width of the terminal
    Table,
    /// One JSON object a line
    Json,
    /// A table with every column, however wide
    Wide,
}

/// The option of commands that list things.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct OutputArgs {
    /// How to print [default: table on a terminal, else json]
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<OutputFormat>,
}

impl OutputArgs {
    /// Returns the format: the one that was asked for, or the one that fits stdout.
    pub(crate) fn format(self) -> OutputFormat {
        let default = || if std::io::stdout().is_terminal() { OutputFormat::Table } else { OutputFormat::Json };
        self.output.unwrap_or_else(default)
    }

    /// Prints a line of JSON for each thing, or a table of all of them.
    pub(crate) fn print<L: Serialize>(
        self,
        screen: Screen,
        lines: impl IntoIterator<Item = L>,
        table: impl FnOnce(OutputFormat) -> Table,
    ) -> anyhow::Result<()> {
        let mut out = BufWriter::new(Finding);
        let format = self.format();
        if format != OutputFormat::Json {
            return Ok(table(format).write(&mut out, screen, format)?);
        }
        lines.into_iter().try_for_each(|line| anyhow::Ok(writeln!(out, "{}", serde_json::to_string(&line)?)?))?;
        Ok(out.flush()?)
    }
}

/// What is known of stdout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    pub(crate) is_terminal: bool,
    has_color: bool,
}

impl Screen {
    /// Looks at stdout.
    pub(crate) fn stdout(choice: ColorChoice) -> Self {
        let stdout = std::io::stdout();
        let has_color = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never,
        };
        Self { is_terminal: stdout.is_terminal(), has_color }
    }

    /// Returns the columns and rows of the terminal as it is now. Without a terminal there are columns enough for everything.
    pub(crate) fn size(self) -> (usize, usize) {
        if !self.is_terminal {
            return (WIDTH_MAX, 24);
        }
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let of = |read: fn(&rustix::termios::Winsize) -> u16, default| {
            size.as_ref().map(read).filter(|length| *length > 0).map_or(default, usize::from)
        };
        (of(|size| size.ws_col, WIDTH), of(|size| size.ws_row, 24))
    }

    /// Returns the text in a style, where there is colour.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if self.has_color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// The style of titles.
pub(crate) const TITLE: Style = Style::new().bold();
/// The style of what matters less.
pub(crate) const DIM: Style = Style::new().dimmed();

/// Returns the style of a verdict's action.
pub(crate) fn style_of(action: &str) -> Style {
    let color = match action {
        "allow" => AnsiColor::Green,
        "warn" => AnsiColor::Yellow,
        "suppress" => AnsiColor::Magenta,
        _ => AnsiColor::Red,
    };
    Style::new().fg_color(Some(color.into()))
}
