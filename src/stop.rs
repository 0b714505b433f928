//! The sign to stop, which all threads of a process share.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The sign that makes every member of a process stop. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// Gives the sign.
    pub fn give(&self) {
        let (given, changed) = &*self.0;
        *given.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    /// Returns whether the sign was given.
    #[must_use]
    pub fn is_given(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the sign for up to `timeout`, and returns whether it was given.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let (given, changed) = &*self.0;
        let guard = given.lock().unwrap_or_else(PoisonError::into_inner);
        let (guard, _) = changed.wait_timeout_while(guard, timeout, |given| !*given).unwrap_or_else(PoisonError::into_inner);
        *guard
    }
}
