//! The blast radius by tenant: nobody but a tenant itself pauses a rule for it, unless many tenants are hit at once.

use serde_json::Value;
use tollgate_abuse::{Abuse, AbuseState, Correlation, Detection, Ladder, Rule, Step};
use tollgate_core::decide::signal::{KeyKind, Point, PointKind, Request, SignalKind, VolumeKind};
use tollgate_core::engine::stage::{Progress, Stage};

use super::fixture::*;

/// Returns a rule that suspends at the third stop.
fn strict() -> Rule {
    Rule { ladder: Ladder { steps: vec![Step::Suspend(DAY)], decay_ms: DAY }, ..rule("three") }
}

fn id_of(tenant: &str, id: usize) -> String {
    format!("{tenant}/{id}")
}

fn of_tenant(kind: PointKind, tenant: &str, id: usize, offset: i64) -> Part {
    let hash = subject(KeyKind::Tenant, tenant).hash;
    part(Point { tenant: (!tenant.is_empty()).then_some(hash), ..point(kind, user(&id_of(tenant, id)), 0, offset, START) })
}

/// A bench, and the offset of its next event.
struct TenantBench(Bench, i64);

impl TenantBench {
    fn new(list: Vec<Rule>) -> Self {
        let mut bench = Bench::new(rules(list));
        bench.clock(START);
        Self(bench, 0)
    }

    fn signal(&mut self, kind: PointKind, tenant: &str, id: usize) {
        self.1 += 1;
        self.0.fold(&[of_tenant(kind, tenant, id, self.1)]);
    }

    fn offend(&mut self, tenant: &str, ids: std::ops::Range<usize>) {
        ids.for_each(|id| (0..3).for_each(|_| self.signal(PointKind::SafetyStop, tenant, id)));
    }

    fn start(&mut self, tenant: &str, ids: std::ops::Range<usize>) {
        ids.for_each(|id| self.signal(PointKind::ThreadStart, tenant, id));
    }

    /// Returns how many users of a tenant are suspended.
    fn suspended(&self, tenant: &str) -> usize {
        (0..200).filter(|id| self.0.suspended_until(&id_of(tenant, *id)).is_some()).count()
    }

    /// Returns the tenants of the pauses that alerts with an action tell of.
    fn told(&self, action: &str) -> Vec<Value> {
        self.0.alerts.iter().filter(|alert| alert["action"] == action).map(|alert| alert["group"].clone()).collect()
    }
}

fn group(tenant: &str) -> Value {
    let hash = subject(KeyKind::Tenant, tenant).hash.to_string();
    serde_json::json!({"tenant": hash.get(..8)})
}

#[test]
fn users_that_a_tenant_makes_up_pause_the_rule_for_that_tenant_alone() {
    let mut bench = TenantBench::new(vec![strict()]);
    // So many that the few whom others may suspend are not too many over all.
    ["one", "two", "three"].into_iter().for_each(|tenant| bench.start(tenant, 0..500));
    bench.offend("acme", 0..40);
    bench.offend("globex", 0..1);
    bench.offend("", 0..1);
    assert_eq!((bench.suspended("acme"), bench.suspended("globex"), bench.suspended("")), (20, 1, 1));
    assert_eq!(bench.told("enforcement_paused"), [group("acme")]);
    assert_eq!((bench.0.stage.paused().collect::<Vec<_>>(), &*bench.0.last.counts.paused_rules), (vec!["three"], &[0][..]));
    bench.offend("", 1..40);
    assert_eq!((bench.suspended(""), bench.told("enforcement_paused").pop()), (20, Some(serde_json::json!({}))), "a class of its own");
    let told = bench.0.request(&Request::Resume("three".to_owned()));
    assert_eq!(bench.told("enforcement_resumed"), bench.told("enforcement_paused"), "all pauses are over");
    let id = |action: &str| bench.0.alerts.iter().find(|alert| alert["action"] == action).map(|alert| alert["alert_id"].clone());
    assert_eq!((told.len(), bench.0.stage.paused().count(), id("enforcement_resumed")), (2, 0, id("enforcement_paused")));
    bench.offend("acme", 50..51);
    assert_eq!(bench.suspended("acme"), 21);
}

#[test]
fn a_change_that_hits_many_tenants_pauses_the_rule_for_all() {
    let mut bench = TenantBench::new(vec![strict()]);
    for n in 0..30 {
        bench.start(&format!("t{n}"), 0..10);
    }
    (0..30).for_each(|n| bench.offend(&format!("t{n}"), 0..2));
    let suspended: usize = (0..30).map(|n| bench.suspended(&format!("t{n}"))).sum();
    assert_eq!((suspended, bench.told("enforcement_paused")), (20, vec![serde_json::json!({})]), "21 are more than 2 % of 300");
    bench.offend("other", 0..1);
    assert_eq!(bench.suspended("other"), 0);
}

