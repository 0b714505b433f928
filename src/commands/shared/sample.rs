//! The sample: bundled traffic, played as an orchestrator would play it, with a wait for every verdict.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::Value;

use tollgate_config::settings::KafkaSettings;
use tollgate_worker::kafka::{Linger, PlainContext, make_producer, producer_config};

use tollgate_operations::Verdict;

/// The samples, one event a line as `thread<TAB>value`, so that a broken record has a thread too.
const FLEET: &str = include_str!("sample.tsv");
const OFFENDER: &str = include_str!("offender.tsv");
/// What a line begins with that waits so many milliseconds.
const PAUSE: &str = "#pause ";
/// How long to wait for one verdict.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(10);
/// The size limit of a batch in bytes.
const BATCH_BYTES_MAX: u64 = 1_000_000;

/// What is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    /// Some agents at work.
    Fleet,
    /// A user who is stopped by safety systems again and again, and calls a tool then.
    Offender,
}

impl Script {
    fn lines(self) -> std::str::Lines<'static> {
        match self {
            Self::Fleet => FLEET,
            Self::Offender => OFFENDER,
        }
        .lines()
    }
}

/// How often, and on which threads, the sample is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Play {
    /// Once, on the threads that it names.
    AsItStands,
    /// Each time on new threads, so that nothing of the last time is remembered; again after a pause, if there is one.
    OnNewThreads(Option<Duration>),
}

/// The orchestrator's side: it publishes the sample's events, each once the verdict on the one before has come.
pub(super) struct Sample {
    producer: BaseProducer<PlainContext>,
    topic: String,
    script: Script,
    play: Play,
    lines: std::str::Lines<'static>,
    /// What the names of the threads end with this time.
    suffix: String,
    awaited: Option<Awaited>,
    /// Until when nothing is published.
    paused_until: Option<Instant>,
    /// When the sample is played again.
    begins_again: Option<Instant>,
    started: Instant,
    events: usize,
    verdicts: usize,
}

/// The event whose verdict is awaited.
struct Awaited {
    thread: String,
    sent: Instant,
}

impl Sample {
    pub(super) fn new(kafka: &KafkaSettings, script: Script, play: Play) -> anyhow::Result<Self> {
        let config = producer_config(kafka, BATCH_BYTES_MAX, Linger::None);
        let producer = make_producer(&config, PlainContext::default()).context("kafka.properties")?;
        Ok(Self {
            producer,
            topic: kafka.topics.events.clone(),
            script,
            play,
            lines: script.lines(),
            suffix: suffix(play),
            awaited: None,
            paused_until: None,
            begins_again: None,
            started: Instant::now(),
            events: 0,
            verdicts: 0,
        })
    }

    /// Publishes what comes before the next verdict, unless one is awaited. It returns `false` once everything has been played.
    pub(super) fn go_on(&mut self) -> anyhow::Result<bool> {
        self.producer.poll(Duration::ZERO);
        if let Some(awaited) = &self.awaited {
            anyhow::ensure!(awaited.sent.elapsed() < VERDICT_TIMEOUT, "no verdict came within {} s", VERDICT_TIMEOUT.as_secs());
            return Ok(true);
        }
        if self.paused_until.is_some_and(|until| Instant::now() < until) {
            return Ok(true);
        }
        match self.begins_again {
            Some(time) if Instant::now() < time => return Ok(true),
            Some(_) => self.begin_again(),
            None => {}
        }
        for line in self.lines.by_ref() {
            if let Some(pause) = line.strip_prefix(PAUSE) {
                let pause = pause.parse().context("the bundled sample is broken")?;
                self.paused_until = Some(Instant::now() + Duration::from_millis(pause));
                return Ok(true);
            }
            let (thread, value) = renamed(line, &self.suffix).context("the bundled sample is broken")?;
            let record = BaseRecord::to(&self.topic).key(&thread).payload(&value);
            self.producer.send(record).map_err(|(error, _)| error).context("the sample cannot be published")?;
            self.producer.poll(Duration::ZERO);
            self.events += 1;
            if is_awaited(&value) {
                self.awaited = Some(Awaited { thread, sent: Instant::now() });
                return Ok(true);
            }
        }
        self.producer.flush(VERDICT_TIMEOUT).context("the sample cannot be published")?;
        let Play::OnNewThreads(Some(pause)) = self.play else { return Ok(false) };
        say!("{}; again in {} s", self.summary(), pause.as_secs());
        self.begins_again = Some(Instant::now() + pause);
        Ok(true)
    }

