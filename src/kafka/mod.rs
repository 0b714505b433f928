//! Kafka clients: how each is configured and why, librdkafka's log lines, why brokers do not answer, and messages as the core's records.

mod check;
mod connect;
mod consumer;
mod log;
mod message;
mod metadata;
mod principal;
mod producer;
mod reason;
mod rights;
mod state;

pub use check::{PropertyFault, check_clients};
pub use connect::{Inquirer, ReasonContext, Watch};
pub use consumer::{consumer_config, heartbeat_interval};
pub use log::{PlainContext, log};
pub use message::{headers_of, own_headers, with_record};
pub(crate) use metadata::{is_unreachable, partitions_of};
pub use principal::principal;
pub use producer::{Linger, producer_config, reply_producer_config};
pub use reason::Reason;
pub use rights::{Resource, Right, is_forbidden};
pub use state::{StageTopics, reader_config};
pub(crate) use state::{asker_config, state_producer_config};
