//! The `worker`, `admin` and `log` sections: how the process works.

use std::net::SocketAddr;

use serde::Serialize;

use tollgate_core::settings::Section;

/// The settings of a worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerSettings {
    /// How many group members the process runs, one thread each; `None` is one per core.
    pub members: Option<u32>,
    /// The static membership id of this process, such as the pod's name; members append `-0`, `-1`, …
    pub instance_id: Option<String>,
    /// The interval between checkpoints in milliseconds. Each writes the changed state and commits its offset.
    pub checkpoint_interval_ms: u32,
    /// How long a stop or a revocation waits for acknowledgements and the last checkpoint, in milliseconds.
    pub drain_timeout_ms: u32,
    /// How many publications may wait for acknowledgement, plus events for answers, before a member stops taking records.
    pub in_flight_max: u32,
    /// How many bytes of events may wait for answers before a member stops taking records.
    pub waiting_bytes_max: u32,
}

/// The admin endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AdminSettings {
    /// The address and port to listen on.
    pub listen: SocketAddr,
}

/// What is logged to stderr, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogSettings {
    /// The filter in `tracing`'s syntax: a level, or levels by module.
    pub filter: String,
    /// Text or JSON.
    pub format: LogFormat,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object a line.
    Json,
}

pub(super) fn read_worker(section: &Section<'_>) -> WorkerSettings {
    WorkerSettings {
        members: section.optional_positive("members"),
        instance_id: section.optional_string("instance_id"),
        checkpoint_interval_ms: section.positive("checkpoint_interval_ms"),
        drain_timeout_ms: section.positive("drain_timeout_ms"),
        in_flight_max: section.positive("in_flight_max"),
        waiting_bytes_max: section.positive("waiting_bytes_max"),
    }
}

pub(super) fn read_admin(root: &Section<'_>) -> Option<AdminSettings> {
    if root.is_null("admin") {
        return None;
    }
    let section = root.section("admin");
    if section.is_null("listen") {
        section.pass_over("listen");
        return None;
    }
    let listen = section.string("listen");
    match listen.parse() {
        Ok(listen) => Some(AdminSettings { listen }),
        Err(_) => {
            section.fault("listen", "a string that is no address with a port", "write an address such as 127.0.0.1:9464 or 0.0.0.0:9464");
            None
        }
    }
}

pub(super) fn read_log(section: &Section<'_>) -> LogSettings {
    let filter = section.string("filter");
    let format = section.word("format", &[("text", LogFormat::Text), ("json", LogFormat::Json)]).unwrap_or(LogFormat::Text);
    LogSettings { filter, format }
}
