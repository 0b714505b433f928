//! The registry of detectors and providers that configuration can name.

use crate::decide::guardrail::{PROVIDERS, ProviderDescriptor};
use crate::decide::safety::{DETECTORS, DetectorDescriptor};
use crate::settings::Named;

/// The detectors and providers that configuration can `use`: the built-in ones, and those that a program that embeds the core adds.
#[derive(Debug, Clone)]
pub struct Registry {
    detectors: Vec<&'static DetectorDescriptor>,
    providers: Vec<&'static ProviderDescriptor>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Registry {
    /// Returns the built-in detectors and providers.
    #[must_use]
    pub fn builtin() -> Self {
        Self { detectors: DETECTORS.to_vec(), providers: PROVIDERS.to_vec() }
    }

    /// Adds a detector. It replaces one of the same name.
    #[must_use]
    pub fn with_detector(mut self, detector: &'static DetectorDescriptor) -> Self {
        add(&mut self.detectors, detector);
        self
    }

    /// Adds a provider. It replaces one of the same name.
    #[must_use]
    pub fn with_provider(mut self, provider: &'static ProviderDescriptor) -> Self {
        add(&mut self.providers, provider);
        self
    }

    /// Returns every name and alias that `use` may have.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        fn names<D: Named>(known: &'static D) -> impl Iterator<Item = &'static str> {
            known.aliases().iter().copied().chain([known.name()])
        }
        self.detectors.iter().copied().flat_map(names).chain(self.providers.iter().copied().flat_map(names))
    }

    pub(super) fn detectors(&self) -> &[&'static DetectorDescriptor] {
        &self.detectors
    }

    pub(super) fn providers(&self) -> &[&'static ProviderDescriptor] {
        &self.providers
    }
}

/// Adds a descriptor, in place of one of the same name or at the end.
fn add<D: Named>(known: &mut Vec<&'static D>, added: &'static D) {
    match known.iter_mut().find(|known| known.name() == added.name()) {
        Some(place) => *place = added,
        None => known.push(added),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_are_called_the_same() {
        let names: Vec<_> = Registry::builtin().names().collect();
        assert!(names.len() > 5 && names.iter().collect::<BTreeSet<_>>().len() == names.len(), "{names:?}");
    }
}
