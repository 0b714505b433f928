//! Measures reading and deciding recorded traffic in one process: on one core, on all of them, under two policies, and beside
//! `zstd -dc FILE | jq -c .value`, which only reads the same file.
//!
//! ```text
//! cargo bench -p tollgate-bench --bench recorded [EVENTS]
//! ```
//!
//! All take turns, three rounds of each, and the median counts. CPU time is that of the processes, user and system. `TOLLGATE` names another
//! binary than the one that cargo builds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a benchmark fails by panicking")]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use tollgate_core::event::record::partition_of;
use tollgate_testkit::{DENIED_TOOL, Mix, MixEvent, MixSettings};

const ROUNDS: usize = 3;
const EVENTS: usize = 1_000_000;
const PARTITIONS: u32 = 16;

/// The sizes that make the mean of all events that of the target, about 600 bytes.
const SIZES: MixSettings = MixSettings { result_bytes_max: 600, arguments_bytes_max: 200, response_bytes_max: 1_000, ..MixSettings::USUAL };

/// What is measured: its name, and the command.
const SUBJECTS: [(&str, &str); 7] = [
    ("eval, one core", "taskset -c 0 $TOLLGATE eval capture.jsonl"),
    ("eval --digest, one core", "taskset -c 0 $TOLLGATE eval --digest capture.jsonl"),
    ("eval --digest, all cores", "$TOLLGATE eval --digest capture.jsonl"),
    ("eval --digest, all cores, compressed", "$TOLLGATE eval --digest capture.jsonl.zst"),
    ("diff, one core", "taskset -c 0 $TOLLGATE diff --policy b.yaml capture.jsonl"),
    ("diff, all cores", "$TOLLGATE diff --policy b.yaml capture.jsonl"),
    ("zstd -dc | jq -c .value", "zstd -dc capture.jsonl.zst | jq -c .value"),
];

/// Seconds by the clock, and seconds of CPU time.
#[derive(Debug, Clone, Copy)]
struct Cost {
    wall: f64,
    cpu: f64,
}

fn main() {
    // Cargo passes options of its own.
    let events = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(EVENTS);
    let tollgate = std::env::var_os("TOLLGATE").map(PathBuf::from);
    let tollgate = tollgate.unwrap_or_else(|| tollgate_bench::build_worker(&std::env::current_exe().unwrap()).unwrap());
    let tollgate = tollgate.canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bytes = write_capture(folder.path(), events);
    let mut costs: HashMap<&str, Vec<Cost>> = HashMap::new();
    for _ in 0..ROUNDS {
        for (name, command) in SUBJECTS {
            costs.entry(name).or_default().push(measure(folder.path(), command, &tollgate));
        }
    }
    let median = |name: &str, of: fn(&Cost) -> f64| {
        let mut found: Vec<f64> = costs[name].iter().map(of).collect();
        found.sort_by(f64::total_cmp);
        found[found.len() / 2]
    };
    let first = SUBJECTS[0].0;
    println!("{events} events of {} bytes on {PARTITIONS} partitions, lines of {} bytes", bytes.events / events, bytes.lines / events);
    println!("{:<38} {:>10} {:>14} {:>9} {:>9}", "", "events/s", "per CPU second", "µs/event", "CPU ratio");
    for (name, _) in SUBJECTS {
        let (wall, cpu) = (median(name, |cost| cost.wall), median(name, |cost| cost.cpu));
        let count = events as f64;
        let ratio = cpu / median(first, |cost| cost.cpu);
        println!("{name:<38} {:>10.0} {:>14.0} {:>9.2} {ratio:>8.2}×", count / wall, count / cpu, cpu / count * 1e6);
    }
}

/// How much was written.
struct Written {
    events: usize,
    lines: usize,
}

/// Writes a capture of the traffic that the load test has, and a policy that denies one of its tools and counts loops otherwise.
fn write_capture(folder: &Path, events: usize) -> Written {
    let (mut mix, mut event, mut line) = (Mix::new(SIZES), MixEvent::blank(), String::new());
    let (mut offsets, mut written) = (vec![0_u64; PARTITIONS as usize], Written { events: 0, lines: 0 });
    let mut file = std::io::BufWriter::new(std::fs::File::create(folder.join("capture.jsonl")).unwrap());
    for number in 0..events {
        mix.next_into(&mut event);
        let partition = partition_of(event.thread_id.as_bytes(), PARTITIONS).0;
        let offset = &mut offsets[usize::try_from(partition).unwrap()];
        let value = serde_json::to_string(std::str::from_utf8(&event.value).unwrap()).unwrap();
        line.clear();
        writeln!(
            line,
            r#"{{"topic":"agent.events","partition":{partition},"offset":{offset},"timestamp":{},"key":"{}","headers":[],"value":{value}}}"#,
            1_700_000_000_000_u64 + number as u64,
            event.thread_id
        )
        .unwrap();
        *offset += 1;
        file.write_all(line.as_bytes()).unwrap();
        (written.events, written.lines) = (written.events + event.value.len(), written.lines + line.len());
    }
    file.flush().unwrap();
    let packed = Command::new("zstd").args(["-q", "capture.jsonl"]).current_dir(folder).status();
    assert!(packed.is_ok_and(|status| status.success()), "zstd and jq have to be installed");
    let policy = format!(
        "guardrails: {{enabled: true, provider: {{use: allowlist, config: {{denied_tools: [{DENIED_TOOL}]}}}}}}\n\
         tool_loop_guardrails: {{same_tool_failure_halt_after: 4}}\n"
    );
    std::fs::write(folder.join("b.yaml"), policy).unwrap();
    written
}

fn measure(folder: &Path, command: &str, tollgate: &Path) -> Cost {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
        [usage.user_time(), usage.system_time()].iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).sum::<f64>()
    };
    let (before, begin) = (used(), Instant::now());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("TOLLGATE", tollgate).current_dir(folder).stdout(Stdio::null());
    assert!(shell.status().unwrap().success(), "{command}");
    Cost { wall: begin.elapsed().as_secs_f64(), cpu: used() - before }
}
