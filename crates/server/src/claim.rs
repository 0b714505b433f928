//! Claims: how two servers on a partition of the replies topic find out, without a coordinator. Each server publishes a claim to its own
//! partition again and again, and reads the claims of others there. No clock is compared.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// How often a server publishes its claim.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// For how long a server looks for the claims of others before it answers: a running server has claimed twice by then.
const LOOK: Duration = Duration::from_millis(2_200);
/// For how long a claim counts, the server's own claim included.
const COUNTS_FOR: Duration = Duration::from_secs(5);

/// A claim, as it is published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The server's own random name.
    pub server: String,
    /// The host of the server, for people.
    pub host: String,
    /// Whether the server answers requests already.
    pub answers: bool,
}

/// What follows from the claims so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimState {
    /// The server has not read its own claim yet, or still looks for others.
    Looking,
    /// The partition is the server's own.
    Own,
    /// The server answers already, and its own claims no longer come back: neither would verdicts.
    Unheard,
    /// The server answers already, and another server with a lower name claims the partition too.
    Shared(String),
    /// Another server was first: this server has to end.
    Taken(String),
}

/// The claims on a partition, from the side of a server.
#[derive(Debug)]
pub struct Claims {
    own: Claim,
    /// How long to look for others.
    look: Duration,
    seen_own: Option<Instant>,
    last_own: Option<Instant>,
    other: Option<(Instant, Claim)>,
    taken: Option<String>,
}

impl Claims {
    /// Returns the claims of a server that starts. A server that is alone on its broker looks for nobody.
    #[must_use]
    pub fn new(host: String, is_alone: bool) -> Self {
        let own = Claim { server: format!("{:032x}", fastrand::u128(..)), host, answers: false };
        Self { own, look: if is_alone { Duration::ZERO } else { LOOK }, seen_own: None, last_own: None, other: None, taken: None }
    }

    /// Returns the claim to publish.
    #[must_use]
    pub fn own(&self) -> &Claim {
        &self.own
    }

    /// Takes a claim that was read from the partition.
    pub fn read(&mut self, claim: Claim, now: Instant) {
        if claim.server == self.own.server {
            self.seen_own.get_or_insert(now);
            self.last_own = Some(now);
            return;
        }
        // Of two servers that start at once, the one with the lower name goes on. Each of the two knows that.
        if !self.own.answers && (claim.answers || claim.server < self.own.server) {
            self.taken = Some(claim.host.clone());
        }
        // A server that does not answer yet gives way by itself.
        if claim.answers {
            self.other = Some((now, claim));
        }
    }

    /// Returns what follows at this time.
    pub fn state(&mut self, now: Instant) -> ClaimState {
        if let Some(host) = &self.taken {
            return ClaimState::Taken(host.clone());
        }
        let Some(seen) = self.seen_own else { return ClaimState::Looking };
        if now.saturating_duration_since(seen) < self.look {
            return ClaimState::Looking;
        }
        self.own.answers = true;
        let counts = |at: &Instant| now.saturating_duration_since(*at) < COUNTS_FOR;
        match &self.other {
            _ if !self.last_own.as_ref().is_some_and(counts) => ClaimState::Unheard,
            // A server that was frozen thaws, and another server has started meanwhile. Both answer; the server with the lower name stays ready.
            Some((at, claim)) if counts(at) && claim.server < self.own.server => ClaimState::Shared(claim.host.clone()),
            _ => ClaimState::Own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims::new("a".to_owned(), false)
    }

    fn of_other(name: &str, answers: bool) -> Claim {
        Claim { server: name.to_owned(), host: "b".to_owned(), answers }
    }

    #[test]
    fn a_server_answers_once_its_own_claim_has_come_back_and_nobody_else_claims() {
        let (mut claims, start) = (claims(), Instant::now());
        assert_eq!(claims.state(start + LOOK), ClaimState::Looking, "its own claim has not come back");
        claims.read(claims.own().clone(), start);
        assert_eq!(claims.state(start + LOOK / 2), ClaimState::Looking);
        assert_eq!(claims.state(start + LOOK), ClaimState::Own);
        assert!(claims.own().answers);
    }

    #[test]
    fn the_later_server_ends() {
        let (mut claims, start) = (claims(), Instant::now());
        claims.read(claims.own().clone(), start);
        claims.read(of_other("z", true), start);
        assert_eq!(claims.state(start), ClaimState::Taken("b".to_owned()));
    }

    #[test]
    fn of_two_that_start_at_once_one_goes_on() {
        let start = Instant::now();
        let (mut first, mut second) = (claims(), claims());
        let (a, b) = (first.own().clone(), second.own().clone());
        for claims in [&mut first, &mut second] {
            claims.read(a.clone(), start);
            claims.read(b.clone(), start);
        }
        let taken = [first.state(start), second.state(start)].iter().filter(|state| matches!(state, ClaimState::Taken(_))).count();
        assert_eq!(taken, 1);
    }

    #[test]
    fn a_server_that_answers_says_for_how_long_another_one_is_there() {
        let (mut claims, start) = (claims(), Instant::now());
        claims.read(claims.own().clone(), start);
        assert_eq!(claims.state(start + LOOK), ClaimState::Own);
        claims.read(of_other("z", true), start + LOOK);
        assert_eq!(claims.state(start + LOOK), ClaimState::Own, "of two that answer, one stays ready");
        claims.read(of_other("0", true), start + LOOK);
        assert_eq!(claims.state(start + LOOK), ClaimState::Shared("b".to_owned()));
        claims.read(claims.own().clone(), start + LOOK + COUNTS_FOR);
        assert_eq!(claims.state(start + LOOK + COUNTS_FOR), ClaimState::Own);
    }

    #[test]
    fn a_server_whose_claims_do_not_come_back_hears_no_verdict_either() {
        let (mut claims, start) = (claims(), Instant::now());
        claims.read(claims.own().clone(), start);
        assert_eq!(claims.state(start + LOOK), ClaimState::Own);
        assert_eq!(claims.state(start + COUNTS_FOR), ClaimState::Unheard);
        claims.read(claims.own().clone(), start + COUNTS_FOR);
        assert_eq!(claims.state(start + COUNTS_FOR), ClaimState::Own);
    }
}
