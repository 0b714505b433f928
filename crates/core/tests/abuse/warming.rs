//! Rules that are new to a partition: they are shown the log, while the others go on.

use std::sync::Arc;

use tollgate_core::abuse::{Abuse, AbuseState, Mode, Rule, Warming};
use tollgate_core::checkpoint::{Restore, Restored};
use tollgate_core::processor::PartitionProcessor;
use tollgate_core::record::Offset;

use crate::fixture::*;

const OWNER: &str = "tollgate-abuse/tollgate.signals";

/// A log of one user with four signals, and the state of a worker that has folded it with some rules.
struct Past {
    log: Vec<Vec<u8>>,
    state: Vec<(String, Option<Vec<u8>>)>,
}

impl Past {
    fn with(rules_then: Vec<Rule>) -> Self {
        let mut log = vec![value_of(&[clock(0, 0, START)])];
        log.extend((0..4).map(|n| value_of(&[part(stop("a", n, START + n)), clock(0, n + 1, START + n)])));
        let mut past = Self { log, state: Vec::new() };
        let mut processor = PartitionProcessor::new(PARTITION, Abuse::new(rules(rules_then), AbuseState::default()));
        for (value, offset) in past.log.iter().zip(0..) {
            processor.apply(&record(offset, LOG, value), &mut ()).unwrap();
            processor.published(Offset(offset), 0).unwrap();
        }
        past.write(&mut processor);
        past
    }

    fn write(&mut self, processor: &mut PartitionProcessor<Abuse>) {
        processor.freeze(OWNER);
        let checkpoint = processor.take_checkpoint().unwrap();
        self.state.extend(checkpoint.records.iter().map(|record| (record.key.clone(), record.value.clone())));
        processor.checkpoint_written();
    }

    fn restored(&self) -> Restored<AbuseState> {
        let mut restore = Restore::<AbuseState>::default();
        for ((key, value), offset) in self.state.iter().zip(0..) {
            restore.take(Offset(offset), Some(key.as_bytes()), value.as_deref());
        }
        restore.finish(OWNER, ()).unwrap().unwrap()
    }

    fn restore(&self, rules_now: Vec<Rule>) -> PartitionProcessor<Abuse> {
        let restored = self.restored();
        PartitionProcessor::restored(PARTITION, Abuse::new(rules(rules_now), restored.state), restored.next)
    }
}

fn five() -> Rule {
    let correlation = tollgate_core::abuse::Correlation::EventCount { gte: 5 };
    Rule { correlation, mode: Mode::Alert, ..rule("five") }
}

fn alerts(stage: &mut Abuse, offset: i64, value: &[u8]) -> usize {
    stage.fold(&record(offset, LOG, value), &tollgate_core::signal::read(Some(value)).unwrap()).alerts.len()
}

#[test]
fn a_new_rule_is_warming_where_there_is_state_and_not_where_there_is_none() {
    assert!(!AbuseState::default().has_new(&rules(vec![five()])));
    assert!(Abuse::new(rules(vec![five()]), AbuseState::default()).warming().is_empty());
    let mut processor = Past::with(vec![rule("three")]).restore(vec![rule("three"), five()]);
    let warming = processor.stage().warming();
    assert_eq!(warming, [Warming { rule: "five".to_owned(), back_ms: HOUR + 5 * MINUTE }]);
    // It counts nothing of what is applied, or it would count some of it twice.
    let value = value_of(&(10..40).map(|offset| part(stop("b", offset, START))).collect::<Vec<_>>());
    processor.apply(&record(5, LOG, &value), &mut ()).unwrap();
    assert_eq!(processor.stage().warming().len(), 1);
}

#[test]
fn a_state_says_which_rules_would_be_warming() {
    let past = Past::with(vec![rule("three")]);
    let changed = Rule { suppress_ms: 1, ..rule("three") };
    for now in [vec![], vec![rule("three")], vec![five()], vec![rule("three"), five()], vec![changed]] {
        let restored = past.restored().state;
        let has_new = restored.has_new(&rules(now.clone()));
        let mut stage = Abuse::new(rules(now.clone()), restored);
        assert_eq!(has_new, !stage.warming().is_empty(), "{now:?}");
        // One that was interrupted begins anew, and one that has ended does not.
        let unfinished = Abuse::new(rules(now.clone()), past.restored().state).into_state();
        assert_eq!(unfinished.has_new(&rules(now.clone())), has_new);
        stage.warmed();
        assert!(!stage.into_state().has_new(&rules(now)));
    }
}

