//! The paths of all readers as one tree, along which a body is walked once.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use tollgate_json::{Shape, Value};

use super::{CallsAt, READERS, Reader, ReasonAt};

/// The paths of native bodies and API errors.
pub(super) static RESPONSES: LazyLock<Paths> = LazyLock::new(|| Paths::of(READERS.iter().copied().filter(|reader| !reader.is_message)));

/// The paths of LangChain messages.
pub(super) static MESSAGES: LazyLock<Paths> = LazyLock::new(|| Paths::of(READERS.iter().copied().filter(|reader| reader.is_message)));

/// A place of a reader's table, with its rank among all places: of several that speak the lowest counts.
#[derive(Debug)]
pub(super) struct Place<T: 'static> {
    pub(super) rank: usize,
    pub(super) reader: &'static Reader,
    pub(super) at: &'static T,
}

/// Paths as a tree.
#[derive(Debug)]
pub(super) struct Paths {
    /// The nodes; the first is the root.
    pub(super) nodes: Vec<Node>,
}

/// What is at one path.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The members that lead on. A body's top has many, and every member of a body is looked up, which a hash does in the least time.
    members: FxHashMap<&'static [u8], usize>,
    /// Where every item of an array leads.
    pub(super) items: Option<usize>,
    /// Where the last item of an array leads.
    pub(super) last: Option<usize>,
    /// Whether a body starts anew here.
    pub(super) is_root: bool,
    /// Whether a member of a body's top that is here tells the body's shape.
    tells_shape: bool,
    /// Whether such a member is in a piece of a stream, which need not say how the response stands.
    is_of_piece: bool,
    /// Whether what stands here says how a response stands, a null included.
    tells_end: bool,
    pub(super) reasons: Vec<Place<ReasonAt>>,
    pub(super) calls: Vec<Place<CallsAt>>,
    texts: Vec<&'static Reader>,
}

/// Members of a body's top that say nothing of its shape, since any JSON may have them.
const SAYS_NOTHING: &[&str] =
    &["type", "status", "code", "message", "text", "result", "action", "response", "Response", "kwargs", "data", "messages", "content"];

/// Members of a body's top that pieces of streams have.
const PIECES: &[&str] = &["contentBlockDelta", "contentBlockStart", "content_block", "delta", "item", "serverContent", "server_content"];

/// What wants to know of the values at places. What it does not want to know of it leaves out.
pub(super) trait Visit<'d> {
    /// Tells that a body has a known shape.
    fn known_shape(&mut self) {}
    /// Tells that a body says how its response stands, or has no output.
    fn known_end(&mut self) {}
    /// Tells that an event of a stream, or the body, was walked.
    fn event_over(&mut self) {}
    /// Tells of a value that may say why the response ended, and of the object around it.
    fn reason(&mut self, _place: &Place<ReasonAt>, _value: Value<'d>, _beside: Value<'d>) {}
    /// Tells of a call.
    fn call(&mut self, place: &Place<CallsAt>, value: Value<'d>);
    /// Tells of a text for the user.
    fn text(&mut self, reader: &'static Reader, value: Value<'d>);
}

impl Paths {
    fn of(readers: impl Iterator<Item = &'static Reader>) -> Self {
        let mut paths = Self { nodes: vec![Node { is_root: true, ..Node::default() }] };
        let mut rank = 0..;
        for reader in readers {
            for path in reader.wrappers {
                paths.at(path, |node| node.is_root = true);
            }
            for at in reader.reasons {
                let place = Place { rank: rank.next().unwrap_or_default(), reader, at };
                paths.at(at.path, |node| node.reasons.push(place));
            }
            for at in reader.calls {
                let place = Place { rank: rank.next().unwrap_or_default(), reader, at };
                paths.at(at.path, |node| node.calls.push(place));
            }
            for path in reader.texts {
                paths.at(path, |node| node.texts.push(reader));
            }
        }
        let top = paths.nodes.first().map(|root| root.members.clone()).unwrap_or_default();
        for (name, at) in top.iter().filter(|(name, _)| !SAYS_NOTHING.iter().any(|known| known.as_bytes() == **name)) {
            let Some(node) = paths.nodes.get_mut(*at) else { continue };
            (node.tells_shape, node.is_of_piece) = (true, PIECES.iter().any(|known| known.as_bytes() == *name));
        }
        for node in &mut paths.nodes {
            node.tells_end = node.reasons.iter().any(|place| place.at.test.is_ending());
        }
        paths
    }

