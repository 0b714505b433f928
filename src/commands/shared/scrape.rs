//! What the metrics of a worker say.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;

/// How long a worker may take to answer.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The largest answer that is read, in bytes.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The metrics of a worker at some time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Scraped {
    pub(crate) ready: bool,
    pub(crate) verdicts: BTreeMap<String, f64>,
    /// The upper bounds of the waits in seconds, each with how many were at most that long.
    waits: Vec<(f64, f64)>,
    /// `None` if it is unknown, as while the brokers are away.
    pub(crate) lag_records: Option<f64>,
    pub(crate) lag_seconds: Option<f64>,
    pub(crate) in_flight: f64,
    pub(crate) waiting: f64,
    pub(crate) partitions: f64,
    pub(crate) restarts: f64,
}

/// How long events waited for their verdicts between two scrapes, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Waits {
    pub(crate) p50_s: Option<f64>,
    pub(crate) p99_s: Option<f64>,
}

/// Asks a worker for its metrics.
pub(crate) async fn scrape(url: &str) -> anyhow::Result<Scraped> {
    let (status, text) = ask(url).await?;
    ensure!((200..300).contains(&status), "it answers with status {status}");
    ensure!(text.contains("tollgate_"), "these are no metrics of a worker");
    Ok(Scraped::read(&text))
}

/// Returns the problems that keep a worker from being ready, as its `/readyz` has them.
pub(crate) async fn problems(metrics_url: &str) -> Vec<String> {
    let Some(base) = metrics_url.strip_suffix("/metrics") else { return Vec::new() };
    let text = ask(&format!("{base}/readyz")).await.map(|(_, text)| text).unwrap_or_default();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let problems = report.get("problems").and_then(serde_json::Value::as_array).into_iter().flatten();
    problems.filter_map(|problem| problem.as_str().map(str::to_owned)).collect()
}

/// Asks an admin endpoint, and returns the status and the text of its answer.
pub(crate) async fn ask(url: &str) -> anyhow::Result<(u16, String)> {
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let asked = async {
        let response = client.get(url.parse().context("no URL")?).await.context("it does not answer")?;
        let status = response.status().as_u16();
        let body =
            Limited::new(response.into_body(), BYTES_MAX).collect().await.map_err(|error| anyhow!("its answer breaks off: {error}"))?;
        Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
    };
    tokio::time::timeout(TIMEOUT, asked).await.map_err(|_| anyhow!("it does not answer within {} s", TIMEOUT.as_secs()))?
}

/// Returns the address of a worker's metrics: `host:port`, or a URL with or without its path.
pub(crate) fn metrics_url(worker: &str) -> String {
    let url = if worker.contains("://") { worker.to_owned() } else { format!("http://{worker}") };
    let has_path = url.split_once("://").is_some_and(|(_, rest)| rest.trim_end_matches('/').contains('/'));
    if has_path { url } else { format!("{}/metrics", url.trim_end_matches('/')) }
}

impl Scraped {
    /// Reads Prometheus' text format.
    pub(crate) fn read(text: &str) -> Self {
        let mut scraped = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            // What is shown is about verdicts. Other stages have series of their own.
            if label(labels, "stage").is_some() {
                continue;
            }
            match name {
                "tollgate_ready" => scraped.ready = value > 0.0,
                "tollgate_verdicts_total" => {
                    *scraped.verdicts.entry(label(labels, "action").unwrap_or("-").to_owned()).or_default() += value;
                }
                "tollgate_event_to_verdict_seconds_bucket" => {
                    let bound = label(labels, "le").and_then(|bound| bound.parse().ok());
                    scraped.waits.extend(bound.map(|bound: f64| (bound, value)));
                }
                "tollgate_lag_records" => scraped.lag_records = Some(scraped.lag_records.unwrap_or(0.0) + value),
                "tollgate_lag_seconds" => scraped.lag_seconds = Some(scraped.lag_seconds.unwrap_or(0.0).max(value)),
                "tollgate_in_flight" => scraped.in_flight += value,
                "tollgate_waiting_events" => scraped.waiting += value,
                "tollgate_assigned_partitions" => scraped.partitions += value,
                "tollgate_member_restarts_total" => scraped.restarts += value,
                _ => {}
            }
        }
        scraped
    }

    /// Returns the verdicts by action since an earlier scrape. A worker that was started again counts from nothing.
    pub(crate) fn verdicts_since(&self, earlier: &Self) -> BTreeMap<String, f64> {
        let since = |(action, count): (&String, &f64)| {
            let before = earlier.verdicts.get(action).copied().unwrap_or(0.0);
            (action.clone(), if *count < before { *count } else { count - before })
        };
        self.verdicts.iter().map(since).collect()
    }

    /// Returns the waits since an earlier scrape, of several workers together.
    pub(crate) fn waits_since(pairs: &[(&Self, &Self)]) -> Waits {
        let mut counts: Vec<(f64, f64)> = Vec::new();
        for (now, earlier) in pairs {
            for (at, (bound, count)) in now.waits.iter().enumerate() {
                let before = earlier.waits.get(at).filter(|(_, before)| before <= count).map_or(0.0, |(_, before)| *before);
                match counts.get_mut(at) {
                    Some((_, sum)) => *sum += count - before,
                    None => counts.push((*bound, count - before)),
                }
            }
        }
        Waits { p50_s: quantile(&counts, 0.5), p99_s: quantile(&counts, 0.99) }
    }
}

