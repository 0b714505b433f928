//! Asking the rules.

use std::borrow::Cow;

use serde_json::{Value, json};
use tollgate_json::Text;
use tollgate_passport::ToolInput;
use tollgate_passport::{Call, Outcome, Passport, Report, Terms, examine};

use crate::Fault;

/// An agent with a passport that has every capability of files and the web.
#[derive(Debug)]
pub struct Agent {
    passport: Passport,
    terms: Terms,
}

/// Whether something was denied.
#[derive(Debug, Default)]
struct Denied(bool);

impl Report for Denied {
    fn outcome(&mut self, _check: &'static str, outcome: Outcome) {
        self.0 |= matches!(outcome, Outcome::Denied(_));
    }

    fn policy(&mut self, _policy_id: Cow<'static, str>) {}
}

impl Agent {
    /// Returns the agent with these limits.
    ///
    /// # Errors
    /// If they make no passport.
    pub fn new(limits: &Value) -> Result<Self, Fault> {
        let capabilities = ["data.file.read", "data.file.write", "web.fetch"].map(|id| json!({"id": id}));
        let document = json!({"spec_version": "oap/1.0", "status": "active", "capabilities": capabilities, "limits": limits});
        let passport = Passport::read(document.to_string().as_bytes()).map_err(|fault| fault.to_string())?;
        Ok(Self { passport, terms: Terms::default() })
    }

    /// Returns whether a call with one argument is allowed.
    #[must_use]
    pub fn may(&self, tool_name: &str, argument: &str, value: &str) -> bool {
        let arguments = json!({argument: value}).to_string();
        let input = ToolInput::Encoded(Text::plain(arguments.as_bytes()));
        let mut denied = Denied::default();
        examine(
            Some(Ok(&self.passport)),
            &self.terms,
            &Call { tool_name, input: &input, time_ms: Some(0), earliest_ms: None },
            &mut denied,
        );
        !denied.0
    }
}
