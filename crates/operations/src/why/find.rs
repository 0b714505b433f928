//! Finding the verdict that somebody asks about.

use anyhow::bail;
use serde_json::Value;

use tollgate_config::topics::TopicRole;
use tollgate_core::event::record::{Partition, Record};
use tollgate_json::time::parse_timestamp;

use super::Other;
use crate::units::stamp;
use crate::{TimeRange, Topics};

/// How many verdicts that fit are kept. An id such as `e1` may stand on every thread.
const CANDIDATES_MAX: usize = 1_000;
/// How many other verdicts are named.
const OTHERS_MAX: usize = 5;
/// How many threads are named where an id stands on several.
const THREADS_MAX: usize = 5;

/// What somebody asks about.
#[derive(Debug, Clone, Copy)]
pub enum Target<'t> {
    /// The verdict on an event, or on a call, by the id of the event, the call or the verdict.
    Id(&'t str),
    /// The stop that is nearest to a time, in milliseconds since 1970.
    Nearest(i64),
}

/// Where to look for a verdict.
pub struct Search<'s> {
    /// What it is.
    pub target: Target<'s>,
    /// The times at which it may have been published.
    pub range: TimeRange,
    /// Whether a verdict is among those that are meant, by its record's key and its JSON.
    pub means: &'s dyn Fn(&[u8], &[u8]) -> bool,
}

/// A verdict that was found.
#[derive(Debug)]
pub struct FoundVerdict {
    pub(super) verdict: Value,
    pub(super) json: Vec<u8>,
    pub(super) published_ms: Option<i64>,
    /// The partition of its event too.
    pub(super) partition: Partition,
}

impl FoundVerdict {
    /// Returns a member of the verdict that is a string; empty if it has none.
    pub(super) fn text(&self, member: &str) -> &str {
        self.verdict.get(member).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns when it was decided, in milliseconds since 1970: when its record was written, or else when its event happened.
    pub(super) fn time_ms(&self) -> Option<i64> {
        self.published_ms.or_else(|| parse_timestamp(self.text("timestamp")))
    }

    fn of(record: &Record<'_>) -> Option<Self> {
        let json = record.value?;
        let verdict: Value = serde_json::from_slice(json).ok().filter(Value::is_object)?;
        Some(Self { verdict, json: json.to_vec(), published_ms: record.timestamp_ms, partition: record.partition })
    }

    /// Returns how much it is a stop: 0 allows, 1 warns, 2 stops.
    fn severity(&self) -> u8 {
        match self.text("action") {
            "allow" => 0,
            "warn" => 1,
            _ => 2,
        }
    }

    pub(super) fn into_other(self) -> Other {
        let text = |member: &str| self.text(member).to_owned();
        Other { published: self.published_ms.map(stamp), event_id: text("event_id"), thread_id: text("thread_id"), code: text("code") }
    }
}

impl Search<'_> {
    /// Finds the verdict. It returns some of the others that fit too, the best first.
    ///
    /// # Errors
    /// Nothing fits, or an id stands on several threads, each with what to try; or the topic cannot be read.
    pub fn find(&self, topics: &Topics<'_>) -> anyhow::Result<(FoundVerdict, Vec<FoundVerdict>)> {
        let topic = topics.find(TopicRole::Decisions)?;
        let (mut candidates, mut seen, mut is_full) = (Vec::<FoundVerdict>::new(), std::collections::BTreeSet::new(), false);
        self.range.read(topics, topic, None, |record| {
            let is_meant = (self.means)(record.key.unwrap_or_default(), record.value.unwrap_or_default());
            let found = if is_meant { FoundVerdict::of(record).filter(|found| self.names(found)) } else { None };
            // Of several copies the first counts.
            if let Some(found) = found.filter(|found| seen.insert(found.text("verdict_id").to_owned())) {
                is_full = candidates.len() >= CANDIDATES_MAX;
                if !is_full {
                    candidates.push(found);
                }
            }
            true
        })?;
        if is_full {
            say!("tollgate: more than {CANDIDATES_MAX} verdicts fit, and only the first {CANDIDATES_MAX} are looked at; ask for less");
        }
        match self.target {
            Target::Id(_) => by_id(candidates),
            Target::Nearest(at_ms) => nearest(candidates, at_ms),
        }
    }

    /// Returns whether a verdict bears the id that is asked for.
    fn names(&self, found: &FoundVerdict) -> bool {
        match self.target {
            Target::Id(id) => ["event_id", "tool_call_id", "verdict_id"].iter().any(|member| found.text(member) == id),
            Target::Nearest(_) => true,
        }
    }
}

