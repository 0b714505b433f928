//! Reads the arguments of a command by its program's table.

use super::checks::{self, is_of};
use super::movers::{is_mover, movable};
use super::options::{Known, Options, Role, Takes};
pub use super::unlisted::{
    ASSIGNMENT, COMPUTED, COMPUTED_NAME, COMPUTED_WORD, LITERAL, MISSING, NAMED, NEEDED, OPERAND, OPTION, REFUSED, Reading, SUBCOMMAND,
    Started, Unlisted, VALUE,
};
use super::{Operands, Program, Style, Subcommand, Value, sed, values};
use crate::argument::{Argument, Certainty};

/// Reads the arguments of a program: what they start.
///
/// # Errors
/// [`Unlisted`] says which argument is not in the program's table.
pub fn read(program: &str, arguments: &[Argument]) -> Reading {
    let Some(table) = super::table(program) else {
        return if is_mover(program) { movable(program, arguments) } else { literal(arguments) };
    };
    match table.operands {
        Operands::Open => return Ok(Vec::new()),
        Operands::Refused => return Err(Unlisted { index: arguments.len(), what: REFUSED }),
        Operands::Nothing => return Err(Unlisted { index: 0, what: NAMED }),
        Operands::Version => {
            let is_asked = matches!(arguments, [only] if only.as_known() == Some("--version"));
            return if is_asked { Ok(Vec::new()) } else { Err(Unlisted { index: 0, what: NAMED }) };
        }
        Operands::Own(reads) => return reads(arguments),
        _ => {}
    }
    let mut reader = Reader::new(arguments);
    if table.subcommands.is_empty() {
        let operands = reader.options(&table.options, table.style)?;
        reader.operands(&operands, table.operands)?;
        reader.needs(&table.options)?;
        return Ok(reader.started);
    }
    let Some(subcommand) = reader.subcommand(table)? else {
        return reader.needs(&table.options).map(|()| reader.started);
    };
    reader.is_met = false;
    let (options, style) = (&subcommand.options, table.style_of(subcommand));
    // Of what is handed on nothing is the program's own.
    let reads = !matches!(subcommand.operands, Operands::Forwarded { named: false });
    let operands = reads.then(|| reader.options(options, style)).transpose()?.unwrap_or_default();
    reader.operands(&operands, subcommand.operands)?;
    reader.needs(options)?;
    Ok(reader.started)
}

/// Returns whether a program is asked for nothing but its version, in a way that its table knows.
#[must_use]
pub fn asks_version(program: &str, arguments: &[Argument]) -> bool {
    let [asked] = arguments else { return false };
    let is_asked = asked.as_known().is_some_and(|text| text == "--version" || program == "go" && text == "version");
    is_asked && super::table(program).is_some() && read(program, arguments).is_ok_and(|started| started.is_empty())
}

/// Tells options from operands behind a subcommand, by the program's table. `None` where the table does not know them.
#[must_use]
pub fn scan_subcommand(program: &str, arguments: &[Argument]) -> Option<Scan> {
    let table = super::table(program).filter(|table| !table.subcommands.is_empty())?;
    let mut reader = Reader::new(arguments);
    let subcommand = reader.subcommand(table).ok()??;
    let style = if matches!(subcommand.operands, Operands::Program(_)) { table.style_of(subcommand) } else { table.style };
    let mut operands = reader.options(&subcommand.options, style).ok()?;
    operands.extend(reader.at..arguments.len());
    Some(reader.scanned(operands))
}

/// Reads the arguments of a program of which nothing is known but its name: they must be literal. What a glob finds below a folder is as
/// good as written out.
///
/// # Errors
/// [`Unlisted`] is the first argument that is computed.
pub fn literal(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let computed = arguments.iter().position(|argument| !argument.is_literal());
    computed.map_or(Ok(Vec::new()), |index| Err(Unlisted { index, what: LITERAL }))
}

