//! What a turn remembers for its loop controllers: digests and counters.

use crate::digest::{Digest, Fingerprint};

use super::Signature;

/// Failures of one tool in this turn, whatever its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolCount {
    /// The tool.
    pub tool: Fingerprint,
    /// Its failures since its last success.
    pub failures: u32,
}

/// What is counted per signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureCount {
    /// The tool.
    pub tool: Fingerprint,
    /// The digest of its arguments.
    pub args: Digest,
    /// Failures of exactly this call since its last success.
    pub failures: u32,
    /// The last result of a read-only call and how often it came.
    pub progress: Option<(Fingerprint, u32)>,
}

/// The loop controllers' memory of one turn. Entries are few, small and in order of first use, so plain vectors serve.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoopMemory {
    /// Failures by tool.
    pub tools: Vec<ToolCount>,
    /// Counts by signature.
    pub signatures: Vec<SignatureCount>,
    /// Whether a block or halt was given in this turn. Such a thread is never forgotten to make room.
    pub halted: bool,
}

impl LoopMemory {
    /// The failures of a tool.
    #[must_use]
    pub fn tool_failures(&self, call: &Signature<'_>) -> u32 {
        self.tools.iter().find(|entry| entry.tool == call.tool).map_or(0, |entry| entry.failures)
    }

    /// The entry of a signature, if there is one.
    #[must_use]
    pub fn signature(&self, call: &Signature<'_>) -> Option<&SignatureCount> {
        self.signatures.iter().find(|entry| entry.args == call.args && entry.tool == call.tool)
    }

    /// Counts one more failure of a tool and returns the new count.
    pub fn add_tool_failure(&mut self, call: &Signature<'_>) -> u32 {
        let at = self.tools.iter().position(|entry| entry.tool == call.tool).unwrap_or_else(|| {
            self.tools.push(ToolCount { tool: call.tool, failures: 0 });
            self.tools.len() - 1
        });
        self.tools.get_mut(at).map_or(0, |entry| {
            entry.failures = entry.failures.saturating_add(1);
            entry.failures
        })
    }

    /// Forgets the failures of a tool.
    pub fn clear_tool_failures(&mut self, call: &Signature<'_>) {
        self.tools.retain(|entry| entry.tool != call.tool);
    }

    /// Changes the entry of a signature, made if need be and dropped if nothing is left in it.
    pub fn update_signature<T>(&mut self, call: &Signature<'_>, change: impl FnOnce(&mut SignatureCount) -> T) -> T {
        let at = self.signatures.iter().position(|entry| entry.args == call.args && entry.tool == call.tool);
        let mut entry = at.and_then(|at| self.signatures.get(at).copied()).unwrap_or(SignatureCount {
            tool: call.tool,
            args: call.args,
            failures: 0,
            progress: None,
        });
        let answer = change(&mut entry);
        let is_empty = entry.failures == 0 && entry.progress.is_none();
        match at.and_then(|at| self.signatures.get_mut(at).map(|slot| (at, slot))) {
            Some((at, _)) if is_empty => {
                self.signatures.remove(at);
            }
            Some((_, slot)) => *slot = entry,
            None if is_empty => {}
            None => self.signatures.push(entry),
        }
        answer
    }

    /// Drops the oldest entries beyond these numbers.
    pub fn trim(&mut self, entries_max: usize) {
        self.signatures.drain(..self.signatures.len().saturating_sub(entries_max));
        self.tools.drain(..self.tools.len().saturating_sub(entries_max));
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.tools.capacity() * size_of::<ToolCount>() + self.signatures.capacity() * size_of::<SignatureCount>()
    }
}
