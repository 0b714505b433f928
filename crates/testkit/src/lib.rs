//! The test kit for tests and benchmarks of Tollgate: a real Kafka broker, deployments of the `tollgate` binary on it, processes that end
//! with their starter, policy servers, traffic.
//!
//! | module | what |
//! |---|---|
//! | `broker`, `process_guard`, `ports` | a broker of our own, which ends with its starter, whatever ends that |
//! | `brokers` | three brokers that are one cluster, and what can happen to them |
//! | `acl` | grants rights by the lines of `kafka-acls.sh` |
//! | `protocol` | requests of Kafka's protocol that the clients here have no call for |
//! | `cluster` | clients of a cluster: topics, records and groups |
//! | `deployment` | a configuration with its topics, and worker processes on them |
//! | [`harness`] | runs tests on one broker, and says which are skipped and why |
//! | `policy_server` | a policy server that decides by the tool, and the web server below it |
//! | `wait` | waits for conditions |
//!
//! The events that a fleet of agents sends are those of `tollgate-fixtures`, and are named here again.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "it is there for tests and benchmarks, which fail by panicking"
)]

mod acl;
mod broker;
mod brokers;
mod cluster;
mod deployment;
pub mod harness;
mod policy_server;
mod ports;
mod process_guard;
mod protocol;
mod wait;

pub use acl::grant;
pub use broker::{Broker, Security, default_cache, lacking, test_cache};
pub use brokers::{Brokers, BrokersSettings, NODES, Traffic, has_small_disks};
pub use cluster::{Cluster, Outgoing, Position, Record};
pub use deployment::{AbuseTopics, Deployment, Worker, admin_page, by_thread, header, metric_of, parsed, text};
pub use policy_server::{Decide, HttpAnswer, PolicyServer, serve_http};
pub use ports::free_ports;
pub use process_guard::ProcessGuard;
pub use tollgate_fixtures::traffic::{DENIED_TOOL, Mix, MixEvent, MixSettings, Random, Zipf};
pub use wait::{TIME_MAX, eventually, wait_until};
