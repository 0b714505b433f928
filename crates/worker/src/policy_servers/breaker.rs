//! The circuit breaker of a policy server: it decides when a server that keeps failing is left alone, and when it is tried again. It is a
//! state machine without a clock: the caller permits the time in, counted from a start of its own choice.
//!
//! | state | event | next state |
//! |---|---|---|
//! | closed | an attempt succeeds | closed, no failures |
//! | closed | an attempt fails, fewer in a row than allowed | closed, one failure more |
//! | closed | an attempt fails, as many in a row as allowed | open |
//! | open | an attempt is wanted, too early | open; refused |
//! | open | an attempt is wanted, late enough | half-open; it is the probe |
//! | half-open | an attempt is wanted | half-open; refused |
//! | half-open | the probe succeeds | closed, no failures |
//! | half-open | the probe fails | open, for the whole time again |
//! | half-open | the probe says nothing | open, and late enough already: the next attempt is the probe |
//! | any | an attempt ends that began in an earlier state | unchanged |

use std::time::Duration;

/// A circuit breaker for one server.
#[derive(Debug, Clone)]
pub struct Breaker {
    failures_max: u32,
    open_for: Duration,
    state: State,
    /// Counts the changes of state. The outcome of an attempt counts only in the state that permitted it.
    generation: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed { failures: u32 },
    Open { until: Duration },
    HalfOpen,
}

/// A permit for one attempt. It has to be given back with [`Breaker::settle`]: otherwise the breaker would wait for a probe for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Permit {
    generation: u64,
}

/// What an attempt says about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The server works.
    Success,
    /// The server does not work.
    Failure,
    /// Nothing is known: the attempt was abandoned, or failed for a reason that is not the server's.
    Nothing,
}

/// A change of state that is logged and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// The server failed too often and is left alone from now on.
    Opened,
    /// The server was tried, failed, and is left alone again.
    Reopened,
    /// The server was tried and is back.
    Closed,
}

impl Breaker {
    /// Returns a closed breaker that opens for `open_for` after `failures_max` failures in a row. With 0 it never opens.
    #[must_use]
    pub fn new(failures_max: u32, open_for: Duration) -> Self {
        Self { failures_max, open_for, state: State::Closed { failures: 0 }, generation: 0 }
    }

    /// Returns whether an attempt would be refused now. It changes nothing.
    #[must_use]
    pub fn refuses(&self, now: Duration) -> bool {
        match self.state {
            State::Closed { .. } => false,
            State::Open { until } => now < until,
            State::HalfOpen => true,
        }
    }

    /// Returns a permit for one attempt, or `None` if it is refused.
    pub fn admit(&mut self, now: Duration) -> Option<Permit> {
        if self.refuses(now) {
            return None;
        }
        if matches!(self.state, State::Open { .. }) {
            self.enter(State::HalfOpen);
        }
        Some(Permit { generation: self.generation })
    }

    /// Records how an attempt ended, and returns the change of state that follows, if any.
    pub fn settle(&mut self, permit: Permit, sign: Sign, now: Duration) -> Option<Transition> {
        if permit.generation != self.generation {
            return None;
        }
        match (self.state, sign) {
            (State::Closed { .. }, Sign::Success) => {
                self.state = State::Closed { failures: 0 };
                None
            }
            (State::Closed { failures }, Sign::Failure) => {
                let failures = failures.saturating_add(1);
                if failures == self.failures_max {
                    return Some(self.open(now + self.open_for, Transition::Opened));
                }
                self.state = State::Closed { failures };
                None
            }
            (State::HalfOpen, Sign::Success) => {
                self.enter(State::Closed { failures: 0 });
                Some(Transition::Closed)
            }
            (State::HalfOpen, Sign::Failure) => Some(self.open(now + self.open_for, Transition::Reopened)),
            (State::HalfOpen, Sign::Nothing) => Some(self.open(now, Transition::Reopened)),
            (State::Closed { .. }, Sign::Nothing) | (State::Open { .. }, _) => None,
        }
    }

