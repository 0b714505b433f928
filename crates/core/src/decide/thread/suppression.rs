//! The tool calls that may not run, because the responses that made them were cut off.
//!
//! A call may come late, and under the id of any turn. So what is suppressed stays suppressed while the thread lives, whatever turns begin
//! and end. A thread lists so many ids and no more. Beyond that nothing is forgotten: every call of the thread is suppressed.

use tollgate_json::digest::Fingerprint;

/// The calls of a thread that may not run, because the responses that made them were cut off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suppression {
    /// The ids of the calls, of the running turn and of those before it.
    pub(crate) ids: Vec<Fingerprint>,
    /// Tools that were called without an id, as Gemini does. Until the model answers again, any call of such a tool counts as the truncated
    /// one, whatever id the host made up for it.
    pub(crate) unnamed_tools: Vec<Fingerprint>,
    /// Whether a call without id and name was seen. Until the model answers again, any call may be that one.
    pub(crate) has_unknown: bool,
    /// Whether there were more ids than the list holds. Any call may be one of them from then on.
    pub(crate) has_overflowed: bool,
}

impl Suppression {
    /// Nothing is suppressed.
    pub(super) const BLANK: Self = Self { ids: Vec::new(), unnamed_tools: Vec::new(), has_unknown: false, has_overflowed: false };

    /// Suppresses a call of a response that was cut off.
    pub fn add(&mut self, id: Option<&str>, tool_name: Option<&str>) {
        if self.has_overflowed {
            return;
        }
        let (list, text) = match (id, tool_name) {
            (Some(id), _) => (&mut self.ids, id),
            (None, Some(tool_name)) => (&mut self.unnamed_tools, tool_name),
            (None, None) => return self.has_unknown = true,
        };
        let fingerprint = Fingerprint::of(text);
        if list.contains(&fingerprint) {
            return;
        }
        if list.len() < ENTRIES_MAX {
            list.push(fingerprint);
        } else if id.is_some() {
            self.has_overflowed = true;
        } else {
            self.has_unknown = true;
        }
    }

    /// Notes that the model has answered without being cut off: calls without an id are its new ones again.
    pub fn model_answered(&mut self) {
        self.unnamed_tools.clear();
        self.has_unknown = false;
    }

    /// Returns whether a call is suppressed.
    #[must_use]
    pub fn covers(&self, id: Fingerprint, tool_name: &str) -> bool {
        let is_unnamed = || !self.unnamed_tools.is_empty() && self.unnamed_tools.contains(&Fingerprint::of(tool_name));
        self.has_overflowed || self.has_unknown || self.ids.contains(&id) || is_unnamed()
    }

    /// Returns how many suppressed calls are listed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len() + self.unnamed_tools.len()
    }

    /// Returns whether nothing is suppressed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_overflowed && !self.has_unknown && self.ids.is_empty() && self.unnamed_tools.is_empty()
    }

    /// Trims the lists to `bytes_max` bytes. Entries that do not fit are not forgotten: everything is suppressed instead.
    pub fn trim(&mut self, bytes_max: usize) {
        let entries_max = bytes_max / 2 / size_of::<Fingerprint>();
        for (list, is_cut) in [(&mut self.ids, &mut self.has_overflowed), (&mut self.unnamed_tools, &mut self.has_unknown)] {
            if list.capacity() > entries_max {
                *is_cut |= list.len() > entries_max;
                list.truncate(entries_max);
                list.shrink_to(entries_max);
            }
        }
    }

    /// Returns how many bytes it takes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        (self.ids.capacity() + self.unnamed_tools.capacity()) * size_of::<Fingerprint>()
    }
}

/// The most entries of a list, whatever the thread's limit is: looking one up takes as long as the list is.
const ENTRIES_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_an_id_is_known_by_its_tool_until_the_model_answers() {
        let mut suppression = Suppression::default();
        suppression.add(None, Some("write_file"));
        assert!(suppression.covers(Fingerprint::of("made-up"), "write_file"));
        assert!(!suppression.covers(Fingerprint::of("made-up"), "read_file"));
        suppression.model_answered();
        assert!(!suppression.covers(Fingerprint::of("made-up"), "write_file"));
    }

    #[test]
    fn a_call_without_id_and_name_may_be_any() {
        let mut suppression = Suppression::default();
        suppression.add(None, None);
        assert!(suppression.covers(Fingerprint::of("c"), "bash"));
        suppression.model_answered();
        assert!(suppression.is_empty());
    }

    #[test]
    fn an_id_stays_suppressed_whatever_the_model_answers() {
        let mut suppression = Suppression::default();
        suppression.add(Some("c1"), Some("bash"));
        suppression.model_answered();
        assert!(suppression.covers(Fingerprint::of("c1"), "bash"));
        assert!(!suppression.covers(Fingerprint::of("c2"), "bash"));
    }

    #[test]
    fn more_tools_than_can_be_told_apart_suppress_everything_until_the_model_answers() {
        let mut suppression = Suppression::default();
        (0..=ENTRIES_MAX).for_each(|n| suppression.add(None, Some(&format!("tool {n}"))));
        assert!(suppression.covers(Fingerprint::of("c"), "another"));
        suppression.model_answered();
        assert!(suppression.is_empty());

        let mut suppression = Suppression::default();
        (0..20).for_each(|n| suppression.add(None, Some(&format!("tool {n}"))));
        suppression.trim(512);
        assert!(suppression.covers(Fingerprint::of("c"), "tool 19") && suppression.heap_bytes() <= 512);
        suppression.model_answered();
        assert!(suppression.is_empty());
    }

    #[test]
    fn more_ids_than_can_be_told_apart_suppress_everything() {
        let mut suppression = Suppression::default();
        (0..=ENTRIES_MAX).for_each(|n| suppression.add(Some(&format!("c{n}")), None));
        suppression.model_answered();
        assert!(suppression.covers(Fingerprint::of("another"), "bash"));

        let mut suppression = Suppression::default();
        (0..20).for_each(|n| suppression.add(Some(&format!("c{n}")), None));
        suppression.trim(512);
        assert!(suppression.covers(Fingerprint::of("c19"), "bash") && suppression.heap_bytes() <= 512);
    }
}