/// Or else a tenant could have everybody suspended whom a provider's change hits.
#[test]
fn a_flood_of_active_users_of_one_tenant_keeps_no_rule_from_pausing() {
    let mut bench = TenantBench::new(vec![strict()]);
    bench.start("flood", 0..5_000);
    bench.offend("acme", 0..40);
    assert_eq!((bench.suspended("acme"), bench.told("enforcement_paused")), (20, vec![group("acme")]));
    (0..30).for_each(|n| bench.offend(&format!("t{n}"), 0..1));
    let suspended: usize = (0..30).map(|n| bench.suspended(&format!("t{n}"))).sum();
    assert_eq!((suspended, bench.told("enforcement_paused").len()), (10, 2), "acme counts as ten, and the flood as 500 active users");
}

/// A deployment with one tenant is measured as one without tenants.
#[test]
fn one_tenant_is_measured_by_all_its_active_users() {
    let calls = Detection { signal: SignalKind::Volume(VolumeKind::Call), fields: Vec::new() };
    let sum = Rule { correlation: Correlation::ValueSum { gte: 1_000 }, detection: calls, id: "sum".to_owned(), ..strict() };
    for tenant in ["", "acme"] {
        let mut bench = TenantBench::new(vec![strict(), sum.clone()]);
        bench.start(tenant, 0..1_000);
        // Amounts name no tenant.
        let calls = |id| Part::Volume(VolumeKind::Call, user(&id_of(tenant, id)), 0, 1_000 + id as i64, START, 1);
        (1_000..2_000).for_each(|id| drop(bench.0.fold(&[calls(id)])));
        bench.1 = 10_000;
        bench.offend(tenant, 0..60);
        assert_eq!((bench.suspended(tenant), bench.0.stage.paused().count()), (40, 1), "2 % of 2,000");
    }
}

/// Whose tenant comes to be known later counts with that tenant from then on.
#[test]
fn a_tenant_may_be_named_later_than_the_user() {
    let calls = Detection { signal: SignalKind::Volume(VolumeKind::Call), fields: Vec::new() };
    let sum = Rule { correlation: Correlation::ValueSum { gte: 5 }, detection: calls, id: "sum".to_owned(), ..strict() };
    let mut bench = TenantBench::new(vec![sum]);
    bench.start("globex", 0..1);
    let call = |bench: &mut TenantBench, ids: std::ops::Range<usize>| {
        for id in ids {
            bench.1 += 1;
            bench.0.fold(&[Part::Volume(VolumeKind::Call, user(&id_of("acme", id)), 0, bench.1, START, 5)]);
        }
    };
    call(&mut bench, 0..15);
    bench.start("acme", 0..40);
    call(&mut bench, 15..40);
    assert_eq!((bench.suspended("acme"), bench.told("enforcement_paused")), (20, vec![group("acme")]));
}

/// What is counted by tenant is made anew from the state, wherever the worker dies.
#[test]
fn whoever_takes_the_partition_over_pauses_the_same_at_the_same_signal() {
    let mut log = vec![value_of(&[clock(0, 0, START)])];
    let mut add = |tenant: &str, ids: std::ops::Range<usize>| {
        for id in ids.flat_map(|id| [id; 3]) {
            log.push(value_of(&[of_tenant(PointKind::SafetyStop, tenant, id, log.len() as i64)]));
        }
    };
    add("acme", 0..23);
    add("", 0..22);
    (0..6).for_each(|n| add(&format!("t{n}"), 0..1));
    add("acme", 23..25);
    log.push(Request::Resume("three".to_owned()).to_value());
    let fold = |stage: &mut Abuse, at: usize| match stage.apply(&record(at as i64, LOG, &log[at]), &mut ()) {
        Progress::Done(folded) => folded,
        _ => panic!("it never asks"),
    };
    let mut straight = Abuse::new(rules(vec![strict()]), AbuseState::default());
    let truth: Vec<_> = (0..log.len()).map(|at| fold(&mut straight, at)).collect();
    let pauses = truth.iter().flat_map(|folded| &folded.alerts);
    let pauses = pauses.filter(|alert| String::from_utf8_lossy(&alert.value).contains("enforcement_paused")).count();
    assert_eq!((pauses, truth.last().unwrap().alerts.len()), (3, 3), "of a tenant, of those without a tenant, and of all");
    let (mut stage, mut written) = (Abuse::new(rules(vec![strict()]), AbuseState::default()), Written::default());
    for (at, expected) in truth.iter().enumerate() {
        assert_eq!(&fold(&mut stage, at), expected, "at {at}");
        stage = Abuse::new(rules(vec![strict()]), written.write(&mut stage).state());
    }
}
