//! Properties of Kafka clients, and those that have changed in their files since the start.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

/// The suffix of a property whose value stands in the file that is named.
pub(super) const SUFFIX: &str = "_file";

/// Properties by name. There are secrets among their values.
pub type Properties = BTreeMap<String, String>;

/// The values that have changed in their files since the start, shared by all clones of the settings.
#[derive(Clone, Default)]
pub(super) struct Renewed(pub(super) Arc<RwLock<Properties>>);

impl std::fmt::Debug for Renewed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renewed").finish_non_exhaustive()
    }
}

/// Settings are compared by what was configured.
impl PartialEq for Renewed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Renewed {}
