//! The judge of a member: a thread that decides by the policy on trial, compares, and counts and publishes what differs.
//!
//! If it panics, it starts over with the next record. No verdict depends on it, so the worker goes on meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tollgate_core::decide::shadow::{Compared, Flip, Shadow};
use tollgate_core::event::record::Partition;

use super::Trial;
use super::flips::{FlipPublisher, Place};
use super::queue::{Decided, JudgeMessage, Waiting};
use crate::metrics::BoundedLabel;

/// How often the producer is served while nothing comes.
const POLL: Duration = Duration::from_millis(100);
/// How many records are judged before the producer is served.
const RECORDS_PER_ROUND: usize = 256;
/// The longest tool that is a label, in bytes.
const TOOL_BYTES_MAX: usize = 64;

/// Starts a judge. It ends when the feed is dropped and everything in it is judged.
pub(super) fn start(trial: Trial, fed: Receiver<JudgeMessage>, waiting: Arc<Waiting>) -> anyhow::Result<()> {
    let flips = FlipPublisher::new(&trial)?;
    let judge = Judge { trial, waiting, flips, shadows: FxHashMap::default() };
    std::thread::Builder::new().name("shadow".to_owned()).spawn(move || judge.run(&fed))?;
    Ok(())
}

struct Judge {
    trial: Trial,
    waiting: Arc<Waiting>,
    flips: FlipPublisher,
    shadows: FxHashMap<Partition, Shadow>,
}

impl Judge {
    fn run(mut self, fed: &Receiver<JudgeMessage>) {
        // The log names the place of a panic.
        while catch_unwind(AssertUnwindSafe(|| self.serve(fed))).is_err() {
            tracing::error!("the policy on trial starts over: threads are compared again from their next turn on");
            self.start_over();
        }
    }

    /// Forgets what a panic may have left half done. Every thread is taken for one that was in the middle of a turn.
    fn start_over(&mut self) {
        self.trial.metrics.shadow_dropped.inc();
        for shadow in self.shadows.values_mut() {
            *shadow = Shadow::new(Arc::clone(&self.trial.policy), None);
            shadow.missed_any();
        }
    }

    /// Judges until there is nothing more to come.
    fn serve(&mut self, fed: &Receiver<JudgeMessage>) {
        loop {
            match fed.recv_timeout(POLL) {
                Ok(first) => {
                    self.take(first);
                    fed.try_iter().take(RECORDS_PER_ROUND).for_each(|fed| self.take(fed));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.flips.finish(),
            }
            self.flips.serve();
        }
    }

    fn take(&mut self, fed: JudgeMessage) {
        match fed {
            JudgeMessage::Taken(partition, restored) => {
                self.shadows.insert(partition, Shadow::new(Arc::clone(&self.trial.policy), restored.map(|restored| *restored)));
            }
            JudgeMessage::GivenUp(partition) => drop(self.shadows.remove(&partition)),
            JudgeMessage::Missed(threads) => {
                for (partition, thread_id) in &threads {
                    if let Some(shadow) = self.shadows.get_mut(partition) {
                        shadow.missed(thread_id);
                    }
                }
            }
            JudgeMessage::MissedAny => self.shadows.values_mut().for_each(Shadow::missed_any),
            JudgeMessage::Decided(decided) => self.judge(*decided),
        }
    }

    fn judge(&mut self, Decided { record, partition, thread_id, ours }: Decided) {
        self.waiting.remove(record.bytes());
        fail::fail_point!("shadow");
        let Some(shadow) = self.shadows.get_mut(&partition) else { return };
        let metrics = &self.trial.metrics;
        match record.with_borrowed(|record| shadow.compare(record, &thread_id, ours)) {
            Compared::NoVerdict => {}
            Compared::LeftOut => metrics.shadow_left_out.inc(),
            Compared::Same => metrics.shadow_compared.inc(),
            Compared::Flip(flip) => {
                metrics.shadow_compared.inc();
                self.count(&flip);
                self.flips.publish(&flip, Place { partition, offset: record.offset(), thread_id: &thread_id });
            }
        }
    }

    fn count(&self, Flip { tool, from, to, .. }: &Flip) {
        // The code is that of the policy that intervenes: of the one on trial, unless that allows.
        let code = if to.code == "allow" { &from.code } else { &to.code };
        let code = self.trial.labels.codes.of(code);
        let tool = tool.as_deref().filter(|tool| is_plain(tool)).map_or(BoundedLabel::OTHER, |tool| self.trial.labels.tools.of(tool));
        self.trial.metrics.shadow_flips.with_label_values(&[from.action.as_str(), to.action.as_str(), code, tool]).inc();
    }
}

/// Returns whether a tool's name is a plain identifier. Agents make names up, and any other text may be anything.
fn is_plain(tool: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
    (1..=TOOL_BYTES_MAX).contains(&tool.len()) && tool.bytes().all(is_allowed)
}
