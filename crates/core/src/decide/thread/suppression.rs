//! The tool calls that may not run, because the responses that made them were cut off.
//!
//! A call may come late, and under the id of any turn. So what is suppressed stays suppressed while the thread lives, whatever turns begin
//! and end. A thread lists so many ids and no more. Beyond that nothing is forgotten: every call of the thread is suppressed.
//!
//! Hosts change ids: they cut off what a gateway put into them, or make up their own. So until the model answers again, or the turn is over,
//! a call that was not known before the response is one of its calls, whatever it is called.

use crate::decide::ruling::Reason;
use crate::rare::Blank;
use tollgate_json::digest::Fingerprint;

/// What calls may do that are new since the thread's last response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NewCalls {
    /// They may run.
    #[default]
    Free,
    /// The response was cut off: every new call is one of its calls.
    CutOff,
    /// The response could not be read: every new call is one of its calls.
    NotRead,
}

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
    /// What calls may do that are new since the last response.
    pub(crate) new_calls: NewCalls,
    /// What calls may do that name a turn before the running turn.
    pub(crate) late_calls: NewCalls,
}

impl Blank for Suppression {
    const NOTHING: &'static Self = &Self {
        ids: Vec::new(),
        unnamed_tools: Vec::new(),
        has_unknown: false,
        has_overflowed: false,
        new_calls: NewCalls::Free,
        late_calls: NewCalls::Free,
    };
}

impl Suppression {
    /// Notes a response whose calls may not run, and why. `is_late` says that it is of a turn before the running turn.
    pub fn cut_off(&mut self, why: NewCalls, is_late: bool) {
        *(if is_late { &mut self.late_calls } else { &mut self.new_calls }) = why;
    }

    /// Notes that another turn has begun: a call that is new in it is not of the responses before it, and a call that names a turn before it
    /// may be.
    pub fn turn_over(&mut self) {
        if self.new_calls != NewCalls::Free {
            self.late_calls = std::mem::take(&mut self.new_calls);
        }
    }

    /// Suppresses a call of a response that was cut off.
    pub fn add(&mut self, id: Option<&str>, tool_name: Option<&str>) {
        if self.has_overflowed {
            return;
        }
        match (id, tool_name) {
            (Some(id), _) => self.add_id(Fingerprint::of(id)),
            (None, Some(tool_name)) => self.has_unknown |= !add(&mut self.unnamed_tools, Fingerprint::of(tool_name)),
            (None, None) => self.has_unknown = true,
        }
    }

    fn add_id(&mut self, id: Fingerprint) {
        self.has_overflowed |= !add(&mut self.ids, id);
    }

    /// Notes that the model has answered without being cut off: calls without an id are its new ones again, and so are calls under ids that
    /// the provider begins again (`call_0`). `ids` gives the ids of the answer's calls; it is asked only where that matters.
    pub fn model_answered(&mut self, ids: impl FnOnce() -> Vec<Fingerprint>) {
        self.unnamed_tools.clear();
        self.has_unknown = false;
        self.new_calls = NewCalls::Free;
        if !self.ids.is_empty() {
            let begun_again = ids();
            self.ids.retain(|id| !begun_again.contains(id));
        }
    }

    /// Lists a call that was stopped since it is new, so that asking again does not make it known.
    pub fn note_stopped(&mut self, id: Fingerprint, tool_name: &str) {
        if !self.covers(id, tool_name) {
            self.add_id(id);
        }
    }

    /// Returns why a call may not run, if so. `is_new` says that it was not known before the response, or has no id by which that can be said;
    /// `is_late` that it names a turn before the running turn.
    #[must_use]
    pub fn stops(&self, id: Fingerprint, tool_name: &str, is_new: bool, is_late: bool) -> Option<Reason> {
        let of_turn = if is_late && self.late_calls != NewCalls::Free { self.late_calls } else { self.new_calls };
        match of_turn {
            NewCalls::NotRead if is_new => Some(Reason::ResponseNotRead),
            NewCalls::CutOff if is_new => Some(Reason::Suppressed),
            _ => self.covers(id, tool_name).then_some(Reason::Suppressed),
        }
    }

    /// Returns whether a call is listed.
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
        self == Self::NOTHING
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

/// Adds an entry to a list. Returns whether the list had room for it.
fn add(list: &mut Vec<Fingerprint>, entry: Fingerprint) -> bool {
    if list.contains(&entry) {
        return true;
    }
    let has_room = list.len() < ENTRIES_MAX;
    if has_room {
        list.push(entry);
    }
    has_room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_an_id_is_known_by_its_tool_until_the_model_answers() {
        let mut suppression = Suppression::default();
        suppression.add(None, Some("write_file"));
        assert!(suppression.covers(Fingerprint::of("made-up"), "write_file"));
        assert!(!suppression.covers(Fingerprint::of("made-up"), "read_file"));
        suppression.model_answered(Vec::new);
        assert!(!suppression.covers(Fingerprint::of("made-up"), "write_file"));
    }

    #[test]
    fn a_call_without_id_and_name_may_be_any() {
        let mut suppression = Suppression::default();
        suppression.add(None, None);
        assert!(suppression.covers(Fingerprint::of("c"), "bash"));
        suppression.model_answered(Vec::new);
        assert!(suppression.is_empty());
    }

    #[test]
    fn an_id_stays_suppressed_whatever_the_model_answers() {
        let mut suppression = Suppression::default();
        suppression.add(Some("c1"), Some("bash"));
        suppression.model_answered(Vec::new);
        assert!(suppression.covers(Fingerprint::of("c1"), "bash"));
        assert!(!suppression.covers(Fingerprint::of("c2"), "bash"));
    }

    #[test]
    fn more_tools_than_can_be_told_apart_suppress_everything_until_the_model_answers() {
        let mut suppression = Suppression::default();
        (0..=ENTRIES_MAX).for_each(|n| suppression.add(None, Some(&format!("tool {n}"))));
        assert!(suppression.covers(Fingerprint::of("c"), "another"));
        suppression.model_answered(Vec::new);
        assert!(suppression.is_empty());

        let mut suppression = Suppression::default();
        (0..20).for_each(|n| suppression.add(None, Some(&format!("tool {n}"))));
        suppression.trim(512);
        assert!(suppression.covers(Fingerprint::of("c"), "tool 19") && suppression.heap_bytes() <= 512);
        suppression.model_answered(Vec::new);
        assert!(suppression.is_empty());
    }

    #[test]
    fn more_ids_than_can_be_told_apart_suppress_everything() {
        let mut suppression = Suppression::default();
        (0..=ENTRIES_MAX).for_each(|n| suppression.add(Some(&format!("c{n}")), None));
        suppression.model_answered(Vec::new);
        assert!(suppression.covers(Fingerprint::of("another"), "bash"));

        let mut suppression = Suppression::default();
        (0..20).for_each(|n| suppression.add(Some(&format!("c{n}")), None));
        suppression.trim(512);
        assert!(suppression.covers(Fingerprint::of("c19"), "bash") && suppression.heap_bytes() <= 512);
    }
}
