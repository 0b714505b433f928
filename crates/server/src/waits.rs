//! Who waits for which verdict, and the verdicts that are remembered for requests that come again. It is pure: nothing here publishes or
//! sleeps.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;
use tollgate_json::digest::Fingerprint;

use crate::refusal::Refusal;

/// A verdict's bytes, as the worker published them.
pub type VerdictBytes = Arc<[u8]>;

/// How a wait ends: with the verdict's bytes, or with the reason why no verdict comes.
pub type Ended = Result<VerdictBytes, Refusal>;

/// What has to be done about an event.
#[derive(Debug)]
pub enum Asked {
    /// The event has to be published, and its verdict comes over the receiver: the event is new, or whoever waited for its verdict has gone
    /// without it. A reply may have been lost, and a worker gives an event that comes again the same verdict again.
    New(oneshot::Receiver<Ended>),
    /// The same event was published already: its verdict comes over the receiver.
    Waiting(oneshot::Receiver<Ended>),
    /// The verdict is known.
    Known(VerdictBytes),
}

/// Why an event cannot be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAsked {
    /// As many events wait already as may.
    TooMany,
    /// Another event was asked about under the same ids.
    AnotherEvent,
}

/// The state of a verdict.
#[derive(Debug)]
enum State {
    Awaited(Vec<oneshot::Sender<Ended>>),
    Known(VerdictBytes),
}

#[derive(Debug)]
struct Entry {
    /// The digest of the event, which tells a repeat from another event under the same ids.
    event: Fingerprint,
    state: State,
}

impl Entry {
    /// Returns whether a request waits for the verdict.
    fn is_awaited(&self) -> bool {
        matches!(&self.state, State::Awaited(senders) if senders.iter().any(|sender| !sender.is_closed()))
    }
}

/// The waits and the remembered verdicts of a server, both bounded.
#[derive(Debug)]
pub struct Waits {
    entries: HashMap<Fingerprint, Entry>,
    /// The entries in the order in which they were asked for, the oldest first.
    order: VecDeque<Fingerprint>,
    waiting: usize,
    waiting_max: usize,
    remembered_max: usize,
}

impl Waits {
    /// Returns waits without an entry. `waiting_max` bounds the requests that wait, `remembered_max` the entries.
    #[must_use]
    pub fn new(waiting_max: usize, remembered_max: usize) -> Self {
        let remembered_max = remembered_max.max(waiting_max);
        Self { entries: HashMap::new(), order: VecDeque::new(), waiting: 0, waiting_max, remembered_max }
    }

    /// Returns how many requests wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Begins to wait for the verdict on an event, unless the verdict is known.
    ///
    /// # Errors
    /// [`NotAsked`]: nothing is waited for.
    pub fn ask(&mut self, verdict: Fingerprint, event: Fingerprint) -> Result<Asked, NotAsked> {
        match self.entries.get(&verdict) {
            Some(entry) if entry.event != event => return Err(NotAsked::AnotherEvent),
            Some(Entry { state: State::Known(bytes), .. }) => return Ok(Asked::Known(Arc::clone(bytes))),
            _ => {}
        }
        self.enter()?;
        let (sender, receiver) = oneshot::channel();
        if let Some(Entry { state: State::Awaited(senders), .. }) = self.entries.get_mut(&verdict) {
            senders.retain(|sender| !sender.is_closed());
            let is_awaited = !senders.is_empty();
            senders.push(sender);
            return Ok(if is_awaited { Asked::Waiting(receiver) } else { Asked::New(receiver) });
        }
        self.make_room();
        self.entries.insert(verdict, Entry { event, state: State::Awaited(vec![sender]) });
        self.order.push_back(verdict);
        Ok(Asked::New(receiver))
    }

    /// Notes that a request waits. [`Waits::leave`] ends it.
    ///
    /// # Errors
    /// [`NotAsked::TooMany`].
    pub fn enter(&mut self) -> Result<(), NotAsked> {
        if self.waiting >= self.waiting_max {
            return Err(NotAsked::TooMany);
        }
        self.waiting += 1;
        Ok(())
    }

    /// Waits for a verdict that was asked for before; `None` if nothing is known of it.
    pub fn again(&mut self, verdict: Fingerprint) -> Option<Result<Asked, NotAsked>> {
        let event = self.entries.get(&verdict)?.event;
        Some(self.ask(verdict, event))
    }

