//! Open Agent Passports: what an agent may do, as a document.

use crate::digest::Digest;

/// A passport, read once and ready to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passport {
    /// The digest of its canonical form (RFC 8785).
    pub digest: Digest,
}

/// Why a text is no passport at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PassportFault {
    /// It is not JSON.
    #[error("not JSON")]
    NotJson,
}

impl Passport {
    /// Reads a passport leniently: what is missing or of another type denies when a call needs it.
    ///
    /// # Errors
    /// [`PassportFault`] where the text is not one JSON object without repeated keys.
    pub fn read(text: &[u8]) -> Result<Self, PassportFault> {
        match serde_json::from_slice::<serde_json::Value>(text) {
            Ok(_) => Ok(Self { digest: Digest::of(text) }),
            Err(_) => Err(PassportFault::NotJson),
        }
    }
}
