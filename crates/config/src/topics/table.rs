//! The table of topics. An entry defines a role and a configuration key with its default, and adds the topic to everything that is derived
//! from the table.

use serde::Serialize;

use tollgate_core::settings::Section;

use super::{Carries, Cleanup, Needed, PartitionRule, Party, Topic, TopicSpec};

/// Defines the roles, the specs and the settings of a table's entries.
macro_rules! define_topics {
    ($($role:ident $key:ident $what:literal { $($field:ident: $value:expr),+ $(,)? })+) => {
        /// The role of a topic.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum TopicRole {
            $(#[doc = $what] $role,)+
        }

        impl TopicRole {
            /// Every role, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$role),+];

            /// Returns the role's entry in the table.
            #[must_use]
            pub const fn spec(self) -> &'static TopicSpec {
                match self {
                    $(Self::$role => {
                        const SPEC: &TopicSpec = &TopicSpec { key: stringify!($key), what: $what, $($field: $value),+ };
                        SPEC
                    })+
                }
            }
        }

        /// Every topic.
        pub const TOPICS: &[&TopicSpec] = &[$(TopicRole::$role.spec()),+];

        /// The topics' names, with one field for each role.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        pub struct TopicSettings {
            $(#[doc = $what] pub $key: String,)+
        }

        impl TopicSettings {
            /// Returns settings that take the name of every topic from `name`.
            pub fn named(mut name: impl FnMut(&'static TopicSpec) -> String) -> Self {
                Self { $($key: name(TopicRole::$role.spec()),)+ }
            }

            /// Returns the topic of a role, with its name.
            #[must_use]
            pub fn of(&self, role: TopicRole) -> Topic<'_> {
                let name = match role {
                    $(TopicRole::$role => &self.$key,)+
                };
                Topic { spec: role.spec(), name }
            }

            /// Returns every topic, in the order of the table.
            pub fn each(&self) -> impl Iterator<Item = Topic<'_>> {
                TopicRole::ALL.iter().map(|role| self.of(*role))
            }

            /// Reads the names from `kafka.topics`. Two roles with one name are a fault: what is published for the one would be read as the
            /// other, without end if verdicts are read as events.
            pub(crate) fn read(section: &Section<'_>) -> Self {
                let names = Self::named(|spec| section.string(spec.key));
                for (place, topic) in names.each().enumerate() {
                    // An empty name is a fault already.
                    if !topic.name.is_empty() && !is_name(topic.name) {
                        let fix = "write at most 249 letters, digits, dots, underscores and hyphens, and not just dots";
                        section.fault(topic.spec.key, "a name that no topic can have", fix);
                    }
                    if let Some(first) = names.each().take(place).find(|first| first.name == topic.name && !first.name.is_empty()) {
                        let found = format!("the name of {} too", first.spec.path());
                        section.fault(topic.spec.key, found, "give each of the two a topic of its own");
                    }
                }
                names
            }
        }
    };
}

/// Returns whether Kafka takes the name of a topic.
fn is_name(name: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.len() <= 249 && name != "." && name != ".." && name.chars().all(is_legal)
}

