//! Tests every expression of rules and panels against the list of metrics: names, labels and values of labels.

use std::collections::BTreeSet;

use promql_parser::label::{MatchOp, Matcher};
use promql_parser::parser::{AggregateExpr, Expr, VectorSelector, parse};
use promql_parser::util::{ExprVisitor, walk_expr};
use tollgate_monitoring::expressions::{expressions, with_variables};
use tollgate_monitoring::panels::rows;
use tollgate_monitoring::rules::{alerts, groups};
use tollgate_worker::metrics::{CATALOG, Kind, STAGED, values};

use super::support::{assert_none, catalog};

/// The labels that Prometheus gives to every series of a target. A namespace comes from Kubernetes.
const OF_TARGETS: [&str; 3] = ["namespace", "job", "instance"];
/// Series that Prometheus makes itself, with their labels.
const OF_PROMETHEUS: [(&str, &[&str]); 2] = [("up", &[]), ("ALERTS", &["alertname", "alertstate", "severity"])];

/// What an expression asks for, and what is wrong with it.
#[derive(Default)]
struct Asked {
    metrics: BTreeSet<String>,
    faults: Vec<String>,
    /// The metrics below each aggregation that is open, with its labels.
    open: Vec<(Vec<String>, BTreeSet<String>)>,
}

impl ExprVisitor for Asked {
    type Error = std::convert::Infallible;

    fn pre_visit(&mut self, expression: &Expr) -> Result<bool, Self::Error> {
        match expression {
            Expr::VectorSelector(selector) => self.selector(selector),
            Expr::MatrixSelector(matrix) => self.selector(&matrix.vs),
            Expr::Aggregate(AggregateExpr { modifier, .. }) => {
                let labels = modifier.as_ref().filter(|modifier| modifier.is_include()).map(|modifier| modifier.labels().labels.clone());
                self.open.push((labels.unwrap_or_default(), BTreeSet::new()));
            }
            _ => {}
        }
        Ok(true)
    }

    fn post_visit(&mut self, expression: &Expr) -> Result<bool, Self::Error> {
        if matches!(expression, Expr::Aggregate(_))
            && let Some((labels, known)) = self.open.pop()
        {
            self.faults
                .extend(labels.iter().filter(|label| !known.contains(*label)).map(|label| format!("nothing below has the label {label}")));
            if let Some((_, outer)) = self.open.last_mut() {
                outer.extend(labels);
            }
        }
        Ok(true)
    }
}

impl Asked {
    fn of(expression: &str) -> Self {
        let mut asked = Self::default();
        match parse(expression) {
            Ok(parsed) => _ = walk_expr(&mut asked, &parsed),
            Err(error) => asked.faults.push(error),
        }
        asked
    }

    fn selector(&mut self, selector: &VectorSelector) {
        let Some(name) = &selector.name else { return self.faults.push("a selector without a metric".to_owned()) };
        let Some(labels) = labels_of(name) else { return self.faults.push(format!("there is no metric {name}")) };
        self.metrics.insert(base(name).to_owned());
        let matchers = &selector.matchers;
        for matcher in matchers.matchers.iter().chain(matchers.or_matchers.iter().flatten()) {
            if !labels.contains(&matcher.name) {
                self.faults.push(format!("{name} has no label {}", matcher.name));
            }
            self.faults.extend(wrong_value(name, matcher));
        }
        if let Some((_, known)) = self.open.last_mut() {
            known.extend(labels);
        }
    }
}

/// Returns the name of a metric without what histograms add.
fn base(name: &str) -> &str {
    let is_histogram = |base: &&str| CATALOG.iter().any(|spec| spec.name == *base && matches!(spec.kind, Kind::Histogram(_)));
    let bases = ["_bucket", "_sum", "_count"].iter().filter_map(|suffix| name.strip_suffix(suffix));
    bases.into_iter().find(is_histogram).unwrap_or(name)
}

/// Returns the labels of a series, or `None` if nobody makes it.
fn labels_of(name: &str) -> Option<BTreeSet<String>> {
    let owned = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect::<BTreeSet<_>>();
    let mut labels = if let Some(spec) = catalog().find(|spec| spec.name == base(name)) {
        let is_histogram = matches!(spec.kind, Kind::Histogram(_));
        // A histogram has no series of its own name.
        if is_histogram == (base(name) == name) {
            return None;
        }
        let mut labels = owned(spec.labels);
        labels.extend(STAGED.contains(&spec.name).then(|| "stage".to_owned()));
        labels.extend(name.ends_with("_bucket").then(|| "le".to_owned()));
        labels
    } else if let Some((_, labels)) = OF_PROMETHEUS.iter().find(|(series, _)| *series == name) {
        owned(labels)
    } else {
        let recordings = groups().into_iter().flat_map(|group| group.recordings);
        let recording = recordings.into_iter().find(|recording| recording.name == name)?;
        // By custom a recorded name begins with its labels, so it is compared with them in a test of its own.
        result_labels(&recording.expression)
    };
    labels.extend(owned(&OF_TARGETS));
    Some(labels)
}

