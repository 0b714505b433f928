//! What a provider that stands on a passport is configured to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::controls::Controls;
use crate::guardrail::OapPassport;
use crate::passport::{CapabilityMap, Passport, PassportFault, Terms, UnenforcedLimits};

/// Settings of [`OapPassport`], with the passport once it is loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PassportSettings {
    passport_path: Option<String>,
    tool_capabilities: BTreeMap<String, Option<String>>,
    unenforced_limits: UnenforcedLimits,
    /// The key of the configuration that names the file.
    #[serde(skip)]
    file_key: Option<String>,
    /// What the file holds.
    #[serde(skip)]
    passport: Option<Result<Arc<Passport>, PassportFault>>,
}

impl PassportSettings {
    /// Settings whose passport is not loaded yet.
    #[must_use]
    pub fn new(
        file_key: Option<String>,
        passport_path: Option<String>,
        tool_capabilities: BTreeMap<String, Option<String>>,
        unenforced_limits: UnenforcedLimits,
    ) -> Self {
        Self { passport_path, tool_capabilities, unenforced_limits, file_key, passport: None }
    }

    /// The passport's file and the key that names it; `None` if passports come by control records alone.
    #[must_use]
    pub fn file(&self) -> Option<(&str, &str)> {
        self.file_key.as_deref().zip(self.passport_path.as_deref())
    }

    /// Takes the file's text. One that is no usable passport is kept as such: it denies.
    pub fn load(&mut self, text: &[u8]) {
        self.passport = Some(Passport::read(text).map(Arc::new));
    }

    /// Why the file holds no usable passport.
    #[must_use]
    pub fn fault(&self) -> Option<&PassportFault> {
        self.passport.as_ref()?.as_ref().err()
    }

    /// What calls are examined under.
    #[must_use]
    pub fn terms(&self) -> Terms {
        Terms { capabilities: CapabilityMap::new(&self.tool_capabilities), unenforced_limits: self.unenforced_limits }
    }

    /// What decisions stand on besides the settings, for the policy's version.
    pub(super) fn basis(&self) -> String {
        match &self.passport {
            None => "none".to_owned(),
            Some(Ok(passport)) => format!("sha256:{}", passport.digest),
            Some(Err(fault)) => format!("unusable: {fault}"),
        }
    }

    pub(super) fn build(&self, controls: Arc<Controls>) -> OapPassport {
        OapPassport::new(controls, self.passport.clone(), self.terms())
    }
}