    /// Changes the node at a path, which is made if it is not there.
    fn at(&mut self, path: &'static str, change: impl FnOnce(&mut Node)) {
        let mut at = 0;
        for step in steps(path) {
            let next = self.nodes.len();
            let Some(node) = self.nodes.get_mut(at) else { return };
            let known = match step {
                Step::Items => node.items,
                Step::Last => node.last,
                Step::Member(name) => node.member(name.as_bytes()),
            };
            at = known.unwrap_or(next);
            if known.is_none() {
                match step {
                    Step::Items => node.items = Some(next),
                    Step::Last => node.last = Some(next),
                    Step::Member(name) => _ = node.members.insert(name.as_bytes(), next),
                }
                self.nodes.push(Node::default());
            }
        }
        if let Some(node) = self.nodes.get_mut(at) {
            change(node);
        }
    }

    /// Walks a body, or the array of a stream's events.
    pub(super) fn walk<'d>(&self, body: Value<'d>, visit: &mut impl Visit<'d>) {
        for event in body.items().filter(Value::is_object).chain([body]) {
            self.walk_node(0, event, event, visit);
            visit.event_over();
        }
    }

    fn walk_node<'d>(&self, at: usize, value: Value<'d>, beside: Value<'d>, visit: &mut impl Visit<'d>) {
        let Some(node) = self.nodes.get(at) else { return };
        if node.tells_end {
            visit.known_end();
        }
        if value.is_null() {
            return;
        }
        if node.tells_shape && node.fits(value) {
            visit.known_shape();
            if node.is_of_piece || node.items.is_some() && value.items().next().is_none() {
                visit.known_end();
            }
        }
        node.reasons.iter().for_each(|place| visit.reason(place, value, beside));
        node.calls.iter().for_each(|place| visit.call(place, value));
        node.texts.iter().for_each(|reader| visit.text(reader, value));
        // A text under the name of a wrapper is what the model wrote.
        if node.is_root && at != 0 && value.is_object() {
            self.walk_node(0, value, value, visit);
        }
        if let Some(items) = node.items {
            value.items().for_each(|item| self.walk_node(items, item, item, visit));
        }
        if let (Some(last), Some(item)) = (node.last, value.items().last()) {
            self.walk_node(last, item, item, visit);
        }
        if !node.members.is_empty() {
            for (name, member) in value.members() {
                if let Some(next) = node.member(&name.text_bytes()) {
                    self.walk_node(next, member, value, visit);
                }
            }
        }
    }
}

impl Node {
    /// Returns whether a value may be what stands here: the attributes of a span as a list are not those that are read, and to know the body by
    /// them would hide that its end is not read.
    fn fits(&self, value: Value<'_>) -> bool {
        let is_read_itself = !(self.reasons.is_empty() && self.calls.is_empty() && self.texts.is_empty());
        let leads_on = |leads: bool, shape: Shape| leads && value.shape() == shape;
        let has_items = self.items.or(self.last).is_some();
        is_read_itself || leads_on(!self.members.is_empty() || self.is_root, Shape::Object) || leads_on(has_items, Shape::Array)
    }

    /// Returns where a member of this name leads.
    pub(super) fn member(&self, name: &[u8]) -> Option<usize> {
        self.members.get(name).copied()
    }
}

/// One step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Member(&'static str),
    Items,
    Last,
}

/// Returns the steps of a path.
pub(super) fn steps(path: &'static str) -> impl Iterator<Item = Step> {
    let mut rest = path;
    std::iter::from_fn(move || {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(behind) = rest.strip_prefix("[]") {
            rest = behind;
            return Some(Step::Items);
        }
        if let Some(behind) = rest.strip_prefix("[-1]") {
            rest = behind;
            return Some(Step::Last);
        }
        let (name, behind) = match rest.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
            Some(parts) => parts,
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        rest = behind;
        (!name.is_empty()).then_some(Step::Member(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_members_and_items() {
        use Step::{Items, Last, Member};
        for (path, expected) in [
            ("", vec![]),
            ("a", vec![Member("a")]),
            ("a[].b.c[][]", vec![Member("a"), Items, Member("b"), Member("c"), Items, Items]),
            ("\"x.y-z\"[].w", vec![Member("x.y-z"), Items, Member("w")]),
            ("[].a[-1]", vec![Items, Member("a"), Last]),
        ] {
            assert_eq!(steps(path).collect::<Vec<_>>(), expected, "{path}");
        }
    }
}