/// Returns the labels of the outermost aggregation on the left.
fn result_labels(expression: &str) -> BTreeSet<String> {
    let mut open = parse(expression).unwrap();
    loop {
        open = match open {
            Expr::Aggregate(aggregate) => {
                return aggregate.modifier.map(|modifier| modifier.labels().labels.iter().cloned().collect()).unwrap_or_default();
            }
            Expr::Binary(binary) if matches!(*binary.lhs, Expr::NumberLiteral(_)) => *binary.rhs,
            Expr::Binary(binary) => *binary.lhs,
            Expr::Paren(inner) => *inner.expr,
            _ => return BTreeSet::new(),
        };
    }
}

/// Returns what is wrong with the value that a matcher asks for.
fn wrong_value(name: &str, matcher: &Matcher) -> Option<String> {
    let label = matcher.name.as_str();
    if OF_TARGETS.contains(&label) || OF_PROMETHEUS.iter().any(|(series, _)| *series == name) {
        return None;
    }
    let asked: Vec<&str> = match &matcher.op {
        MatchOp::Equal | MatchOp::NotEqual => vec![&matcher.value],
        MatchOp::Re(_) | MatchOp::NotRe(_) => matcher.value.split('|').collect(),
    };
    if label == "le" {
        let bounds = CATALOG.iter().find(|spec| spec.name == base(name)).map(|spec| spec.kind);
        let Some(Kind::Histogram(bounds)) = bounds else { return Some(format!("{name} has no buckets")) };
        let is_bound = |value: &&&str| value.replace("[.]", ".").parse().is_ok_and(|asked: f64| bounds.contains(&asked));
        return asked.iter().find(|value| !is_bound(value)).map(|value| format!("{name} has no bucket {value}"));
    }
    let known = values(base(name), label);
    asked.iter().find(|value| !known.has(value)).map(|value| format!("{name} never has {label}={value:?}"))
}

#[test]
fn every_expression_asks_for_what_there_is() {
    let (mut offenders, mut seen) = (Vec::new(), 0);
    for (place, expression) in expressions() {
        seen += 1;
        let asked = Asked::of(&expression);
        offenders.extend(asked.faults.iter().map(|fault| format!("{place}: {fault}, in\n{expression}")));
        if asked.metrics.is_empty() && asked.faults.is_empty() {
            offenders.push(format!("{place}: asks for nothing"));
        }
    }
    assert!(seen > 80, "only {seen} expressions were found");
    assert_none("an expression asks for metrics, labels and values that the code has", &offenders);
}

#[test]
fn what_is_wrong_is_found() {
    for (expression, fault) in [
        ("rate(tollgate_verdict_total[5m])", "there is no metric tollgate_verdict_total"),
        ("tollgate_provider_duration_seconds", "there is no metric tollgate_provider_duration_seconds"),
        ("sum by (tenant) (tollgate_ready)", "nothing below has the label tenant"),
        ("sum by (code) (sum by (action) (tollgate_verdicts_total))", "nothing below has the label code"),
        ("tollgate_rebalances_total{kind=\"moved\"}", "tollgate_rebalances_total never has kind=\"moved\""),
        ("tollgate_verdicts_total{action=~\"block|deny\"}", "tollgate_verdicts_total never has action=\"deny\""),
        ("tollgate_event_to_verdict_seconds_bucket{le=\"3\"}", "tollgate_event_to_verdict_seconds_bucket has no bucket 3"),
        ("{job=\"x\"}", "a selector without a metric"),
    ] {
        let faults = Asked::of(expression).faults;
        assert_eq!(faults, [fault], "{expression}");
    }
    let of_no_label = Asked::of("tollgate_ready{partition=\"1\"}").faults;
    assert_eq!(of_no_label.first().map(String::as_str), Some("tollgate_ready has no label partition"));
    assert!(!Asked::of("sum by (").faults.is_empty());
    assert_eq!(Asked::of("sum by (le, provider) (rate(tollgate_provider_duration_seconds_bucket[5m]))").faults, [""; 0]);
}

