//! The constructs that are not in the grammar: what they are called, and what is to be written instead.

use crate::patch::UNREAD;
use crate::tables;

/// Why a command line cannot be proven harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Construct {
    /// More than 64 KiB.
    TooLong,
    /// Constructs inside one another, deeper than is read.
    TooDeep,
    /// Loops that run more commands than are looked at.
    TooMuch,
    /// A control character, such as a carriage return.
    Control,
    /// A character outside quotes that is not in the grammar.
    Character,
    /// A quote that is not closed, or a word or bracket that is missing.
    Incomplete,
    /// A word or operator where none is expected.
    Unexpected,
    /// `$((…))`, `$[…]` or `((…))`.
    Arithmetic,
    /// `${…}` with anything but a name.
    Parameter,
    /// `${PIPESTATUS[0]}`.
    PipeStatus,
    /// `$1`, `$@`, `$$` and their like.
    Special,
    /// `$name` of a variable that is no loop's, and not `HOME` or `PWD`.
    Variable,
    /// A variable outside quotes whose value may be split.
    Unquoted,
    /// `$'…'` or `$"…"`.
    DollarQuote,
    /// A backtick.
    Backtick,
    /// `$(…)` outside double quotes.
    Substitution,
    /// `<(…)`, `>(…)` or `=(…)`.
    Process,
    /// `{a,b}`, `{1..9}` or a brace inside a word.
    Brace,
    /// `~user`, `~+`, or a tilde behind `=` or `:`.
    Tilde,
    /// A glob with quoted characters that would be part of it.
    QuotedGlob,
    /// `$HOME` or `$PWD` inside a word.
    Inside,
    /// `!` in a place where a shell looks into its history.
    History,
    /// `(` inside a word: an extended glob, a list of values.
    Parenthesis,
    /// `name() { …; }`.
    Function,
    /// `for ((…))`.
    CountingLoop,
    /// `=word`, which is a path to zsh.
    Equals,
    /// A reserved word of some shell.
    Reserved(&'static str),
    /// An operator that some shells do not have, such as `;;`.
    Operator,
    /// `&>` or `&>>`.
    BothWritten,
    /// `|&`.
    BothPiped,
    /// `<<<`.
    HereString,
    /// `< <(…)`.
    ProcessInput,
    /// A redirection that some shells do not have, or read differently.
    Redirection,
    /// A redirection to a word that is computed.
    Target,
    /// A redirection to or from a device, or the kernel's state.
    Device,
    /// A redirection without a command.
    NoCommand,
    /// A here-document whose delimiter is not quoted.
    Document,
    /// A here-document in a place where shells disagree about its beginning or end.
    DocumentPlace,
    /// A comment in a place where shells disagree about its end.
    Comment,
    /// A backslash at the end of a line, in a place where shells disagree.
    Continuation,
    /// An assignment.
    Assignment,
    /// A loop over a variable that means something to some shell or program.
    LoopName,
    /// A word in the place of a program's name that is not literal.
    Program,
    /// A program that is named by a relative path behind `cd`.
    RelativeProgram,
    /// A shell that is given a computed text, or what another program writes.
    ShellText,
    /// A relative path to write to behind a `cd` that is not followed.
    Directory,
    /// `read` outside `while read`.
    Read,
    /// An argument that is not in a program's table; the text says what it is.
    Argument(&'static str),
}

impl Construct {
    /// Returns what it is, as the object of "the command has".
    #[must_use]
    pub fn what(self) -> String {
        let text = match self {
            Self::TooLong => "more than 64 KiB",
            Self::TooDeep => "constructs nested too deeply",
            Self::TooMuch => "loops that run too many commands to be looked at",
            Self::Control => "a control character",
            Self::Character => "a character outside quotes that shells may read differently",
            Self::Incomplete => "a quote, bracket or word that is not closed",
            Self::Unexpected => "a word or operator where none is expected",
            Self::Arithmetic => "arithmetic",
            Self::Parameter => "a parameter expansion with an operator",
            Self::PipeStatus => "the status of a command in a pipe",
            Self::Special => "a dollar sign or a positional or special parameter",
            Self::Variable => "a variable that is not of a loop in the same line",
            Self::Unquoted => "a variable outside quotes",
            Self::DollarQuote => "a quote behind a dollar sign",
            Self::Backtick => "a backtick",
            Self::Substitution => "a command substitution outside double quotes",
            Self::Process => "a process substitution",
            Self::Brace => "a brace in a word",
            Self::Tilde => "a tilde that some shell does not take for the home directory",
            Self::QuotedGlob => "a glob with quoted wildcards or brackets in it",
            Self::Inside => "the home or working folder inside a word",
            Self::History => "an exclamation mark that may reach into the history",
            Self::Parenthesis => "a parenthesis in a word",
            Self::Function => "a function",
            Self::CountingLoop => "a loop that counts",
            Self::Equals => "a word that begins with an equals sign",
            Self::Reserved(word) => return format!("the reserved word {word}"),
            Self::Operator | Self::BothPiped => "an operator that not all shells have",
            Self::BothWritten => "a redirection that not all shells have",
            Self::HereString => "a text behind <<<, which not all shells have",
            Self::ProcessInput => "an input from a process substitution",
            Self::Redirection => "a redirection that not all shells read in the same way",
            Self::Target => "a redirection to a file whose name is computed",
            Self::Device => "a redirection to a device",
            Self::NoCommand => "a redirection or assignment without a command",
            Self::Document => "a here-document whose delimiter is not quoted, and which is expanded",
            Self::DocumentPlace => "a here-document where shells disagree about its place",
            Self::Comment => "a comment where shells disagree about its end",
            Self::Continuation => "a backslash at the end of a line, inside a word",
            Self::Assignment => "an assignment",
            Self::LoopName => "a loop over a variable that may mean something to a shell",
            Self::Program => "a program whose name is computed",
            Self::RelativeProgram => "a program at a relative path behind cd",
            Self::ShellText => "a shell that executes what cannot be read off",
            Self::Directory => "a relative path behind a cd that cannot be followed",
            Self::Read => "read outside a while loop's condition",
            Self::Argument(what) => what,
        };
        text.to_owned()
    }

    /// Returns what to write instead.
    #[must_use]
    pub fn instead(self) -> &'static str {
        match self {
            Self::TooLong | Self::TooMuch => "split it into several calls",
            Self::TooDeep => "write it with fewer levels",
            Self::Control => "leave it out, or write it into a file with a file tool",
            Self::Character => "put the word in single quotes",
            Self::Incomplete => "close it",
            Self::Unexpected => "write a plain list of commands",
            Self::Arithmetic => "write the result as a number",
            Self::Parameter | Self::Variable => "write its value",
            Self::Special => "write its value, or put the dollar sign in single quotes",
            Self::Unquoted => "put it in double quotes",
            Self::DollarQuote => "use plain quotes",
            Self::Backtick => "put the text in single quotes, or write \"$(command)\"",
            Self::Substitution => "put it in double quotes, or run the command first and write its output",
            Self::Process => "write the output to a file first, or use a pipe",
            Self::Brace => "write each of the words out",
            Self::Tilde => "write the path out, or ./ in front of the tilde",
            Self::QuotedGlob => "quote the whole word, or leave the quotes out",
            Self::Inside => "begin the word with it, or write the path out",
            Self::History | Self::Equals => "put the word in single quotes",
            Self::PipeStatus => "write the output to a file instead of a pipe: command >out.txt 2>&1; echo \"$?\"",
            Self::Parenthesis => "put the word in single quotes",
            Self::Function => "write its commands out where they run",
            Self::CountingLoop => "write for i in 1 2 3; do …; done",
            Self::Reserved(_) => "use if, while and for, or separate calls",
            Self::BothWritten => "write >file 2>&1",
            Self::BothPiped => "write 2>&1 |",
            Self::HereString => "pipe the text into the command, or write a file first",
            Self::ProcessInput => "pipe into it: command | while read -r line; do …; done",
            Self::Operator => "use | && || ; or &, with blanks around it",
            Self::Redirection => "use > >> < 2> 2>&1 with a blank in front, such as >file 2>&1",
            Self::Target => "write the file's name",
            Self::Device => "use a file, or /dev/null",
            Self::NoCommand => "write it behind a command",
            Self::Document => "quote the delimiter: <<'EOF'",
            Self::DocumentPlace => "put it at a command of the outer list, with nothing across lines between",
            Self::Comment => "leave the comment out",
            Self::Continuation => "put a blank in front of the backslash",
            Self::Assignment => {
                "leave a variable for a program out, or have the list of allowed commands name the line; call a variable of the line n"
            }
            Self::LoopName => "name it with one letter, or file, dir, name, line or item",
            Self::Program => "write the name of the program",
            Self::RelativeProgram => "write its absolute path",
            Self::ShellText => "write the commands themselves, or their text behind -c in single quotes",
            Self::Directory => "write the absolute path",
            Self::Read => "write while read -r line; do …; done",
            Self::Argument(what) => instead_of_argument(what),
        }
    }
}

/// Returns what to write instead of an argument of which this is said.
fn instead_of_argument(what: &str) -> &'static str {
    match what {
        tables::COMPUTED => "put -- in front of it, or begin it with ./",
        tables::LITERAL => "write its text, or begin it with ./",
        tables::NAMED => "have the list of allowed commands name it, with {word}, {path} or {any} in the place of what changes",
        tables::ASKS => "run it without a pipe or another input",
        tables::CLIMBS => "write paths from the root",
        tables::FEEDS => "give the input to the command that reads it",
        tables::NEEDED => "write an option such as -m or --check, or have the list of allowed commands name the subcommand",
        tables::COMPUTED_NAME | tables::COMPUTED_WORD => "run the commands in it first, and write what they print",
        tables::REFUSED => "leave it out: listing it does not allow it",
        tables::SUBCOMMAND => "have the list of allowed commands name the subcommand",
        tables::OPERAND => "write another, or have the list of allowed commands name the command with it",
        tables::VALUE => "write another value, or have the list of allowed commands name the option with it",
        tables::MISSING => "write the others too",
        UNREAD => "write it out as the only argument, in single quotes, with the lines that apply_patch has",
        _ => "leave it out, or have the list of allowed commands name it",
    }
}
