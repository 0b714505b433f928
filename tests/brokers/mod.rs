//! Tests what the program says of brokers that it cannot reach, and what a worker does on the embedded broker. They need no Apache Kafka.

pub(crate) mod dev;
pub(crate) mod embedded;
pub(crate) mod process;
// It plays a broker that speaks TLS.
#[cfg(feature = "tls")]
mod unreachable;
