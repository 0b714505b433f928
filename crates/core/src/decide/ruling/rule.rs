//! The rules of the step controller and their findings: codes, sentences and numbers in state.

use super::Intervention;
use crate::engine::wire::{Input, Malformed, Wire, numbers};

/// Declares the rules, one entry each: the number in state, which is never used for another one, the variant, the name, what repeated, and
/// what would count as progress. The first sentence follows the tool's name and holds `{count}`.
macro_rules! rules {
    ($($(#[$doc:meta])* $number:literal = $variant:ident $name:literal $what:literal $progress:literal;)+) => {
        /// A rule of the step controller.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[$doc])* $variant,)+
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the rule's name, as configuration writes it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns the codes of the rule's warning, denial and halt.
            fn codes(self) -> [&'static str; 3] {
                match self { $(Self::$variant => [
                    concat!($name, "_warning"), concat!($name, "_denied"), concat!($name, "_halt"),
                ],)+ }
            }

            /// Returns the sentences on what repeated and what would count as progress.
            fn sentences(self, count: u32) -> (String, &'static str) {
                match self { $(Self::$variant => (format!($what, count = count), $progress),)+ }
            }
        }

        numbers! {
            Rule, "a rule of the step controller" { $($number = $variant,)+ }
        }
    };
}

rules! {
    /// The same call brings the same result, several times in a row.
    0 = SameResult "same_result" "the same call was made {count} times in a row, with the same result each time"
        "Use that result, or change the call: a result that you have not seen counts as progress.";
    /// The same call fails several times in a row, whatever its errors.
    1 = SameCallFails "same_call_fails" "the same call failed {count} times in a row"
        "Change the arguments, or first change what the call fails on: any other call counts as progress.";
    /// The same call brings the same error again, whatever was done in between.
    2 = SameError "same_error" "the same call brought the same error {count} times in this turn, and nothing done in between has changed it"
        "Look for the cause elsewhere: another error or a success counts as progress.";
    /// The program that the call starts is not installed.
    3 = MissingProgram "missing_program" "the program that it starts was not found {count} times"
        "No repetition installs it: use another program, or say that it is missing.";
    /// The same call brings the same error over several turns.
    4 = SameErrorOverTurns "same_error_over_turns" "the same call brought the same error {count} times over several turns"
        "Tell the user what is refused and why: another request counts as progress.";
    /// Several steps in a row only repeat calls and results of this turn.
    5 = NothingNew "nothing_new" "the last {count} steps only repeated calls and results of this turn"
        "Make a call that you have not made yet, or answer with what you know.";
    /// The same few calls follow each other again and again.
    6 = Cycle "cycle" "the same sequence of calls was made {count} times"
        "Leave the sequence: a call that is not part of it, or a new result within it, counts as progress.";
    /// The same call with the same result comes again and again among few other calls.
    7 = FrequentCall "frequent_call" "the same call brought the same result {count} times within a few steps"
        "Its result is known: change what it depends on, or make another call.";
    /// The same call brings nearly the same result, several times in a row.
    8 = AlikeResult "alike_result" "the same call brought nearly the same result {count} times in a row"
        "Check what the call has changed so far before you make it again: another call counts as progress.";
    /// One tool fails several times in a row with one or two kinds of error, whatever its arguments.
    9 = ErrorClass "error_class" "the tool failed {count} times in a row with the same kind of error"
        "Take another way: a success of this tool counts as progress.";
    /// Several look-ups in a row find nothing.
    10 = NothingFound "nothing_found" "{count} look-ups in a row found nothing"
        "Stop guessing names: list what there is, or say that it could not be found.";
    /// The same call is made again, whatever its results.
    11 = IdenticalCalls "identical_calls" "the same call was made {count} times"
        "Use the results that you have, or change the call.";
    /// A call that may succeed once in a turn is made again.
    12 = Once "once" "this call may be made once in a turn, and it was made {count} times before"
        "It is done or under way: ask the user before you do it again.";
    /// A tool is called more often than a turn may call it.
    13 = CallsPerTurn "calls_per_turn" "the tool was called {count} times in this turn, which is as often as it may be"
        "Go on with what you have; the user's next message starts a new turn.";
    /// Calls that were refused are made again and again.
    14 = Denials "denials" "{count} calls in this turn were refused as repetitions, and brought nothing new"
        "Stop, and tell the user what is in the way.";
}

/// A finding of the step controller: a rule, and what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleFinding {
    /// The rule.
    pub rule: Rule,
    /// What follows: a warning, a denial or a halt.
    pub intervention: Intervention,
}

impl RuleFinding {
    /// Returns the finding's code.
    #[must_use]
    pub fn code(self) -> &'static str {
        let [warning, denied, halt] = self.rule.codes();
        match self.intervention {
            Intervention::Warn => warning,
            Intervention::Deny | Intervention::Block => denied,
            Intervention::Halt => halt,
        }
    }

    /// Returns the sentence for the agent: what repeated, how often, and what would count as progress.
    #[must_use]
    pub fn message(self, tool_name: &str, count: u32) -> String {
        let head = match self.intervention {
            Intervention::Warn => "Tool guardrail on",
            Intervention::Deny | Intervention::Block => "Refused",
            Intervention::Halt => "Stopped at",
        };
        let (what, progress) = self.rule.sentences(count);
        format!("{head} {tool_name}: {what}. {progress}")
    }
}

impl Wire for RuleFinding {
    fn write(&self, out: &mut Vec<u8>) {
        self.rule.write(out);
        self.intervention.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(Self { rule: Wire::read(input)?, intervention: Wire::read(input)? })
    }
}
