//! The publication of a member that the brokers refused last. The health report names it until the brokers take such a publication, or until
//! the member has lost the partition of the record, which is then for another worker to decide.

use std::sync::{Mutex, PoisonError};

use crate::health::{Health, MemberId};
use crate::outbox::Refusal;

/// What the brokers refused last, until that is over.
#[derive(Debug, Default)]
pub(super) struct Refused(Mutex<Option<Refusal>>);

impl Refused {
    /// Names a refusal in the health report.
    pub fn report(&self, refusal: &Refusal, member: MemberId, health: &Health) {
        health.set_problem(&key(member), Some(refusal.to_string()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal.clone());
    }

    /// Takes the refusal out of the health report if it is over.
    pub fn check(&self, is_over: impl FnOnce(&Refusal) -> bool, member: MemberId, health: &Health) {
        let over = self.0.lock().unwrap_or_else(PoisonError::into_inner).take_if(|refusal| is_over(refusal));
        if let Some(Refusal { role, topic, .. }) = over {
            health.set_problem(&key(member), None);
            tracing::info!(%member, role = role.as_str(), topic, "the refusal of the brokers is over");
        }
    }
}

fn key(member: MemberId) -> String {
    format!("publications of member {member}")
}
