//! Results whose calls may be repeated for longer: failures that may pass by themselves, work that is not over yet, and results that do not
//! tell why nothing came.

use super::Asked;
use super::view::{View, beginning};
use crate::decide::loops::search::position;

/// What failures say that may pass, in lower case.
#[rustfmt::skip]
const PHRASES: [&str; 34] = [
    "timed out", "timeout", "time-out", "unavailable", "unreachable", "connection", "reset by", "temporar", "rate limit", "rate-limit",
    "ratelimit", "rate exceeded", "throttl", "overload", "too many requests", "try again", "is locked", "fetch failed", "failed to fetch",
    "bad gateway", "starting up", "not ready", "econnre", "etimedout", "eai_again", "hang up", "name resolution", "handshake",
    "could not get lock", "unable to acquire", "acquiring the", "held by process", "another process", "another operation",
];
/// The status codes of such failures.
const CODES: [&str; 4] = ["429", "502", "503", "504"];
/// What is said, in lower case, where a command was ended from outside or an element did not come: the next try may end in the same way.
const ENDED: [&str; 4] = ["command timed out", "has been killed", "locator", "waiting for selector"];
/// What failures say that do not pass, in lower case, whatever else they say: somebody refuses.
const REFUSED: [&str; 4] = ["permission denied", "access denied", "authentication failed", "publickey"];
/// What failures say that may come from anything, in lower case.
const UNCLEAR: [&str; 3] = ["internal server error", "http 500", "\"status_code\":500"];
/// How long a failure is at most that is nothing but a return code, in bytes.
const BARE_BYTES_MAX: usize = 120;
/// The words that stand around a return code, in lower case.
const FRAME: [&str; 13] =
    ["exit", "code", "status", "exited", "with", "returncode", "output", "command", "process", "metadata", "duration", "seconds", "stdout"];

/// What a short result says whose call is to be made again later, in lower case.
#[rustfmt::skip]
const LATER: [&str; 17] = [
    "not ready", "not yet", "pending", "in progress", "in_progress", "still running", "queued", "busy", "starting", "loading", "processing",
    "creating", "typing", "waiting", "up_for_retry", "\"done\":false", "\"done\": false",
];
/// How long a result may be that says no more than that, in bytes.
const LATER_BYTES_MAX: usize = 200;
/// What terminals say of a program that goes on, in lower case.
const GOES_ON: [&str; 2] = ["no new output", "process running with"];
/// How a state is named that ends by itself, in lower case, where it is a whole value.
#[rustfmt::skip]
const STATES: [&str; 11] = [
    "running", "processing", "in-progress", "queued", "creating", "building", "provisioning", "initializing", "deploying", "waiting",
    "activating",
];
/// The labels behind which a state stands, in lower case, and how the name of one ends that ends by itself: `Status: Building`.
const LABELS: [&str; 3] = ["status", "state", "phase"];
const GOING_ON: &[u8] = b"ing";
/// Words behind a label that end so and name no such state: an order may be pending for days, and a crashed pod waits for its next crash.
const RESTING: [&str; 3] = ["pending", "missing", "waiting"];
/// How far behind its label a state begins at most, in bytes.
const LABEL_GAP_MAX: usize = 12;
/// How the name of such a state may end.
const STATE_ENDING: &[u8] = b"in_progress";

/// How many bytes are looked at for failures, and for states.
const BYTES: usize = 400;
const STATE_BYTES: usize = 2_000;

/// Returns whether a failure is one that may pass.
pub fn see(view: &View<'_>) -> bool {
    let text = beginning(view.text, BYTES);
    let has_code = |code: &&str| {
        position(text, code).is_some_and(|at| {
            let is_digit = |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(u8::is_ascii_digit);
            !is_digit(at.checked_sub(1)) && !is_digit(Some(at + code.len()))
        })
    };
    let holds = |phrase: &&str| position(text, phrase).is_some();
    !ENDED.iter().chain(&REFUSED).any(holds) && (PHRASES.iter().any(holds) || CODES.iter().any(has_code))
}

/// Returns whether a failure does not tell whether it may pass: it has no words, a server failed within itself, or a command was ended from
/// outside.
pub fn is_unclear(view: &View<'_>) -> bool {
    let text = beginning(view.text, BYTES);
    ENDED.iter().chain(&UNCLEAR).any(|phrase| position(text, phrase).is_some()) || is_bare_code(view.text)
}

