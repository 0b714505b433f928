//! Where `tollgate top` gets its figures: the decisions topic, or the metrics of workers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use tollgate_config::settings::KafkaSettings;

use super::tally::{ACTIONS, Tally};
use super::view::{ActionRate, CodeCount, View, WorkerState, WorstThread};
use crate::commands::shared::now_ms;
use crate::commands::shared::scrape::{Scraped, metrics_url, problems, scrape};
use tollgate_operations::{Start, VerdictReader};

/// How long to wait for a verdict at a time.
const POLL: Duration = Duration::from_millis(200);

/// The decisions topic, counted by a thread of its own.
pub(super) struct TopicSource {
    name: String,
    started: Instant,
    tally: Arc<Mutex<Tally>>,
    /// Why counting has ended.
    failed: oneshot::Receiver<anyhow::Error>,
}

impl TopicSource {
    /// Begins to count the verdicts that are published from now on.
    pub(super) fn start(kafka: &KafkaSettings) -> anyhow::Result<Self> {
        let reader = VerdictReader::new(kafka, Start::End)?;
        let (started, tally) = (Instant::now(), Arc::new(Mutex::new(Tally::new(0))));
        let (report, failed) = oneshot::channel();
        let counted = Arc::clone(&tally);
        std::thread::Builder::new().name("verdicts".to_owned()).spawn(move || {
            loop {
                match reader.next(POLL) {
                    Ok(None) => {}
                    Ok(Some(verdict)) => {
                        let now = started.elapsed().as_secs();
                        counted.lock().unwrap_or_else(PoisonError::into_inner).add(now, &verdict.value);
                    }
                    Err(error) => {
                        // If nobody waits for it any more, the command has ended.
                        let _ended = report.send(error);
                        return;
                    }
                }
            }
        })?;
        Ok(Self { name: format!("{} at {}", kafka.topics.decisions, kafka.shown_brokers()), started, tally, failed })
    }

    fn view(&mut self, names: usize) -> anyhow::Result<View> {
        if let Ok(error) = self.failed.try_recv() {
            return Err(error);
        }
        let now = self.started.elapsed().as_secs();
        let sums = self.tally.lock().unwrap_or_else(PoisonError::into_inner).sums(now, names);
        let window = sums.window as f64;
        let rate = |(action, count): (&&str, u64)| ActionRate {
            action: (*action).to_owned(),
            count: count as f64,
            per_second: count as f64 / window,
        };
        Ok(View {
            time_ms: now_ms(),
            source: self.name.clone(),
            window_s: window,
            actions: ACTIONS.iter().zip(sums.actions).map(rate).collect(),
            codes: sums.codes.into_iter().map(|(code, count)| CodeCount { code, count }).collect(),
            threads: sums.threads.into_iter().map(|(thread_id, counts)| WorstThread { thread_id, counts }).collect(),
            ..View::default()
        })
    }
}

/// Workers, by their metrics.
pub(super) struct WorkerSource {
    workers: Vec<String>,
    /// What each said before, and when.
    before: BTreeMap<String, Scraped>,
    asked: Instant,
}

impl WorkerSource {
    pub(super) fn new(workers: &[String]) -> Self {
        Self { workers: workers.to_vec(), before: BTreeMap::new(), asked: Instant::now() }
    }

    async fn view(&mut self) -> View {
        let asking = self.workers.iter().map(|worker| {
            let url = metrics_url(worker);
            tokio::spawn(async move {
                let scraped = scrape(&url).await?;
                let problems = if scraped.ready { Vec::new() } else { problems(&url).await };
                anyhow::Ok((scraped, problems))
            })
        });
        let asking: Vec<_> = asking.collect();
        let (now, mut answers) = (Instant::now(), Vec::new());
        for (worker, asked) in self.workers.iter().zip(asking) {
            answers.push((worker.clone(), asked.await.unwrap_or_else(|error| Err(error.into()))));
        }
        let window = now.duration_since(std::mem::replace(&mut self.asked, now)).as_secs_f64().max(0.001);
        let mut view = View {
            time_ms: now_ms(),
            source: if answers.len() == 1 { "1 worker".to_owned() } else { format!("{} workers", answers.len()) },
            window_s: window,
            ..View::default()
        };
        // Verdicts since the last look, and since the workers were started.
        let (mut recent, mut totals) = (BTreeMap::<String, f64>::new(), BTreeMap::<String, f64>::new());
        let mut pairs = Vec::new();
        for (worker, answer) in answers {
            match answer {
                Ok((scraped, problems)) => {
                    // The first time nothing is known of before, and nothing has come since.
                    let before = self.before.insert(worker.clone(), scraped.clone()).unwrap_or_else(|| scraped.clone());
                    let since = scraped.verdicts_since(&before);
                    since.iter().for_each(|(action, count)| *recent.entry(action.clone()).or_default() += count);
                    scraped.verdicts.iter().for_each(|(action, count)| *totals.entry(action.clone()).or_default() += count);
                    let known = state(worker, &scraped, since.values().sum::<f64>() / window, &before);
                    view.workers.push(WorkerState { problems, ..known });
                    pairs.push((scraped, before));
                }
                Err(error) => view.workers.push(WorkerState { worker, error: Some(format!("{error:#}")), ..WorkerState::default() }),
            }
        }
        view.waits = Some(Scraped::waits_since(&pairs.iter().map(|(now, before)| (now, before)).collect::<Vec<_>>()));
        let of = |counts: &BTreeMap<String, f64>, action: &str| counts.get(action).copied().unwrap_or(0.0);
        let rate = |action: &&str| ActionRate {
            action: (*action).to_owned(),
            count: of(&totals, action),
            per_second: of(&recent, action) / window,
        };
        view.actions = ACTIONS.iter().map(rate).collect();
        view
    }
}

fn state(worker: String, scraped: &Scraped, verdicts_per_second: f64, before: &Scraped) -> WorkerState {
    WorkerState {
        worker,
        ready: scraped.ready,
        verdicts_per_second,
        waits: Scraped::waits_since(&[(scraped, before)]),
        lag_records: scraped.lag_records,
        lag_seconds: scraped.lag_seconds,
        in_flight: scraped.in_flight,
        waiting_events: scraped.waiting,
        partitions: scraped.partitions,
        member_restarts: scraped.restarts,
        ..WorkerState::default()
    }
}

/// Where the figures come from.
pub(super) enum Source {
    Topic(TopicSource),
    Workers(WorkerSource),
}

impl Source {
    /// Returns what is going on now, with so many codes and threads at most.
    pub(super) async fn view(&mut self, names: usize) -> anyhow::Result<View> {
        match self {
            Self::Topic(source) => source.view(names),
            Self::Workers(source) => Ok(source.view().await),
        }
    }
}
