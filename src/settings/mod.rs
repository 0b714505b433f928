//! Configuration values → validated settings, or every fault at once.
//!
//! Pure: the values come from whoever read the file. What the user leaves out is taken from the defaults (`config/tollgate.yaml`).
//! A fault names the key, the shape of what was found there and what to write; values are never quoted, since some are secrets.

mod guardrails;
mod kafka;
mod limits;
mod loops;
mod passport;
mod process;
mod reader;
mod redact;
mod safety;

pub use kafka::{KafkaSettings, TopicSettings};
pub use process::{AdminSettings, LogFormat, LogSettings, WorkerSettings};
pub use reader::{Fault, Faults};

use serde::Serialize;
use serde_json::Value;

use crate::policy::PolicySettings;
use reader::Section;

/// All settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// What decisions depend on.
    pub policy: PolicySettings,
    /// Brokers, group and topics.
    pub kafka: KafkaSettings,
    /// How the process works.
    pub worker: WorkerSettings,
    /// The admin endpoint; `None` switches it off.
    pub admin: Option<AdminSettings>,
    /// What is logged, and how.
    pub log: LogSettings,
    /// The HMAC key of subject hashes.
    pub subject_key: Option<String>,
}

impl Settings {
    /// Validates what the user wrote, over the defaults.
    ///
    /// # Errors
    /// [`Faults`]: all that is wrong, in the order in which it stands in the configuration.
    pub fn read(user: &Value, defaults: &Value) -> Result<Self, Faults> {
        let faults = reader::Collector::default();
        let settings = Self::read_sections(&Section::root(user, defaults, &faults));
        faults.into_result(settings)
    }

    fn read_sections(root: &Section<'_>) -> Self {
        Self {
            policy: PolicySettings {
                detectors: safety::read(&root.section("safety_finish_reason")),
                guardrails: guardrails::read(&root.section("guardrails")),
                tool_loop_guardrails: loops::read(&root.section("tool_loop_guardrails")),
                limits: limits::read(&root.section("limits")),
            },
            kafka: kafka::read(&root.section("kafka")),
            worker: process::read_worker(&root.section("worker")),
            admin: process::read_admin(root),
            log: process::read_log(&root.section("log")),
            subject_key: root.section("privacy").optional_string("subject_key"),
        }
    }

    /// Has the files that the settings name loaded by `read`, whose error says why one cannot be read. Settings whose files are not
    /// loaded know none: a call that needs one is denied.
    ///
    /// # Errors
    /// [`Faults`]: every file that cannot be read. One that can be read and holds no usable passport is none: see
    /// [`PassportSettings::fault`](crate::policy::PassportSettings::fault).
    pub fn load_files(&mut self, read: impl Fn(&str) -> Result<Vec<u8>, String>) -> Result<(), Faults> {
        passport::load(&mut self.policy, read)
    }

    /// The effective settings for people to read, secrets redacted.
    #[must_use]
    pub fn redacted(&self) -> Value {
        redact::redacted(self)
    }
}
