//! Who is meant: `user:alice`, whose id is hashed here and never leaves, or `user/<hash>` as alerts name a subject.

use std::io::Read;

use anyhow::{Context as _, ensure};
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::Error;
use clap::{Arg, Args, Command};

use tollgate_core::decide::controls::{Subject, SubjectHasher};
use tollgate_core::decide::ids::{NO_ID, is_no_id};
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_core::decide::signal::{KeyKind, SubjectKey};
use tollgate_core::event::decode::THREAD_ID_BYTES_MAX;

use tollgate_config::settings::Settings;

use super::UsageError;

const FIX: &str = "write user:ID, tenant:ID, agent:ID or thread:ID, with - as the ID to read it from stdin, or KIND/HASH as alerts name it";

/// The longest id that is read from stdin, in bytes.
const ID_BYTES_MAX: u64 = 65_536;
/// The hex digits of a hash.
const HASH_DIGITS: usize = 64;

/// Who is meant.
#[derive(Debug, Args)]
pub(crate) struct SubjectArgs {
    /// Whom it is about: KIND:ID as the events carry it, KIND:- with the id on stdin, which keeps it out of the shell's history, or KIND/HASH
    #[arg(value_name = "SUBJECT", value_parser = SubjectParser)]
    subject: String,
    /// The tenant_id that its events carry; left out: of events without one
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
}

/// Takes any text, so that no error repeats an id, and shows the kinds in completions.
#[derive(Debug, Clone)]
pub(crate) struct SubjectParser;

impl TypedValueParser for SubjectParser {
    type Value = String;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &std::ffi::OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(["user:", "tenant:", "agent:", "thread:"].into_iter().map(PossibleValue::new)))
    }
}

/// A subject, as signals, alerts and controls name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// Its names: one under each configured key, that of the first key first. A hash is one name.
    pub(crate) keys: Vec<SubjectKey>,
    /// Whether it was named by its id, which is hashed here: what is found then depends on the keys.
    pub(crate) is_hashed: bool,
}

impl Resolved {
    /// Returns its name under the first key.
    pub(crate) fn name(&self) -> String {
        self.keys.first().map(SubjectKey::to_string).unwrap_or_default()
    }

    /// Returns its kind, for people.
    pub(crate) fn kind(&self) -> &'static str {
        self.keys.first().map_or("subject", |key| key.kind.as_str())
    }

    /// Returns whether a record of this subject has this key.
    pub(crate) fn is(&self, key: SubjectKey) -> bool {
        self.keys.contains(&key)
    }
}

impl SubjectArgs {
    /// Returns the subject under every configured key.
    ///
    /// # Errors
    /// It names nobody. The error does not repeat it.
    pub(crate) fn resolve(&self, settings: &Settings) -> anyhow::Result<Resolved> {
        resolve(&self.subject, self.tenant.as_deref(), settings)
    }
}

/// Returns the subject that an argument means, under every configured key.
///
/// # Errors
/// It names nobody. The error does not repeat it.
pub(crate) fn resolve(subject: &str, tenant: Option<&str>, settings: &Settings) -> anyhow::Result<Resolved> {
    let wrong = |text: String| anyhow::Error::from(UsageError(text));
    let Some((kind, id)) = subject.split_once(':').filter(|(kind, _)| !kind.contains('/')) else {
        let key = SubjectKey::parse(subject).ok_or_else(|| wrong(no_subject(subject)))?;
        if tenant.is_some() {
            return Err(wrong("--tenant: a hash says its tenant already; leave it out".to_owned()));
        }
        return Ok(Resolved { keys: vec![key], is_hashed: false });
    };
    let kind =
        SubjectKind::from_name(kind).ok_or_else(|| wrong(format!("SUBJECT: found an unknown kind of {} bytes; {FIX}", kind.len())))?;
    let is_tenant = kind == SubjectKind::Tenant;
    if is_tenant && tenant.is_some() {
        return Err(wrong("--tenant: a tenant has none itself; leave it out".to_owned()));
    }
    let id = if id == "-" { read_id(std::io::stdin().lock(), "SUBJECT")? } else { id.to_owned() };
    if id.is_empty() {
        return Err(wrong("SUBJECT: its id is empty; write the id that the events carry".to_owned()));
    }
    let tenant = tenant.unwrap_or_default();
    let subject = Subject { kind, tenant, id: &id };
    if let Some(fault) = fault_of_id(&subject, "SUBJECT") {
        return Err(wrong(format!("{fault}, or KIND/HASH if an id is spelled so")));
    }
    if tenant.is_empty() && !is_tenant {
        say!("tollgate: without --tenant this is the {} of events that carry no tenant_id", kind.as_str());
    }
    let keys = hashers(settings).iter().map(|hasher| SubjectKey { kind: kind.into(), hash: hasher.hash(&subject) }).collect();
    Ok(Resolved { keys, is_hashed: true })
}

/// Returns what is wrong with a subject whose id, or tenant's id, no event has, and what to write; `None` of a subject that there may be. `option`
/// is what names the id.
pub(crate) fn fault_of_id(subject: &Subject<'_>, option: &str) -> Option<String> {
    let Subject { kind, tenant, id } = *subject;
    let is_no_thread = kind == SubjectKind::Thread && (id.len() > THREAD_ID_BYTES_MAX || id.ends_with('/'));
    match (is_no_id(tenant), is_no_id(id)) {
        (true, _) => Some(format!("--tenant: {NO_ID}")),
        (_, true) => Some(format!("{option}: {NO_ID}")),
        _ => is_no_thread.then(|| {
            format!("{option}: a thread_id has {THREAD_ID_BYTES_MAX} bytes at most, and the thread is named without a slash at the end; write the id that the events carry")
        }),
    }
}

