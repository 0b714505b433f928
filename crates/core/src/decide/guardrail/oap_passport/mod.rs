//! The passport provider: it decides on calls under the Open Agent Passport of their agent.
//!
//! The passport of a call is the control record of its agent, or else that of the configured file. With neither, the call is denied.
//! [`tollgate_passport::examine`] examines the call; this file selects the passport and turns the findings into a decision.

mod settings;

use std::borrow::Cow;
use std::sync::Arc;

use super::{GuardrailDecision, GuardrailProvider, GuardrailRequest, ProviderDescriptor, Step};
use crate::decide::controls::Controls;
use crate::decide::ruling::{Evidence, GuardrailReason};
use tollgate_passport::{Call, Outcome, Passport, PassportFault, Report, Terms, examine};

/// The provider's descriptor for configuration.
pub(super) const DESCRIPTOR: ProviderDescriptor = ProviderDescriptor {
    name: OapPassport::NAME,
    aliases: &["OAPGuardrailProvider"],
    read: |config, guardrails| Box::new(settings::read(config, guardrails)),
};

/// How many reasons a decision gives: a hostile command can be denied for many.
const REASONS_MAX: usize = 16;

/// A provider that examines each call under the passport of its agent.
#[derive(Debug)]
pub struct OapPassport {
    controls: Arc<Controls>,
    passport: Option<Result<Arc<Passport>, PassportFault>>,
    terms: Terms,
}

impl OapPassport {
    /// The name in configuration and metrics.
    pub const NAME: &'static str = "oap_passport";

    /// Returns a provider that takes agents' passports from `controls`, and uses `passport` for agents that have none there.
    #[must_use]
    pub fn new(controls: Arc<Controls>, passport: Option<Result<Arc<Passport>, PassportFault>>, terms: Terms) -> Self {
        Self { controls, passport, terms }
    }

    fn decide(&self, request: &GuardrailRequest<'_>) -> GuardrailDecision {
        let agents = request.agent_id().and_then(|agent_id| self.controls.passport(agent_id));
        // A record that cannot be read stands for a passport too: the file's might allow more.
        let passport = agents.as_ref().or(self.passport.as_ref()).map(|read| read.as_ref().map(Arc::as_ref));
        let evidence = passport.and_then(Result::ok).map(|passport| Evidence::Passport(passport.digest));
        let mut denials = Denials { evidence, policy_id: None, reasons: Vec::new() };
        let earliest_ms = request.time_ms.or(request.latest_ms);
        let call = Call { tool_name: request.tool_name, input: request.tool_input, time_ms: request.latest_ms, earliest_ms };
        examine(passport, &self.terms, &call, &mut denials);
        // A passport whose record is not committed yet, or stands on another partition, may narrow what is allowed, and widens nothing.
        let others = request.agent_id().map(|agent_id| self.controls.narrowing_passports(agent_id)).unwrap_or_default();
        others.iter().for_each(|passport| examine(Some(passport.as_ref().map(Arc::as_ref)), &self.terms, &call, &mut denials));
        let allow = denials.reasons.is_empty();
        if allow {
            denials.push("oap.allowed", "All policy checks passed".into());
        }
        GuardrailDecision { allow, reasons: denials.reasons }
    }
}

impl GuardrailProvider for OapPassport {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn plan(&self, request: &GuardrailRequest<'_>) -> Step {
        Step::Decided(Ok(self.decide(request)))
    }
}

/// The denials that the checks report, as reasons.
struct Denials {
    evidence: Option<Evidence>,
    policy_id: Option<Cow<'static, str>>,
    reasons: Vec<GuardrailReason>,
}

impl Denials {
    fn push(&mut self, code: &'static str, message: Cow<'static, str>) {
        let reason = GuardrailReason { code: code.into(), message, policy_id: self.policy_id.clone(), evidence: self.evidence };
        if self.reasons.len() < REASONS_MAX && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

impl Report for Denials {
    fn outcome(&mut self, _check: &'static str, outcome: Outcome) {
        if let Outcome::Denied(denial) = outcome {
            self.push(denial.code, denial.message);
        }
    }

    fn policy(&mut self, policy_id: Cow<'static, str>) {
        self.policy_id = Some(policy_id);
    }
}