/// Arguments that are told apart, for programs whose table has a function of its own.
#[derive(Debug)]
pub struct Scan {
    /// The options that are given, as the table names them without their dashes, with their values.
    pub given: Vec<(&'static str, Option<Argument>)>,
    /// The places of their values, or of themselves.
    pub places: Vec<usize>,
    /// The files and folders among the values, with their places.
    pub files: Vec<(usize, String)>,
    /// The places of those of them in which the program works.
    pub entered: Vec<usize>,
    /// The places of the operands. For [`Style::First`] it is all that stands behind the options.
    pub operands: Vec<usize>,
    /// Whether `--` stands in front of the operands, or of the last of them.
    pub ended: bool,
}

impl Scan {
    /// Says that no operand may be an option, for programs some versions of which look for options behind operands. Behind `--` none of them
    /// looks for options; to the others `--` is a file.
    ///
    /// # Errors
    /// [`Unlisted`] is the first that may be one.
    pub fn no_late_option(&self, arguments: &[Argument]) -> Result<(), Unlisted> {
        let is_doubtful = |at: &&usize| arguments.get(**at).is_some_and(|argument| !argument.is_operand());
        let is_end = |at: &&usize| arguments.get(**at).is_some_and(|argument| argument.as_known() == Some("--"));
        match self.operands.iter().take_while(|at| !is_end(at)).find(is_doubtful).filter(|_| !self.ended) {
            Some(index) => Err(Unlisted { index: *index, what: COMPUTED }),
            None => Ok(()),
        }
    }

