//! What a worker is to do, and which topics and rights it needs for that.

use crate::kafka::{Right, StageTopics};
use tollgate_config::settings::{KafkaSettings, Settings};
use tollgate_config::topics::{Needed, Party, Topic, TopicRole};

/// What a worker is to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each says one thing, and any of them may be asked for")]
pub struct Needs {
    /// It decides: it needs every topic that is always needed.
    pub decides: bool,
    /// Deciding writes signals.
    pub writes_signals: bool,
    /// It counts signals, as this group.
    pub abuse_group: Option<String>,
    /// A policy is on trial.
    pub tries_policy: bool,
}

impl Needs {
    /// Returns the needs of a worker that decides, and does nothing else.
    #[must_use]
    pub fn deciding() -> Self {
        Self { decides: true, ..Self::default() }
    }

    /// Returns the needs of a worker with these settings: it decides, and counts signals unless that is turned off.
    #[must_use]
    pub fn of_run(settings: &Settings) -> Self {
        let is_on = settings.abuse.is_on();
        Self { writes_signals: is_on, abuse_group: is_on.then(|| settings.abuse_group()), ..Self::deciding() }
    }

    /// Returns the topics that are needed, in the order of their table; reply topics are behind them.
    #[must_use]
    pub fn topics<'n>(&self, kafka: &'n KafkaSettings) -> Vec<Topic<'n>> {
        let of_table = TopicRole::ALL.iter().filter(|role| self.has(**role)).map(|role| kafka.topics.of(*role));
        of_table.chain(kafka.named_reply_topics().filter(|_| self.decides)).collect()
    }

    fn has(&self, role: TopicRole) -> bool {
        let counts = self.abuse_group.is_some();
        match role {
            TopicRole::Signals => self.writes_signals || counts,
            TopicRole::Shadow => self.tries_policy,
            // Their rule on partitions is about another topic, so that they stand with it.
            TopicRole::Alerts | TopicRole::Abuse => counts,
            TopicRole::Controls => self.decides || counts,
            always => self.decides && always.spec().needed == Needed::Always,
        }
    }

    /// Returns the rights that are needed on a topic: no more than the work takes.
    #[must_use]
    pub fn rights_on(&self, topic: &Topic<'_>) -> Vec<Right> {
        let is_worker = |parties: &[Party]| parties.contains(&Party::Workers);
        let is = |role: TopicRole| topic.spec == role.spec();
        let (counts, spec) = (self.abuse_group.is_some(), topic.spec);
        // One stage reads what the other one writes.
        let (reads, writes) = match () {
            () if is(TopicRole::Signals) => (counts, self.writes_signals),
            () if is(TopicRole::Controls) => (self.decides, counts),
            () => (is_worker(spec.read_by), is_worker(spec.written_by)),
        };
        let read = reads.then(|| Right::read(topic.name));
        read.into_iter().chain(writes.then(|| Right::write(topic.name))).collect()
    }

    /// Returns the groups that are joined, each with the topic that it reads.
    #[must_use]
    pub fn groups(&self, kafka: &KafkaSettings) -> Vec<StageTopics> {
        let deciding = self.decides.then(|| StageTopics::of(kafka));
        deciding.into_iter().chain(self.abuse_group.as_ref().map(|group| StageTopics::of_abuse(kafka, group))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_config::topics::{TopicSettings, TopicSpec};

    #[test]
    fn no_stage_needs_the_rights_of_the_other() {
        let mut kafka = tollgate_config::load(None, []).unwrap().kafka;
        kafka.topics = TopicSettings::named(|spec| spec.key.to_owned());
        let rights = |needs: &Needs, role| needs.rights_on(&kafka.topics.of(role));
        let deciding = Needs { writes_signals: true, ..Needs::deciding() };
        assert_eq!(rights(&deciding, TopicRole::Controls), [Right::read("controls")]);
        assert_eq!(rights(&deciding, TopicRole::Signals), [Right::write("signals")]);
        let counting = Needs { abuse_group: Some("g".to_owned()), ..Needs::default() };
        assert_eq!(rights(&counting, TopicRole::Controls), [Right::write("controls")]);
        assert_eq!(rights(&counting, TopicRole::Signals), [Right::read("signals")]);
        let both = Needs { abuse_group: counting.abuse_group, ..deciding };
        assert_eq!(rights(&both, TopicRole::Signals), [Right::read("signals"), Right::write("signals")]);
        assert_eq!(rights(&both, TopicRole::State), [Right::read("state"), Right::write("state")]);
    }

    #[test]
    fn each_worker_needs_the_topics_of_what_it_does() {
        let mut kafka = tollgate_config::load(None, []).unwrap().kafka;
        kafka.topics = TopicSettings::named(|spec| spec.key.to_owned());
        kafka.reply_topics = ["replies".to_owned(), "team-a.*".to_owned()].into();
        let names = |needs: &Needs| needs.topics(&kafka).iter().map(|topic| topic.name).collect::<Vec<_>>().join(" ");
        let deciding = Needs::deciding();
        assert_eq!(names(&deciding), "events decisions dlq controls state replies");
        let replies = Topic { spec: TopicSpec::REPLIES, name: "replies" };
        assert_eq!(deciding.rights_on(&replies), [Right::write("replies")]);
        assert_eq!(names(&Needs { writes_signals: true, ..deciding.clone() }), "events decisions dlq controls signals state replies");
        let counting = Needs { abuse_group: Some("g".to_owned()), ..Needs::default() };
        assert_eq!(names(&counting), "controls alerts signals abuse");
        let groups: Vec<_> = counting.groups(&kafka).into_iter().map(|topics| (topics.group_id, topics.input, topics.state)).collect();
        assert_eq!(groups, [("g".to_owned(), "signals".to_owned(), "abuse".to_owned())]);
        let all = Needs { writes_signals: true, tries_policy: true, decides: true, ..counting };
        // The topic of servers is none of a worker's, and the reply topic is named beside the table.
        assert_eq!(all.topics(&kafka).len(), TopicRole::ALL.len());
    }
}
