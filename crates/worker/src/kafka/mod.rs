//! Kafka clients: how each is configured and why, the one context of all, why brokers do not answer, and messages as the core's records.

mod check;
mod clients;
mod closing;
mod connect;
mod consumer;
mod context;
mod explain;
mod failover;
mod message;
mod metadata;
mod oauth;
mod open_transactions;
mod principal;
#[cfg(feature = "tls")]
mod probe;
mod producer;
mod property_fault;
mod reason;
mod rights;
mod secret_files;
mod state;
mod topic_admin;

pub use check::{check_administration, check_clients, is_property};
pub use clients::{make_consumer, make_producer};
pub(crate) use closing::{Closes, Closing, GroupConsumer, answer_leaving, rebalance};
pub use connect::{Inquirer, ReasonContext, Watch};
pub use consumer::{consumer_config, heartbeat_interval, silence_max, uses_consumer_protocol};
pub(crate) use context::log;
pub use context::{AssignsItself, Callbacks, Context, Deliveries, PlainContext, statistics};
pub use failover::failover_table;
pub use message::{headers_of, own_headers, with_record};
pub use metadata::{TopicMetadata, cluster_topic, is_unreachable, partitions_of, passes, reach_leaders};
use oauth::oauth_token;
pub use open_transactions::{OpenTransaction, open_transactions};
pub use principal::principal;
pub use producer::{Linger, producer_config, reply_producer_config, verdict_producer_config};
pub use property_fault::PropertyFault;
pub use reason::Reason;
pub use rights::{Resource, Right, is_forbidden};
pub use secret_files::{ChangedSecrets, SecretFiles};
pub use state::{ABUSE, StageTopics, reader_config};
pub use state::{asker_config, state_producer_config};
pub use topic_admin::{TopicConfig, admin_error_code, topic_admin, topic_configs};