/// Returns whether a text has no words but those around a return code.
fn is_bare_code(text: &[u8]) -> bool {
    let is_word = |word: &[u8]| FRAME.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
    let mut words = text.split(|byte| !byte.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let names_code = position(text, "exit").or_else(|| position(text, "returncode")).is_some();
    names_code && text.len() <= BARE_BYTES_MAX && words.all(is_word)
}

/// Returns whether a result says that the call is to be made again later, though nothing failed.
pub fn is_later(view: &View<'_>) -> bool {
    let is_short = view.text.len() <= LATER_BYTES_MAX;
    // Who sends keys does not wait.
    let goes_on =
        || !view.asked.has(Asked::SENDS) && GOES_ON.iter().any(|phrase| position(beginning(view.text, 2 * BYTES), phrase).is_some());
    (is_short && LATER.iter().any(|phrase| says(view, phrase))) || goes_on() || has_state(view)
}

/// Returns whether a result holds a phrase that the call's arguments do not hold: a tool that repeats what it got says nothing of itself.
fn says(view: &View<'_>, phrase: &str) -> bool {
    position(view.text, phrase).is_some() && position(view.arguments, phrase).is_none()
}

/// Returns whether a value in quotes or between tags is the name of a state that ends by itself.
fn has_state(view: &View<'_>) -> bool {
    let is_state = |value: &&[u8]| {
        let ends = value
            .len()
            .checked_sub(STATE_ENDING.len())
            .and_then(|at| value.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(STATE_ENDING));
        ends || STATES.iter().any(|state| value.eq_ignore_ascii_case(state.as_bytes()))
    };
    let text = beginning(view.text, STATE_BYTES);
    let values = text.split(|byte| matches!(byte, b'"' | b'<' | b'>')).filter(is_state);
    values.chain(LABELS.iter().flat_map(|label| labelled(text, label))).any(|value| memchr::memmem::find(view.arguments, value).is_none())
}

/// Returns the words behind a label that name a state which ends by itself.
fn labelled<'t>(text: &'t [u8], label: &'static str) -> impl Iterator<Item = &'t [u8]> + use<'t> {
    let mut from = 0;
    let words = std::iter::from_fn(move || {
        let end = from + position(text.get(from..)?, label)? + label.len();
        from = end;
        let rest = text.get(end..)?;
        let gap = rest.iter().take_while(|byte| !byte.is_ascii_alphanumeric()).count();
        let word = rest.get(gap..)?;
        let word = word.get(..word.iter().take_while(|byte| byte.is_ascii_alphabetic()).count())?;
        Some(if (1..=LABEL_GAP_MAX).contains(&gap) { word } else { b"" })
    });
    let is_resting = |word: &[u8]| RESTING.iter().any(|resting| word.eq_ignore_ascii_case(resting.as_bytes()));
    words.filter(move |word| {
        let end = word.len().checked_sub(GOING_ON.len()).and_then(|at| word.get(at..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(GOING_ON)) && !is_resting(word)
    })
}

/// Returns whether a success says nothing: no text, or an object that has an empty list and no other list.
pub fn is_blank(view: &View<'_>) -> bool {
    let text = view.text.trim_ascii();
    text.is_empty() || (view.value.is_some() && text.len() <= LATER_BYTES_MAX && is_empty_list(text))
}

fn is_empty_list(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"[]").is_some() && memchr::memchr_iter(b'[', text).count() == memchr::memmem::find_iter(text, b"[]").count()
}

#[cfg(test)]
mod tests {
    use crate::decide::loops::failure::tests::{seen_after, seen_of};

    #[test]
    fn what_is_not_over_yet_is_to_be_asked_for_again() {
        let later = [
            "the printer is not ready",
            r#"{"state":"pending"}"#,
            r#"{"name":"operations/1","done":false}"#,
            "still running",
            "<status>running</status>\n<timestamp>2026-03-04T10:11:21.412Z</timestamp>",
            "[The command has no new output after 30 seconds.]",
        ];
        let long = |state: &str| format!(r#"{{"names":["{}"],"status":"{state}"}}"#, "web ".repeat(99));
        assert!(later.iter().all(|result| seen_of(result).is_passing && seen_of(result).class.is_none()));
        assert!(seen_of(&long("RUNNING")).is_passing && seen_of(&long("CREATE_IN_PROGRESS")).is_passing);
        let table = |state: &str| format!("id  dpl_9\nstatus  {state}\n{}", "a line\n".repeat(40));
        assert!(seen_of(&table("● Building")).is_passing && seen_of(&long("Progressing")).is_passing);
        assert!(!seen_of(&table("● Ready")).is_passing && !seen_of(&table("pending")).is_passing && !seen_of(&table("")).is_passing);
        assert!(!seen_of(&long("COMPLETE")).is_passing && !seen_of(&long("late running")).is_passing);
        assert!(!seen_of(&format!("pending: {}", "a long list of orders ".repeat(20))).is_passing);
        assert!(!seen_after("plan: in_progress", None, r#"{"plan":"in_progress"}"#).is_passing, "said by the call");
    }

    #[test]
    fn results_without_a_cause_are_unclear_unless_they_pass() {
        for result in [r#"{"messages":[],"typing":true}"#, "HTTP 500", r#"{"Messages":[]}"#] {
            assert!(seen_of(result).is_unclear || seen_of(result).is_passing, "{result}");
        }
    }
}
