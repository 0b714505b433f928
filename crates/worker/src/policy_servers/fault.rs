//! What can go wrong in one attempt, and what follows from it: the error, what the breaker records, and whether to ask again. All rules of
//! retrying are here.
//!
//! | fault | error | the breaker records | asked again |
//! |---|---|---|---|
//! | no connection (refused, unknown host, TLS, closed before the question was written) | connection | failure | yes |
//! | a pooled connection closed before the question was written | connection | nothing | yes, at once |
//! | a pooled connection broke before the answer began | connection | nothing | if idempotent, at once |
//! | a new connection broke before the answer began, or any amid the answer | connection | failure | if idempotent |
//! | no HTTP, or no header that proves the server | malformed | failure | no |
//! | head or body over the limit | too_large | success | no |
//! | 5xx | status | failure | if idempotent |
//! | 429 | status | failure | no |
//! | any other status but 200 | status | success | no |
//! | deadline | timed_out | failure; nothing if most of the time had passed before the attempt | no |
//!
//! A server that answers 404 or sends too much does work: the request is wrong, and an open circuit would only hide that behind another
//! error. With 429 a server itself asks to be left alone. A redirect is a status like any other and is not followed. The question, with its
//! tool arguments and the configured credentials, goes only to the configured address, and most redirects of a POST become a GET, which
//! asks nothing.

use std::time::Duration;

use tollgate_core::decide::guardrail::ProviderError;

use super::breaker::Sign;

/// How long to wait before a server that could not be reached, or that failed, is asked again.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a question is asked again that the server cannot have processed.
const UNSEEN_RETRIES_MAX: u32 = 2;
/// How often a question is asked again that the server may have processed: once, since more requests do not help a server in trouble.
const SEEN_RETRIES_MAX: u32 = 1;

/// What went wrong in one attempt. It holds nothing of question or answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// No connection could be made, with the reason that the operating system or the TLS library gave.
    NotConnected(String),
    /// A pooled connection was closed before any of the question was written.
    NotTaken,
    /// A pooled connection broke before any of the answer was read. Most likely the server had closed it as idle, but that is not certain.
    Stale,
    /// The connection broke, and the server may have processed the question.
    Broken,
    /// What came is not HTTP.
    NotHttp,
    /// The answer lacks the header that proves which server has answered.
    Unproven,
    /// The answer had this status.
    Status(u16),
    /// The answer's head or body is over the limit.
    TooLarge,
    /// The deadline passed. `had_time` is whether the attempt had at least half of the time.
    TimedOut { had_time: bool },
}

impl Fault {
    /// Returns the error that the caller gets.
    pub(super) fn error(&self) -> ProviderError {
        match self {
            Self::NotConnected(_) | Self::NotTaken | Self::Stale | Self::Broken => ProviderError::Connection,
            Self::NotHttp => ProviderError::Malformed("it is not HTTP"),
            Self::Unproven => ProviderError::Malformed("it lacks the header of the server"),
            Self::Status(code) => ProviderError::Status(*code),
            Self::TooLarge => ProviderError::TooLarge,
            Self::TimedOut { .. } => ProviderError::TimedOut,
        }
    }

    /// Returns what the breaker records.
    pub(super) fn sign(&self) -> Sign {
        match self {
            Self::NotConnected(_) | Self::Broken | Self::NotHttp | Self::Unproven | Self::Status(429 | 500..=599) => Sign::Failure,
            Self::TimedOut { had_time: true } => Sign::Failure,
            Self::NotTaken | Self::Stale | Self::TimedOut { had_time: false } => Sign::Nothing,
            Self::Status(_) | Self::TooLarge => Sign::Success,
        }
    }

    /// Returns whether the fault is one of a pooled connection, so that a new connection may work.
    pub(super) fn is_of_pooled_connection(&self) -> bool {
        matches!(self, Self::NotTaken | Self::Stale)
    }

