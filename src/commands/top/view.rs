//! What is going on, as JSON and as lines for people.

use serde::Serialize;

use super::tally::ThreadCounts;
use crate::commands::shared::scrape::Waits;
use crate::commands::shared::{Column, DIM, Screen, TITLE, Table, clock, count, fit, number, seconds, shown, style_of, text};

/// What is going on at some time.
#[derive(Debug, Default, Serialize)]
pub(super) struct View {
    /// When, in milliseconds since 1970.
    pub(super) time_ms: i64,
    /// What it is about: a topic, or workers.
    pub(super) source: String,
    /// The time over which rates are taken, in seconds.
    pub(super) window_s: f64,
    pub(super) actions: Vec<ActionRate>,
    /// How long events waited for their verdicts; only workers know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waits: Option<Waits>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) workers: Vec<WorkerState>,
    /// The codes other than plain allows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) codes: Vec<CodeCount>,
    /// The threads with the most stops.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) threads: Vec<WorstThread>,
}

#[derive(Debug, Serialize)]
pub(super) struct ActionRate {
    pub(super) action: String,
    pub(super) count: f64,
    pub(super) per_second: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct CodeCount {
    pub(super) code: String,
    pub(super) count: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct WorstThread {
    pub(super) thread_id: String,
    #[serde(flatten)]
    pub(super) counts: ThreadCounts,
}

/// The state of one worker.
#[derive(Debug, Default, Serialize)]
pub(super) struct WorkerState {
    pub(super) worker: String,
    /// Why nothing is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    pub(super) ready: bool,
    /// What keeps it from being ready, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) problems: Vec<String>,
    pub(super) verdicts_per_second: f64,
    pub(super) waits: Waits,
    /// `None` if it is unknown.
    pub(super) lag_records: Option<f64>,
    pub(super) lag_seconds: Option<f64>,
    pub(super) in_flight: f64,
    pub(super) waiting_events: f64,
    pub(super) partitions: f64,
    pub(super) member_restarts: f64,
}

const ACTIONS: &[Column] = &[text("verdicts"), number("per s"), number("in all"), number("share")];
const CODES: &[Column] = &[text("code"), number("in all")];
const THREADS: &[Column] = &[text("worst threads"), number("stops"), number("warnings"), text("last code")];
const WORKERS: &[Column] = &[
    text("worker"),
    text("state"),
    number("per s"),
    number("wait p50"),
    number("p99"),
    number("lag"),
    number("behind"),
    number("in flight"),
    number("waiting"),
    number("partitions"),
    number("restarts").wide(),
];

impl View {
    /// Returns the lines, none of which is wider than the terminal.
    pub(super) fn lines(&self, screen: Screen, width: usize, is_wide: bool) -> Vec<String> {
        let head = format!("tollgate top: {}, the last {} at {} UTC", shown(&self.source), seconds(self.window_s), clock(self.time_ms));
        let mut lines = vec![screen.paint(TITLE, fit(&head, width).trim_end())];
        let push = |lines: &mut Vec<String>, table: &Table, paint: &dyn Fn(usize, &str) -> Option<String>| {
            lines.push(String::new());
            for (at, line) in table.lines(is_wide, width).into_iter().enumerate() {
                lines.push(if at == 0 { screen.paint(TITLE, &line) } else { paint(at, &line).unwrap_or(line) });
            }
        };
        push(&mut lines, &self.action_table(), &|at, line| {
            let action = self.actions.get(at.checked_sub(1)?)?;
            Some(screen.paint(if action.count > 0.0 { style_of(&action.action) } else { DIM }, line))
        });
        let plain = |_: usize, _: &str| None;
        if !self.workers.is_empty() {
            push(&mut lines, &self.worker_table(), &|at, line| {
                let worker = self.workers.get(at.checked_sub(1)?)?;
                (worker.error.is_some() || !worker.ready).then(|| screen.paint(style_of("block"), line))
            });
            lines.extend(self.problems().iter().map(|problem| screen.paint(style_of("block"), fit(problem, width).trim_end())));
        }
        if !self.threads.is_empty() {
            push(&mut lines, &self.thread_table(), &plain);
        }
        if !self.codes.is_empty() {
            let mut table = Table::new(CODES);
            self.codes.iter().for_each(|code| table.row(vec![code.code.clone(), count(code.count as f64)]));
            push(&mut lines, &table, &plain);
        }
        lines
    }

    fn action_table(&self) -> Table {
        let total: f64 = self.actions.iter().map(|action| action.count).sum();
        let mut table = Table::new(ACTIONS);
        for ActionRate { action, count: number, per_second } in &self.actions {
            let share = if total > 0.0 { format!("{:.1} %", 100.0 * number / total) } else { "-".to_owned() };
            table.row(vec![action.clone(), count(*per_second), count(*number), share]);
        }
        table
    }

    fn thread_table(&self) -> Table {
        let mut table = Table::new(THREADS);
        for WorstThread { thread_id, counts } in &self.threads {
            table.row(vec![thread_id.clone(), counts.stops.to_string(), counts.warnings.to_string(), counts.code.clone()]);
        }
        table
    }

    fn problems(&self) -> Vec<String> {
        let of = |worker: &WorkerState, problem: &String| shown(&format!("{}: {problem}", worker.worker)).into_owned();
        self.workers.iter().flat_map(|worker| worker.problems.iter().map(move |problem| of(worker, problem))).collect()
    }

    fn worker_table(&self) -> Table {
        let unknown = || "?".to_owned();
        let time = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), seconds);
        let mut table = Table::new(WORKERS);
        for worker in &self.workers {
            let state = match (&worker.error, worker.ready) {
                (Some(error), _) => error.clone(),
                (None, true) => "ready".to_owned(),
                (None, false) => "not ready".to_owned(),
            };
            let mut row = vec![worker.worker.clone(), state];
            if worker.error.is_some() {
                row.extend((2..WORKERS.len()).map(|_| "-".to_owned()));
            } else {
                row.extend([
                    count(worker.verdicts_per_second),
                    time(worker.waits.p50_s),
                    time(worker.waits.p99_s),
                    worker.lag_records.map_or_else(unknown, count),
                    worker.lag_seconds.map_or_else(unknown, seconds),
                ]);
                row.extend([count(worker.in_flight), count(worker.waiting_events)]);
                row.extend([count(worker.partitions), count(worker.member_restarts)]);
            }
            table.row(row);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::shared::output::ColorChoice;

    fn rate(action: &str, count: f64, per_second: f64) -> ActionRate {
        ActionRate { action: action.to_owned(), count, per_second }
    }

    #[test]
    fn a_topic_has_rates_worst_threads_and_codes() {
        let counts = |stops, warnings, code: &str| ThreadCounts { stops, warnings, code: code.to_owned() };
        let view = View {
            time_ms: 1_795_343_809_768,
            source: "agent.decisions at b:9092".to_owned(),
            window_s: 60.0,
            actions: vec![rate("allow", 740_123.0, 12_335.4), rate("warn", 3.0, 0.05), rate("block", 0.0, 0.0)],
            codes: vec![CodeCount { code: "repeated_exact_failure_block".to_owned(), count: 2 }],
            threads: vec![WorstThread { thread_id: "nightly\u{1b}[2J".to_owned(), counts: counts(2, 1, "repeated_exact_failure_block") }],
            ..View::default()
        };
        let lines = view.lines(Screen::stdout(ColorChoice::Never), 100, false);
        assert_eq!(
            lines,
            [
                "tollgate top: agent.decisions at b:9092, the last 60.0 s at 10:36:49 UTC",
                "",
                "verdicts  per s  in all    share",
                "allow     12.3k  740.1k  100.0 %",
                "warn       0.05       3    0.0 %",
                "block         0       0    0.0 %",
                "",
                "worst threads  stops  warnings  last code",
                "nightly?[2J        2         1  repeated_exact_failure_block",
                "",
                "code                          in all",
                "repeated_exact_failure_block       2",
            ]
        );
    }

    #[test]
    fn a_worker_has_its_rate_waits_and_lag_or_why_not() {
        let waits = Waits { p50_s: Some(0.003), p99_s: Some(0.25) };
        let up = WorkerState {
            worker: "w-0:9464".to_owned(),
            ready: true,
            verdicts_per_second: 850.0,
            waits,
            lag_records: Some(12_345.0),
            lag_seconds: Some(1.5),
            partitions: 12.0,
            ..WorkerState::default()
        };
        let down = WorkerState { worker: "w-1:9464".to_owned(), error: Some("it does not answer".to_owned()), ..WorkerState::default() };
        let problems = vec!["no answer".to_owned()];
        let cut_off = WorkerState { worker: "w-2:9464".to_owned(), problems, ..WorkerState::default() };
        let view = View { source: "2 workers".to_owned(), workers: vec![up, down, cut_off], ..View::default() };
        let lines = view.lines(Screen::stdout(ColorChoice::Never), 200, false);
        assert_eq!(lines[4], "worker    state               per s  wait p50       p99    lag  behind  in flight  waiting  partitions");
        assert_eq!(lines[5], "w-0:9464  ready                 850    3.0 ms  250.0 ms  12.3k   1.5 s          0        0          12");
        assert_eq!(lines[6], "w-1:9464  it does not answer      -         -         -      -       -          -        -           -");
        assert_eq!(lines[7], "w-2:9464  not ready               0         -         -      ?       ?          0        0           0");
        assert_eq!(lines[8], "w-2:9464: no answer");
    }
}
