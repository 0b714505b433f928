//! Open Agent Passports: documents that say what an agent may do.
//!
//! A [`Passport`] is read once, leniently, and compiled, so that a decision takes a few look-ups however long its lists are. [`examine`]
//! makes the checks of the standard in their order. A field that is missing or of another type denies the calls that need it, and only
//! those.

mod address;
mod argument_bounds;
mod argument_names;
mod argument_role;
mod argument_tables;
mod arguments;
mod beginning;
mod capabilities;
mod denial;
mod destination;
mod document;
mod examine;
mod fields;
mod glob;
mod hosts;
mod links;
mod look_alike;
mod name_kind;
mod names;
mod pack;
mod path;
mod requests;
mod rules;
mod schema;
mod shell_glob;
mod tool_input;
mod unknown;
mod words;
mod written;

pub use argument_names::{ToolArguments, ignores_folder};
pub use argument_role::ArgumentRole;
pub use capabilities::{BROWSER_FAMILY, CapabilityMap, DEFAULT_TOOL_CAPABILITIES, MCP_FAMILY, Need, known_tools};
pub use denial::{Denial, Outcome, Report};
pub use document::PassportFault;
pub use examine::{Call, Terms, examine};
pub use fields::is_expression;
pub use hosts::{AgentHost, HOSTS};
pub use look_alike::is_invisible;
pub use pack::{NO_CAPABILITY, Pack};
pub use rules::UnenforcedLimits;

pub use tool_input::ToolInput;

pub use schema::{SchemaFault, check as check_schema, known_capabilities};

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tollgate_json::digest::Digest;
use tollgate_json::time::parse_timestamp;
use tollgate_json::{Parser, Shape, Text, Value, canonical};

use argument_names::fold;
use fields::{Field, Malformed, Section};
use rules::Limits;

/// The only version of the standard that is evaluated.
pub const SPEC_VERSION: &str = "oap/1.0";

/// A compiled passport, ready for examining calls.
#[derive(Debug, Clone)]
pub struct Passport {
    /// The digest of its canonical form (RFC 8785).
    pub digest: Digest,
    contents: Arc<Contents>,
}

/// The parts of a passport that evaluation reads.
#[derive(Debug)]
struct Contents {
    status: Field<String>,
    spec_version: Field<String>,
    /// Whether it is revoked, whatever its status is.
    revoked: Field<bool>,
    /// Before which moment it allows nothing, in milliseconds since the epoch, with its text.
    not_before: Field<(i64, String)>,
    expiry: Expiry,
    /// When it was made, in milliseconds since the epoch; `None` if it does not say.
    made_ms: Option<i64>,
    capabilities: Field<Granted>,
    limits: Result<Limits, Malformed>,
    /// A member that is not known and may be meant to restrict.
    unknown: Option<Malformed>,
}

/// Passports are equal if their documents are.
impl PartialEq for Passport {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Passport {}

/// The end of a passport.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expiry {
    Never,
    At {
        /// The time in milliseconds since the epoch.
        ms: i64,
        text: String,
    },
    Malformed(Malformed),
}

/// The capabilities of a passport.
#[derive(Debug, Default)]
struct Granted {
    ids: HashSet<String>,
    /// The paths of parameters, by the capability that they may restrict.
    params: HashMap<String, String>,
    /// The first entry that cannot be read.
    malformed: Option<Malformed>,
}

impl Passport {
    /// Reads a passport leniently: a field that is missing or of another type denies when a call needs it.
    ///
    /// # Errors
    /// [`PassportFault`] if the text is not a JSON object that can be read in one way only.
    pub fn read(text: &[u8]) -> Result<Self, PassportFault> {
        let mut parser = Parser::new();
        let root = document::read(&mut parser, text)?;
        let mut canonical_bytes = Vec::with_capacity(text.len());
        canonical::write_jcs(root, &mut canonical_bytes);
        let fields = Section::new(String::new(), Some(root));
        let contents = Contents {
            status: fields.string("status"),
            spec_version: fields.string("spec_version"),
            revoked: fields.flag("revoked"),
            not_before: read_not_before(&fields),
            expiry: read_expiry(&fields),
            made_ms: if let Field::Valid(text) = fields.string("created_at") { parse_timestamp(&text) } else { None },
            capabilities: read_capabilities(&fields),
            limits: read_limits(&fields, root),
            unknown: schema::unknown_members(root).next(),
        };
        Ok(Self { digest: Digest::of(&canonical_bytes), contents: Arc::new(contents) })
    }

    /// Returns the limits of the passport that the rules cannot read or cannot enforce.
    fn limit_faults(&self) -> Vec<SchemaFault> {
        const UNREADABLE: &str = "denies every call that needs a capability: oap.passport_invalid";
        let unreadable = |malformed: &Malformed| vec![SchemaFault::new(malformed.clone(), UNREADABLE)];
        let mut faults = self.contents.limits.as_ref().map_or_else(unreadable, Limits::faults);
        if let Expiry::Malformed(malformed) = &self.contents.expiry {
            faults.push(SchemaFault::new(malformed.clone(), "denies every call: oap.passport_invalid"));
        }
        faults
    }
}

fn read_not_before(fields: &Section<'_>) -> Field<(i64, String)> {
    let expected = || Malformed::new("not_before", "another text", "an RFC 3339 timestamp");
    fields.string("not_before").and_then(|text| parse_timestamp(&text).map(|ms| (ms, text)).ok_or_else(expected))
}

