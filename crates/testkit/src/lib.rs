//! What tests and benchmarks of Tollgate run against: a real Kafka broker, processes that end with their starter, policy servers, traffic.

mod broker;
mod process_guard;

pub use broker::{Broker, default_cache, lacking};
pub use process_guard::ProcessGuard;
