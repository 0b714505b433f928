//! The readers for people: a page of documentation.

use super::ending::STOPS;
use super::{CallsAt, READERS, ReasonAt, Test, errors};

const HEAD: &str = "\
# Safety stops, by provider

Written from the readers in `crates/core/src/decide/safety/reading/readers`; `TOLLGATE_UPDATE_FIXTURES=1 cargo test --test integration -- tidy` writes it
anew.

A provider says in words of its own that its safety system stopped a response. The detector `native` reads the places below, and no other
place: a tool's input or a message that holds such a word is no signal. Publish the body as it came: in `response`, or its stream's events in
a list; an API's error in `error`; a LangChain message in `message`. `tollgate signals explain FILE` shows for one body what is read in it, and
which rule speaks. `safety.detector` of a verdict is the rule; `without` of the detector's configuration switches rules off.

A response that was cut off for another reason, or a call whose arguments are no JSON, is `tool_calls_unreliable`. So are the calls of a body
that says that it is not over (`in_progress`), that names no known reason for its end, or of a stream without such a reason: it broke off. In a
list of several responses the last response counts. The pieces of a call's arguments in a stream are not joined, so nobody reads whether they
are JSON. A body in which no place below says how the response stands is `unrecognized_response`: a field with a known name is not enough, and
a piece of a stream of Gemini or OpenAI that is published alone may lack such a place. So is a span of OTLP in JSON, whose attributes are a
list: publish them as an object.
[Configuration](../config/example.yaml) says what follows on them.

## Words that mean a safety stop, at every place marked *word*

Case does not matter, nor what an SDK prints before it (`FinishReason.SAFETY`), nor what merged chunks leave (`STOPSAFETY`), in which the strictest
word counts.

| category | words |
|---|---|
";

const SHAPES_HEAD: &str = "
## Places

| shape | who sends it | place | what counts | rule |
|---|---|---|---|---|
";

const ERRORS_HEAD: &str = "
## The table of errors

Codes and types are matched exactly. A message counts only where a provider has nothing else: the whole text, or its beginning.

| what | values |
|---|---|
";

const CALLS_HEAD: &str = "
## Where calls are

A call of a cut-off response counts whether its arguments can be read or not. Calls that the provider runs itself do not count.

| shape | calls |
|---|---|
";

/// Returns the page about the readers, in Markdown.
#[must_use]
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut categories: Vec<_> = STOPS.iter().map(|(_, category)| *category).collect();
    categories.dedup();
    for category in categories {
        let words: Vec<_> = STOPS.iter().filter(|(_, of)| *of == category).map(|(word, _)| format!("`{word}`")).collect();
        page += &format!("| {} | {} |\n", category.as_str(), words.join(", "));
    }
    page += SHAPES_HEAD;
    for reader in READERS {
        let mut named = (format!("`{}`", reader.name), reader.providers.to_owned());
        for reason in reader.reasons {
            let (shape, who) = std::mem::take(&mut named);
            page += &format!("| {shape} | {who} | {} | {} | `{}` |\n", place(reason), counts(&reason.test), reason.rule);
        }
    }
    page += ERRORS_HEAD;
    for (what, values) in errors::table() {
        let values: Vec<_> = values.iter().map(|value| format!("`{}`", value.replace('|', "\\|"))).collect();
        page += &format!("| {what} | {} |\n", values.join(", "));
    }
    page += CALLS_HEAD;
    for reader in READERS.iter().filter(|reader| !reader.calls.is_empty()) {
        let calls: Vec<_> = reader.calls.iter().map(calls).collect();
        page += &format!("| `{}` | {} |\n", reader.name, calls.join(", "));
    }
    page
}

fn place(reason: &ReasonAt) -> String {
    if reason.path.is_empty() { "the error itself, if it is a text".to_owned() } else { format!("`{}`", reason.path) }
}

fn calls(calls: &CallsAt) -> String {
    let types: Vec<_> = calls.types.iter().map(|(kind, _)| format!("`{kind}`")).collect();
    let path = if calls.path.is_empty() { "the event itself".to_owned() } else { format!("`{}`", calls.path) };
    if types.is_empty() { path } else { format!("{path} of type {}", types.join(", ")) }
}

fn counts(test: &Test) -> String {
    let list = |words: Vec<String>| words.join(", ");
    match test {
        Test::Ending([]) => "*word*".to_owned(),
        Test::Ending(numbered) => format!("*word*, or its number from 0 on: `{}`", numbered.join("`, `")),
        Test::EndingWithout(other) => format!("*word*, where no `{other}` stands beside it"),
        Test::Complete(word) => format!("an object or `true`: ended as it should, as `{word}`"),
        Test::Words(words) => list(words.iter().map(|(word, ..)| format!("`{word}`")).collect()),
        Test::Numbers(numbers) => list(numbers.iter().map(|(number, ..)| number.to_string()).collect()),
        Test::Flag(..) => "`true`".to_owned(),
        Test::Text(..) => "any text".to_owned(),
        Test::Custom(what, _) => (*what).to_owned(),
    }
}