/// Passes the entries, and those that the caller adds behind them, to a macro.
macro_rules! with_topics {
    ($define:ident $($more:tt)*) => {
        $define! {
            Events events "What agents do: model responses, tool calls, tool results, turn boundaries." {
                default_name: "agent.events",
                record_key: "thread_id",
                cleanup: Cleanup::Delete { days: None },
                partitions: PartitionRule::Free,
                carries: Carries::Theirs,
                written_by: &[Party::Orchestrators, Party::Servers, Party::Operators],
                read_by: &[Party::Workers],
                needed: Needed::Always,
            }
            Decisions decisions "One verdict for every model response, tool call and tool result." {
                default_name: "agent.decisions",
                record_key: "thread_id",
                cleanup: Cleanup::Delete { days: None },
                partitions: PartitionRule::AtLeast { topic: "events", why: "verdicts go to the partition of their event" },
                carries: Carries::Ours,
                written_by: &[Party::Workers],
                read_by: &[Party::Orchestrators],
                needed: Needed::Always,
            }
            Dlq dlq "Records that could not be read, byte for byte, with the reason in headers." {
                default_name: "agent.events.dlq",
                record_key: "as it came",
                cleanup: Cleanup::Delete { days: None },
                partitions: PartitionRule::Free,
                carries: Carries::CopiesOf("events"),
                written_by: &[Party::Workers],
                read_by: &[Party::Operators],
                needed: Needed::Always,
            }
            Controls controls "Switches for the whole fleet: passports and suspended subjects." {
                default_name: "agent.controls",
                record_key: "control id",
                cleanup: Cleanup::Compact { keeps: "controls", segment_bytes: None },
                partitions: PartitionRule::One,
                carries: Carries::Theirs,
                written_by: &[Party::Operators, Party::Workers],
                read_by: &[Party::Workers, Party::Operators],
                needed: Needed::Always,
            }
            Alerts alerts "What the rules of the section `abuse` found, by subject." {
                default_name: "agent.alerts",
                record_key: "kind and hash of the subject, or the rule",
                cleanup: Cleanup::Delete { days: None },
                partitions: PartitionRule::Free,
                carries: Carries::Ours,
                written_by: &[Party::Workers],
                read_by: &[Party::Operators],
                needed: Needed::ForAbuse,
            }
            Signals signals "What deciding saw of a subject, as hashes and codes: the log that the abuse stage counts." {
                default_name: "tollgate.signals",
                record_key: "kind and hash of the subject",
                cleanup: Cleanup::Delete { days: Some(8) },
                partitions: PartitionRule::Free,
                carries: Carries::Ours,
                written_by: &[Party::Workers, Party::Operators],
                read_by: &[Party::Workers, Party::Operators],
                needed: Needed::ForAbuse,
            }
            Abuse abuse "Checkpoints of the abuse stage: what is remembered of subjects." {
                default_name: "tollgate.abuse",
                record_key: "internal",
                cleanup: Cleanup::Compact { keeps: "what is known of subjects", segment_bytes: Some(64 << 20) },
                partitions: PartitionRule::SameAs {
                    topic: "signals",
                    why: "the state of a partition stands on the partition of the same number",
                },
                carries: Carries::Ours,
                written_by: &[Party::Workers],
                read_by: &[Party::Workers, Party::Operators],
                needed: Needed::ForAbuse,
            }
            Shadow shadow "Verdicts that a policy on trial would have changed, as hashes and codes (`run --shadow`)." {
                default_name: "agent.shadow",
                record_key: "thread_id",
                cleanup: Cleanup::Delete { days: None },
                partitions: PartitionRule::Free,
                carries: Carries::Ours,
                written_by: &[Party::Workers],
                read_by: &[Party::Operators],
                needed: Needed::OnRequest,
            }
            Replies replies "Verdicts for `tollgate serve`: each server reads a partition of its own." {
                default_name: "agent.replies",
                record_key: "thread_id",
                cleanup: Cleanup::Delete { days: Some(1) },
                partitions: PartitionRule::Free,
                carries: Carries::Ours,
                written_by: &[Party::Workers, Party::Servers],
                read_by: &[Party::Servers],
                needed: Needed::OnRequest,
            }
            State state "Checkpoints of the state of partitions; of one group and one events topic." {
                default_name: "tollgate.state",
                record_key: "internal",
                cleanup: Cleanup::Compact { keeps: "state", segment_bytes: Some(64 << 20) },
                partitions: PartitionRule::SameAs {
                    topic: "events",
                    why: "the state of a partition stands on the partition of the same number",
                },
                carries: Carries::ThreadState,
                written_by: &[Party::Workers],
                read_by: &[Party::Workers, Party::Operators],
                needed: Needed::Always,
            }
            $($more)*
        }
    };
}