    fn open(&mut self, until: Duration, transition: Transition) -> Transition {
        self.enter(State::Open { until });
        transition
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.generation = self.generation.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPEN_FOR: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[derive(Debug, Clone)]
    enum Step {
        Wait(u64),
        Admit,
        /// One of the permits that are out, counted around.
        Settle(usize, Sign),
    }

    fn step() -> impl Strategy<Value = Step> {
        let sign = prop_oneof![Just(Sign::Success), Just(Sign::Failure), Just(Sign::Nothing)];
        prop_oneof![
            (0_u64..150).prop_map(Step::Wait),
            Just(Step::Admit),
            Just(Step::Admit),
            (any::<usize>(), sign.clone()).prop_map(|(which, sign)| Step::Settle(which, sign)),
            (any::<usize>(), sign).prop_map(|(which, sign)| Step::Settle(which, sign)),
        ]
    }

    proptest! {
        /// In any order of steps: while open, nothing passes before its time; half-open permits one attempt at a time; only `failures_max`
        /// failures in a row open the breaker, only a successful probe closes it, and it never gets stuck.
        #[test]
        fn the_breaker_keeps_its_promises(failures_max in 0_u32..5, steps in prop::collection::vec(step(), 1..200)) {
            let mut breaker = Breaker::new(failures_max, OPEN_FOR);
            let (mut now, mut permits) = (at(0), Vec::<(Permit, bool)>::new());
            let (mut failures_in_a_row, mut opened_at) = (0, None::<Duration>);
            for step in steps {
                match step {
                    Step::Wait(ms) => now += at(ms),
                    Step::Admit => {
                        let is_probe_out = opened_at.is_some() && permits.iter().any(|(_, is_probe)| *is_probe);
                        let refused = breaker.refuses(now);
                        let permit = breaker.admit(now);
                        prop_assert_eq!(refused, permit.is_none());
                        match opened_at {
                            None => prop_assert!(permit.is_some(), "a closed circuit lets everything through"),
                            Some(_) if is_probe_out => prop_assert!(permit.is_none(), "one probe at a time"),
                            Some(since) => prop_assert_eq!(permit.is_some(), now >= since + OPEN_FOR),
                        }
                        permits.extend(permit.map(|permit| (permit, opened_at.is_some())));
                    }
                    Step::Settle(_, _) if permits.is_empty() => {}
                    Step::Settle(which, sign) => {
                        let (permit, is_probe) = permits.swap_remove(which % permits.len());
                        let is_counted = permit.generation == breaker.generation;
                        prop_assert!(is_counted || !is_probe, "a probe always counts");
                        let transition = breaker.settle(permit, sign, now);
                        failures_in_a_row = match sign {
                            Sign::Failure if is_counted => failures_in_a_row + 1,
                            Sign::Success if is_counted => 0,
                            _ => failures_in_a_row,
                        };
                        match (opened_at, is_counted && is_probe, sign) {
                            (None, ..) => {
                                let opens = is_counted && sign == Sign::Failure && failures_in_a_row == failures_max;
                                prop_assert_eq!(transition, opens.then_some(Transition::Opened));
                                opened_at = opens.then_some(now);
                            }
                            (Some(_), true, Sign::Success) => {
                                prop_assert_eq!(transition, Some(Transition::Closed));
                                opened_at = None;
                            }
                            (Some(_), true, _) => {
                                prop_assert_eq!(transition, Some(Transition::Reopened));
                                // A probe that says nothing leaves the breaker ready for the next probe.
                                opened_at = Some(if sign == Sign::Nothing { now - OPEN_FOR } else { now });
                            }
                            (Some(_), false, _) => prop_assert_eq!(transition, None),
                        }
                        if transition == Some(Transition::Closed) {
                            failures_in_a_row = 0;
                        }
                    }
                }
            }
            for (permit, _) in permits {
                let _transition = breaker.settle(permit, Sign::Nothing, now);
            }
            prop_assert!(breaker.admit(now + OPEN_FOR).is_some(), "once all attempts have ended, there is a way on");
        }
    }
}
