//! What the abuse stage remembers of a partition, as state that checkpoints can hold.

pub(crate) mod entry;
pub(crate) mod rule_states;
pub(crate) mod sources;

use std::collections::BTreeMap;

use tollgate_core::engine::checkpoint::{KeyedState, StateError};
use tollgate_core::event::record::{Departures, Offset, StreamClock};

use crate::subjects::Subjects;
use entry::{Content, Entry, EntryKey, Own};
use rule_states::RuleStates;
use sources::Sources;

/// What is remembered of a partition of the signals topic.
#[derive(Debug, Default)]
pub struct AbuseState {
    pub(crate) subjects: Subjects,
    pub(crate) sources: Sources,
    pub(crate) rules: RuleStates,
    pub(crate) own: Own,
    /// The offset of the last record that was applied.
    pub(crate) applied: Offset,
    /// What a checkpoint last saw of the partition itself.
    shown_own: Option<Own>,
    /// The entry that was last asked for by itself.
    shown: Option<Entry>,
    pub(crate) departures: Departures,
}

impl AbuseState {
    /// Returns whether it knows of no rule that has ever counted.
    pub(crate) fn is_new(&self) -> bool {
        self.own == Own::default()
    }

    fn entry(&self, key: &EntryKey<'_>) -> Option<Entry> {
        let content = match key {
            EntryKey::Subject(key) => {
                let at = self.subjects.find(key)?;
                Content::Subject(self.subjects.packed(at).into())
            }
            EntryKey::Source(source) => Content::Source(self.applied, *self.sources.get(*source)?),
            EntryKey::Rule(id) => Content::Rule(self.applied, self.rules.get(id)?.clone()),
            EntryKey::Own => Content::Own(self.applied, self.own),
        };
        Some(Entry(content))
    }
}

impl KeyedState for AbuseState {
    const KIND: &'static str = "abuse";
    type Entry = Entry;
    type Limits = ();

    fn encode(entry: &Entry, out: &mut Vec<u8>) {
        entry.0.encode(out);
    }

    fn decode(value: &[u8]) -> Result<Entry, StateError> {
        Content::decode(value).map(Entry)
    }

    fn applied(entry: &Entry) -> Offset {
        entry.0.applied()
    }

    /// Returns the state with the entries of a checkpoint. Its time is that of the sources. An entry under the key of another is left out:
    /// no version writes such a one.
    fn restored((): (), _: StreamClock, entries: impl IntoIterator<Item = (Box<str>, Entry)>) -> Self {
        let (mut state, mut sources) = (Self::default(), BTreeMap::new());
        for (key, Entry(content)) in entries {
            state.applied = state.applied.max(content.applied());
            match (EntryKey::read(&key), content) {
                (Some(EntryKey::Subject(key)), Content::Subject(packed)) => state.subjects.restore(key, packed),
                (Some(EntryKey::Source(number)), Content::Source(_, source)) => drop(sources.insert(number, source)),
                (Some(EntryKey::Rule(id)), Content::Rule(_, rule)) => state.rules.restore(id, rule),
                (Some(EntryKey::Own), Content::Own(_, own)) => (state.own, state.shown_own) = (own, Some(own)),
                _ => {}
            }
        }
        Self { sources: Sources::restored(sources), ..state }
    }

    fn clock(&self) -> StreamClock {
        StreamClock::at(self.sources.now_ms())
    }

    fn len(&self) -> usize {
        self.subjects.len() + self.sources.len() + self.rules.len() + usize::from(!self.is_new())
    }

    fn bytes(&self) -> usize {
        self.subjects.bytes()
    }

    fn departures(&self) -> Departures {
        self.departures
    }

    fn take_changes(&mut self, mut show: impl FnMut(&str, Option<&Entry>)) {
        let mut subjects = std::mem::take(&mut self.subjects);
        subjects.take_changes(|key, packed| {
            let entry = packed.map(|packed| Entry(Content::Subject(packed.into())));
            show(&EntryKey::Subject(key).to_string(), entry.as_ref());
        });
        self.subjects = subjects;
        for source in self.sources.take_changes() {
            let key = EntryKey::Source(source);
            show(&key.to_string(), self.entry(&key).as_ref());
        }
        for id in self.rules.take_changes() {
            let key = EntryKey::Rule(&id);
            show(&key.to_string(), self.entry(&key).as_ref());
        }
        if !self.is_new() && self.shown_own.replace(self.own) != Some(self.own) {
            show(&EntryKey::Own.to_string(), self.entry(&EntryKey::Own).as_ref());
        }
    }

    fn take_change(&mut self, key: &str) -> Option<&Entry> {
        let key = EntryKey::read(key)?;
        self.shown = self.entry(&key);
        match key {
            EntryKey::Subject(key) => drop(self.subjects.take_change(&key)),
            EntryKey::Source(source) => self.sources.unmark(source),
            EntryKey::Rule(id) => self.rules.unmark(id),
            EntryKey::Own => self.shown_own = Some(self.own),
        }
        self.shown.as_ref()
    }

    fn mark_changed(&mut self, key: &str) {
        match EntryKey::read(key) {
            Some(EntryKey::Subject(key)) => self.subjects.mark_changed(&key),
            Some(EntryKey::Source(source)) => self.sources.mark_changed(source),
            Some(EntryKey::Rule(id)) => self.rules.mark_changed(id),
            Some(EntryKey::Own) => self.shown_own = None,
            None => {}
        }
    }
}
