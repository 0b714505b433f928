//! Failures that may pass by themselves: outages, rate limits, locks. They may be repeated for longer.

use super::view::{View, beginning, position};

/// What such failures say, in lower case.
const PHRASES: [&str; 20] = [
    "timed out",
    "timeout",
    "time-out",
    "unavailable",
    "unreachable",
    "connection",
    "reset by",
    "temporar",
    "rate limit",
    "rate-limit",
    "ratelimit",
    "overload",
    "too many requests",
    "try again",
    "is locked",
    "fetch failed",
    "failed to fetch",
    "bad gateway",
    "starting up",
    "not ready",
];
/// The status codes of such failures.
const CODES: [&str; 4] = ["429", "502", "503", "504"];

/// What a result says whose call is to be made again later, in lower case.
const LATER: [&str; 8] = ["not ready", "not yet", "pending", "in progress", "still running", "queued", "busy", "starting"];
/// How long a result may be that says no more than that, in bytes.
const LATER_BYTES_MAX: usize = 200;

/// How many bytes are looked at.
const BYTES: usize = 400;

/// Returns whether a failure is one that may pass.
pub fn see(view: &View<'_>) -> bool {
    let text = beginning(view.text, BYTES);
    let has_code = |code: &&str| {
        position(text, code).is_some_and(|at| {
            let is_digit = |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(u8::is_ascii_digit);
            !is_digit(at.checked_sub(1)) && !is_digit(Some(at + code.len()))
        })
    };
    PHRASES.iter().any(|phrase| position(text, phrase).is_some()) || CODES.iter().any(has_code)
}

/// Returns whether a short result says that the call is to be made again later, though nothing failed.
pub fn is_later(view: &View<'_>) -> bool {
    view.text.len() <= LATER_BYTES_MAX && LATER.iter().any(|phrase| position(view.text, phrase).is_some())
}

#[cfg(test)]
mod tests {
    use crate::decide::loops::failure::tests::seen_of;

    #[test]
    fn outages_pass_and_other_failures_do_not() {
        let outages = ["HTTP 503", r#"{"status":429}"#, "Error: connection refused", "Error: database is locked", "Error: try again later"];
        for result in outages {
            assert!(seen_of(result).is_passing, "{result}");
        }
        for result in ["Error: card denied", "HTTP 404", "Error 15030: no such user", "three rows, connection closed"] {
            assert!(!seen_of(result).is_passing, "{result}");
        }
        let later = ["the printer is not ready", r#"{"state":"pending"}"#, "still running"];
        assert!(later.iter().all(|result| seen_of(result).is_passing && seen_of(result).class.is_none()));
        assert!(!seen_of(&format!("pending: {}", "a long list of orders ".repeat(20))).is_passing);
    }
}
