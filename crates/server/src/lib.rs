//! HTTP in front of the gate, for hosts that are no Kafka clients. The log stays the truth and workers stay the judges: a server publishes
//! events, awaits their verdicts on a partition of its own, and answers with them. Any number of servers may run.
//!
//! | module | what it does |
//! |---|---|
//! | [`server`] | starts the parts, listens, drains |
//! | `listen`, `tls` | connections over HTTP/1.1 and HTTP/2, plain or with TLS, bounded |
//! | `guard`, `tokens`, `token_file` | who may ask for whom |
//! | `watched` | files that are read again when they change |
//! | [`routes`] | a route each: events, verdicts, the wires of hosts |
//! | [`events`] | bodies as events, read as the workers read them |
//! | `not_read` | records for the log in place of responses that are refused |
//! | `gate`, `waits`, [`shared`] | publishes, waits, remembers |
//! | `publisher`, `replies`, `claim` | Kafka: events out, verdicts in, one server on a partition |
//! | `watch` | looks at the topics beside them |
//! | [`refusal`] | answers without a verdict, in the shape of a verdict that blocks |

mod claim;
pub mod events;
mod gate;
mod guard;
mod listen;
mod not_read;
mod publisher;
pub mod refusal;
mod replies;
pub mod routes;
pub mod server;
pub mod shared;
#[cfg(feature = "tls")]
mod tls;
mod token_file;
mod tokens;
mod waits;
mod watch;
mod watched;
