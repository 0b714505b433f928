//! The rules and the signals of the benchmark: users with a thread each, of whose turns three were cut off within an hour.

use tollgate_abuse::{Correlation, Detection, FieldTest, GroupBy, Ladder, Level, Mode, Operator, Rule, Step};
use tollgate_core::decide::signal::{Dimension, KeyKind, Point, PointKind, SignalKind, SubjectKey};
use tollgate_core::event::record::{Offset, Partition};
use tollgate_json::digest::Digest;

/// 2026-12-01.
const START_MS: i64 = 1_796_083_200_000;
const MINUTE_MS: i64 = 60_000;

/// Returns so many rules: three of the pack that look at users, and others that look at one value of a field each.
pub fn rules(count: usize) -> Vec<Rule> {
    let by_user = |id: &str, kind, correlation, timespan_ms| Rule {
        id: id.to_owned(),
        version: Digest::of(id.as_bytes()),
        level: Level::High,
        mode: Mode::Alert,
        detection: Detection { signal: SignalKind::Point(kind), fields: Vec::new() },
        correlation,
        group_by: GroupBy { kind: KeyKind::User, dimensions: Vec::new() },
        timespan_ms,
        ladder: Ladder { steps: vec![Step::Warn, Step::Suspend(15 * MINUTE_MS)], decay_ms: 24 * 60 * MINUTE_MS },
        exceptions: Vec::new(),
        suppress_ms: timespan_ms,
    };
    let probing = Correlation::ValueCount { field: Dimension::Tool, gte: 4 };
    let mut rules = vec![
        by_user("safety-stop-user", PointKind::SafetyStop, Correlation::EventCount { gte: 5 }, 60 * MINUTE_MS),
        by_user("safety-stop-user-day", PointKind::SafetyStop, Correlation::EventCount { gte: 15 }, 24 * 60 * MINUTE_MS),
        by_user("denied-tool-probing", PointKind::Denial, probing, 15 * MINUTE_MS),
    ];
    for number in rules.len()..count {
        let values = vec![format!("provider-{number}")];
        let fields = vec![FieldTest { dimension: Dimension::Provider, operator: Operator::Equals, values }];
        let mut rule = by_user(&format!("provider-{number}"), PointKind::SafetyStop, Correlation::EventCount { gte: 5 }, MINUTE_MS);
        rule.detection.fields = fields;
        rules.push(rule);
    }
    rules
}

/// Signals of users in an order that looks random.
pub struct Traffic {
    users: Vec<Digest>,
    hot: u64,
    made: usize,
    random: u64,
}

impl Traffic {
    pub fn new(subjects: usize, hot: u64) -> Self {
        let users = (0..subjects).map(|user| Digest::of(&user.to_be_bytes())).collect();
        Self { users, hot, made: 0, random: 42 }
    }

    /// Returns the offset behind the last signal.
    pub fn offset(&self) -> i64 {
        self.made as i64
    }

    pub fn next(&mut self, count: usize) -> Vec<Point<'static>> {
        (0..count).map(|_| self.point()).collect()
    }

    fn point(&mut self) -> Point<'static> {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let subjects = self.users.len();
        // A step that shares no factor with the number of subjects comes to each of them in turn, far apart.
        let user = if (self.random >> 33) % 100 < self.hot { 0 } else { self.made * 387_420_489 % subjects };
        let time_ms = START_MS + (self.made as i64 * 40 * MINUTE_MS) / (3 * subjects as i64) + ((self.random >> 50) % 1_000) as i64;
        self.made += 1;
        let hash = self.users[user];
        Point {
            kind: PointKind::SafetyStop,
            subject: SubjectKey { kind: KeyKind::User, hash },
            source: Partition(0),
            offset: Offset(self.made as i64),
            time_ms,
            thread_id: format!("{user:08x}-4a5b-4c6d-8e7f-0123456789ab").into(),
            event_id: format!("{:08x}-1a2b-4c3d-9e8f-{user:012x}", self.made).into(),
            user: Some(hash),
            tenant: Some(self.users[user % 1_000]),
            agent: None,
            thread: Some(self.users[(user + 1) % subjects]),
            args_hash: None,
            tool: None,
            code: None,
            category: Some("safety".into()),
            stage: Some("output".into()),
            provider: Some("azure_openai".into()),
            detector: Some("openai_compatible_content_filter".into()),
        }
    }
}
