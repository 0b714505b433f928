//! The validation of configuration values: it returns the settings, or every fault at once.
//!
//! It is pure: the caller reads the files. Values that the user leaves out come from the defaults (`config/tollgate.yaml`). A fault names
//! the key, the shape of the value found there and what to write. Values are never quoted, since some are secrets.

mod brokers;
mod kafka;
mod privacy;
mod process;
mod properties;
mod property_files;
mod redact;
mod schema;
mod serve;
mod traces;
mod urls;

pub use kafka::{KafkaSettings, TopicSettings};
pub use properties::Properties;
pub(crate) use redact::may_be_secret;

pub use privacy::SubjectKeys;
pub use process::{AdminSettings, LogFormat, LogSettings, WorkerSettings};
pub use serve::{ServeSettings, ServeTls};
pub use traces::TraceSettings;
pub use urls::is_this_machine;

use serde::Serialize;
use serde_json::Value;

use tollgate_abuse::AbuseSettings;
use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::decide::policy::{PolicySettings, Registry};
use tollgate_core::settings::{Collector, Faults, Section, Texts};

/// All settings.
#[derive(Debug, Serialize)]
pub struct Settings {
    /// Everything that decisions depend on.
    pub policy: PolicySettings,
    /// Brokers, group and topics.
    pub kafka: KafkaSettings,
    /// The settings of the worker process.
    pub worker: WorkerSettings,
    /// The HTTP server in front of the gate.
    pub serve: ServeSettings,
    /// The admin endpoint; `None` turns it off.
    pub admin: Option<AdminSettings>,
    /// What is logged, and how.
    pub log: LogSettings,
    /// Where spans of verdicts are sent.
    pub traces: TraceSettings,
    /// The HMAC keys of subject hashes.
    pub subject_keys: SubjectKeys,
    /// Rules against abuse, and the stage that counts by them.
    pub abuse: AbuseSettings,
}

impl Settings {
    /// Validates what the user wrote, completed by the defaults. No exception of a rule counts as over.
    ///
    /// # Errors
    /// Returns [`Faults`]: everything that is wrong, in the order of the configuration.
    pub fn read(user: &Value, defaults: &Value) -> Result<Self, Faults> {
        Self::read_with_texts(user, &Texts::default(), defaults, i64::MIN)
    }

    /// Validates what the user wrote, where some of the values came as text. A key that is a string takes its value from `texts`.
    /// `now_ms` is the time in milliseconds since the epoch, for exceptions of rules that are over.
    ///
    /// # Errors
    /// Returns [`Faults`]: everything that is wrong.
    pub fn read_with_texts(user: &Value, texts: &Texts, defaults: &Value, now_ms: i64) -> Result<Self, Faults> {
        let faults = Collector::default();
        let mut settings = Self::read_sections(&Section::root(user, defaults, &faults).with_texts(texts), now_ms);
        settings.kafka.note_files_of_variables(texts);
        faults.into_result(settings)
    }

    fn read_sections(root: &Section<'_>, now_ms: i64) -> Self {
        let subject_keys = privacy::read(&root.section("privacy"));
        let hasher = SubjectHasher::new(subject_keys.first());
        Self {
            policy: PolicySettings::read(root, &Registry::builtin()),
            kafka: kafka::read(&root.section("kafka")),
            worker: process::read_worker(&root.section("worker")),
            serve: serve::read(root),
            admin: process::read_admin(root),
            log: process::read_log(&root.section("log")),
            traces: traces::read(&root.section("traces")),
            abuse: AbuseSettings::read(&root.section("abuse"), &hasher, now_ms),
            subject_keys,
        }
    }

    /// Returns the consumer group of the stage that counts signals.
    #[must_use]
    pub fn abuse_group(&self) -> String {
        self.abuse.group_id.clone().unwrap_or_else(|| format!("{}-abuse", self.kafka.group_id))
    }

    /// Returns the effective settings for people to read, secrets redacted, and user info and queries of URLs. `is_property` says whether
    /// librdkafka takes a property of this name and value: other properties are redacted, since one may be the misspelt name of a secret.
    #[must_use]
    pub fn redacted(&self, is_property: impl Fn(&str, &str) -> bool) -> Value {
        redact::redacted(self, is_property)
    }
}
