//! Shape: HTTP status codes, as fields of an object and as the status line of a response.

use super::FailureSign;
use super::view::{View, number};
use crate::decide::loops::search::begins;

/// The members of an object that hold a status code.
const MEMBERS: [&str; 4] = ["status_code", "statusCode", "http_status", "status"];
/// What stands before a status code at the beginning of a text, in lower case.
const WORDS: [&str; 7] =
    ["http/1.1 ", "http/2 ", "http ", "http error ", "status code: ", "request failed with status code ", "error code: "];

/// The reasons that follow a status code, in lower case.
const REASONS: [&str; 9] = [
    "bad request",
    "unauthorized",
    "forbidden",
    "not found",
    "conflict",
    "too many requests",
    "internal server error",
    "bad gateway",
    "service unavailable",
];

/// Looks for a status code of 400 or more.
pub fn see<'v>(view: &View<'v>) -> Option<FailureSign<'v>> {
    let member = || MEMBERS.iter().find_map(|key| number(view.member(key)?.source()));
    let line = view.first_line();
    let named = || WORDS.iter().find(|word| begins(line, word)).and_then(|word| number(line.get(word.len()..)?));
    // `429 Too Many Requests`: a code in front of a reason.
    let reasoned = || {
        number(line)
            .filter(|_| line.get(3) == Some(&b' ') && REASONS.iter().any(|reason| begins(line.get(4..).unwrap_or_default(), reason)))
    };
    let status = member().or_else(named).or_else(reasoned)?;
    (400..600).contains(&status).then_some(FailureSign::Failed(line))
}
