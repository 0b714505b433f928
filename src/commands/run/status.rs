//! The line about rate, stops and lag that `tollgate run` shows every so often.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate_worker::Stop;
use tollgate_worker::health::Health;
use tollgate_worker::metrics::Metrics;

use crate::commands::shared::scrape::Scraped;
use crate::commands::shared::{clock, count, now_ms, seconds};

/// How often people at a terminal see the line.
const TERMINAL_INTERVAL: Duration = Duration::from_secs(10);
/// How often the log has the same figures, where nobody looks at a terminal.
const LOG_INTERVAL: Duration = Duration::from_secs(300);

/// What came since the last line.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figures {
    verdicts_per_second: f64,
    /// Verdicts that stop something: block, halt and suppress.
    stops: f64,
    p99_s: Option<f64>,
    lag_records: Option<f64>,
    lag_seconds: Option<f64>,
    partitions: f64,
    is_ready: bool,
}

/// Starts to show the line, on a thread of its own: a terminal that takes no more text must not hold anything else up. The thread ends
/// with the sign to stop.
pub(super) fn start(metrics: &Metrics, health: &Arc<Health>, stop: &Stop) -> std::io::Result<()> {
    let (metrics, health, stop) = (metrics.clone(), Arc::clone(health), stop.clone());
    let is_terminal = std::io::stderr().is_terminal();
    let show = move || {
        let (mut before, mut asked, mut shown) = (Scraped::read(&text(&metrics)), Instant::now(), None);
        while !stop.wait(if is_terminal { TERMINAL_INTERVAL } else { LOG_INTERVAL }) {
            let (now, time) = (Scraped::read(&text(&metrics)), Instant::now());
            let figures = Figures { is_ready: health.is_ready(), ..Figures::since(&before, &now, time.duration_since(asked)) };
            (before, asked) = (now, time);
            // A worker that idles says so once.
            if shown.replace(figures) == Some(figures) {
                continue;
            }
            if is_terminal { say!("{} UTC  {}", clock(now_ms()), figures.line()) } else { figures.log() }
        }
    };
    std::thread::Builder::new().name("status".to_owned()).spawn(show).map(|_| ())
}

fn text(metrics: &Metrics) -> String {
    String::from_utf8_lossy(&metrics.render()).into_owned()
}

impl Figures {
    fn since(before: &Scraped, now: &Scraped, window: Duration) -> Self {
        let verdicts = now.verdicts_since(before);
        // The sum of no numbers is -0.
        let sum = |is_one: &dyn Fn(&str) -> bool| {
            verdicts.iter().filter(|(action, _)| is_one(action.as_str())).map(|(_, count)| count).sum::<f64>() + 0.0
        };
        Self {
            verdicts_per_second: sum(&|_| true) / window.as_secs_f64().max(0.001),
            stops: sum(&|action| ["block", "halt", "suppress"].contains(&action)),
            p99_s: Scraped::waits_since(&[(now, before)]).p99_s,
            lag_records: now.lag_records,
            lag_seconds: now.lag_seconds,
            partitions: now.partitions,
            is_ready: now.ready,
        }
    }

    fn line(&self) -> String {
        let state = if self.is_ready { "ready" } else { "not ready" };
        let wait = self.p99_s.map_or_else(String::new, |p99| format!(", p99 {}", seconds(p99)));
        let lag = match self.lag_records {
            None => "unknown".to_owned(),
            Some(records) if records > 0.0 => format!("{} ({})", count(records), seconds(self.lag_seconds.unwrap_or(0.0))),
            Some(_) => "0".to_owned(),
        };
        let (partitions, rate, stops) = (count(self.partitions), count(self.verdicts_per_second), count(self.stops));
        format!("{state}, {partitions} partitions  {rate} verdicts/s{wait}  stops {stops}  lag {lag}")
    }

    fn log(&self) {
        let Self { verdicts_per_second, stops, p99_s, lag_records, lag_seconds, partitions, is_ready } = *self;
        tracing::info!(verdicts_per_second, stops, p99_s, lag_records, lag_seconds, partitions, is_ready, "at work");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_came_since() {
        let metrics = Metrics::new().unwrap();
        let count = |action: &str, by| metrics.verdicts.with_label_values(&["loop", action, "code"]).inc_by(by);
        count("allow", 5);
        let before = Scraped::read(&text(&metrics));
        count("allow", 100);
        count("block", 7);
        count("halt", 1);
        metrics.ready.set(1);
        metrics.partition(0).lag_records.set(12);
        let now = Scraped::read(&text(&metrics));
        let figures = Figures::since(&before, &now, Duration::from_secs(10));
        assert_eq!((figures.verdicts_per_second, figures.stops), (10.8, 8.0));
        let line = Figures { lag_records: Some(12_345.0), lag_seconds: Some(1.5), p99_s: Some(0.0032), partitions: 4.0, ..figures }.line();
        assert_eq!(line, "ready, 4 partitions  11 verdicts/s, p99 3.2 ms  stops 8  lag 12.3k (1.5 s)");
        let idle = Figures::since(&now, &now, Duration::from_secs(10));
        assert_eq!((idle.verdicts_per_second, idle.stops, idle.p99_s), (0.0, 0.0, None));
        assert!(idle.line().contains("  0 verdicts/s  stops 0  lag"), "{}", idle.line());
    }
}