with_topics!(define_topics);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::topics::{
        PartitionCounts, Surroundings, TopicFault, TopicWishes, check_partitions, check_settings, defaults, plan, tables, to_create,
    };
    use tollgate_core::settings::{Collector, parse};

    /// A copy of the table with one more entry.
    mod more {
        use super::*;

        with_topics!(define_topics
            Extra extra "What one more stage writes." {
                default_name: "tollgate.extra",
                record_key: "kind and hash of the subject",
                cleanup: Cleanup::Delete { days: Some(8) },
                partitions: PartitionRule::AtLeast { topic: "events", why: "it is as much as events" },
                carries: Carries::Ours,
                written_by: &[Party::Workers],
                read_by: &[Party::Workers],
                needed: Needed::Always,
            }
        );
    }

    fn read<T>(user: &Value, specs: &[&TopicSpec], read: impl Fn(&Section<'_>) -> T) -> Result<T, tollgate_core::settings::Faults> {
        let defaults = parse(&format!("topics:\n{}", defaults(specs))).unwrap();
        let faults = Collector::default();
        let names = read(&Section::root(user, &defaults, &faults).section("topics"));
        faults.into_result(names)
    }

    #[test]
    fn one_more_entry_is_one_more_key_with_its_default() {
        let names = read(&json!({}), more::TOPICS, more::TopicSettings::read).unwrap();
        assert_eq!((names.extra.as_str(), names.events.as_str()), ("tollgate.extra", "agent.events"));
        let user = json!({"topics": {"extra": "acme.extra"}});
        assert_eq!(read(&user, more::TOPICS, more::TopicSettings::read).unwrap().extra, "acme.extra");
        let refused = read(&user, TOPICS, TopicSettings::read).unwrap_err().to_string();
        assert!(refused.contains("topics.extra: found an unknown key"), "without the entry there is no such key: {refused}");
        assert_eq!(json!(names).as_object().unwrap().len(), TOPICS.len() + 1);
    }

    #[test]
    fn one_more_entry_is_asked_for_checked_and_created() {
        let names = more::TopicSettings::named(|spec| format!("stem.{}", spec.key));
        let topics: Vec<_> = names.each().filter(|topic| topic.spec.is_created()).collect();
        let counts = |extra| topics.iter().map(|topic| if topic.spec.key == "extra" { extra } else { 4 }).collect::<Vec<_>>();
        let missing = check_partitions(&topics, &counts(0)).unwrap_err().to_string();
        assert_eq!(missing, "no such topic: stem.extra; create what is missing: tollgate topics apply --execute");
        assert!(matches!(
            check_partitions(&topics, &counts(3)),
            Err(TopicFault::TooFewPartitions(PartitionCounts { found: 3, wanted: 4, .. }))
        ));
        assert!(check_partitions(&topics, &counts(4)).is_ok());
        let smaller = |topic: &str, setting: &str| (topic == "stem.extra" && setting == "max.message.bytes").then(|| "9000".to_owned());
        assert_eq!(check_settings(&topics, smaller, 0).unwrap().batch_bytes, Some(9_000));
        // This is what `dev` and the benchmarks create.
        let created = to_create(names.each(), 7);
        let extra = created.iter().find(|topic| topic.name == "stem.extra").unwrap();
        assert_eq!((extra.partitions, created.len()), (7, TOPICS.len() + 1));
        // And this is what `topics apply` plans.
        let found: Vec<_> = topics.iter().map(|topic| (*topic, None)).collect();
        let around = Surroundings { brokers: 1, thread_bytes_max: 0 };
        let plans = plan(&found, &TopicWishes::default(), around);
        let extra = plans.iter().find(|plan| plan.topic.name == "stem.extra").unwrap();
        assert_eq!(extra.changes[0].to_string(), "create: partitions 12, replication factor 1, retention.ms=691200000");
    }

    #[test]
    fn one_more_entry_is_one_more_row_of_the_page() {
        let rows = |specs| tables(specs).lines().filter(|line| line.starts_with("| `kafka.topics.")).count();
        assert_eq!((rows(TOPICS), rows(more::TOPICS)), (TOPICS.len(), TOPICS.len() + 1));
        let page = tables(more::TOPICS);
        assert!(page.contains("| `kafka.topics.extra` | `tollgate.extra` |") && page.contains("deleted after 8 days"), "{page}");
    }

    #[test]
    fn the_table_names_topics_of_its_own() {
        let is_ours = |key: &str| TOPICS.iter().any(|spec| spec.key == key);
        for spec in TOPICS {
            assert!(spec.partitions.follows().is_none_or(is_ours), "{}", spec.key);
            assert!(!matches!(spec.carries, Carries::CopiesOf(other) if !is_ours(other)), "{}", spec.key);
        }
        let keys: Vec<_> = TOPICS.iter().map(|spec| spec.key).collect();
        assert_eq!(
            keys,
            ["events", "decisions", "dlq", "controls", "alerts", "signals", "abuse", "shadow", "replies", "state"],
            "as configurations have them"
        );
    }
}