/// Returns why a text names no subject.
fn no_subject(text: &str) -> String {
    let named = text.split_once('/').and_then(|(kind, hash)| Some((KeyKind::from_name(kind)?, hash)));
    match named {
        Some((kind, hash)) => format!(
            "SUBJECT: found {} characters behind {}/; a hash has {HASH_DIGITS} hex digits, and \
             tables show the first of them: -o wide prints them all",
            hash.chars().count(),
            kind.as_str()
        ),
        None => format!("SUBJECT: found neither a subject nor a hash; {FIX}"),
    }
}

/// Returns a hasher for each configured key; one without a key if there is none.
fn hashers(settings: &Settings) -> Vec<SubjectHasher> {
    let keys: Vec<_> = settings.subject_keys.iter().collect();
    if keys.is_empty() {
        say!(
            "tollgate: privacy.subject_key is not set: whoever can guess this id can tell its hash, and workers that have a key do not match it"
        );
        return vec![SubjectHasher::new(None)];
    }
    keys.into_iter().map(|key| SubjectHasher::new(Some(key))).collect()
}

/// Reads an id: all of the input without its line end. `option` is what asked for it, for errors.
pub(crate) fn read_id(input: impl Read, option: &str) -> anyhow::Result<String> {
    let mut id = String::new();
    input.take(ID_BYTES_MAX + 1).read_to_string(&mut id).with_context(|| format!("{option}: stdin cannot be read"))?;
    ensure!(id.len() as u64 <= ID_BYTES_MAX, "{option}: stdin has more than {ID_BYTES_MAX} bytes; write one id");
    let line = id.strip_suffix('\n').unwrap_or(&id);
    let line = line.strip_suffix('\r').unwrap_or(line);
    ensure!(!line.contains('\n'), "{option}: stdin has more than one line; write one id");
    Ok(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_config::load;

    fn resolve(subject: &str, tenant: Option<&str>) -> anyhow::Result<Resolved> {
        let variables = [("TOLLGATE__PRIVACY__SUBJECT_KEYS".into(), "['new', 'old']".into())];
        let settings = load(None, variables).unwrap();
        SubjectArgs { subject: subject.to_owned(), tenant: tenant.map(str::to_owned) }.resolve(&settings)
    }

    #[test]
    fn a_subject_has_a_name_under_every_key_and_a_hash_is_one() {
        let alice = resolve("user:alice:1", Some("acme")).unwrap();
        let of = |key| SubjectHasher::new(Some(key)).hash(&Subject { kind: SubjectKind::User, tenant: "acme", id: "alice:1" });
        assert_eq!(alice.keys.iter().map(|key| key.hash).collect::<Vec<_>>(), [of("new"), of("old")]);
        assert_eq!(resolve(&alice.name(), None).unwrap().keys, alice.keys[..1]);
        assert_eq!(alice.kind(), "user");
        assert!(resolve("tenant:acme", None).is_ok());
    }

    #[test]
    fn what_names_nobody_is_refused_and_not_repeated() {
        let hash = "ab".repeat(32);
        for (subject, tenant, says) in [
            ("MARKER", None, "neither a subject nor a hash"),
            ("MARKER:alice", None, "unknown kind of 6 bytes"),
            ("user:", Some("acme"), "its id is empty"),
            ("tenant:MARKER", Some("acme"), "--tenant: a tenant has none"),
            ("nobody/MARKER", None, "neither a subject nor a hash"),
            ("user/MARKER", None, "found 6 characters behind user/; a hash has 64 hex digits"),
            (&format!("user/{}", "ab".repeat(8)), None, "-o wide prints them all"),
            (&format!("user/{hash}"), Some("acme"), "--tenant: a hash says"),
            ("user:MARKER ", None, "SUBJECT: ids are compared as they are"),
            ("user:alice", Some("MARKER*"), "--tenant: ids are compared as they are"),
            ("thread:MARKER/", None, "SUBJECT: a thread_id has 256 bytes at most"),
            (&format!("thread:{}", "t".repeat(257)), None, "SUBJECT: a thread_id has 256 bytes at most"),
        ] {
            let error = resolve(subject, tenant).unwrap_err();
            assert!(error.is::<UsageError>() && error.to_string().contains(says), "{error}");
            assert!(!error.to_string().contains("MARKER"), "{error}");
        }
    }

    #[test]
    fn an_id_from_stdin_is_one_line() {
        for (input, id) in [("bob", "bob"), ("bob\n", "bob"), ("bob\r\n", "bob"), (" bob \n", " bob "), ("", "")] {
            assert_eq!(read_id(input.as_bytes(), "--id -").unwrap(), id);
        }
        assert!(read_id("bob\nalice\n".as_bytes(), "--id -").unwrap_err().to_string().contains("more than one line"));
        assert!(read_id(&[0xff][..], "--id -").is_err());
        assert!(read_id(std::io::repeat(b'x'), "--id -").unwrap_err().to_string().contains("more than 65536 bytes"));
    }
}
