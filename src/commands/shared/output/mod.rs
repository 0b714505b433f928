//! What commands print on a terminal and what in a pipe: colour, width, tables, and times as people read them.
//!
//! Data goes to stdout, and a reader that has gone is no failure: nothing here panics, and every write returns its error.

mod file;
mod live;
mod table;
mod text;
mod time;

use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};

pub(in crate::commands) use file::{check as check_output, create as create_output};
pub(in crate::commands) use live::LiveLine;
pub(in crate::commands) use table::{Column, Table};
pub(in crate::commands) use text::{fit, shown};
pub(in crate::commands) use time::{ago, clock, read_duration, read_since};
pub(in crate::commands) use tollgate_operations::units::{bytes, count, seconds, stamp};
pub(in crate::commands) use tollgate_worker::host_time::now_ms;

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
pub(in crate::commands) enum OutputFormat {
    /// A table in the width of the terminal
    Table,
    /// One JSON object a line
    Json,
    /// A table with every column, however wide
    Wide,
}

/// The option of commands that list things.
#[derive(Debug, Clone, Copy, Args)]
pub(in crate::commands) struct OutputArgs {
    /// How to print [default: table on a terminal, else json]
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<OutputFormat>,
}

impl OutputArgs {
    /// Returns the format: the one that was asked for, or the one that fits stdout.
    pub(in crate::commands) fn format(self) -> OutputFormat {
        let default = || if std::io::stdout().is_terminal() { OutputFormat::Table } else { OutputFormat::Json };
        self.output.unwrap_or_else(default)
    }
}

/// What is known of stdout.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Screen {
    pub(in crate::commands) is_terminal: bool,
    has_color: bool,
}

impl Screen {
    /// Looks at stdout.
    pub(in crate::commands) fn stdout(choice: ColorChoice) -> Self {
        let stdout = std::io::stdout();
        let has_color = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never,
        };
        Self { is_terminal: stdout.is_terminal(), has_color }
    }

    /// Returns the columns and rows of the terminal as it is now. Without a terminal there are columns enough for everything.
    pub(in crate::commands) fn size(self) -> (usize, usize) {
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
    pub(in crate::commands) fn paint(self, style: Style, text: &str) -> String {
        if self.has_color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// The style of titles.
pub(in crate::commands) const TITLE: Style = Style::new().bold();
/// The style of what matters less.
pub(in crate::commands) const DIM: Style = Style::new().dimmed();

/// Returns the style of a verdict's action.
pub(in crate::commands) fn style_of(action: &str) -> Style {
    let color = match action {
        "allow" => AnsiColor::Green,
        "warn" => AnsiColor::Yellow,
        "suppress" => AnsiColor::Magenta,
        _ => AnsiColor::Red,
    };
    Style::new().fg_color(Some(color.into()))
}
