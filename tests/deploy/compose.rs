//! docker-compose.yml against the program, its configuration, and the files that it mounts.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::dockerfile::admin_port;
use super::{read, yaml};
use crate::support::{run, tollgate};

/// The composition, read once for each test.
pub struct Composition(Value);

impl Composition {
    pub fn read() -> Self {
        Self(yaml::with_defaults(yaml::file("docker-compose.yml")))
    }

    fn services(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0["services"].as_object().unwrap().iter()
    }

    pub fn service(&self, name: &str) -> &Value {
        self.0["services"].get(name).unwrap_or_else(|| panic!("no service {name}"))
    }

    /// Returns the services that run Tollgate's own image.
    fn ours(&self) -> Vec<(&String, &Value)> {
        let ours: Vec<_> = self.services().filter(|(_, service)| is_own(service)).collect();
        assert!(ours.len() >= 3, "a job for the topics, a worker, a sample: {ours:?}");
        ours
    }

    /// Returns the variables of a service as text.
    pub fn environment(&self, name: &str) -> Vec<(String, String)> {
        let variables = self.service(name)["environment"].as_object().unwrap();
        variables.iter().map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))).collect()
    }

    pub fn variable(&self, service: &str, key: &str) -> String {
        self.environment(service).into_iter().find(|(known, _)| known == key).unwrap_or_else(|| panic!("{service}: no {key}")).1
    }

    /// Returns what a service mounts: source, target and whether it cannot be written.
    fn mounts(service: &Value) -> Vec<(String, String, bool)> {
        let mut mounts = Vec::new();
        for volume in texts(&service["volumes"]) {
            let parts: Vec<&str> = volume.split(':').collect();
            mounts.push((parts[0].to_owned(), parts[1].to_owned(), parts.get(2) == Some(&"ro")));
        }
        mounts
    }
}

fn is_own(service: &Value) -> bool {
    service["image"] == "tollgate"
}

/// Returns a list of strings; none if there is no list.
pub fn texts(value: &Value) -> Vec<String> {
    value.as_array().map(|items| items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()).unwrap_or_default()
}

/// Returns the Kafka that all other tests run against.
fn tested_kafka() -> String {
    let pom = read("crates/testkit/src/broker/pom.xml");
    let (_, rest) = pom.split_once("<artifactId>kafka_2.13</artifactId>").unwrap();
    rest.split_once("<version>").unwrap().1.split_once('<').unwrap().0.to_owned()
}

#[test]
fn images_are_pinned() {
    let composition = Composition::read();
    for (name, service) in composition.services() {
        let image = service["image"].as_str().unwrap_or_else(|| panic!("{name}: no image"));
        let version = image.rsplit_once(':').map(|(_, tag)| tag.trim_start_matches('v'));
        let is_pinned = version.is_some_and(|tag| tag.split('.').count() == 3 && tag.chars().all(|c| c.is_ascii_digit() || c == '.'));
        assert!(is_pinned || image == "tollgate", "{name}: pin {image} by its version");
    }
    assert_eq!(composition.service("kafka")["image"], format!("apache/kafka:{}", tested_kafka()));
}

/// Every variable is a key of the configuration, and a worker would start with all of them and the file that is mounted.
#[test]
fn the_configuration_is_one() {
    let composition = Composition::read();
    for (name, service) in composition.ours() {
        let mounts = Composition::mounts(service);
        let mut command = tollgate();
        for (key, value) in composition.environment(name) {
            assert!(key == "TOLLGATE_CONFIG" || key.starts_with("TOLLGATE__"), "{name}: {key} is none of ours");
            match mounts.iter().find(|(_, target, _)| *target == value) {
                Some((file, ..)) => command.env(key, file),
                None if value.starts_with("/etc/tollgate/") => panic!("{name}: {value} is not mounted"),
                None => command.env(key, value),
            };
        }
        let ran = run(command.args(["config", "check"]), b"");
        assert_eq!(ran.exit, Some(0), "{name}: {}", ran.stderr);
        // The check itself: a key that is not known is an error.
        let ran = run(command.env("TOLLGATE__KAFKA__BROKER", "kafka:19092"), b"");
        assert_eq!(ran.exit, Some(1), "{name}: an unknown key passed");
    }
}