/// Returns a quantile of cumulative counts, as Prometheus estimates it: even within a bucket, and the last finite bound beyond it.
fn quantile(counts: &[(f64, f64)], quantile: f64) -> Option<f64> {
    let total = counts.last().map(|(_, count)| *count).filter(|count| *count > 0.0)?;
    let rank = quantile * total;
    let at = counts.iter().position(|(_, count)| *count >= rank)?;
    let (lower, below) = at.checked_sub(1).and_then(|before| counts.get(before)).copied().unwrap_or((0.0, 0.0));
    let (upper, count) = counts.get(at).copied()?;
    if upper.is_infinite() {
        return Some(lower);
    }
    Some(if count > below { lower + (upper - lower) * (rank - below) / (count - below) } else { upper })
}

/// Returns a label's value. Values of the labels that are read hold no quotes.
fn label<'l>(labels: &'l str, name: &str) -> Option<&'l str> {
    let (_, rest) = labels.split_once(&format!("{name}=\""))?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "# HELP x y
tollgate_ready 1
tollgate_verdicts_total{action=\"allow\",code=\"allow\",decided_by=\"none\"} 90
tollgate_verdicts_total{action=\"block\",code=\"a\",decided_by=\"loop\"} 5
tollgate_event_to_verdict_seconds_bucket{le=\"0.01\"} 50
tollgate_event_to_verdict_seconds_bucket{le=\"0.02\"} 90
tollgate_event_to_verdict_seconds_bucket{le=\"+Inf\"} 95
tollgate_lag_records{partition=\"0\"} 3
tollgate_lag_records{partition=\"1\"} 4
tollgate_lag_seconds{partition=\"0\"} 0.5
tollgate_lag_seconds{partition=\"1\"} 2
tollgate_in_flight{member=\"0\"} 7
";

    #[test]
    fn metrics_are_summed_over_partitions_and_members() {
        let scraped = Scraped::read(BEFORE);
        assert!(scraped.ready);
        assert_eq!((scraped.lag_records, scraped.lag_seconds, scraped.in_flight), (Some(7.0), Some(2.0), 7.0));
        assert_eq!(scraped.verdicts, BTreeMap::from([("allow".to_owned(), 90.0), ("block".to_owned(), 5.0)]));
    }

    #[test]
    fn what_came_since_is_counted() {
        let (before, mut now) = (Scraped::read(BEFORE), Scraped::read(BEFORE));
        now.verdicts.insert("allow".to_owned(), 190.0);
        now.waits = vec![(0.01, 50.0), (0.02, 190.0), (f64::INFINITY, 195.0)];
        assert_eq!(now.verdicts_since(&before)["allow"], 100.0);
        let waits = Scraped::waits_since(&[(&now, &before)]);
        assert!((waits.p50_s.unwrap() - 0.015).abs() < 1e-9, "{waits:?}");
        assert!((waits.p99_s.unwrap() - 0.0199).abs() < 1e-9, "{waits:?}");
        assert_eq!(Scraped::waits_since(&[(&before, &before)]), Waits::default());
        // Started again: less than before.
        let again = Scraped { verdicts: BTreeMap::from([("allow".to_owned(), 4.0)]), ..Scraped::default() };
        assert_eq!(again.verdicts_since(&before)["allow"], 4.0);
    }

    #[test]
    fn a_worker_is_named_by_its_address_or_its_url() {
        let urls = ["w:9464", "http://w:9464", "http://w:9464/", "http://w:9464/metrics", "http://w/t/metrics"].map(metrics_url);
        let expected =
            ["http://w:9464/metrics", "http://w:9464/metrics", "http://w:9464/metrics", "http://w:9464/metrics", "http://w/t/metrics"];
        assert_eq!(urls, expected);
    }
}
