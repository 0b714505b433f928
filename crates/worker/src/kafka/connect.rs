//! A client that asks the brokers and meanwhile says why they do not answer.
//!
//! A request of librdkafka blocks for as long as it may take, and the reasons wait in a queue until the client is polled. So the request
//! runs on a thread of its own, and the caller's thread polls, says what it hears, and gives up when it is said to.

use std::cell::{Cell, RefCell};
use std::sync::mpsc::{TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};

use super::context::{AssignsItself, Callbacks, Context};
use super::explain::explained;
use super::reason::{Reason, Wording};

/// How long to serve the client at a time.
const POLL: Duration = Duration::from_millis(20);
/// How long the brokers may say nothing before that is said.
const SILENCE: Duration = Duration::from_secs(2);
/// How many reasons are held until they are said. More of them come only from more brokers.
const HEARD_MAX: usize = 64;

/// The context of a client that collects why brokers cannot be reached.
pub type ReasonContext = Context<Reasons>;

/// Why brokers cannot be reached.
#[derive(Debug, Default)]
pub struct Reasons {
    heard: Mutex<Vec<Reason>>,
    /// The want of a right to the group, which librdkafka tells once. Requests to the group are repeated until their time is up.
    group_refused: Mutex<Option<KafkaError>>,
}

impl Reasons {
    fn heard(&self) -> MutexGuard<'_, Vec<Reason>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, sentence: &str) {
        let mut heard = self.heard();
        let has_room = heard.len() < HEARD_MAX;
        heard.extend(Reason::read(sentence).filter(|_| has_room));
    }
}

impl Callbacks for Reasons {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        // OpenSSL's own lines stand behind a failure that says the same in one.
        if facility == "FAIL" || facility == "SSL" {
            self.hear(message);
            tracing::debug!(target: "librdkafka", facility, "{message}");
        } else {
            super::log(level, facility, message);
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.hear(reason);
        tracing::debug!(target: "librdkafka", %error, reason, "client");
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::GroupAuthorizationFailed) {
            *self.group_refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}

impl AssignsItself for Reasons {}

/// What the caller of a question wants of it meanwhile.
pub struct Watch<'w> {
    /// Returns whether the answer is still wanted.
    pub is_wanted: &'w dyn Fn() -> bool,
    /// Says why there is no answer yet: once, and again when the reason changes.
    pub say: &'w mut dyn FnMut(&str),
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// A client that says why its brokers do not answer.
pub struct Inquirer {
    client: Arc<BaseConsumer<ReasonContext>>,
    config: ClientConfig,
    said: RefCell<Wording>,
    /// Whether the brokers have answered any question.
    has_answered: Cell<bool>,
}

impl std::fmt::Debug for Inquirer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inquirer").field("said", &self.said).finish_non_exhaustive()
    }
}

impl Inquirer {
    /// Returns a client with this configuration.
    ///
    /// # Errors
    /// librdkafka does not take a property.
    pub fn new(mut config: ClientConfig) -> KafkaResult<Self> {
        // A listener that hangs up is only a notice to librdkafka.
        config.set("statistics.interval.ms", "0").set_log_level(RDKafkaLogLevel::Info);
        Ok(Self {
            client: Arc::new(config.create_with_context(ReasonContext::default())?),
            config,
            said: RefCell::default(),
            has_answered: Cell::new(false),
        })
    }

    /// Returns the client.
    #[must_use]
    pub fn client(&self) -> &BaseConsumer<ReasonContext> {
        &self.client
    }

    /// Returns the last reason that was heard.
    #[must_use]
    pub fn last_reason(&self) -> Option<Reason> {
        self.said.borrow().last().cloned()
    }

    /// Forgets the reasons that were heard, because the brokers answer again.
    pub fn forget_reasons(&self) {
        *self.said.borrow_mut() = Wording::default();
    }