/// Returns the verdict of an id. A call has a verdict and its result has another: the one that stops is asked about, and the call's before the
/// result's.
fn by_id(mut candidates: Vec<FoundVerdict>) -> anyhow::Result<(FoundVerdict, Vec<FoundVerdict>)> {
    let threads: std::collections::BTreeSet<_> = candidates.iter().map(|found| found.text("thread_id")).collect();
    if threads.len() > 1 {
        let named: Vec<_> = threads.iter().take(THREADS_MAX).map(|thread| Value::from(*thread).to_string()).collect();
        bail!("the id stands on {} threads: {}; name the thread with --thread", threads.len(), named.join(", "));
    }
    candidates.sort_by_key(|found| (std::cmp::Reverse(found.severity()), found.text("type") != "tool_call"));
    first(
        candidates,
        "no verdict on an event or a call of that id was found: look further back with --since 7d; if its record could not be read, `tollgate dlq list` shows why; a request that the server refused left no record, and the answer said why; `tollgate top` shows whether workers are behind",
    )
}

/// Returns the stop that is nearest to a time, or else the nearest warning.
fn nearest(mut candidates: Vec<FoundVerdict>, at_ms: i64) -> anyhow::Result<(FoundVerdict, Vec<FoundVerdict>)> {
    let count = candidates.len();
    let distance = |found: &FoundVerdict| found.published_ms.map_or(u64::MAX, |time_ms| time_ms.abs_diff(at_ms));
    let severest = candidates.iter().map(FoundVerdict::severity).max().unwrap_or_default();
    if severest == 0 && count > 0 {
        bail!(
            "{count} verdicts fit, and all of them allow: nothing was stopped around that time; look at more with --within 1h, or at them with `tollgate tap --since TIME --until TIME`"
        );
    }
    candidates.retain(|found| found.severity() == severest);
    candidates.sort_by_key(distance);
    first(
        candidates,
        "no verdict fits: look at more time with --within 1h; times of day are UTC; a verdict names its agent and tenant only if its event does",
    )
}

/// Returns the first of the candidates, and some of the others.
fn first(candidates: Vec<FoundVerdict>, nothing: &str) -> anyhow::Result<(FoundVerdict, Vec<FoundVerdict>)> {
    let mut candidates = candidates.into_iter();
    let Some(first) = candidates.next() else { bail!("{nothing}") };
    Ok((first, candidates.take(OTHERS_MAX).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn verdict(thread: &str, event: &str, kind: &str, action: &str, published_ms: i64) -> FoundVerdict {
        let verdict = json!({"verdict_id": format!("{thread}/{event}"), "thread_id": thread, "event_id": event, "type": kind, "action": action, "code": action});
        FoundVerdict { json: verdict.to_string().into_bytes(), verdict, published_ms: Some(published_ms), partition: Partition(0) }
    }

    #[test]
    fn of_a_call_and_its_result_the_one_that_stops_is_meant() {
        let both = |call: &str, result: &str| vec![verdict("t", "r", "tool_result", result, 2), verdict("t", "c", "tool_call", call, 1)];
        for (call, result, expected) in [("allow", "allow", "c"), ("block", "allow", "c"), ("allow", "halt", "r"), ("allow", "warn", "r")] {
            let (found, others) = by_id(both(call, result)).unwrap();
            assert_eq!((found.text("event_id"), others.len()), (expected, 1), "{call} {result}");
        }
        let error = by_id(vec![verdict("a", "e", "tool_call", "allow", 1), verdict("b", "e", "tool_call", "allow", 1)]).unwrap_err();
        assert!(error.to_string().contains("2 threads: \"a\", \"b\"; name the thread with --thread"), "{error}");
        assert!(by_id(Vec::new()).unwrap_err().to_string().contains("--since 7d"));
    }

    #[test]
    fn the_nearest_stop_goes_before_warnings_that_are_nearer() {
        let (found, others) = nearest(
            vec![
                verdict("t", "far", "tool_call", "block", 100),
                verdict("t", "near", "tool_call", "block", 60),
                verdict("t", "warned", "tool_result", "warn", 51),
            ],
            50,
        )
        .unwrap();
        assert_eq!((found.text("event_id"), others.len()), ("near", 1));
        assert_eq!(nearest(vec![verdict("t", "w", "tool_result", "warn", 9)], 0).unwrap().0.text("event_id"), "w");
        let allowed = nearest(vec![verdict("t", "e", "tool_call", "allow", 0)], 0).unwrap_err().to_string();
        assert!(allowed.starts_with("1 verdicts fit, and all of them allow") && allowed.contains("--within 1h"), "{allowed}");
        assert!(nearest(Vec::new(), 0).unwrap_err().to_string().starts_with("no verdict fits"));
    }
}
