//! The subjects of a test file: ids in clear in the file, hashes in signals, and the ids again in what is shown.

use std::collections::BTreeMap;

use tollgate_core::decide::controls::{Subject, SubjectHasher};
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_core::decide::signal::{KeyKind, SubjectKey};
use tollgate_core::settings::Section;
use tollgate_json::digest::Digest;

/// Whom an event is on behalf of, and which call it is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ids {
    pub(super) user: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) thread: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) args: Option<String>,
}

impl Ids {
    /// Reads the ids that a section names.
    pub(super) fn read(section: &Section<'_>) -> Self {
        Self {
            user: section.optional_string("user"),
            tenant: section.optional_string("tenant"),
            agent: section.optional_string("agent"),
            thread: section.optional_string("thread"),
            tool: section.optional_string("tool"),
            args: section.optional_string("args"),
        }
    }

    /// Returns the ids with each `{n}` replaced by a number.
    pub(super) fn numbered(&self, number: u32) -> Self {
        let [user, tenant, agent, thread, tool, args] =
            [&self.user, &self.tenant, &self.agent, &self.thread, &self.tool, &self.args].map(|id| numbered(id.as_deref(), number));
        Self { user, tenant, agent, thread, tool, args }
    }

    /// Returns the hash of the subject of a kind, if it is named. That of a call is the digest of the tool and the arguments.
    pub(super) fn hash(&self, kind: KeyKind, hasher: &SubjectHasher) -> Option<Digest> {
        let tenant = self.tenant.as_deref().unwrap_or_default();
        let hash = |kind, tenant, id: &Option<String>| id.as_deref().map(|id| hasher.hash(&Subject { kind, tenant, id }));
        match kind {
            KeyKind::User => hash(SubjectKind::User, tenant, &self.user),
            KeyKind::Tenant => hash(SubjectKind::Tenant, "", &self.tenant),
            KeyKind::Agent => hash(SubjectKind::Agent, tenant, &self.agent),
            KeyKind::Thread => hash(SubjectKind::Thread, tenant, &self.thread),
            KeyKind::Call => {
                let args = self.args.as_deref().unwrap_or_default();
                self.tool.as_deref().map(|tool| Digest::of(format!("{tool}\0{args}").as_bytes()))
            }
        }
    }

    /// Returns the subject of a kind, with its name for people.
    pub(super) fn subject(&self, kind: KeyKind, hasher: &SubjectHasher) -> Option<(SubjectKey, String)> {
        let hash = self.hash(kind, hasher)?;
        let own = match kind {
            KeyKind::User => self.user.as_deref(),
            KeyKind::Tenant => self.tenant.as_deref(),
            KeyKind::Agent => self.agent.as_deref(),
            KeyKind::Thread => self.thread.as_deref(),
            KeyKind::Call => self.tool.as_deref(),
        };
        let beside = match kind {
            KeyKind::Tenant => None,
            KeyKind::Call => self.args.as_deref().map(|args| format!(" {args}")),
            _ => self.tenant.as_deref().map(|tenant| format!(" of {tenant}")),
        };
        let name = format!("{} {}{}", kind.as_str(), own.unwrap_or_default(), beside.unwrap_or_default());
        Some((SubjectKey { kind, hash }, name))
    }

    /// Returns the one subject that an expectation names: its tenant alone is the tenant, and beside another id it is where that belongs.
    pub(super) fn only_subject(&self, hasher: &SubjectHasher) -> Option<(SubjectKey, String)> {
        let kinds = [KeyKind::User, KeyKind::Agent, KeyKind::Thread, KeyKind::Call];
        let mut named = kinds.into_iter().filter_map(|kind| self.subject(kind, hasher));
        match (named.next(), named.next()) {
            (Some(subject), None) => Some(subject),
            (None, None) => self.subject(KeyKind::Tenant, hasher),
            _ => None,
        }
    }
}

/// Returns a text with each `{n}` replaced by a number.
pub(super) fn numbered(text: Option<&str>, number: u32) -> Option<String> {
    text.map(|text| text.replace("{n}", &number.to_string()))
}

/// The names of the subjects of a case, by the texts of their keys.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    /// Adds a subject.
    pub(super) fn add(&mut self, (key, name): (SubjectKey, String)) -> SubjectKey {
        self.0.entry(key.to_string()).or_insert(name);
        key
    }

    /// Returns the name of a subject, or the text of its key where the case does not name it.
    pub(super) fn of<'n>(&'n self, key: &'n str) -> &'n str {
        self.0.get(key).map_or(key, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expectation_names_one_subject() {
        let hasher = SubjectHasher::new(None);
        let name = |ids: Ids| ids.only_subject(&hasher).map(|(_, name)| name);
        let some = |id: &str| Some(id.to_owned());
        assert_eq!(name(Ids { user: some("a"), tenant: some("t"), ..Ids::default() }), some("user a of t"));
        assert_eq!(name(Ids { tenant: some("t"), ..Ids::default() }), some("tenant t"));
        assert_eq!(name(Ids { tool: some("bash"), args: some("x"), ..Ids::default() }), some("call bash x"));
        assert_eq!(name(Ids { user: some("a"), agent: some("b"), ..Ids::default() }), None);
        assert_eq!(name(Ids::default()), None);
        let numbered = Ids { user: some("u{n}"), ..Ids::default() }.numbered(7);
        assert_eq!(numbered.user, some("u7"));
    }
}
