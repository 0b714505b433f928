//! A policy on trial beside the one in force (`run --shadow`).
//!
//! ```text
//! member: decided ─▶ sampled? ─▶ queue ─▶ judge, a thread: the policy on trial ─▶ flips ─▶ metrics, topic
//! ```
//!
//! No verdict waits for any of it: what the queue does not take is dropped and counted, and flips are published by a producer of their own,
//! which no offset waits for.
//!
//! | module | what it does |
//! |---|---|
//! | `feed` | what a member hands over: bounded, and it never waits |
//! | `queue` | what waits between the two, and how much |
//! | `judge` | the thread that decides by the policy on trial and compares |
//! | `flips` | flips as records of their topic |

mod feed;
mod flips;
mod judge;
mod queue;

pub use feed::ShadowFeed;

use std::sync::Arc;

use tollgate_core::decide::policy::{Policy, PolicySettings};
use tollgate_core::decide::shadow::Sample;

use crate::metrics::{BoundedLabel, Metrics, TOOLS_MAX};
use tollgate_config::settings::KafkaSettings;

/// How many codes get a label of their own. Providers choose their codes freely, and a label is held for ever.
const CODES_MAX: usize = 256;

/// A policy cannot be tried beside the one in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// The two are the same.
    #[error("--shadow: found the policy in force, with the same policy_version; name a configuration that decides otherwise")]
    Same,
    /// It has policy servers.
    #[error(
        "--shadow: found a provider that asks a policy server; a policy on trial asks none, since its questions would be load and have effects \
         of their own; leave the provider out, or try it with `tollgate diff`"
    )]
    AsksServers,
    /// It reads other events.
    #[error("--shadow: found another limits.event_bytes_max than that of the policy in force; what can be read has to be the same")]
    ReadsOtherwise,
}

/// A policy on trial, for every member of a worker.
#[derive(Debug, Clone)]
pub struct Trial {
    policy: Arc<Policy>,
    /// The version of the policy in force.
    ours: String,
    sample: Sample,
    kafka: Arc<KafkaSettings>,
    metrics: Metrics,
    labels: Arc<Labels>,
}

/// The labels that others choose, which the members of a process share.
#[derive(Debug)]
struct Labels {
    codes: BoundedLabel,
    tools: BoundedLabel,
}

impl Trial {
    /// Returns the trial of a policy beside the one in force, on a sample of the threads.
    ///
    /// # Errors
    /// Returns [`TrialError`]: the two cannot be compared so.
    pub fn new(
        settings: &PolicySettings,
        in_force: &Policy,
        policy: Arc<Policy>,
        sample: Sample,
        (kafka, metrics): (&Arc<KafkaSettings>, &Metrics),
    ) -> Result<Self, TrialError> {
        if policy.version() == in_force.version() {
            return Err(TrialError::Same);
        }
        if settings.guardrails.iter().any(|guardrails| guardrails.servers().next().is_some()) {
            return Err(TrialError::AsksServers);
        }
        if policy.limits().event_bytes_max != in_force.limits().event_bytes_max {
            return Err(TrialError::ReadsOtherwise);
        }
        let labels = Arc::new(Labels { codes: BoundedLabel::new(CODES_MAX), tools: BoundedLabel::new(TOOLS_MAX) });
        let (kafka, metrics, ours) = (Arc::clone(kafka), metrics.clone(), in_force.version().to_owned());
        Ok(Self { policy, ours, sample, kafka, metrics, labels })
    }

    /// Returns the version of the policy on trial.
    #[must_use]
    pub fn version(&self) -> &str {
        self.policy.version()
    }
}
