//! What is said of the process itself: its build, and what it uses of the machine.

use super::{Kind, Metrics, MetricsError, Spec};

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The metrics that the library has for processes. They are there on Linux.
pub const PROCESS: &[Spec] = &[
    spec("process_cpu_seconds_total", Kind::Counter, "Seconds of CPU time, of user and system, in whole seconds."),
    spec("process_open_fds", Kind::Gauge, "Open file descriptors."),
    spec("process_max_fds", Kind::Gauge, "The most file descriptors that may be open; left out where there is no limit."),
    spec("process_virtual_memory_bytes", Kind::Gauge, "Bytes of virtual memory."),
    spec("process_resident_memory_bytes", Kind::Gauge, "Bytes of resident memory."),
    spec("process_start_time_seconds", Kind::Gauge, "When the process started, in seconds since 1970."),
    spec("process_threads", Kind::Gauge, "Threads of the operating system."),
];

const fn spec(name: &'static str, kind: Kind, help: &'static str) -> Spec {
    Spec { name, kind, labels: &[], help, alert: None }
}

impl Metrics {
    /// Adds what is said of the process itself. It is called once in a process. `revision` is that of the sources that the program is built
    /// from.
    ///
    /// # Errors
    /// The metrics of the process are there already.
    pub fn add_process(&self, revision: &str) -> Result<(), MetricsError> {
        self.build_info.with_label_values(&[VERSION, revision]).set(1);
        #[cfg(target_os = "linux")]
        self.registry().register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_is_named_and_the_process_is_measured() {
        let metrics = Metrics::new().unwrap();
        let before = String::from_utf8(metrics.render()).unwrap();
        assert!(!before.contains("process_") && !before.contains("tollgate_build_info"), "{before}");
        metrics.add_process("1234abcd").unwrap();
        assert!(metrics.add_process("1234abcd").is_err());
        let text = String::from_utf8(metrics.render()).unwrap();
        assert!(text.contains(&format!("tollgate_build_info{{revision=\"1234abcd\",version=\"{VERSION}\"}} 1")), "{text}");
        let found: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE process_")).collect();
        if cfg!(target_os = "linux") {
            let kind = |spec: &Spec| if spec.kind == Kind::Counter { "counter" } else { "gauge" };
            let mut listed: Vec<_> =
                PROCESS.iter().map(|spec| format!("{} {}", spec.name.trim_start_matches("process_"), kind(spec))).collect();
            listed.sort();
            assert_eq!(found, listed, "{text}");
            let value = |name: &str| -> f64 {
                let line = text.lines().find(|line| line.split(' ').next() == Some(name)).unwrap_or_else(|| panic!("{name}"));
                line.rsplit(' ').next().unwrap().parse().unwrap()
            };
            assert!(value("process_resident_memory_bytes") > 1e6 && value("process_threads") >= 1.0 && value("process_open_fds") >= 3.0);
            let started = value("process_start_time_seconds");
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
            assert!(started <= now + 2.0 && started > now - 86_400.0, "{started} {now}");
        } else {
            assert!(found.is_empty());
        }
    }
}
