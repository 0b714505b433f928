//! Reads the CPU and the memory that a process and its children use, from Linux's `/proc`.

use std::fs;

use anyhow::{Context as _, Result};
use serde::Serialize;

/// The unit of CPU time in `/proc`: hundredths of a second, on every architecture that Linux runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU and memory of a process group.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Usage {
    /// User and system time in seconds, of children that have ended too.
    pub cpu_seconds: f64,
    /// Memory in use, in bytes.
    pub resident_bytes: u64,
    /// The most memory that was ever in use, in bytes.
    pub peak_resident_bytes: u64,
}

impl Usage {
    /// Reads what the process group of this id uses now.
    pub fn of_group(group: u32) -> Result<Self> {
        let entries = fs::read_dir("/proc").context("the CPU time of a process is read from /proc, which this system lacks")?;
        let mut usage = None;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            // A process may end while it is looked at.
            let Ok(stat) = fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
            let Some((found, cpu_seconds)) = read_stat(&stat) else { continue };
            if found == group {
                let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
                let usage = usage.get_or_insert_with(Self::default);
                usage.cpu_seconds += cpu_seconds;
                usage.resident_bytes += kilobytes(&status, "VmRSS:") * 1_024;
                usage.peak_resident_bytes += kilobytes(&status, "VmHWM:") * 1_024;
            }
        }
        usage.with_context(|| format!("process {group} is gone"))
    }
}

/// Reads the process group, and the user and system time in seconds, of a process and its dead children.
fn read_stat(stat: &str) -> Option<(u32, f64)> {
    // The name of the program, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let group = fields.get(2)?.parse().ok()?;
    let ticks: f64 = fields.get(11..15)?.iter().filter_map(|field| field.parse::<f64>().ok()).sum();
    Some((group, ticks / TICKS_PER_SECOND))
}

fn kilobytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()).and_then(|number| number.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_program_is_called() {
        let line = "42 (a b) c) S 1 40 40 0 -1 4194560 100 0 0 0 150 50 20 30 20 0 1 0 100 1000 10 18446744073709551615";
        assert_eq!(read_stat(line), Some((40, 2.5)));
        assert_eq!(read_stat("42 (x"), None);
        assert_eq!(kilobytes("VmPeak:\t  10 kB\nVmRSS:\t   2048 kB\n", "VmRSS:"), 2_048);
    }

    #[test]
    fn a_group_that_is_not_there_is_an_error() {
        assert!(Usage::of_group(u32::MAX).is_err());
    }
}
