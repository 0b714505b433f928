//! The sign to stop, which all threads of a process share. A part of the process may get a sign of its own to start over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The sign that makes every member of a process stop. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    shared: Arc<(Mutex<bool>, Condvar)>,
    /// The sign to what ends before this part.
    before: Option<Arc<(Mutex<bool>, Condvar)>>,
    /// Whether this part is to start over.
    again: Option<Arc<AtomicBool>>,
}

fn give(sign: &Arc<(Mutex<bool>, Condvar)>) {
    let (given, changed) = &**sign;
    *given.lock().unwrap_or_else(PoisonError::into_inner) = true;
    changed.notify_all();
}

impl Stop {
    /// Returns the sign to what ends first, and the sign to the rest of the process. Giving the second sign gives the first sign alone: what ends
    /// first has to say that it has ended, with [`Stop::end`].
    #[must_use]
    pub fn in_two_steps() -> (Self, Self) {
        let first = Self::default();
        let second = Self { before: Some(Arc::clone(&first.shared)), ..Self::default() };
        (first, second)
    }

    /// Gives the sign to the whole process, or to what ends before this part.
    pub fn give(&self) {
        give(self.before.as_ref().unwrap_or(&self.shared));
    }

    /// Gives the sign to this part of the process too: what ends before it has ended.
    pub fn end(&self) {
        self.before.iter().for_each(give);
        give(&self.shared);
    }

    /// Returns whether the sign was given, to the process or to this part of it.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.is_to_start_over() || self.is_for_good()
    }

    /// Returns whether the sign was given to the process.
    #[must_use]
    pub fn is_for_good(&self) -> bool {
        *self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the sign for up to `timeout`, and returns whether it was given.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let (given, changed) = &*self.shared;
        let guard = given.lock().unwrap_or_else(PoisonError::into_inner);
        let is_waiting = |given: &mut bool| !*given && !self.is_to_start_over();
        let (guard, _) = changed.wait_timeout_while(guard, timeout, is_waiting).unwrap_or_else(PoisonError::into_inner);
        *guard || self.is_to_start_over()
    }

    /// Returns the sign for a part of the process, which can be told to stop and start over.
    #[must_use]
    pub fn part(&self) -> Self {
        Self { again: Some(Arc::default()), ..self.clone() }
    }

    /// Tells this part to stop and start over.
    pub fn start_over(&self) {
        // The lock is held so that nobody begins to wait between the change and the notice of it.
        let _guard = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.again.iter().for_each(|again| again.store(true, Ordering::Relaxed));
        self.shared.1.notify_all();
    }

    /// Notes that this part begins. It calls this before it makes anything that it was told to make anew.
    pub fn begin(&self) {
        self.again.iter().for_each(|again| again.store(false, Ordering::Relaxed));
    }

    /// Returns whether this part was told to start over and has not begun again.
    #[must_use]
    pub fn is_to_start_over(&self) -> bool {
        self.again.as_ref().is_some_and(|again| again.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_starts_over_and_the_process_goes_on() {
        let process = Stop::default();
        let (part, other) = (process.part(), process.part());
        part.start_over();
        assert!(part.is_given() && part.clone().is_given() && !part.is_for_good());
        assert!(part.wait(Duration::from_secs(60)), "it does not wait");
        assert!(!other.is_given() && !process.is_given());
        part.begin();
        assert!(!part.is_given());
        part.give();
        assert!(process.is_given() && other.is_given() && other.is_for_good());
    }

    #[test]
    fn the_rest_ends_once_the_first_has_ended() {
        let (first, rest) = Stop::in_two_steps();
        rest.part().give();
        assert!(first.is_for_good() && !rest.is_given());
        rest.end();
        assert!(rest.is_for_good());
        let (first, rest) = Stop::in_two_steps();
        rest.end();
        assert!(first.is_given() && rest.is_given());
    }
}
