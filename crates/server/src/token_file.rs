//! The file of tokens, as text: who may ask for whom.

use std::path::Path;

use anyhow::anyhow;

use tollgate_core::settings::parse;

use crate::tokens::Tokens;
use crate::watched::{NamedFile, Watched};

/// The setting that names the file.
const SETTING: &str = "serve.tokens";

/// Reads the file of tokens. `verifies_clients` says whether the server verifies certificates of clients, so that entries may name them.
///
/// # Errors
/// Returns a sentence for people if the file cannot be read or is wrong.
pub fn read(path: &str, verifies_clients: bool) -> anyhow::Result<Watched<Tokens>> {
    let at = format!("{SETTING}: {}", Path::new(path).display());
    Watched::read("tokens", vec![NamedFile::new(SETTING, path)], move |files| {
        let text = files.first().and_then(|bytes| std::str::from_utf8(bytes).ok());
        // The parser's own message may repeat a line.
        let document = text.and_then(|text| parse(text).ok());
        let document = document.ok_or_else(|| anyhow!("{at}: found no YAML; write a list of tokens, as docs/serve.md has it"))?;
        let tokens = Tokens::read(&document).map_err(|fault| anyhow!("{at}: {fault}"))?;
        if tokens.has_certificates() && !verifies_clients {
            return Err(anyhow!(
                "{at}: found an entry with `certificate`, and no serve.tls.client_ca_file, so that no certificate of a client is verified; \
                 name the file of the authorities of clients there, or write `sha256`"
            ));
        }
        Ok(tokens)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.yaml");
        let error = |text: &str, verifies_clients| {
            std::fs::write(&path, text).unwrap();
            format!("{:#}", read(path.to_str().unwrap(), verifies_clients).unwrap_err())
        };
        for (text, verifies_clients, words) in [
            ("{", true, "found no YAML"),
            ("tokens: {}", true, "found no list of entries"),
            ("tokens: [{name: ci, certificate: 'DNS:ci'}]", false, "no serve.tls.client_ca_file"),
        ] {
            let error = error(text, verifies_clients);
            assert!(error.starts_with("serve.tokens: ") && error.contains("tokens.yaml: ") && error.contains(words), "{error}");
        }
        assert!(read(path.to_str().unwrap(), true).unwrap().current().get().has_certificates());
    }
}
