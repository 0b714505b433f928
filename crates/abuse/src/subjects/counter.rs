//! A counter of a subject: what one rule counts, as bytes until a signal concerns it, and the subject's place on the rule's ladder.

use std::ops::Range;

use tollgate_core::engine::wire::{Input, Malformed, Wire, layout, write_sized_with};
use tollgate_json::digest::Fingerprint;

use super::super::window::{Window, WindowKind};

/// The most counters of a subject. There are more combinations of a rule's dimensions than that only where somebody makes them up; then a
/// counter of the rule that has most of them goes, so that no rule takes the room of another.
pub(crate) const COUNTERS_MAX: usize = 64;
/// What there is of a counter stands in the highest bits of its id.
const IS_GROUPED: u8 = 0x40;
const HAS_EPISODE: u8 = 0x80;
const ID: u8 = 0x3f;

const _: () = assert!(COUNTERS_MAX <= ID as usize + 1, "an id leaves two bits");

/// A counter: what one rule counts of one subject and one combination of the rule's dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counter<'p> {
    /// Its number within the subject.
    pub id: u8,
    /// The rule's number within the partition.
    pub rule: u32,
    /// The combination of dimensions as a JSON object; empty for a rule that has none.
    pub group: Box<str>,
    /// How close it is to the threshold.
    pub closeness: u8,
    /// Whether it is on the ladder.
    pub is_on_ladder: bool,
    pub(super) content: Content<'p>,
}

/// What is in a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    /// The window.
    pub window: Window,
    /// The subject's place on the rule's ladder, if it is on it.
    pub episode: Option<Box<Episode>>,
    /// The place before the firings that are not certain, which are among those of the window; `None` if all firings are certain.
    pub before: Option<Option<Box<Episode>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content<'p> {
    Packed(WindowKind, &'p [u8]),
    Opened(Opened),
}

impl<'p> Counter<'p> {
    fn kind(&self) -> WindowKind {
        match &self.content {
            Content::Packed(kind, _) => *kind,
            Content::Opened(opened) => opened.window.kind(),
        }
    }

    /// Appends the counter, and returns where its content is. Rules that differ in their timespans alone have mostly seen the same, so the
    /// content is left out if it is that of the counter before.
    pub(super) fn write(&self, base_ms: i64, before: Option<(&Self, Range<usize>)>, out: &mut Vec<u8>) -> Range<usize> {
        self.rule.write(out);
        let is_grouped = if self.group.is_empty() { 0 } else { IS_GROUPED };
        out.push(self.id | is_grouped | if self.is_on_ladder { HAS_EPISODE } else { 0 });
        let at = out.len();
        out.push(self.kind().with_closeness(self.closeness));
        if !self.group.is_empty() {
            self.group.write(out);
        }
        let (end, mut length) = (out.len(), 0);
        write_sized_with(out, |out| {
            let start = out.len();
            match &self.content {
                Content::Packed(_, bytes) => out.extend_from_slice(bytes),
                Content::Opened(opened) => {
                    opened.window.write(base_ms, out);
                    opened.episode.iter().for_each(|episode| episode.write(out));
                    if opened.window.has_used() {
                        opened.before.clone().flatten().write(out);
                    }
                }
            }
            length = out.len() - start;
        });
        let content = out.len() - length..out.len();
        let is_same = |(other, place): &(&Self, Range<usize>)| {
            (other.kind(), other.is_on_ladder) == (self.kind(), self.is_on_ladder) && out.get(place.clone()) == out.get(content.clone())
        };
        let Some((_, same)) = before.filter(is_same) else { return content };
        out.truncate(end);
        out.get_mut(at).into_iter().for_each(|byte| *byte = WindowKind::same_with_closeness(self.closeness));
        same
    }

    pub(super) fn read(input: &mut Input<'p>, before: Option<&Self>) -> Result<Self, Malformed> {
        const INVALID: Malformed = Malformed::Invalid("a window");
        let rule = u32::read(input)?;
        let [has, kind] = input.array()?;
        let (kind, closeness) = WindowKind::and_closeness(kind).ok_or(INVALID)?;
        let (id, is_on_ladder) = (has & ID, has & HAS_EPISODE != 0);
        let group = if has & IS_GROUPED != 0 { Wire::read(input)? } else { Box::default() };
        let content = match (kind, before.map(|before| &before.content)) {
            (Some(kind), _) => Content::Packed(kind, input.sized()?),
            (None, Some(Content::Packed(kind, same))) => Content::Packed(*kind, same),
            (None, _) => return Err(INVALID),
        };
        Ok(Self { id, rule, group, closeness, is_on_ladder, content })
    }
}

impl Opened {
    /// Returns a counter with a window, of somebody who is on no ladder.
    pub(super) fn new(window: Window) -> Self {
        Self { window, episode: None, before: None }
    }

    /// Begins a window anew. Who is on the ladder stays there.
    pub(crate) fn renew(&mut self, window: Window) {
        (self.window, self.before) = (window, None);
    }

    /// Makes all firings certain.
    pub(crate) fn settle_firings(&mut self) {
        self.window.forget_used();
        self.before = None;
    }

    pub(super) fn read(kind: WindowKind, input: &mut Input<'_>, base_ms: i64, has_episode: bool) -> Result<Self, Malformed> {
        let window = Window::read(kind, input, base_ms)?;
        let episode = has_episode.then(|| Wire::read(input)).transpose()?;
        let before = window.has_used().then(|| Wire::read(input)).transpose()?;
        match input.rest().len() {
            0 => Ok(Self { window, episode, before }),
            rest => Err(Malformed::Trailing(rest)),
        }
    }
}

/// An episode: a subject on the ladder of a rule, from the first firing until it is down again. Times are in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Episode {
    /// The id of its alerts.
    pub alert_id: Fingerprint,
    /// The step that it is on, counted from 1.
    pub step: u32,
    /// When it goes a step down, unless the rule fires before.
    pub descends_ms: i64,
    /// The end of the suspension, if there was one.
    pub until_ms: Option<i64>,
    /// The latest firing that suspended it.
    pub suspended_ms: Option<i64>,
    /// The latest firing that raised an alert.
    pub alerted_ms: i64,
    /// How many firings since then have raised none.
    pub suppressed: u32,
}

layout! {
    Episode { alert_id, step, descends_ms, until_ms, suspended_ms, alerted_ms, suppressed }
}