fn read_expiry(fields: &Section<'_>) -> Expiry {
    let never = fields.value("never_expires");
    if never.and_then(|value| value.as_bool()) == Some(true) {
        return Expiry::Never;
    }
    let moment = |text: String| match parse_timestamp(&text) {
        Some(ms) => Ok(Expiry::At { ms, text }),
        None => Err(Malformed::new("expires_at", "another text", "an RFC 3339 timestamp")),
    };
    match fields.string("expires_at").and_then(moment) {
        Field::Absent if never.is_none() => Expiry::Never,
        // It is to expire, and nobody knows when.
        Field::Absent => {
            Expiry::Malformed(Malformed::new("expires_at", "nothing, beside a never_expires that is not true", "an RFC 3339 timestamp"))
        }
        Field::Valid(expiry) => expiry,
        Field::Malformed(malformed) => Expiry::Malformed(malformed),
    }
}

fn read_capabilities(fields: &Section<'_>) -> Field<Granted> {
    let Some(value) = fields.value("capabilities") else { return Field::Absent };
    if value.shape() != Shape::Array {
        return Field::Malformed(Malformed::new("capabilities", value.shape(), "an array of objects with an id"));
    }
    let (mut granted, mut withheld) = (Granted::default(), HashSet::<String>::new());
    for (index, item) in value.items().enumerate() {
        let path = fields::item_path("capabilities", index);
        let entry = read_entry(item, &path);
        if let Ok(Entry { id, params: Some(params), .. }) = &entry {
            granted.params.insert(id.clone(), params.clone());
        }
        match entry {
            Ok(Entry { id, is_enabled: true, .. }) => _ = granted.ids.insert(id),
            Ok(Entry { id, .. }) => _ = withheld.insert(id),
            Err(malformed) => {
                withheld.extend(item.get("id").and_then(|id| id.as_text()?.into_str()).map(Cow::into_owned));
                granted.malformed.get_or_insert(malformed);
            }
        }
    }
    let withheld = Withheld::new(&withheld);
    granted.ids.retain(|id| !withheld.covers(id));
    Field::Valid(granted)
}

/// The ids that are withheld. One of them may be written in another form, or stand for several capabilities (`data.file`, `data.*`).
struct Withheld {
    /// Whether one of them has characters beyond ASCII, so that it may look like any.
    has_any: bool,
    /// Their folded forms in order, of which none begins as another one.
    folded: Vec<String>,
}

impl Withheld {
    fn new(ids: &HashSet<String>) -> Self {
        let has_any = ids.iter().any(|id| fold(id).is_none());
        let mut folded: Vec<String> = ids.iter().filter_map(|id| fold(id)).collect();
        folded.sort_unstable();
        folded.dedup_by(|later, earlier| later.starts_with(earlier.as_str()));
        Self { has_any, folded }
    }

    /// Returns whether a capability is withheld. Of ids that do not begin as one another, only the last one in front of it can begin it.
    fn covers(&self, id: &str) -> bool {
        let Some(id) = fold(id) else { return self.has_any || !self.folded.is_empty() };
        let in_front = self.folded.partition_point(|withheld| *withheld <= id);
        self.has_any
            || in_front.checked_sub(1).and_then(|last| self.folded.get(last)).is_some_and(|withheld| id.starts_with(withheld.as_str()))
    }
}

/// An entry of the capabilities.
struct Entry {
    id: String,
    is_enabled: bool,
    /// The path of its parameters, if it has some.
    params: Option<String>,
}

fn read_entry(item: Value<'_>, path: &str) -> Result<Entry, Malformed> {
    let Some(id) = item.get("id") else {
        let found = if item.is_object() { "an object without one".to_owned() } else { item.shape().to_string() };
        return Err(Malformed::new(path, found, "an object with an id"));
    };
    let fields = Section::new(path.to_owned(), Some(item));
    let text = id.as_text().and_then(Text::into_str);
    let id = text.ok_or_else(|| Malformed::new(fields.path_of("id"), id.shape(), "a string"))?.into_owned();
    let is_enabled = match fields.flag("enabled") {
        Field::Absent => true,
        Field::Valid(is_enabled) => is_enabled,
        Field::Malformed(malformed) => return Err(malformed),
    };
    let params = fields.value("params");
    if let Some(params) = params.filter(|params| !params.is_object()) {
        return Err(Malformed::new(fields.path_of("params"), params.shape(), "an object"));
    }
    if let Some(malformed) = unknown::member_of_entry(item, path, |name| ["id", "params", "enabled"].contains(&name)) {
        return Err(malformed);
    }
    let params = params.filter(|params| params.members().any(|(_, value)| !value.is_null())).map(|_| fields.path_of("params"));
    Ok(Entry { id, is_enabled, params })
}

fn read_limits(fields: &Section<'_>, root: Value<'_>) -> Result<Limits, Malformed> {
    let value: Option<Value<'_>> = fields.value("limits");
    match value {
        Some(value) if !value.is_object() => Err(Malformed::new("limits", value.shape(), "an object")),
        value => {
            let entries = root.get("capabilities").into_iter().flat_map(|entries| entries.items());
            let ids: HashSet<Cow<'_, str>> = entries.filter_map(|entry| entry.get("id")?.as_text()?.into_str()).collect();
            Limits::new(value, |name| schema::has_limits(name) || ids.contains(name))
        }
    }
}
