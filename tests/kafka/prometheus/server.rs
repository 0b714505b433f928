//! A Prometheus that scrapes one worker every few seconds and evaluates the rules every second.

use std::collections::BTreeSet;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tollgate_testkit::{ProcessGuard, admin_page, free_ports};

const START_TIME_MAX: Duration = Duration::from_secs(180);

/// A running Prometheus, which ends with this value.
pub struct Prometheus {
    process: ProcessGuard,
    port: u16,
}

impl Prometheus {
    /// Starts Prometheus with the rules, whose alerts do not wait, and waits until it answers.
    pub fn start(admin_port: u16) -> Result<Self> {
        let mut process = ProcessGuard::start()?;
        let [port] = free_ports()?;
        let home = process.home().to_owned();
        let rules: String =
            std::fs::read_to_string("config/prometheus/alerts.yml")?.lines().map(|line| without_waiting(line) + "\n").collect();
        std::fs::write(home.join("alerts.yml"), rules)?;
        let config = serde_json::json!({
            "global": {"scrape_interval": "3s", "scrape_timeout": "3s", "evaluation_interval": "1s"},
            "rule_files": ["alerts.yml"],
            "scrape_configs": [{"job_name": "tollgate", "static_configs": [{"targets": [format!("127.0.0.1:{admin_port}")]}]}],
        });
        std::fs::write(home.join("prometheus.yml"), config.to_string())?;
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", home.join("prometheus.yml").display()));
        command.arg(format!("--storage.tsdb.path={}", home.join("data").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        process.run(&command).context("Debian's package `prometheus` has it")?;
        let mut server = Self { process, port };
        let deadline = Instant::now() + START_TIME_MAX;
        while !admin_page(port, "/-/ready").is_ok_and(|(status, _)| status == 200) {
            ensure!(Instant::now() < deadline && server.process.is_running()?, "Prometheus: {}", server.process.log_tail());
            sleep(Duration::from_millis(100));
        }
        Ok(server)
    }

    /// Returns the value of an expression that gives one series; none if there is nothing yet.
    pub fn value(&self, expression: &str) -> Result<Option<f64>> {
        Ok(self.query(expression)?.first().and_then(|series| series["value"][1].as_str()?.parse().ok()))
    }

    /// Returns the names of the alerts that fire.
    pub fn firing(&self) -> Result<BTreeSet<String>> {
        let alerts = self.query(r#"ALERTS{alertstate="firing"}"#)?;
        Ok(alerts.iter().filter_map(|alert| Some(alert["metric"]["alertname"].as_str()?.to_owned())).collect())
    }

    /// Returns the series that an expression gives now.
    pub fn query(&self, expression: &str) -> Result<Vec<Value>> {
        let answer = self.get("/api/v1/query", &[("query", expression)])?;
        match answer["result"].as_array() {
            Some(result) if answer["resultType"] == "vector" => Ok(result.clone()),
            _ => bail!("{expression} gives a {}", answer["resultType"]),
        }
    }

    /// Returns the data of an answer of the API.
    pub fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value> {
        let query: Vec<_> = parameters.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        let (_, body) = admin_page(self.port, &format!("{path}?{}", query.join("&")))?;
        let mut answer: Value = serde_json::from_str(&body)?;
        let is_well = answer["status"] == "success" && answer["warnings"].is_null();
        ensure!(is_well, "{} {} {}", answer["errorType"], answer["error"], answer["warnings"]);
        Ok(answer["data"].take())
    }
}

/// Returns a line of the rules with no time to wait, if it is one that says how long.
fn without_waiting(line: &str) -> String {
    line.split_once("for: ")
        .filter(|(indent, _)| indent.trim().is_empty())
        .map_or_else(|| line.to_owned(), |(indent, _)| format!("{indent}for: 0m"))
}

/// Returns a text as it may stand in a query.
fn encoded(text: &str) -> String {
    let one = |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}
