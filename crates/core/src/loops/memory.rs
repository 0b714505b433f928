//! What a turn remembers for its loop controllers: digests and counters.

use crate::digest::Fingerprint;
use crate::thread::push_tightly;

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
    /// The first half of the digest of its arguments.
    pub args: Fingerprint,
    /// Failures of exactly this call since its last success.
    pub failures: u32,
    /// The last result of a read-only call and how often it came.
    pub progress: Option<(Fingerprint, u32)>,
    /// Whether the next such call is to be stopped: of too many entries these are forgotten last.
    pub is_stopped: bool,
}

/// The loop controllers' memory of one turn. Entries are few, small and in order of first use, so plain vectors serve.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoopMemory {
    /// Failures by tool.
    pub tools: Vec<ToolCount>,
    /// Counts by signature.
    pub signatures: Vec<SignatureCount>,
    /// Whether a block or halt was given in this turn, or is due. Such a thread is never forgotten to make room.
    pub holds_a_stop: bool,
}

impl LoopMemory {
    /// Nothing remembered.
    pub(crate) const BLANK: Self = Self { tools: Vec::new(), signatures: Vec::new(), holds_a_stop: false };

    /// The failures of a tool.
    #[must_use]
    pub fn tool_failures(&self, call: &Signature<'_>) -> u32 {
        self.tools.iter().find(|entry| entry.tool == call.tool).map_or(0, |entry| entry.failures)
    }

    /// The entry of a signature, if there is one.
    #[must_use]
    pub fn signature(&self, call: &Signature<'_>) -> Option<&SignatureCount> {
        let args = call.args.fingerprint();
        self.signatures.iter().find(|entry| entry.args == args && entry.tool == call.tool)
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

    /// Changes the entry of a signature, made if need be and dropped if nothing is left in it. It becomes the latest.
    pub fn update_signature<T>(&mut self, call: &Signature<'_>, change: impl FnOnce(&mut SignatureCount) -> T) -> T {
        let args = call.args.fingerprint();
        let at = self.signatures.iter().rposition(|entry| entry.args == args && entry.tool == call.tool);
        let blank = SignatureCount { tool: call.tool, args, failures: 0, progress: None, is_stopped: false };
        let mut entry = at.map_or(blank, |at| self.signatures.remove(at));
        let answer = change(&mut entry);
        self.holds_a_stop |= entry.is_stopped;
        if entry.failures > 0 || entry.progress.is_some() {
            push_tightly(&mut self.signatures, entry);
        }
        answer
    }

    /// Drops entries until the rest fits into `bytes_max`, a quarter at a time: those that were touched longest ago, and those that a
    /// stop depends on only when no others are left.
    pub fn trim(&mut self, bytes_max: usize) {
        let (signatures_max, tools_max) = (bytes_max / 4 * 3 / size_of::<SignatureCount>(), bytes_max / 4 / size_of::<ToolCount>());
        if self.signatures.capacity() > signatures_max {
            if self.signatures.len() > signatures_max {
                let (mut excess, stopped) =
                    (self.signatures.len().div_ceil(4), self.signatures.iter().filter(|entry| entry.is_stopped).count());
                let may_drop_stopped = stopped + excess > self.signatures.len();
                self.signatures.retain(|entry| {
                    let is_dropped = excess > 0 && (may_drop_stopped || !entry.is_stopped);
                    excess -= usize::from(is_dropped);
                    !is_dropped
                });
            }
            self.signatures.shrink_to(signatures_max);
        }
        if self.tools.capacity() > tools_max {
            if self.tools.len() > tools_max {
                self.tools.drain(..self.tools.len().div_ceil(4));
            }
            self.tools.shrink_to(tools_max);
        }
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.tools.capacity() * size_of::<ToolCount>() + self.signatures.capacity() * size_of::<SignatureCount>()
    }
}