    fn begin_again(&mut self) {
        (self.lines, self.suffix, self.begins_again) = (self.script.lines(), suffix(self.play), None);
        (self.started, self.events, self.verdicts) = (Instant::now(), 0, 0);
    }

    /// Returns how long a verdict was awaited in milliseconds, if it is the sample's.
    pub(super) fn receive(&mut self, verdict: &Verdict) -> Option<f64> {
        let awaited = self.awaited.take_if(|awaited| awaited.thread.as_bytes() == verdict.thread)?;
        self.verdicts += 1;
        Some(awaited.sent.elapsed().as_secs_f64() * 1_000.0)
    }

    /// Returns whether a verdict is to be shown: on new threads, only those of the sample are, and not what the fleet does besides.
    pub(super) fn shows(&self, verdict: &Verdict) -> bool {
        verdict.thread.ends_with(self.suffix.as_bytes())
    }

    /// Returns what was played, for people.
    pub(super) fn summary(&self) -> String {
        format!("played {} events, {} verdicts in {} ms", self.events, self.verdicts, self.started.elapsed().as_millis())
    }
}

/// Returns what the names of threads end with this time: the time of day, or nothing.
fn suffix(play: Play) -> String {
    match play {
        Play::AsItStands => String::new(),
        Play::OnNewThreads(_) => {
            // A clock that stands before 1970 gives the same names each time, and repeated events get the same verdicts again.
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("-{}", since.as_millis())
        }
    }
}

/// Returns the key and the value of a line, of a thread whose name ends with `suffix`; `None` if the line has no key.
fn renamed(line: &str, suffix: &str) -> Option<(String, String)> {
    let (thread, value) = line.split_once('\t')?;
    let name = |suffix: &str| format!(r#""thread_id":"{thread}{suffix}""#);
    Some((format!("{thread}{suffix}"), value.replace(&name(""), &name(suffix))))
}

/// Returns whether an event gets a verdict. Turn boundaries get none; everything else does, even what cannot be read.
fn is_awaited(value: &str) -> bool {
    let parsed: Value = serde_json::from_str(value).unwrap_or_default();
    !matches!(parsed.get("type").and_then(Value::as_str), Some("turn_start" | "turn_end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_renamed_in_key_and_value() {
        let mut objects = 0;
        for line in FLEET.lines().chain(OFFENDER.lines().filter(|line| !line.starts_with(PAUSE))) {
            let (thread, value) = line.split_once('\t').unwrap();
            assert_eq!(renamed(line, "").unwrap(), (thread.to_owned(), value.to_owned()));
            let (key, value) = renamed(line, "-7").unwrap();
            assert_eq!(key, format!("{thread}-7"));
            // One record of the sample cannot be read on purpose.
            let Ok(event) = serde_json::from_str::<Value>(&value) else { continue };
            assert_eq!(event["thread_id"], key.as_str());
            objects += 1;
        }
        assert!(objects > 20, "{objects} events");
        assert_eq!(renamed("no key", "-7"), None);
    }

    #[test]
    fn each_time_has_new_threads() {
        assert_eq!(suffix(Play::AsItStands), "");
        let first = suffix(Play::OnNewThreads(None));
        std::thread::sleep(Duration::from_millis(5));
        assert_ne!(suffix(Play::OnNewThreads(None)), first);
    }
}