    /// Returns whether one of these options is given.
    #[must_use]
    pub fn has(&self, names: &[&str]) -> bool {
        self.given.iter().any(|(name, _)| names.contains(name))
    }
}

/// Tells options from operands.
///
/// # Errors
/// [`Unlisted`] says which argument is not among the options.
pub fn scan(arguments: &[Argument], options: &Options, style: Style) -> Result<Scan, Unlisted> {
    let mut reader = Reader::new(arguments);
    let mut operands = reader.options(options, style)?;
    operands.extend(reader.at..arguments.len());
    Ok(reader.scanned(operands))
}

/// Reads arguments in order.
#[derive(Default)]
pub(super) struct Reader<'a> {
    pub(super) arguments: &'a [Argument],
    pub(super) at: usize,
    /// The places of the words of the subcommand.
    pub(super) named: Vec<usize>,
    given: Vec<(&'static str, Option<Argument>)>,
    places: Vec<usize>,
    pub(super) files: Vec<(usize, String)>,
    entered: Vec<usize>,
    pub(super) ended: bool,
    pub(super) started: Vec<Started>,
    /// Whether an option stands there that others need.
    is_met: bool,
    /// Whether an option stands there that needs one.
    is_needing: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(arguments: &'a [Argument]) -> Self {
        Self { arguments, ..Self::default() }
    }

    fn scanned(self, operands: Vec<usize>) -> Scan {
        Scan { given: self.given, places: self.places, files: self.files, entered: self.entered, operands, ended: self.ended }
    }

    /// Reads the options in front of a subcommand.
    pub(super) fn globals(&mut self, table: &Program) -> Result<(), Unlisted> {
        self.options(&table.options, if table.style.has_words() { Style::Words } else { Style::First }).map(drop)
    }

    /// Reads the options in front of a subcommand, and its name; `None` if none stands there. Some options of a group of subcommands stand in front
    /// of the second word: `docker compose -f FILE ps`.
    pub(super) fn subcommand(&mut self, table: &'static Program) -> Result<Option<&'static Subcommand>, Unlisted> {
        self.globals(table)?;
        let Some(name) = self.arguments.get(self.at) else { return Ok(None) };
        let unlisted = Unlisted { index: self.at, what: SUBCOMMAND };
        let name = name.as_known().filter(|name| !name.contains('.')).ok_or(unlisted)?;
        self.named.push(self.at);
        self.at += 1;
        if let Some(group) = table.subcommand(&format!("{name}.")) {
            self.options(&group.options, Style::First).map_err(|_| unlisted)?;
        }
        let second = self.arguments.get(self.at).and_then(Argument::as_known).filter(|second| !second.is_empty() && !self.ended);
        let pair = second.and_then(|second| table.subcommand(&format!("{name}.{second}")));
        if pair.is_some() {
            self.named.push(self.at);
            self.at += 1;
        }
        pair.or_else(|| table.subcommand(name)).map(Some).ok_or(unlisted)
    }

    /// Reads options: the places of the operands among them. Unless they stand anywhere, it stops in front of the first operand.
    pub(super) fn options(&mut self, options: &Options, style: Style) -> Result<Vec<usize>, Unlisted> {
        let mut operands = Vec::new();
        while let Some(argument) = self.arguments.get(self.at) {
            if argument.is_operand() {
                if !matches!(style, Style::Gnu | Style::Anywhere) {
                    break;
                }
                operands.push(self.at);
                self.at += 1;
                continue;
            }
            if argument.as_known() == Some("--") && !style.has_words() {
                self.at += 1;
                self.ended = true;
                if style == Style::Gnu {
                    operands.extend(self.at..self.arguments.len());
                    self.at = self.arguments.len();
                }
                break;
            }
            self.option(argument, options, style)?;
            self.at += 1;
        }
        Ok(operands)
    }

    /// Looks for an option that is needed, after the operands: of what is there the first is named, as a list may name it.
    fn needs(&self, options: &Options) -> Result<(), Unlisted> {
        let is_missing = (options.is_needing || self.is_needing) && !self.is_met;
        if is_missing { Err(Unlisted { index: self.arguments.len(), what: NEEDED }) } else { Ok(()) }
    }

    /// Notes what an option means for the others: its name, and how it takes its value.
    fn note(&mut self, known: Known) -> (&'static str, Takes) {
        self.is_met |= known.role == Role::Needed;
        self.is_needing |= known.role == Role::Needing;
        (known.name, known.takes)
    }

    /// Reads an option; its value may be the next argument.
    fn option(&mut self, argument: &Argument, options: &Options, style: Style) -> Result<(), Unlisted> {
        let unlisted = Unlisted { index: self.at, what: OPTION };
        if argument.certainty == Certainty::Nothing {
            return Err(Unlisted { what: COMPUTED, ..unlisted });
        }
        let text = argument.text.as_str();
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let word = match name.strip_prefix("--") {
            Some(long) => options.long(long),
            None if style.has_words() => options.short(name.get(1..).unwrap_or_default()),
            None if argument.certainty != Certainty::Known => return Err(unlisted),
            None => return self.letters(argument, options),
        };
        let (name, takes) = self.note(word.ok_or(unlisted)?);
        match (takes, value) {
            (Takes::Nothing | Takes::Attached(_), None) => self.flag(name),
            (Takes::Nothing | Takes::Two | Takes::Value(Value::Next), Some(_)) => Err(unlisted),
            (Takes::Value(kind) | Takes::Attached(kind), Some(value)) => {
                let value = Argument { text: value.to_owned(), ..argument.clone() };
                self.value(name, &value, kind)
            }
            (Takes::Value(kind), None) => self.next_value(name, kind),
            (Takes::Two, None) => {
                self.next_value(name, Value::Next)?;
                self.next_value(name, Value::Next)
            }
        }
    }

    /// Reads letters behind a dash. One that takes a value takes the rest, or the next argument.
    fn letters(&mut self, argument: &Argument, options: &Options) -> Result<(), Unlisted> {
        let unlisted = Unlisted { index: self.at, what: OPTION };
        let letters = argument.text.get(1..).unwrap_or_default();
        if options.has_numbers && letters.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(());
        }
        for (at, letter) in letters.char_indices() {
            let end = at + letter.len_utf8();
            let rest = letters.get(end..).unwrap_or_default();
            let (name, takes) = self.note(options.short(letters.get(at..end).unwrap_or_default()).ok_or(unlisted)?);
            match takes {
                Takes::Nothing => self.flag(name)?,
                Takes::Value(kind) if rest.is_empty() => return self.next_value(name, kind),
                Takes::Attached(_) if rest.is_empty() => return self.flag(name),
                Takes::Two | Takes::Value(Value::Next) => return Err(unlisted),
                Takes::Value(kind) | Takes::Attached(kind) => {
                    return self.value(name, &Argument { text: rest.to_owned(), ..argument.clone() }, kind);
                }
            }
        }
        Ok(())
    }

    fn flag(&mut self, name: &'static str) -> Result<(), Unlisted> {
        self.given.push((name, None));
        self.places.push(self.at);
        Ok(())
    }

    fn next_value(&mut self, name: &'static str, kind: Value) -> Result<(), Unlisted> {
        self.at += 1;
        match self.arguments.get(self.at) {
            // Several words: the second is not the value any more.
            Some(value) if value.many => Err(Unlisted { index: self.at, what: COMPUTED }),
            Some(value) if matches!(kind, Value::Word | Value::Format) && !is_word(value) => Err(Unlisted { index: self.at, what: VALUE }),
            Some(value) => self.value(name, value, kind),
            None => Ok(()),
        }
    }

    fn value(&mut self, name: &'static str, value: &Argument, kind: Value) -> Result<(), Unlisted> {
        self.given.push((name, Some(value.clone())));
        self.places.push(self.at);
        if kind.is_file() {
            self.files.push((self.at, value.text.clone()));
            self.entered.extend((kind == Value::Below).then_some(self.at));
        }
        self.text(value, kind, self.at)
    }

    /// Reads a value, or an operand that is one.
    fn text(&mut self, value: &Argument, kind: Value, index: usize) -> Result<(), Unlisted> {
        let script = value.as_known().ok_or(Unlisted { index, what: COMPUTED });
        match kind {
            Value::Text | Value::Next | Value::Word => Ok(()),
            Value::Shell => {
                script?;
                self.started.push(Started::Text(value.clone()));
                Ok(())
            }
            Value::Sed => sed::check(script?).map_err(|what| Unlisted { index, what }),
            _ if values::holds(kind, value) => Ok(()),
            _ => Err(Unlisted { index, what: VALUE }),
        }
    }

    /// Reads what stands behind the options.
    fn operands(&mut self, operands: &[usize], kind: Operands) -> Result<(), Unlisted> {
        // Where options end at the first operand, the rest has not been looked at.
        let all: Vec<usize> = operands.iter().copied().chain(self.at..self.arguments.len()).collect();
        match kind {
            Operands::Open | Operands::Inert => Ok(()),
            Operands::Refused | Operands::Nothing | Operands::Version | Operands::Own(_) => self.refuse(all.first().copied()),
            Operands::AtMost(most) => {
                let several = all.iter().take(most).find(|at| self.arguments.get(**at).is_some_and(|argument| argument.many));
                match several.or(all.get(most)) {
                    Some(index) => Err(Unlisted { index: *index, what: OPERAND }),
                    None => Ok(()),
                }
            }
            Operands::Command { assignments } => {
                let mut rest = all.into_iter().peekable();
                while assignments && rest.next_if(|at| self.is_assignment(*at)).is_some() {}
                if let Some(index) = rest.next_if(|at| assignments && self.arguments.get(*at).is_some_and(|word| word.text.contains('='))) {
                    return Err(Unlisted { index, what: ASSIGNMENT });
                }
                // Where a variable stood in front, an option is one still.
                if let Some(index) = rest.next_if(|at| assignments && self.arguments.get(*at).is_some_and(|word| !word.is_operand())) {
                    return Err(Unlisted { index, what: OPTION });
                }
                let command: Vec<Argument> = rest.filter_map(|at| self.arguments.get(at)).cloned().collect();
                if command.is_empty() {
                    return Ok(());
                }
                self.started.push(Started::Command(command));
                Ok(())
            }
            Operands::Forwarded { named } => {
                let mut rest = all.into_iter().peekable();
                let script = rest.next_if(|_| named).filter(|at| !self.accepts(*at, checks::plain));
                let _end = rest.next_if(|at| self.accepts(*at, |word| word.as_known() == Some("--")));
                self.refuse(script.or_else(|| rest.find(|at| !self.accepts(*at, checks::forwarded))))
            }
            Operands::Of(words) => self.refuse(all.iter().copied().find(|at| !self.accepts(*at, |operand| is_of(words, operand)))),
            Operands::Program(first) => self.operands(operands, Operands::Each(first, checks::known)),
            Operands::Each(first, rest) => {
                let refused = |(place, at): &(usize, &usize)| !self.accepts(**at, if *place == 0 { first } else { rest });
                self.refuse(all.iter().enumerate().find(refused).map(|(_, at)| *at))
            }
            Operands::Checked(check) => {
                let found: Vec<&'a Argument> = all.iter().filter_map(|at| self.arguments.get(*at)).collect();
                self.refuse(check(&found).map(|place| all.get(place).copied().unwrap_or(self.at)))
            }
        }
    }

    fn accepts(&self, at: usize, check: impl Fn(&Argument) -> bool) -> bool {
        self.arguments.get(at).is_some_and(check)
    }

    /// Refuses an operand, if there is one to refuse.
    fn refuse(&self, index: Option<usize>) -> Result<(), Unlisted> {
        index.map_or(Ok(()), |index| Err(Unlisted { index, what: OPERAND }))
    }

    fn is_assignment(&self, at: usize) -> bool {
        let text = self.arguments.get(at).and_then(Argument::as_known);
        text.and_then(|text| text.split_once('=')).is_some_and(|(name, value)| crate::assignments::is_harmless(name, value))
    }
}

/// Returns whether an argument is known to look neither like an option nor like a file of arguments.
fn is_word(argument: &Argument) -> bool {
    let digits = argument.as_known().and_then(|text| text.strip_prefix('-'));
    let is_number = digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    is_number || argument.is_operand() && !argument.text.starts_with('@')
}
