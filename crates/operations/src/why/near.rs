//! Which entry of a passport's lists a denied call comes nearest to. The call is examined again under the passport that the verdict names.

use std::sync::Arc;

use tollgate_config::settings::Settings;
use tollgate_core::decide::controls::{Control, decode as decode_control};
use tollgate_core::event::decode::{Body, decode};
use tollgate_core::event::record::{OwnedRecord, Partition};
use tollgate_json::Parser;
use tollgate_passport::{Call, Outcome, Passport, Report, examine};

use super::controls::ControlRecords;
use super::pages::Explained;

/// The sentences of an examination, which hold words of the passport alone.
#[derive(Default)]
struct Nearest(Vec<String>);

impl Report for Nearest {
    fn outcome(&mut self, _: &'static str, _: Outcome) {}

    fn near(&mut self, nearest: &dyn Fn() -> Option<String>) {
        self.0.extend(nearest());
    }
}

/// Adds the nearest entry to the first reason of a verdict that a passport's list gave.
pub(super) fn explain(reasons: &mut [Explained], settings: &Settings, records: &ControlRecords, record: Option<&OwnedRecord>) {
    const CODES: [&str; 3] = ["oap.command_not_allowed", "oap.mcp_tool_not_allowed", "oap.mcp_server_not_allowed"];
    let Some(record) = record else { return };
    let Some(reason) = reasons.iter_mut().find(|reason| CODES.contains(&reason.code.as_str())) else { return };
    let Some(passport) = reason.passport_digest.as_deref().and_then(|digest| passport(settings, records, digest)) else { return };
    reason.nearest = nearest(settings, &passport, record);
}

/// Returns the passport with this digest: that of a configured file, or that of an agent's control.
fn passport(settings: &Settings, records: &ControlRecords, digest: &str) -> Option<Arc<Passport>> {
    let of_agent = |(_, key, value): (Partition, &[u8], &[u8])| match decode_control(Some(key), Some(value)) {
        Ok(Control::Passport(_, Some(Ok(passport)))) => Some(passport),
        _ => None,
    };
    let mut known = settings.policy.passports().cloned().chain(records.all().filter_map(of_agent));
    known.find(|passport| format!("sha256:{}", passport.digest) == digest)
}

/// Examines the call of an event again.
fn nearest(settings: &Settings, passport: &Passport, record: &OwnedRecord) -> Option<String> {
    let (terms, mut parser) = (settings.policy.passport_terms()?, Parser::new());
    record.with_borrowed(|record| {
        let event = decode(record, &mut parser, usize::MAX).ok()?;
        let Body::ToolCall(call) = &event.body else { return None };
        let call = Call { tool_name: &call.tool_name, input: &call.input, time_ms: event.time_ms, earliest_ms: event.time_ms };
        let mut nearest = Nearest::default();
        examine(Some(Ok(passport)), &terms, &call, &mut nearest);
        (!nearest.0.is_empty()).then(|| nearest.0.join("; "))
    })
}
