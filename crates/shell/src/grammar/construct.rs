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
    /// A program that may read what a variable in capitals holds.
    ReadValue,
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

/// What to write instead of a here-document at another place.
const OUTER: &str = "put it at a command of the outer list, with nothing across lines between";
/// What to write instead of an assignment.
const NAMED: &str = "leave it out, or have the list of allowed commands name the line; for a value of the line itself write n=5";

impl Construct {
    /// Returns what it is, as the object of "the command has".
    #[must_use]
    pub fn what(self) -> String {
        let (what, _) = self.texts();
        if let Self::Reserved(word) = self { format!("{what} {word}") } else { what.to_owned() }
    }

    /// Returns what to write instead.
    #[must_use]
    pub fn instead(self) -> &'static str {
        self.texts().1
    }

    /// Returns what it is, and what to write instead.
    #[rustfmt::skip]
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::TooLong => ("more than 64 KiB", "split it into several calls"),
            Self::TooDeep => ("constructs nested too deeply", "write it with fewer levels"),
            Self::TooMuch => ("more words, or turns of loops, than are looked at", "split it into several calls"),
            Self::Control => ("a control character", "leave it out, or write it into a file with a file tool"),
            Self::Character => ("a character outside quotes that shells may read differently", "put the word in single quotes"),
            Self::Incomplete => ("a quote, bracket or word that is not closed", "close it"),
            Self::Unexpected => ("a word or operator where none is expected", "write a plain list of commands"),
            Self::Arithmetic => ("arithmetic", "write the result as a number"),
            Self::Parameter => ("a parameter expansion with an operator", "write its value"),
            Self::PipeStatus =>
                ("the status of a command in a pipe", "write the output to a file instead of a pipe: command >out.txt 2>&1; echo \"$?\""),
            Self::Special => ("a dollar sign or a positional or special parameter", "write its value, or put the dollar sign in single quotes"),
            Self::Variable => ("a variable that is not of a loop in the same line", "write its value"),
            Self::Unquoted => ("a variable outside quotes", "put it in double quotes"),
            Self::DollarQuote => ("a quote behind a dollar sign", "use plain quotes"),
            Self::Backtick => ("a backtick", "put the text in single quotes, or write \"$(command)\""),
            Self::Substitution =>
                ("a command substitution outside double quotes", "put it in double quotes, or run the command first and write its output"),
            Self::Process => ("a process substitution", "write the output to a file first, or use a pipe"),
            Self::Brace => ("a brace in a word", "write each of the words out"),
            Self::Tilde => ("a tilde that some shell does not take for the home directory", "write the path out, or ./ in front of the tilde"),
            Self::QuotedGlob => ("a glob with quoted wildcards or brackets in it", "quote the whole word, or leave the quotes out"),
            Self::Inside => ("the home or working folder inside a word", "begin the word with it, or write the path out"),
            Self::History => ("an exclamation mark that may reach into the history", "put the word in single quotes"),
            Self::Parenthesis => ("a parenthesis in a word", "put the word in single quotes"),
            Self::Function => ("a function", "write its commands out where they run"),
            Self::CountingLoop => ("a loop that counts", "write for i in 1 2 3; do …; done"),
            Self::Equals => ("a word that begins with an equals sign", "put the word in single quotes"),
            Self::Reserved(_) => ("the reserved word", "use if, while and for, or separate calls"),
            Self::Operator => ("an operator that not all shells have", "use | && || ; or &, with blanks around it"),
            Self::BothPiped => ("an operator that not all shells have", "write 2>&1 |"),
            Self::BothWritten => ("a redirection that not all shells have", "write >file 2>&1"),
            Self::HereString => ("a text behind <<<, which not all shells have", "pipe the text into the command, or write a file first"),
            Self::ProcessInput => ("an input from a process substitution", "pipe into it: command | while read -r line; do …; done"),
            Self::Redirection =>
                ("a redirection that not all shells read in the same way", "use > >> < 2> 2>&1 with a blank in front, such as >file 2>&1"),
            Self::Target => ("a redirection to a file whose name is computed", "write the file's name, or give the name to the command as a word"),
            Self::Device => ("a redirection to a device", "use a file, or /dev/null"),
            Self::NoCommand => ("a redirection or assignment without a command", "write it behind a command"),
            Self::Document => ("a here-document whose delimiter is not quoted, and which is expanded", "quote the delimiter: <<'EOF'"),
            Self::DocumentPlace => ("a here-document where shells disagree about its place", OUTER),
            Self::Comment => ("a comment where shells disagree about its end", "leave the comment out"),
            Self::Continuation => ("a backslash at the end of a line, inside a word", "put a blank in front of the backslash"),
            Self::Assignment => ("an assignment", NAMED),
            Self::LoopName =>
                ("a loop over a variable that may mean something to a shell", "name it with one letter, or file, dir, name, line or item"),
            Self::ReadValue => ("a variable that this program may read, with a value that is not plain", "name the variable in small letters"),
            Self::Program => ("a program whose name is computed", "write the name of the program"),
            Self::RelativeProgram => ("a program at a relative path behind cd", "write its absolute path"),
            Self::ShellText =>
                ("a shell that executes what cannot be read off", "write the commands themselves, or their text behind -c in single quotes"),
            Self::Directory => ("a relative path behind a cd that cannot be followed", "write the absolute path"),
            Self::Read => ("read outside a while loop's condition", "write while read -r line; do …; done"),
            Self::Argument(what) => (what, instead_of_argument(what)),
        }
    }
}

/// Returns what to write instead of an argument of which this is said.
fn instead_of_argument(what: &str) -> &'static str {
    match what {
        tables::COMPUTED => {
            "begin it with ./ or put -- in front; behind xargs find whole names, as in grep -rlZ --include='*.py' x src | xargs -0 rm"
        }
        tables::LITERAL => "write its text, or begin it with ./",
        tables::NAMED => "have the list of allowed commands name it, with {word}, {path} or {any} in the place of what changes",
        tables::ASKS => "run it without a pipe or another input",
        tables::CLIMBS => "write paths from the root",
        tables::FEEDS => "give the input to the command that reads it",
        tables::NEEDED => "write an option such as -m or --check, or have the list of allowed commands name the subcommand",
        tables::COMPUTED_NAME | tables::COMPUTED_WORD => "run what prints the name in a call of its own, and write the name",
        tables::REFUSED => "leave it out: listing it does not allow it",
        tables::SUBCOMMAND => "have the list of allowed commands name the subcommand",
        tables::OPERAND => "write another, or have the list of allowed commands name the command with it",
        tables::VALUE => "write another value, or have the list of allowed commands name the option with it",
        tables::MISSING => "write the others too",
        UNREAD => "write it out as the only argument, in single quotes, with the lines that apply_patch has",
        _ => "leave it out, or have the list of allowed commands name it",
    }
}
