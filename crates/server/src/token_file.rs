//! The file of tokens: read at start, and read again when its bytes change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use tollgate_core::settings::parse;
use tollgate_worker::Stop;
use tollgate_worker::threads::MustRun;

use crate::tokens::Tokens;

/// How often the file is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// The file of tokens, and the tokens that are in force.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    /// The bytes that were read last, whether they could be used or not.
    seen: Vec<u8>,
    tokens: Arc<RwLock<Tokens>>,
}

impl TokenFile {
    /// Reads the file.
    ///
    /// # Errors
    /// Returns a sentence for people if the file cannot be read or is wrong.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let (seen, tokens) = (read(path)?, Arc::new(RwLock::default()));
        let mut file = Self { path: path.to_owned(), seen: Vec::new(), tokens };
        file.take(seen)?;
        Ok(file)
    }

    /// Returns the tokens in force, which later contents of the file replace.
    #[must_use]
    pub fn tokens(&self) -> Arc<RwLock<Tokens>> {
        Arc::clone(&self.tokens)
    }

    /// Looks at the file again and again until the sign to stop. A file that is wrong changes nothing, and is named in the log.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn watch(mut self, must_run: MustRun, stop: Stop) -> std::io::Result<()> {
        must_run
            .spawn(move || {
                while !stop.wait(INTERVAL) {
                    self.look();
                }
            })
            .map(drop)
    }

    fn look(&mut self) {
        let taken = match read(&self.path) {
            Ok(bytes) if bytes == self.seen => return,
            Ok(bytes) => self.take(bytes),
            Err(error) => Err(error),
        };
        match taken {
            Ok(()) => tracing::info!(file = %self.path.display(), "the changed file of tokens is in force"),
            Err(error) => tracing::warn!(%error, "the file of tokens cannot be used; the tokens before stay in force"),
        }
    }

    fn take(&mut self, bytes: Vec<u8>) -> anyhow::Result<()> {
        let parsed = std::str::from_utf8(&bytes).ok().and_then(|text| parse(text).ok());
        self.seen = bytes;
        let at = || format!("serve.tokens: {}", self.path.display());
        // The parser's own message may repeat a line.
        let document = parsed.ok_or_else(|| anyhow!("{}: found no YAML; write a list of tokens, as docs/serve.md has it", at()))?;
        let tokens = Tokens::read(&document).map_err(|fault| anyhow!("{}: {fault}", at()))?;
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
        Ok(())
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("serve.tokens: the file {} cannot be read", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_json::digest::Digest;

    fn entry(token: &str) -> String {
        format!("tokens: [{{name: ci, sha256: {}}}]\n", Digest::of(token.as_bytes()))
    }

    #[test]
    fn a_changed_file_is_in_force_and_a_wrong_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.yaml");
        std::fs::write(&path, entry("old")).unwrap();
        let mut file = TokenFile::read(&path).unwrap();
        let tokens = file.tokens();
        let knows = |token: &str| tokens.read().unwrap().caller(token).is_some();
        assert!(knows("old") && !knows("new"));
        std::fs::write(&path, "tokens: [{name: ci, sha256: plain}]").unwrap();
        file.look();
        assert!(knows("old"));
        std::fs::write(&path, entry("new")).unwrap();
        file.look();
        assert!(knows("new") && !knows("old"));
        std::fs::remove_file(&path).unwrap();
        file.look();
        assert!(knows("new"));
    }

    #[test]
    fn a_file_that_is_wrong_at_start_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.yaml");
        let error = format!("{:#}", TokenFile::read(&path).unwrap_err());
        assert!(error.starts_with("serve.tokens: the file ") && error.contains("tokens.yaml"), "{error}");
        std::fs::write(&path, "{").unwrap();
        let error = format!("{:#}", TokenFile::read(&path).unwrap_err());
        assert!(error.contains("found no YAML"), "{error}");
    }
}
