//! Describes the machine on which figures were measured, which a reader needs to make sense of them.

use std::fs;

use serde::Serialize;

/// The machine and the build that figures were measured with.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Machine {
    /// The processor.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The kernel.
    pub kernel: String,
    /// The version of this program.
    pub version: String,
    /// Whether it was built with optimisations.
    pub is_release: bool,
    /// Where the broker was.
    pub broker: String,
    /// Processes that wanted to run in the minute before.
    pub load: f64,
}

impl Machine {
    /// Returns the description of this machine.
    pub fn here(broker: String) -> Self {
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self {
            cpu: field(&cpu, "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_bytes: field(&memory, "MemTotal")
                .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
                .map_or(0, |kilobytes| kilobytes * 1_024),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| std::env::consts::OS.to_owned(), |release| format!("Linux {}", release.trim())),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            is_release: !cfg!(debug_assertions),
            broker,
            load: first_number(&fs::read_to_string("/proc/loadavg").unwrap_or_default()),
        }
    }

    /// Returns whether others wanted more of it than there is: figures from then say little.
    pub fn is_busy(&self) -> bool {
        self.load > self.cores as f64
    }
}

fn first_number(text: &str) -> f64 {
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start_matches([' ', '\t', ':']).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc_are_read() {
        assert_eq!(field("processor\t: 0\nmodel name\t: A CPU @ 2 GHz\n", "model name").as_deref(), Some("A CPU @ 2 GHz"));
        assert_eq!(field("MemTotal:       100 kB\n", "MemTotal").as_deref(), Some("100 kB"));
        assert_eq!(field("", "x"), None);
        assert_eq!([first_number("2.50 1.47 2.36 1/99 4242"), first_number("")], [2.5, 0.0]);
    }
}
