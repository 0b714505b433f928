//! The composition at work, as far as a machine without an engine can have it: Kafka with the variables of docker-compose.yml, as its image
//! reads them, and the services of Tollgate with theirs, in the order that is written there.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tollgate_testkit::{Broker, ProcessGuard, TIME_MAX, free_ports, lacking, test_cache, wait_until};

use super::compose::{Composition, texts};
use crate::support::tollgate;

/// The same for the job that waits for the brokers.
const PATIENCE: &str = "300s";
/// How many verdicts the bundled sample gets each time.
const SAMPLE_VERDICTS: usize = 25;

/// The addresses that stand for those of the composition on this machine.
struct Places {
    inside: u16,
    host: u16,
    controller: u16,
    admin: u16,
    gate: u16,
    gate_admin: u16,
}

impl Places {
    fn new() -> Self {
        let [inside, host, controller, admin, gate, gate_admin] = free_ports().unwrap();
        Self { inside, host, controller, admin, gate, gate_admin }
    }

    /// Replaces the composition's addresses by those of this machine.
    fn here(&self, text: &str) -> String {
        let Self { inside, host, controller, admin, gate, .. } = self;
        let mut text = text.to_owned();
        for (there, here) in [("INSIDE://:19092", *inside), ("HOST://:9092", *host), ("CONTROLLER://:9093", *controller)] {
            text = text.replace(there, &format!("{}://127.0.0.1:{here}", there.split_once(':').unwrap().0));
        }
        let addresses = [
            ("kafka:19092", inside),
            ("localhost:9092", host),
            ("localhost:9093", controller),
            ("0.0.0.0:9464", admin),
            ("0.0.0.0:7878", gate),
        ];
        for (there, here) in addresses {
            text = text.replace(there, &format!("127.0.0.1:{here}"));
        }
        text
    }
}

/// Returns the lines of `server.properties` that the image of Kafka makes of its variables: `KAFKA_LOG_DIRS` is `log.dirs`.
fn properties(composition: &Composition, places: &Places, data: &Path) -> String {
    let named = composition.environment("kafka").into_iter().filter_map(|(name, value)| {
        let key = name.strip_prefix("KAFKA_")?.to_lowercase().replace('_', ".");
        let value = if key == "log.dirs" { data.display().to_string() } else { places.here(&value) };
        Some(format!("{key}={value}\n"))
    });
    named.collect()
}

/// A broker with the properties of the composition; it ends with the guard.
fn start_kafka(composition: &Composition, places: &Places) -> ProcessGuard {
    let jars = test_cache(Path::new(env!("CARGO_TARGET_TMPDIR")));
    if !jars.exists() {
        // Another broker brings them.
        drop(Broker::start_for_benchmarks(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap());
    }
    let mut guard = ProcessGuard::start().unwrap();
    let file = guard.home().join("server.properties");
    std::fs::write(&file, properties(composition, places, &guard.home().join("data"))).unwrap();
    let java = |arguments: &[&str]| {
        let mut command = Command::new("java");
        command.args(["-Xms256m", "-Xmx1g", "-cp", &format!("{}/*", jars.display())]).args(arguments).arg(&file);
        command
    };
    let cluster = composition.variable("kafka", "CLUSTER_ID");
    guard.run(&java(&["-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool", "format", "-t", &cluster, "-c"])).unwrap();
    assert!(guard.wait(TIME_MAX).unwrap().success(), "{}", guard.log_tail());
    guard.run(&java(&["kafka.Kafka"])).unwrap();
    guard
}

/// Returns a command of a service of the composition, with its variables and its arguments.
fn service(composition: &Composition, places: &Places, name: &str) -> Command {
    let mut command = tollgate();
    for (key, value) in composition.environment(name) {
        let value = match key.as_str() {
            "TOLLGATE_CONFIG" => "config/compose.yaml".to_owned(),
            "TOLLGATE__SERVE__TOKENS" => "config/compose-tokens.yaml".to_owned(),
            // Each container has addresses of its own.
            "TOLLGATE__ADMIN__LISTEN" if name == "gate" => format!("127.0.0.1:{}", places.gate_admin),
            _ => places.here(&value),
        };
        command.env(key, value);
    }
    // Kafka may take longer to start here than on a machine that it has for itself.
    let arguments =
        texts(&composition.service(name)["command"]).into_iter().map(|text| if text == "60s" { PATIENCE.to_owned() } else { text });
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A process that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _killed = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[test]
fn it_decides_and_shows_what_it_does() {
    if let Some(lacks) = lacking(&test_cache(Path::new(env!("CARGO_TARGET_TMPDIR")))) {
        panic!("this test runs Kafka, which needs {lacks}");
    }
    let (composition, places) = (Composition::read(), Places::new());
    let kafka = start_kafka(&composition, &places);
    // The job waits for the brokers itself.
    let topics = service(&composition, &places, "topics").output().unwrap();
    assert!(topics.status.success(), "{}\n{}", String::from_utf8_lossy(&topics.stderr), kafka.log_tail());
    let worker = Running(service(&composition, &places, "tollgate").stderr(Stdio::null()).spawn().unwrap());
    let check = texts(&composition.service("tollgate")["healthcheck"]["test"]);
    let listen = composition.variable("tollgate", "TOLLGATE__ADMIN__LISTEN");
    let is_healthy = || {
        let mut command = tollgate();
        command.env("TOLLGATE__ADMIN__LISTEN", places.here(&listen)).args(&check[2..]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().unwrap().success()
    };
    wait_until("the worker is healthy", || Ok(is_healthy())).unwrap();
    let gate = Running(service(&composition, &places, "gate").stderr(Stdio::null()).spawn().unwrap());
    wait_until("the server answers as the page says", || Ok(asked(&places)["code"] == "oap.tool_not_allowed")).unwrap();
    drop(gate);
    // The sample plays again and again; two times are enough.
    let verdicts = played(&composition, &places, 2);
    let denied = verdicts.iter().filter(|verdict| verdict["decided_by"] == "guardrail").count();
    assert!(denied > 0 && denied % 2 == 0, "the policy of config/compose.yaml denies bash: {denied}");
    let threads: BTreeSet<_> = verdicts.iter().map(|verdict| verdict["thread_id"].to_string()).collect();
    let first: BTreeSet<_> = verdicts[..SAMPLE_VERDICTS].iter().map(|verdict| verdict["thread_id"].to_string()).collect();
    assert_eq!(threads.len(), 2 * first.len(), "each time has threads of its own");
    drop(worker);
    wait_until("the worker that is gone is not healthy", || Ok(!is_healthy())).unwrap();
}

/// Asks the service `gate` with curl, as docs/containers.md does, and returns its answer.
fn asked(places: &Places) -> serde_json::Value {
    let page = super::read("docs/containers.md");
    let (_, rest) = page.split_once("curl -s http://localhost:7878/v1/events").expect("the page asks the service");
    let arguments = rest.split_once("```").unwrap().0.replace("\\\n", " ");
    let line = format!("curl -s --noproxy '*' http://127.0.0.1:{}/v1/events {arguments}", places.gate);
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Plays the sample as its service does until it has been played so many times, and returns the verdicts.
fn played(composition: &Composition, places: &Places, times: usize) -> Vec<serde_json::Value> {
    let mut child = Running(service(composition, places, "sample").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    lines.take(times * SAMPLE_VERDICTS).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}
