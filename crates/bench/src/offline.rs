//! Measures the core alone, without Kafka, by benchmarks of a checkout that print JSON.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Absence, Checkout};

/// The benchmarks.
pub const BENCHES: [&str; 4] = ["decision", "instructions", "memory", "growth"];

/// Figures of the core alone.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Offline {
    /// The whole path of an event, from its bytes to the verdict's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decision: Vec<DecisionCost>,
    /// The whole path of an event in instructions, as callgrind counts them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<InstructionCost>,
    /// The memory of live threads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<ThreadMemory>,
    /// The cost of an event as work grows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub growth: Vec<Growth>,
}

/// The cost of deciding on an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionCost {
    /// The event.
    pub name: String,
    /// The event's bytes.
    pub bytes: u64,
    /// The time in nanoseconds.
    pub ns: f64,
    /// How many allocations there are.
    pub allocations: f64,
    /// The bytes that are allocated.
    #[serde(default)]
    pub allocated_bytes: f64,
    /// The time as a multiple of what reading the event into a `serde_json::Value` takes.
    #[serde(default)]
    pub over_serde_json: Option<f64>,
}

/// The cost of deciding on an event, in instructions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstructionCost {
    /// The event.
    pub name: String,
    /// How many instructions an event takes.
    pub per_event: f64,
}

/// The memory of live threads of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadMemory {
    /// The kind.
    pub name: String,
    /// How many there were.
    pub threads: u64,
    /// Bytes of the process for each.
    pub bytes_per_thread: f64,
}

/// The cost of an event at both ends of something that grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// What grows.
    pub what: String,
    /// How much of it there is at first.
    pub from: u64,
    /// How much there is at the end.
    pub to: u64,
    /// Nanoseconds at first.
    pub ns_from: f64,
    /// Nanoseconds at the end.
    pub ns_to: f64,
    /// The latter over the former.
    pub ratio: f64,
}

impl Offline {
    /// Runs one of the [`BENCHES`] and keeps what it prints.
    pub fn measure(&mut self, checkout: &Checkout, name: &str, time_max: Duration) -> Result<(), Absence> {
        let printed = checkout.run_bench(name, time_max)?;
        self.read(name, &printed).map_err(|error| Absence::failed(name, &format!("{error:#}")))
    }

    fn read(&mut self, name: &str, printed: &str) -> Result<()> {
        match name {
            "decision" => self.decision = figures(name, printed)?,
            "instructions" => self.instructions = figures(name, printed)?,
            "memory" => self.memory = figures(name, printed)?,
            "growth" => self.growth = figures(name, printed)?,
            _ => anyhow::bail!("there is no benchmark {name}"),
        }
        Ok(())
    }
}

/// Returns the list of that name in a JSON object that begins a line, whatever is printed around it.
pub(super) fn figures<T: DeserializeOwned>(name: &str, printed: &str) -> Result<Vec<T>> {
    let beginnings =
        printed.match_indices('{').filter(|(at, _)| printed.get(..*at).is_some_and(|before| before.is_empty() || before.ends_with('\n')));
    let object = beginnings.filter_map(|(at, _)| serde_json::Deserializer::from_str(printed.get(at..)?).into_iter::<Value>().next()?.ok());
    let list = object.filter_map(|mut object| object.get_mut(name).map(Value::take)).next_back();
    let list = list.with_context(|| format!("benchmark {name} prints no JSON object with `{name}`"))?;
    let figures: Vec<T> = serde_json::from_value(list).with_context(|| format!("benchmark {name} prints other figures than are known"))?;
    anyhow::ensure!(!figures.is_empty(), "benchmark {name} prints no figures");
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::super::checkout::tests::checkout;
    use super::*;

    #[test]
    fn figures_are_found_in_what_is_printed_around_them() {
        let decision = r#"{"decision":[{"name":"tool_call","bytes":600,"ns":1234.5,"allocations":4.0,"allocated_bytes":812.0,"over_serde_json":1.9}]}"#;
        let mut offline = Offline::default();
        offline.read("decision", &format!("warning: {{\nrunning\n{{}}\n{decision}\ndone\n")).unwrap();
        let [cost] = offline.decision.as_slice() else { panic!("{offline:?}") };
        assert_eq!((cost.name.as_str(), cost.bytes, cost.ns, cost.over_serde_json), ("tool_call", 600, 1_234.5, Some(1.9)));
        let growth = "{\n \"growth\": [{\"what\": \"rules\", \"from\": 10, \"to\": 10000, \"ns_from\": 1500, \"ns_to\": 1900.0, \"ratio\": 1.27}]\n}";
        offline.read("growth", growth).unwrap();
        assert_eq!(offline.growth.first().map(|growth| (growth.to, growth.ratio)), Some((10_000, 1.27)));
    }

    #[test]
    fn other_things_than_figures_are_errors() {
        let mut offline = Offline::default();
        for printed in ["", "{}", r#"{"memory":[]}"#, r#"{"memory":[{"name":"quiet"}]}"#, r#" {"memory":"#, r#"{"growth":[]}"#] {
            assert!(offline.read("memory", printed).is_err(), "{printed}");
        }
        assert!(offline.read("other", "{}").is_err() && offline == Offline::default());
    }

    #[test]
    fn a_benchmark_is_a_command_of_the_checkout() {
        let line = r#"{"memory":[{"name":"quiet","threads":1000000,"bytes_per_thread":246,"target":300}]}"#;
        let (_root, found) = checkout("", &format!("echo '{line}'"));
        let mut offline = Offline::default();
        offline.measure(&found, "memory", Duration::from_secs(120)).unwrap();
        assert_eq!(offline.memory, [ThreadMemory { name: "quiet".to_owned(), threads: 1_000_000, bytes_per_thread: 246.0 }]);
        let (_root, broken) = checkout("", "echo 'error: no bench target named memory' >&2; echo help >&2; exit 101");
        let absence = offline.measure(&broken, "memory", Duration::from_secs(120)).unwrap_err();
        assert!(absence.failed && absence.why.ends_with("no bench target named memory"), "{absence:?}");
    }
}
