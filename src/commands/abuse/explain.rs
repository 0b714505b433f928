//! What is known of a subject in sentences: is it suspended, why, until when, and what can be done about it.

use tollgate_abuse::{AbuseRules, Correlation, Rule};
use tollgate_core::decide::controls::{AbuseSuspension, HoldsUntil, SubjectState};
use tollgate_core::decide::signal::SubjectKey;
use tollgate_core::settings::duration_text;

use super::alerts::Alert;
use super::known::SubjectReport;
use crate::commands::shared::{Hints, ago, shown, stamp};

/// How many events a sentence names.
const EVIDENCE_MAX: usize = 5;
/// What is said where the stage has not told what it has counted.
pub(super) const UNKNOWN: &str = "the counts are unknown, because the abuse stage has written no checkpoint yet";

/// Returns the verdict on a subject for people: sentences, the weightiest first, each on a line. What topics say cannot begin a line.
pub(super) fn verdict(known: &SubjectReport, rules: &AbuseRules, hints: &Hints) -> String {
    let mut sentences = Vec::new();
    for (key, said) in &known.switches {
        if let Some(operators) = &said.operators {
            sentences.push(by_operator(*key, operators, known.now_ms, hints));
        }
        if let Some(machines) = &said.machines {
            let is_exempt = said.is_exempt(known.now_ms);
            sentences.push(by_rule(known, machines, (rules, is_exempt), hints));
        }
    }
    for (key, code) in known.switches.iter().filter_map(|(key, said)| Some((key, said.unreadable?))) {
        let resume = hints.command(&format!("control resume --kind {} --hash {}", key.kind.as_str(), key.hash));
        sentences.push(format!(
            "suspended without end, unless an operator exempts it: the abuse stage's control record cannot be read ({}); take it back with: {resume}",
            code.as_str()
        ));
    }
    if sentences.is_empty() {
        sentences.push(not_suspended(known));
    }
    sentences.iter().map(|sentence| shown(sentence)).collect::<Vec<_>>().join("\n")
}

fn by_operator(key: SubjectKey, said: &SubjectState, now_ms: i64, hints: &Hints) -> String {
    let (state, holds) = match said {
        SubjectState::Suspended(holds) => ("suspended", holds),
        SubjectState::Exempt(holds) => ("exempt from suspensions by rules", holds),
    };
    let HoldsUntil { reason, until_ms } = holds;
    let until = until_ms.map(|until_ms| format!(" until {} ({})", stamp(until_ms), ago(until_ms, now_ms))).unwrap_or_default();
    let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let is_over = if holds.is_over(Some(now_ms)) { "; that is over" } else { "" };
    let (kind, hash) = (key.kind.as_str(), key.hash);
    let resume = hints.command(&format!("control resume --kind {kind} --hash {hash}"));
    format!("{state} by an operator{until}{reason}{is_over}; take it back with: {resume}")
}

fn by_rule(known: &SubjectReport, said: &AbuseSuspension, (rules, is_exempt): (&AbuseRules, bool), hints: &Hints) -> String {
    let AbuseSuspension { until_ms, rule, step, alert_id } = said;
    let (until, away) = (stamp(*until_ms), ago(*until_ms, known.now_ms));
    if *until_ms <= known.now_ms {
        return format!(
            "not suspended any more: the suspension by rule {rule} was over at {until} ({away}); its record goes once the events reach that time"
        );
    }
    let found = rules.rules.iter().find(|found| found.id == *rule);
    let steps = found.map(|found| found.ladder.steps.len()).filter(|steps| *steps > 0);
    let step = match (step, steps) {
        (Some(step), Some(steps)) => format!(", step {step} of {steps}"),
        (Some(step), None) => format!(", step {step}"),
        (None, _) => String::new(),
    };
    let because = known.alert(alert_id.as_deref()).map(|alert| format!(", because of {}", because(alert, found))).unwrap_or_default();
    if is_exempt {
        return format!("not suspended: rule {rule} would suspend it until {until} ({away}){step}{because}, but an operator exempts it");
    }
    let pardon = hints.command(&format!("abuse pardon {}", known.subject.name()));
    format!("suspended until {until} ({away}) by rule {rule}{step}{because}; pardon it with: {pardon}")
}

/// Returns what an alert is about: how much of what, within how long, and the events that show it.
pub(super) fn because(alert: &Alert, rule: Option<&Rule>) -> String {
    let events: Vec<_> = alert
        .evidence()
        .take(EVIDENCE_MAX)
        .map(|signal| {
            let text = |field: &str| signal.get(field).and_then(serde_json::Value::as_str).unwrap_or("?");
            format!("thread {} event {}", text("thread_id"), text("event_id"))
        })
        .collect();
    let events = if events.is_empty() { String::new() } else { format!(": {}", events.join(", ")) };
    let what = rule.and_then(|rule| what(alert, rule));
    let what = what.or_else(|| Some(alert.text("message").into_owned()).filter(|message| !message.is_empty()));
    format!("{}{events}", what.unwrap_or_else(|| "what its alert says".to_owned()))
}

/// Returns how much of what was found within how long; `None` for a rule whose finding is no count.
fn what(alert: &Alert, rule: &Rule) -> Option<String> {
    let count = alert.number("count")?;
    let signal = plural(rule.detection.signal.as_str(), count);
    let within = duration_text(rule.timespan_ms);
    match &rule.correlation {
        Correlation::EventCount { .. } | Correlation::ValueSum { .. } => Some(format!("{count} {signal} within {within}")),
        Correlation::ValueCount { field, .. } => {
            let signals = plural(rule.detection.signal.as_str(), 2);
            Some(format!("{signals} with {count} different values of {} within {within}", field.as_str()))
        }
        Correlation::Ratio(_) | Correlation::Baseline(_) => None,
    }
}

