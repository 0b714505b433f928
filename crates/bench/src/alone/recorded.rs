//! Measures reading and deciding recorded traffic in one process: on one core, on all of them, under two policies, and beside
//! `zstd -dc FILE | jq -c .value`, which only reads the same file.
//!
//! All take turns, three rounds of each, and the median counts. CPU time is that of the processes, user and system.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use nix::sys::resource::UsageWho;
use tollgate_core::event::record::partition_of;
use tollgate_testkit::{DENIED_TOOL, Mix, MixEvent};

use super::{SMALL_EVENTS, Seconds, cpu_seconds, medians};

const ROUNDS: usize = 3;
const PARTITIONS: u32 = 16;

const DIGEST: &str = "taskset -c 0 $TOLLGATE eval --digest capture.jsonl";

/// What is measured: its name, and the command.
const SUBJECTS: [(&str, &str); 7] = [
    ("eval, one core", "taskset -c 0 $TOLLGATE eval capture.jsonl"),
    ("eval --digest, one core", DIGEST),
    ("eval --digest, all cores", "$TOLLGATE eval --digest capture.jsonl"),
    ("eval --digest, all cores, compressed", "$TOLLGATE eval --digest capture.jsonl.zst"),
    ("diff, one core", "taskset -c 0 $TOLLGATE diff --policy b.yaml capture.jsonl"),
    ("diff, all cores", "$TOLLGATE diff --policy b.yaml capture.jsonl"),
    ("zstd -dc | jq -c .value", "zstd -dc capture.jsonl.zst | jq -c .value"),
];

/// Returns how many events `eval --digest` decides in a second of one core's time, on traffic of so many events.
pub(crate) fn digest_per_cpu_second(tollgate: &Path, events: usize) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    write_capture(folder.path(), events)?;
    let costs = (0..ROUNDS).map(|_| run(folder.path(), DIGEST, tollgate)).collect::<Result<Vec<_>>>()?;
    Ok(events as f64 / medians(&costs).1)
}

/// Measures every subject on traffic of so many events.
pub(super) fn measure(tollgate: &Path, events: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (event_bytes, line_bytes) = write_capture(folder.path(), events)?;
    let mut costs = [const { Vec::new() }; SUBJECTS.len()];
    for _ in 0..ROUNDS {
        for (costs, (_, command)) in costs.iter_mut().zip(SUBJECTS) {
            costs.push(run(folder.path(), command, tollgate)?);
        }
    }
    println!("{events} events of {} bytes on {PARTITIONS} partitions, lines of {} bytes", event_bytes / events, line_bytes / events);
    println!("{:<38} {:>10} {:>14} {:>9} {:>9}", "", "events/s", "per CPU second", "µs/event", "CPU ratio");
    let first = costs.first().map_or(f64::NAN, |costs| medians(costs).1);
    for ((name, _), costs) in SUBJECTS.iter().zip(&costs) {
        let ((wall, cpu), count) = (medians(costs), events as f64);
        println!("{name:<38} {:>10.0} {:>14.0} {:>9.2} {:>8.2}×", count / wall, count / cpu, cpu / count * 1e6, cpu / first);
    }
    Ok(())
}

/// Writes a capture of the traffic that the load test has, and a policy that denies one of its tools and counts loops otherwise. Returns the
/// bytes of the events and of the lines.
fn write_capture(folder: &Path, events: usize) -> Result<(usize, usize)> {
    let (mut mix, mut event, mut line) = (Mix::new(SMALL_EVENTS), MixEvent::blank(), String::new());
    let (mut offsets, mut event_bytes, mut line_bytes) = ([0_u64; PARTITIONS as usize], 0, 0);
    let mut file = std::io::BufWriter::new(std::fs::File::create(folder.join("capture.jsonl"))?);
    for number in 0..events {
        mix.next_into(&mut event);
        let partition = partition_of(event.thread_id.as_bytes(), PARTITIONS).0;
        let offset = offsets.get_mut(usize::try_from(partition)?).context("a partition has an offset")?;
        let value = serde_json::to_string(std::str::from_utf8(&event.value)?)?;
        line.clear();
        writeln!(
            line,
            r#"{{"topic":"agent.events","partition":{partition},"offset":{offset},"timestamp":{},"key":"{}","headers":[],"value":{value}}}"#,
            1_700_000_000_000_u64 + number as u64,
            event.thread_id
        )?;
        *offset += 1;
        file.write_all(line.as_bytes())?;
        event_bytes += event.value.len();
        line_bytes += line.len();
    }
    file.flush()?;
    let packed = Command::new("zstd").args(["-q", "capture.jsonl"]).current_dir(folder).status();
    ensure!(packed.is_ok_and(|status| status.success()), "zstd and jq have to be installed");
    let policy = format!(
        "guardrails: {{enabled: true, provider: {{use: allowlist, config: {{denied_tools: [{DENIED_TOOL}]}}}}}}\n\
         tool_loop_guardrails: {{same_tool_failure_halt_after: 4}}\n"
    );
    std::fs::write(folder.join("b.yaml"), policy)?;
    Ok((event_bytes, line_bytes))
}

/// Runs a command, and returns its seconds by the clock and of CPU time.
fn run(folder: &Path, command: &str, tollgate: &Path) -> Result<Seconds> {
    let (before, start) = (cpu_seconds(UsageWho::RUSAGE_CHILDREN)?, Instant::now());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("TOLLGATE", tollgate).current_dir(folder).stdout(Stdio::null());
    ensure!(shell.status()?.success(), "{command} fails");
    Ok((start.elapsed().as_secs_f64(), cpu_seconds(UsageWho::RUSAGE_CHILDREN)? - before))
}
