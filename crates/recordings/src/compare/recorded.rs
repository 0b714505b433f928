//! The verdicts that were really published: read from a capture of the decisions topic, or from verdicts as JSONL.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Deserialize;
use tollgate_core::decide::ruling::{Action, DecidedBy};
use tollgate_json::digest::Fingerprint;

use crate::{Format, Input, Line, Reader, read_line};

use super::flip::Side;

/// How many bytes a verdict may have.
const VERDICT_BYTES_MAX: usize = 1 << 20;

/// The verdicts that were published, by their id. Of several copies the first counts.
#[derive(Debug, Default)]
pub struct Recorded {
    verdicts: FxHashMap<[u8; 32], u32>,
    /// What verdicts say. There are few of these, and many verdicts.
    sides: Vec<Side>,
    /// How many verdicts were published under each policy version.
    pub policies: BTreeMap<String, u64>,
    /// The numbers of lines that hold no verdict.
    pub faults: Vec<u64>,
    /// How many records of their topic are missing.
    pub missing: u64,
}

/// The members of a verdict that are compared.
#[derive(Deserialize)]
struct Published<'v> {
    verdict_id: &'v str,
    action: &'v str,
    #[serde(borrow)]
    code: Cow<'v, str>,
    decided_by: &'v str,
    #[serde(borrow)]
    policy_version: Cow<'v, str>,
}

impl Recorded {
    /// Reads every verdict.
    ///
    /// # Errors
    /// The bytes cannot be read.
    pub fn read(mut input: Input) -> anyhow::Result<Self> {
        let (mut recorded, mut line) = (Self::default(), Vec::new());
        let (mut reader, mut places) = (Reader::new(Format::Auto), FxHashMap::default());
        let bytes_max = reader.line_bytes_max(VERDICT_BYTES_MAX);
        for number in 1_u64.. {
            match read_line(&mut input, &mut line, bytes_max)? {
                Line::End => break,
                Line::Whole if line.trim_ascii().is_empty() => continue,
                Line::Whole => {}
                Line::TooLong => {
                    recorded.faults.push(number);
                    continue;
                }
            }
            let captured = reader.read(&line).ok();
            let read = captured.as_ref().and_then(|captured| published(captured.value.as_deref()?));
            match read {
                Some((id, side, policy)) => recorded.add(id, side, policy, &mut places),
                None => recorded.faults.push(number),
            }
        }
        Ok(recorded)
    }

    fn add(&mut self, id: [u8; 32], side: Side, policy: String, places: &mut FxHashMap<Side, u32>) {
        let next = u32::try_from(self.sides.len()).unwrap_or(u32::MAX);
        let place = *places.entry(side).or_insert_with_key(|side| {
            self.sides.push(side.clone());
            next
        });
        if let std::collections::hash_map::Entry::Vacant(vacant) = self.verdicts.entry(id) {
            vacant.insert(place);
            *self.policies.entry(policy).or_default() += 1;
        }
    }

    /// Returns what was published under this id.
    pub(super) fn get(&self, id: Fingerprint) -> Option<Side> {
        let place = self.verdicts.get(&id.hex())?;
        self.sides.get(usize::try_from(*place).ok()?).cloned()
    }

    /// Returns whether no verdict was published.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.verdicts.is_empty()
    }
}

/// Returns the id, what it says and the policy of a published verdict; `None` if this is none.
fn published(value: &[u8]) -> Option<([u8; 32], Side, String)> {
    let Published { verdict_id, action, code, decided_by, policy_version } = serde_json::from_slice(value).ok()?;
    let side = Side {
        action: Action::ALL.iter().copied().find(|known| known.as_str() == action)?,
        code: Cow::Owned(code.into_owned()),
        decided_by: DecidedBy::ALL.iter().copied().find(|known| known.as_str() == decided_by)?,
    };
    Some((verdict_id.as_bytes().try_into().ok()?, side, policy_version.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;
    use tollgate_core::decide::evaluate::verdict::verdict_id;

    #[test]
    fn the_first_copy_of_a_verdict_counts() {
        let verdict = |event: &str, code: &str, policy: &str| {
            let id = verdict_id("t", event);
            format!(
                r#"{{"verdict_id":"{id}","event_id":"{event}","type":"tool_call","action":"block","code":"{code}","decided_by":"loop","policy_version":"{policy}"}}"#
            )
        };
        let envelope = serde_json::json!({"topic": "d", "partition": 0, "offset": 3, "timestamp": 1, "key": "t", "headers": [],
            "value": verdict("b", "second", "p2")});
        let lines = [verdict("a", "first", "p1"), verdict("a", "later", "p2"), envelope.to_string(), "{}".to_owned(), "no JSON".to_owned()];
        let input: Input = BufReader::new(Box::new(std::io::Cursor::new(lines.join("\n").into_bytes())));
        let recorded = Recorded::read(input).unwrap();
        let code = |event| recorded.get(verdict_id("t", event)).map(|side| side.code.into_owned());
        assert_eq!((code("a"), code("b"), code("c")), (Some("first".to_owned()), Some("second".to_owned()), None));
        assert_eq!((recorded.verdicts.len(), recorded.faults, recorded.policies["p1"]), (2, vec![4, 5], 1));
    }
}