    /// Returns the cause as the log shows it.
    pub(super) fn cause(&self) -> &str {
        match self {
            Self::NotConnected(cause) => cause,
            Self::NotTaken | Self::Stale => "the server had closed the connection",
            Self::Broken => "the connection broke before the answer was complete",
            Self::NotHttp => "the answer is not HTTP",
            Self::Unproven => "the answer is of another server",
            Self::Status(_) => "the answer's status is not 200",
            Self::TooLarge => "the answer is too large",
            Self::TimedOut { .. } => "no answer within the deadline",
        }
    }
}

/// Counts the retries of one question.
#[derive(Debug)]
pub(super) struct Retries {
    is_idempotent: bool,
    unseen: u32,
    seen: u32,
}

impl Retries {
    pub(super) fn new(is_idempotent: bool) -> Self {
        Self { is_idempotent, unseen: 0, seen: 0 }
    }

    /// Returns the pause after which to ask again after this fault, or `None` if it is not asked again.
    pub(super) fn next(&mut self, fault: &Fault) -> Option<Duration> {
        let (count, max) = match fault {
            Fault::NotConnected(_) | Fault::NotTaken => (&mut self.unseen, UNSEEN_RETRIES_MAX),
            Fault::Stale | Fault::Broken | Fault::Status(500..=599) if self.is_idempotent => (&mut self.seen, SEEN_RETRIES_MAX),
            _ => return None,
        };
        *count += 1;
        let pause = if fault.is_of_pooled_connection() { Duration::ZERO } else { PAUSE };
        (*count <= max).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Fault {
        Fault::NotConnected("refused".to_owned())
    }

    #[test]
    fn every_fault_has_its_error_its_sign_and_its_retries() {
        let malformed = ProviderError::Malformed("it is not HTTP");
        let table = [
            (refused(), ProviderError::Connection, Sign::Failure, Some(PAUSE), Some(PAUSE)),
            (Fault::NotTaken, ProviderError::Connection, Sign::Nothing, Some(Duration::ZERO), Some(Duration::ZERO)),
            (Fault::Stale, ProviderError::Connection, Sign::Nothing, None, Some(Duration::ZERO)),
            (Fault::Broken, ProviderError::Connection, Sign::Failure, None, Some(PAUSE)),
            (Fault::NotHttp, malformed, Sign::Failure, None, None),
            (Fault::Status(500), ProviderError::Status(500), Sign::Failure, None, Some(PAUSE)),
            (Fault::Status(599), ProviderError::Status(599), Sign::Failure, None, Some(PAUSE)),
            (Fault::Status(429), ProviderError::Status(429), Sign::Failure, None, None),
            (Fault::Status(404), ProviderError::Status(404), Sign::Success, None, None),
            (Fault::Status(301), ProviderError::Status(301), Sign::Success, None, None),
            (Fault::Status(204), ProviderError::Status(204), Sign::Success, None, None),
            (Fault::TooLarge, ProviderError::TooLarge, Sign::Success, None, None),
            (Fault::TimedOut { had_time: true }, ProviderError::TimedOut, Sign::Failure, None, None),
            (Fault::TimedOut { had_time: false }, ProviderError::TimedOut, Sign::Nothing, None, None),
        ];
        for (fault, error, sign, once_only, idempotent) in table {
            assert_eq!((fault.error(), fault.sign()), (error, sign), "{fault:?}");
            assert_eq!(Retries::new(false).next(&fault), once_only, "{fault:?}");
            assert_eq!(Retries::new(true).next(&fault), idempotent, "{fault:?}");
        }
    }

    #[test]
    fn retries_come_to_an_end() {
        let mut retries = Retries::new(true);
        let faults = [Fault::Stale, refused(), Fault::Status(503), refused(), refused()];
        let again = faults.map(|fault| retries.next(&fault).is_some());
        assert_eq!(again, [true, true, false, true, false]);
    }
}