#[test]
fn a_rule_that_was_shown_the_log_knows_what_it_would_know() {
    let past = Past::with(vec![rule("three")]);
    let next = value_of(&[part(stop("a", 9, START + 9))]);
    let mut stage = take_stage(&past, vec![rule("three"), five()]);
    for (value, offset) in past.log.iter().zip(0..) {
        stage.warm(&record(offset, LOG, value));
        // A record that a worker wrote twice is there twice.
        stage.warm(&record(offset, LOG, value));
    }
    stage.warmed();
    assert!(stage.warming().is_empty());
    assert_eq!(alerts(&mut stage, 5, &next), 1, "the fifth");
    let mut cold = take_stage(&past, vec![rule("three"), five()]);
    cold.warmed();
    assert_eq!(alerts(&mut cold, 5, &next), 0, "it was shown nothing");
}

fn take_stage(past: &Past, rules_now: Vec<Rule>) -> Abuse {
    let processor = past.restore(rules_now.clone());
    let next = processor.next();
    assert_eq!(next, Offset(5));
    let mut restore = Restore::<AbuseState>::default();
    for ((key, value), offset) in past.state.iter().zip(0..) {
        restore.take(Offset(offset), Some(key.as_bytes()), value.as_deref());
    }
    Abuse::new(rules(rules_now), restore.finish(OWNER, ()).unwrap().unwrap().state)
}

/// The stage that was shown the log is not the one that goes on, and what waits for the clock goes from one to the other.
#[test]
fn what_is_due_is_done_by_a_stage_that_is_made_of_another_ones_state() {
    let past = Past::with(vec![rule("three")]);
    let mut shown = take_stage(&past, vec![rule("three"), five()]);
    past.log.iter().zip(0..).for_each(|(value, offset)| shown.warm(&record(offset, LOG, value)));
    shown.warmed();
    let mut stage = Abuse::new(Arc::clone(shown.rules()), shown.into_state());
    let value = value_of(&[clock(0, 5, START + 30 * DAY)]);
    let folded = stage.fold(&record(5, LOG + 30 * DAY, &value), &tollgate_core::signal::read(Some(&value)).unwrap());
    assert_eq!(folded.alerts.len(), 1, "the ladder of the rule that has fired ends");
    assert_eq!(stage.subjects(), 0, "and its subject is forgotten");
}

/// Whoever dies in the middle of it begins it anew, and counts nothing twice.
#[test]
fn a_warming_that_did_not_end_begins_anew() {
    let mut past = Past::with(vec![rule("three")]);
    let mut stage = take_stage(&past, vec![rule("three"), five()]);
    past.log.iter().zip(0..).for_each(|(value, offset)| stage.warm(&record(offset, LOG, value)));
    let value = value_of(&[clock(0, 5, START + 5)]);
    let mut processor = PartitionProcessor::restored(PARTITION, stage, Offset(5));
    processor.apply(&record(5, LOG, &value), &mut ()).unwrap();
    processor.published(Offset(5), 0).unwrap();
    past.write(&mut processor);
    let again = past.restore(vec![rule("three"), five()]);
    assert_eq!(again.stage().warming().len(), 1);
    let mut restore = Restore::<AbuseState>::default();
    for ((key, value), offset) in past.state.iter().zip(0..) {
        restore.take(Offset(offset), Some(key.as_bytes()), value.as_deref());
    }
    let state = restore.finish(OWNER, ()).unwrap().unwrap().state;
    let mut stage = Abuse::new(Arc::clone(again.stage().rules()), state);
    past.log.iter().zip(0..).for_each(|(value, offset)| stage.warm(&record(offset, LOG, value)));
    stage.warmed();
    assert_eq!(alerts(&mut stage, 6, &value_of(&[part(stop("b", 20, START))])), 0);
    assert_eq!(alerts(&mut stage, 7, &value_of(&[part(stop("a", 21, START))])), 1, "four of the log and this one");
}
