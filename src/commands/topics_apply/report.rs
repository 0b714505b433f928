//! What is printed: a line for each topic, with what there is to do or what was done.

use serde::Serialize;
use serde_json::{Value, json};

use tollgate_config::topics::{Change, TopicPlan};

use super::carry_out::Trouble;
use crate::commands::shared::{Column, OutputArgs, Screen, Table, number, text};

/// What is known of every topic, and what was done to it.
#[derive(Debug)]
pub(super) struct Report {
    is_execution: bool,
    lines: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    key: &'static str,
    topic: String,
    status: &'static str,
    /// As they are now; 0 for a topic that is missing.
    partitions: u32,
    replication_factor: u32,
    /// What there is to do, or what was done.
    #[serde(serialize_with = "changes")]
    changes: Vec<Change>,
    /// What the brokers were asked to do and have not shown yet.
    #[serde(skip)]
    asked: Vec<Change>,
    refused: Vec<String>,
    notes: Vec<String>,
}

fn changes<S: serde::Serializer>(changes: &[Change], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(changes.iter().map(|change| -> Value {
        match change {
            Change::Create { partitions, replication_factor, settings } => {
                let settings: serde_json::Map<String, Value> =
                    settings.iter().map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str()))).collect();
                json!({"change": "create", "partitions": partitions, "replication_factor": replication_factor, "settings": settings})
            }
            Change::AddPartitions { found, wanted } => json!({"change": "add_partitions", "found": found, "wanted": wanted}),
            Change::Set { name, found, wanted } => json!({"change": "set", "setting": name, "found": found, "wanted": wanted}),
        }
    }))
}

const TO_DO: &[Column] = &[text("topic"), text("status"), number("partitions"), number("replicas"), text("to do"), text("key").wide()];
const DONE: &[Column] = &[text("topic"), text("status"), number("partitions"), number("replicas"), text("done"), text("key").wide()];

impl Report {
    pub(super) fn new(is_execution: bool) -> Self {
        Self { is_execution, lines: Vec::new() }
    }

    /// Takes the plans as they are now. What was done before stays, and what was asked for and is wanting no more was done.
    pub(super) fn take(&mut self, plans: &[TopicPlan<'_>]) {
        let done: Vec<Line> = std::mem::take(&mut self.lines);
        for plan in plans {
            let before = done.iter().find(|line| line.topic == plan.topic.name);
            let (mut changes, mut asked) = before.map_or_else(Default::default, |line| (line.changes.clone(), line.asked.clone()));
            if self.is_execution {
                changes.extend(asked.extract_if(.., |asked| !plan.changes.contains(asked)));
            } else {
                changes.clone_from(&plan.changes);
            }
            let (partitions, replication_factor) = plan.found.unwrap_or_default();
            self.lines.push(Line {
                key: plan.topic.spec.key,
                topic: plan.topic.name.to_owned(),
                status: status(plan, &changes, self.is_execution),
                partitions,
                replication_factor,
                changes,
                asked,
                refused: plan.refusals.iter().map(ToString::to_string).collect(),
                notes: plan.notes.clone(),
            });
        }
    }

    /// Notes what the brokers were asked to do: the changes of all topics but those that had trouble. Whether they did it shows at the next
    /// look.
    pub(super) fn asked(&mut self, plans: &[TopicPlan<'_>], troubles: &[Trouble]) {
        for (line, plan) in self.lines.iter_mut().zip(plans) {
            if !troubles.iter().any(|trouble| trouble.topic() == line.topic) {
                line.asked.clone_from(&plan.changes);
            }
        }
    }

    /// Prints a line for each topic.
    pub(super) fn print(&self, output: OutputArgs, screen: Screen) -> anyhow::Result<()> {
        output.print(screen, &self.lines, |_| self.table())
    }

    fn table(&self) -> Table {
        let mut table = Table::new(if self.is_execution { DONE } else { TO_DO });
        for line in &self.lines {
            let number = |number: u32| if number == 0 { "-".to_owned() } else { number.to_string() };
            let changes = line.changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            let (partitions, replicas) = (number(line.partitions), number(line.replication_factor));
            table.row(vec![line.topic.clone(), line.status.to_owned(), partitions, replicas, changes, line.key.to_owned()]);
        }
        table
    }

    /// Says for people what is refused, what is worth knowing, and what comes next.
    pub(super) fn summary(&self, plans: &[TopicPlan<'_>]) {
        for line in &self.lines {
            line.refused.iter().for_each(|refused| say!("tollgate: refused: {refused}"));
            line.notes.iter().for_each(|note| say!("tollgate: topic {}: {note}", line.topic));
        }
        let differing = plans.iter().filter(|plan| !plan.changes.is_empty()).count();
        let refused = plans.iter().filter(|plan| !plan.refusals.is_empty()).count();
        let changed = self.lines.iter().filter(|line| !line.changes.is_empty()).count();
        let total = self.lines.len();
        if refused > 0 {
            say!("topics: {total}, refused: {refused}; nothing was changed, and nothing is until that is mended");
        } else if self.is_execution && changed > 0 {
            say!("topics: {total}, created or changed: {changed}; all of them fit");
        } else if differing > 0 {
            say!("topics: {total}, to create or change: {differing}; nothing was changed, --execute does it");
        } else {
            say!("topics: {total}; all of them fit, there is nothing to do");
        }
    }
}

/// Returns one word for how a topic stands.
fn status(plan: &TopicPlan<'_>, changes: &[Change], is_execution: bool) -> &'static str {
    let is_created = changes.iter().any(|change| matches!(change, Change::Create { .. }));
    if !plan.refusals.is_empty() {
        "refused"
    } else if is_execution && is_created {
        "created"
    } else if is_execution && !changes.is_empty() {
        "changed"
    } else if plan.found.is_none() {
        "missing"
    } else if plan.fits() {
        "fits"
    } else {
        "differs"
    }
}
