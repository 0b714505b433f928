//! The calls of a turn: what was asked, what was ruled, and which results are still due.

use crate::decide::loops::Arguments;
use crate::decide::ruling::Ruling;
use crate::lists::push_tightly;
use tollgate_json::digest::{Digest, Fingerprint};

/// The ruling that was given on an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The fingerprint of the event.
    pub event: Fingerprint,
    /// The ruling that its verdict carried.
    pub ruling: Ruling,
}

/// A tool call, identified by its `tool_call_id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// The fingerprint of the call's id.
    pub id: Fingerprint,
    /// The fingerprint of its tool's name.
    pub tool: Fingerprint,
    /// The digest of its arguments in canonical form.
    pub args: Digest,
    /// How its arguments were spelled at its last `tool_call` event, see [`Arguments::spelling`]; `None` where only a result came.
    pub spelling: Option<Fingerprint>,
    /// The last `tool_call` event of this call; `None` where only a result came.
    pub call: Option<Answer>,
    /// The last `tool_result` event that was ruled on.
    pub result: Option<Answer>,
    /// Whether the call was allowed and its result is still due.
    pub is_open: bool,
}

impl CallRecord {
    /// Returns the ruling on an earlier delivery of a `tool_call` event: the event, the tool and every byte of the arguments are the same.
    #[must_use]
    pub fn earlier_ruling(&self, event: Fingerprint, tool: Fingerprint, args: Arguments) -> Option<&Ruling> {
        let answer = self.call.as_ref().filter(|answer| answer.event == event)?;
        (self.tool == tool && self.args == args.canonical && self.spelling == Some(args.spelling)).then_some(&answer.ruling)
    }

    /// Returns whether the call was not allowed to run at its last `tool_call` event.
    #[must_use]
    pub fn was_denied(&self) -> bool {
        self.call.as_ref().is_some_and(|call| !call.ruling.allows_execution())
    }

    fn heap_bytes(&self) -> usize {
        [&self.call, &self.result].into_iter().flatten().map(|answer| answer.ruling.heap_bytes()).sum()
    }
}

/// The calls of a turn in order of first appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls {
    records: Vec<CallRecord>,
    /// Heap bytes of all rulings, kept up to date so that they need not be added up each time.
    rulings_bytes: usize,
}

impl Calls {
    /// A turn without calls.
    pub(super) const BLANK: Self = Self { records: Vec::new(), rulings_bytes: 0 };

    /// Returns the calls of a turn from their records, which are in order of first appearance.
    pub(crate) fn of(records: Vec<CallRecord>) -> Self {
        let rulings_bytes = records.iter().map(CallRecord::heap_bytes).sum();
        Self { records, rulings_bytes }
    }

    /// Returns the calls in order of first appearance.
    #[must_use]
    pub fn records(&self) -> &[CallRecord] {
        &self.records
    }

    /// Returns the call of that id.
    #[must_use]
    pub fn find(&self, id: Fingerprint) -> Option<&CallRecord> {
        // The call that is looked for is nearly always a recent one.
        self.records.iter().rev().find(|record| record.id == id)
    }

    /// Notes what was ruled on a `tool_call`. A call that uses an id again for another tool or other arguments is another call: what was
    /// known under that id is forgotten.
    pub fn note_call(&mut self, id: Fingerprint, tool: Fingerprint, args: Arguments, answer: Answer) {
        let is_open = answer.ruling.allows_execution();
        self.update(id, tool, args.canonical, |record| {
            record.spelling = Some(args.spelling);
            record.call = Some(answer);
            record.is_open = is_open;
        });
    }

    /// Notes what was ruled on a `tool_result` that counted, which closes the call.
    pub fn note_result(&mut self, id: Fingerprint, tool: Fingerprint, args: Digest, answer: Answer) {
        self.update(id, tool, args, |record| {
            record.result = Some(answer);
            record.is_open = false;
        });
    }

    /// Notes what was ruled on a `tool_result` that changed nothing, so that the same event gets the same verdict again.
    pub fn note_answer(&mut self, id: Fingerprint, answer: Answer) {
        let (tool, args) = self.find(id).map_or((id, Digest::of(b"{}")), |record| (record.tool, record.args));
        self.update(id, tool, args, |record| record.result = Some(answer));
    }

    fn update(&mut self, id: Fingerprint, tool: Fingerprint, args: Digest, change: impl FnOnce(&mut CallRecord)) {
        let blank = CallRecord { id, tool, args, spelling: None, call: None, result: None, is_open: false };
        let at = self.records.iter().rposition(|record| record.id == id).unwrap_or_else(|| {
            push_tightly(&mut self.records, blank.clone());
            self.records.len() - 1
        });
        let Some(record) = self.records.get_mut(at) else { return };
        self.rulings_bytes -= record.heap_bytes();
        if record.call.is_some() && (record.tool, record.args) != (tool, args) {
            *record = blank;
        }
        (record.tool, record.args) = (tool, args);
        change(record);
        self.rulings_bytes += record.heap_bytes();
    }

    /// Returns how many calls are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether no call is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Drops the oldest calls, a quarter of them at a time, until the rest fits into `bytes_max` bytes. Only what is in use counts, not
    /// what is reserved: state that comes from a checkpoint reserves differently and must be trimmed alike.
    pub fn trim(&mut self, bytes_max: usize) {
        while self.records.len() * size_of::<CallRecord>() + self.rulings_bytes > bytes_max && !self.records.is_empty() {
            let dropped = self.records.drain(..self.records.len().div_ceil(4));
            self.rulings_bytes -= dropped.map(|record| record.heap_bytes()).sum::<usize>();
        }
        let fits = bytes_max.saturating_sub(self.rulings_bytes) / size_of::<CallRecord>();
        if self.records.capacity() > fits {
            self.records.shrink_to(fits);
        }
    }

    /// Returns how many bytes it takes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.records.capacity() * size_of::<CallRecord>() + self.rulings_bytes
    }
}
