//! Waits for conditions.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

/// How long anything may take on a busy machine.
pub const TIME_MAX: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns the first result of `attempt` that is no error. It is called until then, for [`TIME_MAX`].
///
/// # Errors
/// The last one, when the time is over.
pub fn eventually<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + TIME_MAX;
    loop {
        match attempt() {
            Err(_) if Instant::now() < deadline => sleep(POLL_INTERVAL),
            ended => return ended,
        }
    }
}

/// Waits until a condition holds. `what` says in a few words what is waited for.
///
/// # Errors
/// It does not hold when [`TIME_MAX`] is over, or cannot be looked at by then.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    eventually(|| {
        ensure!(holds()?, "it did not come true in time that {what}");
        Ok(())
    })
}
