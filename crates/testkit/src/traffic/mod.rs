//! Generates the traffic: what a fleet of agents publishes, event by event, the same bytes for the same seed.
//!
//! Threads are drawn by Zipf's law; each goes on with its own conversation. Every event carries its number, in its id and for the header
//! that verdicts echo.

mod conversation;
mod random;
mod text;
mod write;

pub use random::{Random, Zipf};
pub use write::DENIED_TOOL;

use tollgate_core::decode::EventType;

use conversation::{Conversation, Step};
use write::{Place, Writer};

/// The settings of the traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixSettings {
    /// Where the pseudo-random numbers begin.
    pub seed: u64,
    /// How many threads there are.
    pub threads: usize,
    /// The share of tool calls that repeat one in a loop.
    pub loops: f64,
    /// The share of responses that are cut off by their provider.
    pub safety_stops: f64,
    /// The share of tool calls that policy denies.
    pub denials: f64,
    /// Whether every second thread is of one and the same user, who then has about half of the traffic.
    pub has_hot_user: bool,
    /// The largest result, in bytes of its event.
    pub result_bytes_max: usize,
    /// The largest arguments of a call, in bytes.
    pub arguments_bytes_max: usize,
    /// The largest response, in bytes of its event, if its calls have fewer.
    pub response_bytes_max: usize,
}

impl MixSettings {
    /// The usual traffic.
    pub const USUAL: Self = Self {
        seed: 1,
        threads: 10_000,
        loops: 0.05,
        safety_stops: 0.01,
        denials: 0.01,
        has_hot_user: false,
        result_bytes_max: 16_000,
        arguments_bytes_max: usize::MAX,
        response_bytes_max: usize::MAX,
    };
}

impl Default for MixSettings {
    fn default() -> Self {
        Self::USUAL
    }
}

/// One event of the traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MixEvent {
    /// Its number, from 0.
    pub number: u64,
    /// The type of the event.
    pub event_type: EventType,
    /// Its thread, which is the record's key.
    pub thread_id: String,
    /// The event as JSON.
    pub value: Vec<u8>,
}

impl MixEvent {
    /// Returns an event that [`Mix::next_into`] fills in.
    #[must_use]
    pub fn blank() -> Self {
        Self { number: 0, event_type: EventType::TurnEnd, thread_id: String::new(), value: Vec::new() }
    }

    /// Returns whether it gets a verdict.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        !matches!(self.event_type, EventType::TurnStart | EventType::TurnEnd | EventType::ThreadReset)
    }
}

/// The traffic of a seed, event by event.
#[derive(Debug, Clone)]
pub struct Mix {
    settings: MixSettings,
    random: Random,
    zipf: Zipf,
    threads: Vec<Conversation>,
    writer: Writer,
    next: u64,
}

impl Mix {
    /// Returns the traffic of these settings, from its beginning.
    #[must_use]
    pub fn new(settings: MixSettings) -> Self {
        let mut random = Random::new(settings.seed);
        let writer = Writer::new(&settings, &mut random);
        let threads: Vec<_> = (0..settings.threads.max(1)).map(|_| Conversation::running(&mut random)).collect();
        Self { settings, random, zipf: Zipf::new(threads.len()), threads, writer, next: 0 }
    }

    /// Writes the next event into one that is used again and again.
    pub fn next_into(&mut self, event: &mut MixEvent) {
        let thread = self.zipf.draw(&mut self.random);
        let Some(conversation) = self.threads.get_mut(thread) else { return };
        let step = conversation.next(&self.settings, &mut self.random);
        event.number = self.next;
        event.event_type = step.event_type();
        event.thread_id.clear();
        event.thread_id.push_str(&format!("thread-{thread:06}"));
        let person = if self.settings.has_hot_user && thread.is_multiple_of(2) { 0 } else { thread };
        let place = Place { thread, person, thread_id: &event.thread_id, turn: conversation.turn, number: self.next };
        self.writer.write(place, &step, &self.settings, &mut self.random, &mut event.value);
        self.next += 1;
    }
}

impl Step {
    fn event_type(&self) -> EventType {
        match self {
            Self::TurnStart => EventType::TurnStart,
            Self::Response { .. } => EventType::ModelResponse,
            Self::Call(_) => EventType::ToolCall,
            Self::Result(..) => EventType::ToolResult,
            Self::TurnEnd => EventType::TurnEnd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(settings: MixSettings, count: usize) -> Vec<MixEvent> {
        let mut mix = Mix::new(settings);
        let mut next = || {
            let mut event = MixEvent::blank();
            mix.next_into(&mut event);
            event
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn a_seed_gives_the_same_bytes_again_and_another_one_others() {
        let settings = MixSettings { threads: 100, ..MixSettings::default() };
        let once = events(settings, 3_000);
        assert_eq!(once, events(settings, 3_000));
        assert_ne!(once, events(MixSettings { seed: 2, ..settings }, 3_000));
        let bytes: Vec<u8> = once.iter().flat_map(|event| event.value.iter().copied()).collect();
        // The bytes are pinned: the traffic for which figures were published must not change unseen.
        assert_eq!(
            tollgate_core::digest::Digest::of(&bytes).to_string(),
            "642b0debf22983a940e5902b88294639b2ee75e86ccee3da476097b9cdf6d430"
        );
    }

    #[test]
    fn sizes_are_those_of_real_traffic() {
        let events = events(MixSettings::default(), 40_000);
        let sizes = |event_type| {
            let mut sizes: Vec<_> = events.iter().filter(|event| event.event_type == event_type).map(|event| event.value.len()).collect();
            sizes.sort_unstable();
            (sizes[0], sizes[sizes.len() / 2], sizes[sizes.len() - 1])
        };
        for (event_type, least, most) in
            [(EventType::ModelResponse, 2_500, 9_000), (EventType::ToolCall, 200, 4_100), (EventType::ToolResult, 200, 17_000)]
        {
            let (min, median, max) = sizes(event_type);
            assert!(min >= least && max <= most, "{event_type:?}: {min} to {max}");
            assert!(max > most / 5 * 4 && median > min && median < max, "{event_type:?}: median {median}, at most {max}");
        }
        let boundaries = events.iter().filter(|event| !event.is_awaited()).count();
        assert!((0.03..0.07).contains(&(boundaries as f64 / 40_000.0)), "{boundaries}");
    }

    #[test]
    fn a_hot_user_has_half_of_the_traffic() {
        let settings = MixSettings { has_hot_user: true, ..MixSettings::default() };
        let hot = events(settings, 20_000);
        let user = |event: &&MixEvent| String::from_utf8_lossy(&event.value).contains(r#""user_id":"user-0","tenant_id":"tenant-0""#);
        let share = hot.iter().filter(user).count() as f64 / 20_000.0;
        assert!((0.45..0.6).contains(&share), "{share}");
    }

    #[test]
    fn turns_start_and_end() {
        let events = events(MixSettings { threads: 1, ..MixSettings::default() }, 2_000);
        let mut is_running = true;
        for event in &events {
            match event.event_type {
                EventType::TurnStart => assert!(!std::mem::replace(&mut is_running, true)),
                EventType::TurnEnd => assert!(std::mem::replace(&mut is_running, false)),
                _ => assert!(is_running),
            }
        }
    }
}
