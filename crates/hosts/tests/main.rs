//! Tests of the wires without a server.
//!
//! | module | what it tests |
//! |---|---|
//! | `recorded` | requests as hosts send them: the events of each, and the answer to each kind of verdict |
//! | `readings` | that each host reads each answer as it is meant |
//! | `garbage` | that no other body passes |
//! | `ext_mcp` | agentgateway's messages, byte by byte |
//! | `mcp` | frames of MCP, one after the other |
//! | `conversations` | wires with the gate behind them: repeats, retries, results |
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests fail by panicking"
)]

mod conversations;
mod ext_mcp;
mod garbage;
mod mcp;
mod readings;
mod recorded;
mod support;
