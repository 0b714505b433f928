//! The tests of the worker that need no Kafka and no program: policy servers over real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod policy_servers;