#[test]
fn every_metric_is_on_the_dashboard() {
    let panels = rows().into_iter().flat_map(|row| row.panels).flat_map(|panel| panel.queries);
    let shown: BTreeSet<String> =
        panels.flat_map(|query| Asked::of(&with_variables(&tollgate_monitoring::dashboard::expression(&query))).metrics).collect();
    let offenders: Vec<_> = CATALOG.iter().map(|spec| spec.name).filter(|name| !shown.contains(*name)).map(str::to_owned).collect();
    assert_none("a metric is on a panel", &offenders);
}

/// Panels and alerts that are about both stages on purpose.
const OF_BOTH_STAGES: [&str; 6] = [
    "Faults",
    "TollgatePublishFailures",
    "TollgateRestoreFailing",
    "TollgateCommitsFailing",
    "TollgateMisplacedRecords",
    "TollgateMemberRestarts",
];

#[test]
fn the_stages_are_not_added_up_by_mistake() {
    let names_stage = |selector: &VectorSelector| selector.matchers.matchers.iter().any(|matcher| matcher.name == "stage");
    let mut seen = 0;
    let mut offenders = Vec::new();
    for (place, expression) in expressions() {
        let selectors = selectors(&expression);
        let staged: Vec<_> = selectors
            .iter()
            .filter(|selector| {
                let name = selector.name.as_deref().unwrap_or_default();
                // Only the stage that counts has this one.
                STAGED.contains(&base(name)) && base(name) != "tollgate_abuse_clock_lag_seconds"
            })
            .collect();
        seen += staged.len();
        if staged.iter().any(|selector| !names_stage(selector)) && !OF_BOTH_STAGES.iter().any(|name| place.contains(name)) {
            offenders.push(format!("{place}: {expression}"));
        }
    }
    assert!(seen > 30, "only {seen} selectors were found");
    assert_none("a series that both stages have is asked for with its stage", &offenders);
}

/// Returns the selectors of an expression.
fn selectors(expression: &str) -> Vec<VectorSelector> {
    #[derive(Default)]
    struct Found(Vec<VectorSelector>);
    impl ExprVisitor for Found {
        type Error = std::convert::Infallible;

        fn pre_visit(&mut self, expression: &Expr) -> Result<bool, Self::Error> {
            match expression {
                Expr::VectorSelector(selector) => self.0.push(selector.clone()),
                Expr::MatrixSelector(matrix) => self.0.push(matrix.vs.clone()),
                _ => {}
            }
            Ok(true)
        }
    }
    let mut found = Found::default();
    if let Ok(parsed) = parse(expression) {
        let _infallible = walk_expr(&mut found, &parsed);
    }
    found.0
}

/// Metrics that expressions of alerts use, and that are no reason for one.
const HELPERS: [&str; 2] = ["tollgate_build_info", "tollgate_events_consumed_total"];

/// The list of metrics says what to alert on, and there is an alert; and the other way round.
#[test]
fn what_is_to_be_alerted_on_has_an_alert() {
    let recordings = groups().into_iter().flat_map(|group| group.recordings).map(|recording| recording.expression);
    let expressions = alerts().into_iter().map(|alert| alert.expression).chain(recordings);
    let asked: BTreeSet<String> = expressions.flat_map(|expression| Asked::of(&expression).metrics).collect();
    // Dead letters are counted among the events too, in one series that is there from the first record on.
    let stands_for = |name: &str| if name == "tollgate_dead_letters_total" { "tollgate_events_consumed_total" } else { name }.to_owned();
    let offenders: Vec<_> = CATALOG
        .iter()
        .filter(|spec| spec.alert.is_some() != (asked.contains(&stands_for(spec.name)) && !HELPERS.contains(&spec.name)))
        .map(|spec| spec.name.to_owned())
        .collect();
    assert_none("a metric says when to alert if and only if it is in the expression of an alert", &offenders);
}

#[test]
fn recorded_names_begin_with_their_labels() {
    for recording in groups().into_iter().flat_map(|group| group.recordings) {
        let labels: Vec<String> = result_labels(&recording.expression).into_iter().collect();
        let (named, _) = recording.name.split_once(':').expect("labels, metric, operation");
        let mut named: Vec<String> =
            named.replace("decided_by", "decidedby").split('_').map(|label| label.replace("decidedby", "decided_by")).collect();
        named.sort();
        assert_eq!(named, labels, "{}", recording.name);
    }
}