    /// Notes that a request has stopped to wait. Its verdict is remembered all the same when it comes.
    pub fn leave(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// Hands a verdict to all requests that wait for it. Returns whether the verdict was awaited here.
    pub fn answer(&mut self, verdict: Fingerprint, bytes: &VerdictBytes) -> bool {
        let Some(entry) = self.entries.get_mut(&verdict) else { return false };
        // The first published verdict counts.
        let State::Awaited(senders) = &mut entry.state else { return false };
        let senders = std::mem::take(senders);
        entry.state = State::Known(Arc::clone(bytes));
        for sender in senders {
            // A request may have gone.
            let _gone = sender.send(Ok(Arc::clone(bytes)));
        }
        true
    }

    /// Ends the waits for a verdict on an event that was not published. A later request publishes the event.
    pub fn fail(&mut self, verdict: Fingerprint, why: &Refusal) {
        if !matches!(self.entries.get(&verdict), Some(Entry { state: State::Awaited(_), .. })) {
            return;
        }
        if let Some(Entry { state: State::Awaited(senders), .. }) = self.entries.remove(&verdict) {
            for sender in senders {
                let _gone = sender.send(Err(why.clone()));
            }
        }
    }

    /// Forgets the oldest entries for which nobody waits until there is room for another entry.
    fn make_room(&mut self) {
        for _ in 0..self.order.len() {
            // Entries that failed are still in the order, and are gone already.
            if self.entries.len() < self.remembered_max && self.order.len() < 2 * self.remembered_max {
                return;
            }
            let Some(oldest) = self.order.pop_front() else { return };
            if self.entries.get(&oldest).is_some_and(Entry::is_awaited) {
                self.order.push_back(oldest);
            } else {
                self.entries.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_json::digest::Digest;

    fn id(text: &str) -> Fingerprint {
        Digest::of_parts(&[text.as_bytes()]).fingerprint()
    }

    fn bytes(text: &str) -> VerdictBytes {
        text.as_bytes().into()
    }

    #[test]
    fn a_verdict_reaches_everybody_who_waits_and_is_remembered() {
        let mut waits = Waits::new(8, 8);
        let Ok(Asked::New(mut first)) = waits.ask(id("v"), id("e")) else { panic!("it is new") };
        let Ok(Asked::Waiting(mut second)) = waits.ask(id("v"), id("e")) else { panic!("it is published already") };
        assert_eq!(waits.waiting(), 2);
        assert!(waits.answer(id("v"), &bytes("1")) && !waits.answer(id("v"), &bytes("2")), "the first one counts");
        for receiver in [&mut first, &mut second] {
            assert_eq!(&*receiver.try_recv().unwrap().unwrap(), b"1");
        }
        assert!(matches!(waits.ask(id("v"), id("e")), Ok(Asked::Known(known)) if &*known == b"1"));
        assert!(!waits.answer(id("other"), &bytes("1")), "nobody asked here");
    }

    #[test]
    fn an_event_whose_verdict_was_awaited_in_vain_is_published_again() {
        let mut waits = Waits::new(8, 8);
        let Ok(Asked::New(first)) = waits.ask(id("v"), id("e")) else { panic!("it is new") };
        let Ok(Asked::Waiting(second)) = waits.ask(id("v"), id("e")) else { panic!("somebody waits") };
        drop(first);
        let Ok(Asked::Waiting(third)) = waits.ask(id("v"), id("e")) else { panic!("somebody still waits") };
        drop((second, third));
        let Ok(Asked::New(mut last)) = waits.ask(id("v"), id("e")) else { panic!("nobody waits any more") };
        assert!(waits.answer(id("v"), &bytes("1")));
        assert_eq!(&*last.try_recv().unwrap().unwrap(), b"1");
    }

    #[test]
    fn another_event_under_the_same_ids_is_refused() {
        let mut waits = Waits::new(8, 8);
        let _first = waits.ask(id("v"), id("e")).unwrap();
        assert_eq!(waits.ask(id("v"), id("f")).unwrap_err(), NotAsked::AnotherEvent);
    }

    #[test]
    fn waits_are_bounded_and_a_request_that_leaves_makes_room() {
        let mut waits = Waits::new(1, 8);
        let _first = waits.ask(id("v"), id("e")).unwrap();
        assert_eq!(waits.ask(id("w"), id("e")).unwrap_err(), NotAsked::TooMany);
        waits.leave();
        assert!(waits.ask(id("w"), id("e")).is_ok());
        waits.answer(id("v"), &bytes("1"));
        assert!(matches!(waits.again(id("v")), Some(Ok(Asked::Known(_)))), "a known verdict needs no room");
        assert!(waits.again(id("x")).is_none());
    }

    #[test]
    fn an_event_that_was_not_published_may_be_asked_about_again() {
        let mut waits = Waits::new(8, 8);
        let Ok(Asked::New(mut first)) = waits.ask(id("v"), id("e")) else { panic!("it is new") };
        waits.fail(id("v"), &Refusal::unavailable("kafka_unreachable", "x"));
        assert_eq!(first.try_recv().unwrap().unwrap_err().code, "kafka_unreachable");
        assert!(matches!(waits.ask(id("v"), id("e")), Ok(Asked::New(_))));
    }

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut waits = Waits::new(2, 2);
        for name in ["a", "b", "c"] {
            let _asked = waits.ask(id(name), id("e")).unwrap();
            waits.leave();
        }
        assert!(waits.again(id("a")).is_none() && waits.again(id("b")).is_some());
    }

    #[test]
    fn what_a_request_waits_for_is_not_forgotten() {
        let mut waits = Waits::new(2, 2);
        let held = waits.ask(id("a"), id("e")).unwrap();
        for name in ["b", "c"] {
            let _asked = waits.ask(id(name), id("e")).unwrap();
            waits.leave();
        }
        assert!(waits.again(id("a")).is_some() && waits.again(id("b")).is_none());
        drop(held);
    }
}