#[test]
fn commands_are_commands() {
    let composition = Composition::read();
    for (name, service) in composition.ours() {
        let mut commands = vec![texts(&service["command"])];
        let check = texts(&service["healthcheck"]["test"]);
        if !check.is_empty() {
            assert_eq!(check[..2], ["CMD", "/usr/local/bin/tollgate"], "{name}");
            commands.push(check[2..].to_vec());
        }
        for words in commands {
            let ran = run(tollgate().args(&words).arg("--help"), b"");
            assert_eq!(ran.exit, Some(0), "{name}: {words:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn mounted_files_are_there_and_cannot_be_written() {
    let composition = Composition::read();
    let volumes: BTreeSet<&String> = composition.0["volumes"].as_object().unwrap().keys().collect();
    for (name, service) in composition.services() {
        for (source, _, is_read_only) in Composition::mounts(service) {
            if let Some(path) = source.strip_prefix("./") {
                assert!(Path::new(path).exists() && is_read_only, "{name}: {source} exists and is mounted with :ro");
            } else {
                assert!(volumes.contains(&source), "{name}: no volume {source}");
            }
        }
    }
}

/// Whoever is waited for has a health check, or ends, and the worker is last before the sample.
#[test]
fn the_order_can_be_kept() {
    let composition = Composition::read();
    let waits = |service: &str, other: &str| composition.service(service)["depends_on"][other]["condition"].clone();
    for (name, service) in composition.services() {
        for (other, how) in service["depends_on"].as_object().into_iter().flatten() {
            match how["condition"].as_str() {
                Some("service_healthy") => {
                    assert!(!texts(&composition.service(other)["healthcheck"]["test"]).is_empty(), "{name}: {other}")
                }
                Some("service_completed_successfully") => {
                    let restart = composition.service(other)["restart"].as_str().unwrap_or("no");
                    assert!(restart.starts_with("no") || restart.starts_with("on-failure"), "{name}: {other} never completes");
                }
                condition => panic!("{name}: {other}: {condition:?}"),
            }
        }
    }
    assert_eq!(waits("topics", "kafka"), "service_healthy");
    assert_eq!(waits("tollgate", "topics"), "service_completed_successfully");
    assert_eq!(waits("gate", "topics"), "service_completed_successfully");
    assert_eq!(waits("sample", "tollgate"), "service_healthy");
    // Whatever is not in a profile is what a plain `up` starts.
    let plain: Vec<&str> =
        composition.services().filter(|(_, service)| service.get("profiles").is_none()).map(|(name, _)| &**name).collect();
    assert_eq!(plain.len(), 6, "{plain:?}");
}

#[test]
fn ours_can_write_nothing_and_have_time_to_stop() {
    let composition = Composition::read();
    for (name, service) in composition.ours() {
        assert_eq!((&service["read_only"], texts(&service["cap_drop"])), (&Value::Bool(true), vec!["ALL".to_owned()]), "{name}");
    }
    let grace = composition.service("tollgate")["stop_grace_period"].as_str().unwrap().trim_end_matches('s').parse::<u64>().unwrap();
    let drain = yaml::file("config/tollgate.yaml")["worker"]["drain_timeout_ms"].as_u64().unwrap();
    assert!(grace * 1_000 > drain + 5_000, "{grace} s, and a stop may take {drain} ms and 5 s");
}

/// Returns the port of a container that is published under the same number on the loopback interface alone.
fn published(service: &Value) -> String {
    let ports = texts(&service["ports"]);
    let [port] = &ports[..] else { panic!("{ports:?}") };
    let parts: Vec<&str> = port.split(':').collect();
    assert!(parts.len() == 3 && parts[0] == "127.0.0.1" && parts[1] == parts[2], "{port}");
    parts[2].to_owned()
}

#[test]
fn ports_agree() {
    let composition = Composition::read();
    for (name, service) in composition.services().filter(|(_, service)| service.get("ports").is_some()) {
        assert!(!published(service).is_empty(), "{name}");
    }
    let admin = admin_port();
    let worker = composition.service("tollgate");
    assert_eq!(published(worker), admin);
    assert_eq!(composition.variable("tollgate", "TOLLGATE__ADMIN__LISTEN"), format!("0.0.0.0:{admin}"));
    let jobs = yaml::file("config/prometheus/prometheus.yml")["scrape_configs"].clone();
    for (job, service) in ["tollgate", "gate"].into_iter().enumerate() {
        let found = &jobs[job]["dns_sd_configs"][0];
        assert_eq!((texts(&found["names"]), found["port"].to_string()), (vec![service.to_owned()], admin.to_string()));
        assert_eq!(jobs[job]["relabel_configs"][0]["replacement"], "compose", "{service}");
    }
    assert_eq!(composition.variable("gate", "TOLLGATE__ADMIN__LISTEN"), format!("0.0.0.0:{admin}"));
    assert_eq!(composition.variable("gate", "TOLLGATE__SERVE__LISTEN"), format!("0.0.0.0:{}", published(composition.service("gate"))));
    let served = yaml::file("config/tollgate.yaml")["serve"]["listen"].as_str().unwrap().to_owned();
    assert_eq!(served, format!("127.0.0.1:{}", published(composition.service("gate"))));
    // What needs no configuration on this machine is the address that the defaults have.
    let brokers = yaml::file("config/tollgate.yaml")["kafka"]["brokers"].as_str().unwrap().to_owned();
    let kafka = composition.service("kafka");
    assert_eq!(brokers, format!("127.0.0.1:{}", published(kafka)));
    let listeners = composition.variable("kafka", "KAFKA_ADVERTISED_LISTENERS");
    let listeners: Vec<&str> = listeners.split(',').collect();
    assert!(listeners.contains(&format!("HOST://localhost:{}", published(kafka)).as_str()), "{listeners:?}");
    for (name, _) in composition.ours() {
        let inside = format!("INSIDE://{}", composition.variable(name, "TOLLGATE__KAFKA__BROKERS"));
        assert!(listeners.contains(&inside.as_str()), "{name}: {inside} is not advertised");
    }
    assert!(listeners.contains(&format!("INSIDE://{}", composition.variable("kafka-ui", "KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS")).as_str()));
}

#[test]
fn prometheus_and_grafana_find_their_files() {
    let composition = Composition::read();
    let rules = texts(&yaml::file("config/prometheus/prometheus.yml")["rule_files"]);
    assert!(!rules.is_empty());
    for rule in rules {
        assert!(Path::new("config/prometheus").join(&rule).exists(), "config/prometheus/{rule} is not there");
    }
    let source = yaml::file("config/grafana/provisioning/datasources/prometheus.yaml")["datasources"][0].clone();
    assert_eq!(source["url"], format!("http://prometheus:{}", published(composition.service("prometheus"))));
    let folder = yaml::file("config/grafana/provisioning/dashboards/tollgate.yaml")["providers"][0]["options"]["path"].clone();
    let home = composition.variable("grafana", "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH");
    let mounts = Composition::mounts(composition.service("grafana"));
    let dashboard = mounts.iter().find(|(_, target, _)| *target == home).expect("the home dashboard is mounted");
    assert!(home.starts_with(&format!("{}/", folder.as_str().unwrap())), "{home} is not below {folder}");
    assert!(mounts.iter().any(|(source, target, _)| source == "./config/grafana/provisioning" && target == "/etc/grafana/provisioning"));
    let dashboard: Value = serde_json::from_str(&read(dashboard.0.trim_start_matches("./"))).expect("JSON");
    assert!(dashboard["panels"].as_array().is_some_and(|panels| !panels.is_empty()), "a dashboard without panels");
}