    /// Asks the brokers a question, which may block, and says meanwhile why there is no answer. Returns `None` as soon as the answer is not
    /// wanted any more; the question then goes on unheard.
    pub fn ask<T: Send + 'static>(
        &self,
        watch: &mut Watch<'_>,
        question: impl FnOnce(&BaseConsumer<ReasonContext>) -> KafkaResult<T> + Send + 'static,
    ) -> Option<KafkaResult<T>> {
        self.ask_until(watch, false, question)
    }

    /// Asks a question about the group, like [`Inquirer::ask`]. If the brokers refuse the right to the group, that is the answer at once.
    pub fn ask_group<T: Send + 'static>(
        &self,
        watch: &mut Watch<'_>,
        question: impl FnOnce(&BaseConsumer<ReasonContext>) -> KafkaResult<T> + Send + 'static,
    ) -> Option<KafkaResult<T>> {
        self.ask_until(watch, true, question)
    }

    fn ask_until<T: Send + 'static>(
        &self,
        watch: &mut Watch<'_>,
        is_about_the_group: bool,
        question: impl FnOnce(&BaseConsumer<ReasonContext>) -> KafkaResult<T> + Send + 'static,
    ) -> Option<KafkaResult<T>> {
        let (sender, answer) = channel();
        let client = Arc::clone(&self.client);
        let ask = move || {
            // Nobody listens any more if the answer was not wanted.
            let _sent = sender.send(question(&client));
        };
        if std::thread::Builder::new().name("ask-brokers".to_owned()).spawn(ask).is_err() {
            return Some(Err(KafkaError::Global(RDKafkaErrorCode::CriticalSystemResource)));
        }
        let group_refused = &self.client.context().group_refused;
        let answered = self.serve(watch, || match answer.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) if is_about_the_group => group_refused.lock().unwrap_or_else(PoisonError::into_inner).take().map(Err),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(KafkaError::Global(RDKafkaErrorCode::Fail))),
        });
        if matches!(answered, Some(Ok(_))) {
            self.has_answered.set(true);
        }
        answered
    }

    /// Waits before a question is asked again, and says what is heard. Returns `false` as soon as no answer is wanted any more.
    #[must_use]
    pub fn pause(&self, watch: &mut Watch<'_>, time: Duration) -> bool {
        let end = Instant::now() + time;
        self.serve(watch, || (Instant::now() >= end).then_some(())).is_some()
    }

    /// Leaves the client as it is until the process ends. Closing it would wait for its threads, and one of them may wait for a name
    /// server. A command that fails, or is stopped, calls this before it ends.
    pub fn abandon(&self) {
        std::mem::forget(Arc::clone(&self.client));
    }

    fn serve<T>(&self, watch: &mut Watch<'_>, mut done: impl FnMut() -> Option<T>) -> Option<T> {
        let (started, mut is_silent) = (Instant::now(), !self.has_answered.get());
        loop {
            if let Some(value) = done() {
                return Some(value);
            }
            if !(watch.is_wanted)() {
                return None;
            }
            // No partition is assigned, so only events come.
            let _event = self.client.poll(POLL);
            for reason in std::mem::take(&mut *self.client.context().heard()) {
                let is_news = self.said.borrow_mut().is_news(&reason);
                if is_news {
                    let explained = explained(reason, &self.config);
                    (watch.say)(&explained.to_string());
                    self.said.borrow_mut().explain_last(explained);
                }
            }
            if is_silent && started.elapsed() > SILENCE {
                is_silent = false;
                if self.said.borrow().last().is_none() {
                    (watch.say)("no answer yet, and no error either");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a question goes on whose answer nobody wants: far longer than a machine is slow.
    const TIME_MAX: Duration = Duration::from_secs(120);

    #[test]
    fn whoever_wants_no_answer_any_more_does_not_wait_for_the_question() {
        let mut config = ClientConfig::new();
        config.set("group.id", "g");
        let inquirer = Inquirer::new(config).unwrap();
        let (asking, is_asked) = channel();
        let (_until_the_end, held) = channel::<()>();
        let watch = &mut Watch { is_wanted: &|| is_asked.try_recv() != Ok(()), say: &mut |_| {} };
        let answer = inquirer.ask(watch, move |_| {
            asking.send(()).unwrap();
            _ = held.recv_timeout(TIME_MAX);
            Ok(())
        });
        assert!(answer.is_none(), "the question was waited for");
    }
}