/// Returns the name of a signal for people: `safety stops`.
fn plural(signal: &str, count: u64) -> String {
    let signal = signal.replace('_', " ");
    if count == 1 || signal.ends_with('s') { signal } else { format!("{signal}s") }
}

fn not_suspended(known: &SubjectReport) -> String {
    let kind = known.subject.kind();
    let counted = known.counts.as_ref().map(|counts| counts.iter().map(|counts| counts.view.counters.len()).sum::<usize>());
    match known.alerts.first() {
        Some(last) => {
            let when = last.time_ms.map(|time_ms| format!(", {}", ago(time_ms, known.now_ms))).unwrap_or_default();
            format!("not suspended; {} alerts, the last by rule {}{when}", known.alerts.len(), last.text("rule"))
        }
        None if counted.is_none() => {
            format!("not suspended; no alert of this {kind}; {UNKNOWN}")
        }
        None if counted > Some(0) => format!("not suspended; no alert, counted by {} rules", counted.unwrap_or_default()),
        None => format!("nothing is known of this {kind}: no control, no alert, nothing counted"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_core::decide::signal::KeyKind;
    use tollgate_core::event::record::Partition;
    use tollgate_json::digest::Digest;

    use super::super::switches::Switches;
    use super::*;
    use crate::commands::shared::Resolved;
    use tollgate_config::load;

    fn said(known: &SubjectReport, rules: &AbuseRules) -> String {
        verdict(known, rules, &Hints::default())
    }

    fn known(switches: Switches) -> SubjectReport {
        let key = SubjectKey { kind: KeyKind::User, hash: Digest::of(b"x") };
        let value = json!({"alert_id": "a1", "rule": "safety-stop-user", "count": 5, "message": "m",
            "evidence": [{"thread_id": "t1", "event_id": "e1"}, {"thread_id": "t2", "event_id": "e2"}]});
        let (name, value) = (key.to_string(), value.to_string());
        let alert = Alert::read((Partition(0), 0), Some(0), Some(name.as_bytes()), Some(value.as_bytes())).unwrap();
        let subject = Resolved { keys: vec![key], is_hashed: false };
        SubjectReport { subject, switches: vec![(key, switches)], alerts: vec![alert], counts: Some(Vec::new()), now_ms: 60_000 }
    }

    #[test]
    fn a_suspension_by_a_rule_says_why_until_when_and_how_it_ends() {
        let rules = load(None, []).unwrap().abuse.rules;
        let suspended =
            |until_ms| AbuseSuspension { until_ms, rule: "safety-stop-user".to_owned(), step: Some(2), alert_id: Some("a1".to_owned()) };
        let sentence = said(&known(Switches { machines: Some(suspended(960_000)), ..Switches::default() }), &rules);
        let name = SubjectKey { kind: KeyKind::User, hash: Digest::of(b"x") };
        let expected = format!(
            "suspended until 1970-01-01T00:16:00.000Z (in 15 min) by rule safety-stop-user, step 2 of 5, because of 5 safety stops within 1h: \
             thread t1 event e1, thread t2 event e2; pardon it with: tollgate abuse pardon {name}"
        );
        assert_eq!(sentence, expected);
        let over = said(&known(Switches { machines: Some(suspended(60_000)), ..Switches::default() }), &rules);
        assert!(over.starts_with("not suspended any more: the suspension by rule safety-stop-user was over at"), "{over}");
        let exempt = Some(SubjectState::Exempt(HoldsUntil::default()));
        let both = said(&known(Switches { operators: exempt, machines: Some(suspended(960_000)), unreadable: None }), &rules);
        assert!(
            both.starts_with("exempt from suspensions by rules by an operator; take it back")
                && both.contains("but an operator exempts it"),
            "{both}"
        );
    }

    #[test]
    fn who_is_not_suspended_has_alerts_or_nothing() {
        let rules = AbuseRules::default();
        let mut known = known(Switches::default());
        known.switches.clear();
        assert_eq!(said(&known, &rules), "not suspended; 1 alerts, the last by rule safety-stop-user, 1 min ago");
        known.alerts.clear();
        assert_eq!(said(&known, &rules), "nothing is known of this user: no control, no alert, nothing counted");
        known.counts = None;
        assert_eq!(
            said(&known, &rules),
            "not suspended; no alert of this user; the counts are unknown, because the abuse stage has written no checkpoint yet"
        );
    }

    #[test]
    fn text_of_a_topic_begins_no_line_and_steers_no_terminal() {
        let machines = AbuseSuspension { until_ms: 960_000, rule: "r\n\u{1b}[2Jnot suspended".to_owned(), step: None, alert_id: None };
        let holds = HoldsUntil { reason: Some("x\nexempt\u{9b}".to_owned()), until_ms: None };
        let operators = Some(SubjectState::Suspended(holds));
        let sentences = said(&known(Switches { operators, machines: Some(machines), unreadable: None }), &AbuseRules::default());
        assert_eq!(sentences.lines().count(), 2, "{sentences}");
        assert!(!sentences.contains(|letter: char| letter.is_control() && letter != '\n'), "{sentences}");
    }
}
