//! Which optional signals are written, and for whom: what the rules ask for, and nothing else.

use super::{KeyKind, PointKind, SignalKind, VolumeKind};

/// A set of kinds of subjects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyKinds(u8);

impl KeyKinds {
    /// The kinds that events name: all but calls.
    pub const OF_EVENTS: Self =
        Self(1 << KeyKind::User as u8 | 1 << KeyKind::Tenant as u8 | 1 << KeyKind::Agent as u8 | 1 << KeyKind::Thread as u8);

    /// Adds a kind.
    pub fn insert(&mut self, kind: KeyKind) {
        self.0 |= 1 << kind as u8;
    }

    /// Returns whether a kind is in the set.
    #[must_use]
    pub fn has(self, kind: KeyKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the kinds that are in either set.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the kinds in the set, in the order of [`KeyKind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = KeyKind> {
        KeyKind::ALL.iter().copied().filter(move |kind| self.has(*kind))
    }
}

/// The optional signals that the rules in force use, each with the kinds of subjects that it is written for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interest {
    tool_failure: KeyKinds,
    thread_start: KeyKinds,
    volumes: [KeyKinds; VolumeKind::ALL.len()],
}

impl Interest {
    /// Adds a signal for a kind of subject. Signals that are always written need not be added.
    pub fn add(&mut self, signal: SignalKind, kind: KeyKind) {
        if let Some(kinds) = self.of_mut(signal) {
            kinds.insert(kind);
        }
    }

    /// Returns the kinds of subjects that a signal is written for; none for signals that are always written, for every subject.
    #[must_use]
    pub fn of(mut self, signal: SignalKind) -> KeyKinds {
        self.of_mut(signal).copied().unwrap_or_default()
    }

    fn of_mut(&mut self, signal: SignalKind) -> Option<&mut KeyKinds> {
        match signal {
            SignalKind::Point(PointKind::ToolFailure) => Some(&mut self.tool_failure),
            SignalKind::Point(PointKind::ThreadStart) => Some(&mut self.thread_start),
            SignalKind::Point(_) => None,
            SignalKind::Volume(kind) => self.volumes.get_mut(kind as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_in_it_and_nothing_else() {
        let mut interest = Interest::default();
        let tokens = SignalKind::Volume(VolumeKind::Tokens);
        interest.add(tokens, KeyKind::Tenant);
        interest.add(tokens, KeyKind::Call);
        interest.add(SignalKind::Point(PointKind::Denial), KeyKind::User);
        assert_eq!(interest.of(tokens).iter().collect::<Vec<_>>(), [KeyKind::Tenant, KeyKind::Call]);
        assert!(interest.of(SignalKind::Point(PointKind::Denial)).is_empty(), "it is always written");
        assert!(interest.of(SignalKind::Volume(VolumeKind::Call)).is_empty());
    }
}
