//! What tests and benchmarks of Tollgate run against: a real Kafka broker, processes that end with their starter, policy servers, traffic.

mod broker;
mod policy_server;
mod process_guard;
mod traffic;

pub use broker::{Broker, default_cache, lacking};
pub use policy_server::{Decide, PolicyServer};
pub use process_guard::ProcessGuard;
pub use traffic::{DENIED_TOOL, Mix, MixEvent, MixSettings, Random, Zipf};
