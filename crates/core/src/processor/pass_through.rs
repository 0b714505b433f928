//! A constant verdict in place of a decision: what the rest of a worker costs.

use crate::record::Record;

use super::{Lane, VerdictBuffer};

/// What stands for the version of a policy where there is none.
pub const PASS_THROUGH: &str = "pass-through";

/// A verdict on a tool call, of the size that verdicts have, which names nobody: whoever awaits a verdict on an event does not find it.
const VERDICT: &str = concat!(
    r#"{"verdict_id":"00000000000000000000000000000000","event_id":"","type":"tool_call","thread_id":"","turn_id":"","tool_call_id":"","#,
    r#""tool_name":"","action":"allow","allows_execution":true,"should_halt":false,"code":"pass_through","message":"","decided_by":"none","#,
    r#""reasons":[],"count":0,"signature":{"tool_name":"","args_hash":"0000000000000000000000000000000000000000000000000000000000000000"},"#,
    r#""policy_version":"pass-through"}"#,
);

impl Lane {
    /// Lets one record through without a look at its value, and writes the constant verdict into `out`: under the record's key, or its
    /// coordinates if it has none, and named after its coordinates. Says whether there is a verdict: there is none on a record that the
    /// state knows already.
    pub fn pass_through(&mut self, record: &Record<'_>, out: &mut VerdictBuffer) -> bool {
        let is_new = self.advance(record);
        if is_new {
            let coordinates = record.coordinates();
            let key = record.key.map(String::from_utf8_lossy).filter(|key| !key.is_empty());
            out.address(key.as_deref().unwrap_or(&coordinates), &coordinates);
            out.json.extend_from_slice(VERDICT.as_bytes());
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_verdict_has_a_typical_size_and_allows_nobody_by_name() {
        let verdict: Value = serde_json::from_str(VERDICT).unwrap();
        assert!((400..=450).contains(&VERDICT.len()), "{} bytes", VERDICT.len());
        assert_eq!((&verdict["action"], &verdict["policy_version"]), (&json!("allow"), &json!(PASS_THROUGH)));
        assert_eq!((&verdict["thread_id"], &verdict["event_id"]), (&json!(""), &json!("")));
    }
}
