//! Presets side by side over recorded threads.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::Value;
use tollgate_core::decide::loops::PRESETS;
use tollgate_core::decide::policy::Policy;
use tollgate_core::event::decode::Event;

use super::conversation::Verdict;
use super::side::{Observed, Observer, Outcome, SideState, policy};

/// What a preset did to all threads.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    /// The preset.
    pub preset: &'static str,
    /// Threads with calls.
    pub threads: usize,
    /// Threads with a warning.
    pub warned: usize,
    /// Threads with a refused call.
    pub denied: usize,
    /// Threads with a halt.
    pub halted: usize,
    /// Threads with a refused call or a halt.
    pub stopped: usize,
    /// Threads of which a refused call would have brought something new.
    pub new_denied: usize,
    /// Threads in which new work followed a halt.
    pub new_cut_off: usize,
    /// What became of the threads with a label; `None` without labels.
    #[serde(flatten)]
    pub judged: Option<Judged>,
}

/// What a preset did to threads with labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Judged {
    /// Loops, and how many of them were refused or halted.
    pub loops: usize,
    /// Loops that were refused or halted.
    pub loops_found: usize,
    /// Soft loops: the same intent with other arguments each time.
    pub soft_loops: usize,
    /// Soft loops that were refused or halted.
    pub soft_loops_found: usize,
    /// Productive threads.
    pub productive: usize,
    /// Productive threads that lost something new, or were halted.
    pub productive_harmed: usize,
    /// The share of stopped threads that are loops, soft ones among them.
    pub precision: Option<f64>,
    /// The share of loops that were stopped.
    pub recall: Option<f64>,
    /// The share of the calls of loops that were not made.
    pub spared: Option<f64>,
}

/// A thread with what each preset did to it.
#[derive(Debug, Clone)]
pub struct ThreadRow {
    /// The thread.
    pub thread_id: String,
    /// The outcome under each preset, in the order of [`PRESETS`].
    pub outcomes: Vec<Outcome>,
}

/// Presets at work on recorded threads.
#[derive(Debug)]
pub struct LoopReport {
    observer: Observer,
    presets: Vec<(&'static str, Policy)>,
    threads: BTreeMap<String, (Observed, Vec<SideState>)>,
}

impl LoopReport {
    /// Returns a report that knows no thread.
    ///
    /// # Errors
    /// A preset cannot be read, which a test rules out.
    pub fn new() -> anyhow::Result<Self> {
        let preset = |name: &'static str| anyhow::Ok((name, policy(&format!("{{preset: {name}}}"))?));
        let presets = PRESETS.iter().map(|(name, ..)| preset(name)).collect::<Result<_, _>>()?;
        Ok(Self { observer: Observer::new()?, presets, threads: BTreeMap::new() })
    }

    /// Decides on an event under each preset.
    pub fn note(&mut self, event: &Event<'_>) {
        let presets = &self.presets;
        let blank = || (Observed::default(), presets.iter().map(|_| SideState::default()).collect());
        let (observed, sides) = self.threads.entry(event.thread_id.to_string()).or_insert_with(blank);
        let (is_new_turn, step) = self.observer.note(observed, event);
        for ((_, policy), side) in presets.iter().zip(sides) {
            side.note(policy, event, is_new_turn, step);
        }
    }

    /// Returns what each preset did to each thread.
    #[must_use]
    pub fn threads(&self) -> Vec<ThreadRow> {
        let row = |(id, (_, sides)): (&String, &(Observed, Vec<SideState>))| ThreadRow {
            thread_id: id.clone(),
            outcomes: sides.iter().map(|side| side.outcome).collect(),
        };
        self.threads.iter().map(row).filter(|row| row.outcomes.iter().any(|outcome| outcome.calls > 0)).collect()
    }

    /// Returns the threads with a label of which no call was seen.
    #[must_use]
    pub fn unknown<'l>(&self, labels: &'l BTreeMap<String, Verdict>) -> Vec<&'l str> {
        let has_calls = |thread: &str| self.threads.get(thread).is_some_and(|(_, sides)| sides.iter().any(|side| side.outcome.calls > 0));
        labels.keys().map(String::as_str).filter(|thread| !has_calls(thread)).collect()
    }

    /// Returns a row for each preset. `labels` are verdicts by thread.
    #[must_use]
    pub fn rows(&self, labels: &BTreeMap<String, Verdict>) -> Vec<Row> {
        let threads = self.threads();
        let row = |(place, (preset, _)): (usize, &(&'static str, Policy))| {
            let outcomes: Vec<_> = threads.iter().filter_map(|row| Some((labels.get(&row.thread_id), row.outcomes.get(place)?))).collect();
            let count = |holds: fn(&Outcome) -> bool| outcomes.iter().filter(|(_, outcome)| holds(outcome)).count();
            Row {
                preset,
                threads: outcomes.len(),
                warned: count(|outcome| outcome.warnings > 0),
                denied: count(|outcome| outcome.denials > 0),
                halted: count(|outcome| outcome.halts > 0),
                stopped: count(Outcome::is_stopped),
                new_denied: count(|outcome| outcome.new_denied > 0),
                new_cut_off: count(|outcome| outcome.new_cut_off > 0),
                judged: (!labels.is_empty()).then(|| judged(&outcomes)),
            }
        };
        self.presets.iter().enumerate().map(row).collect()
    }
}

fn judged(outcomes: &[(Option<&Verdict>, &Outcome)]) -> Judged {
    let of = |verdict: Verdict| outcomes.iter().filter(move |(label, _)| *label == Some(&verdict)).map(|(_, outcome)| *outcome);
    let stopped = |verdict: Verdict| of(verdict).filter(|outcome| outcome.is_stopped()).count();
    let (loops_found, soft_loops_found) = (stopped(Verdict::Loop), stopped(Verdict::SoftLoop));
    let share = |part: usize, whole: usize| (whole > 0).then(|| (part as f64 / whole as f64 * 1_000.0).round() / 1_000.0);
    let sum = |number: fn(&Outcome) -> u32| of(Verdict::Loop).map(|outcome| number(outcome) as usize).sum::<usize>();
    let (loops, found) = (of(Verdict::Loop).count(), loops_found + soft_loops_found);
    Judged {
        loops,
        loops_found,
        soft_loops: of(Verdict::SoftLoop).count(),
        soft_loops_found,
        productive: of(Verdict::Productive).count(),
        productive_harmed: of(Verdict::Productive).filter(|outcome| outcome.is_harmed() || outcome.halts > 0).count(),
        precision: share(found, found + stopped(Verdict::Productive)),
        recall: share(loops_found, loops),
        spared: share(sum(|outcome| outcome.spared), sum(|outcome| outcome.calls)),
    }
}

/// Reads labels: a JSON object a line, with `thread_id` and `verdict`.
///
/// # Errors
/// A line is something else.
pub fn read_labels(text: &str) -> anyhow::Result<BTreeMap<String, Verdict>> {
    let mut labels = BTreeMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = || format!("line {}", number + 1);
        let label: Value = serde_json::from_str(line).with_context(|| format!("{}: found no JSON", place()))?;
        let member = |key: &str| label.get(key).and_then(Value::as_str);
        let Some(thread_id) = member("thread_id") else { bail!("{}: found no thread_id; write it as a string", place()) };
        let Some(verdict) = member("verdict").and_then(Verdict::from_words) else {
            bail!("{}: verdict: found another word, or nothing; write loop, soft_loop or productive", place())
        };
        labels.insert(thread_id.to_owned(), verdict);
    }
    Ok(labels)
}
