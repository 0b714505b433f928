//! `tollgate eval`: reads events, or records as other programs print them, and writes their verdicts as JSONL, in order and in constant
//! memory.

mod counting;

use std::cell::Cell;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tollgate_core::decide::controls::Controls;
use tollgate_core::decide::policy::Policy;

use tollgate_config::settings::Settings;
use tollgate_recordings::evaluate::{Counting, Evaluated, Evaluation, digest, fold};
use tollgate_recordings::{Decider, Format, LineFault, LocalAbuse, ParallelReader, Reader, open};

use crate::commands::shared::recorded::{redacted, report, tell_topics};
use crate::commands::shared::{Finding, Interrupt, LiveLine, REJECTED, apply_controls, is_reader_gone, process, shown, wrong};
use counting::CountingArgs;

const BUFFER_BYTES: usize = 256 * 1024;

#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    /// Events as JSONL, or records as kcat -J or a capture prints them; `-` or nothing is stdin
    file: Option<PathBuf>,
    /// The format of the lines; each line tells it by itself
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
    /// Controls to decide under, as JSONL: {"key": "…", "value": {…} or null}, applied in order before the first event
    #[arg(long, value_name = "FILE")]
    controls: Option<PathBuf>,
    /// Print one digest over all verdicts in place of the verdicts. It is the same on any number of cores, and each verdict counts once
    #[arg(long)]
    digest: bool,
    #[command(flatten)]
    counting: CountingArgs,
}

pub(super) fn execute(args: &EvalArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    if args.counting.is_asked_for() {
        args.check_counting(settings)?;
    }
    if let Some(path) = &args.counting.signals {
        return count_again(args, path, settings);
    }
    let lines = open(args.file.as_deref().unwrap_or(Path::new("-")))?;
    let interrupt = Interrupt::watch()?;
    let lines = interrupt.input(lines)?;
    settings.policy.unusable().for_each(|fault| say!("tollgate: {fault}"));
    let runtime = process::runtime()?;
    let _entered = runtime.enter();
    let controls = Arc::new(Controls::new(settings.subject_keys.iter()));
    let refused = args.controls.as_deref().map_or(Ok(0), |path| apply_controls(path, &controls))?;
    let policy = Policy::under(&settings.policy, Arc::clone(&controls));
    let policy = Arc::new(if args.counting.is_asked_for() { policy.with_signals(settings.abuse.rules.interest()) } else { policy });
    let servers = process::waited_servers(&settings.policy)?;
    let (reader, topic) = (Reader::new(args.format), &settings.kafka.topics.events);
    let new_decider = || Decider::new(Arc::clone(&policy), Arc::clone(&servers));
    let rejected = Cell::new(refused);
    let outcome = if args.digest {
        let show = LiveLine::lines();
        let parallel_reader = ParallelReader { input: lines, reader, topic, event_bytes_max: policy.limits().event_bytes_max, show };
        if refused > 0 {
            say!("tollgate: --controls: {refused} lines hold no control, so that there is no digest of verdicts under them; mend them");
            return Ok(ExitCode::from(REJECTED));
        }
        print_digest(parallel_reader, new_decider, &policy, &rejected)
    } else {
        let counting = args.counting.is_asked_for().then(|| args.counting(settings, &controls)).transpose()?;
        let verdicts: Box<dyn Write> = if args.counting.takes_stdout() {
            Box::new(io::sink())
        } else {
            Box::new(BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock()))
        };
        let evaluated = Evaluation::new(topic, new_decider(), counting).run(lines, reader, verdicts, &mut counted(&rejected));
        evaluated.map(|evaluated| {
            say_redacted(evaluated.redacted, &policy);
            say_found(&evaluated);
        })
    };
    exit_code(outcome, &rejected, &interrupt)
}

/// Says how many records are redacted, if a part of the policy reads what they have lost.
fn say_redacted(records: u64, policy: &Policy) {
    if records > 0 && policy.reads_arguments() {
        say!("tollgate: {}", redacted(records));
    }
}

/// Says what was not counted and which threads begin within a turn.
fn say_found(evaluated: &Evaluated) {
    let (count, named) = evaluated.cut_turns.found();
    say_cut_turns(count, &named);
    evaluated.uncounted.iter().for_each(|sentence| say!("tollgate: {sentence}"));
}

/// Says how many threads begin within a turn, and names some of them.
fn say_cut_turns(count: u64, named: &[&str]) {
    if count == 0 {
        return;
    }
    let threads = if count == 1 { "thread begins" } else { "threads begin" };
    let more = if count > named.len() as u64 { ", …" } else { "" };
    let names = named.iter().map(|name| shown(name)).collect::<Vec<_>>().join(", ");
    let names = if named.is_empty() { names } else { format!(" ({names}{more})") };
    say!(
        "tollgate: {count} {threads} within a turn{names}: what came before is not here, so that verdicts can differ from those of the \
         workers; take events from the beginning of the turn on"
    );
}

/// Reports rejected lines, and counts them.
fn counted(rejected: &Cell<u64>) -> impl FnMut(u64, &LineFault) -> anyhow::Result<()> {
    |number, fault| {
        rejected.set(rejected.get() + 1);
        report(number, fault)
    }
}

/// Returns the exit code. A line that was rejected stays rejected though the reader of stdout has gone.
fn exit_code(outcome: anyhow::Result<()>, rejected: &Cell<u64>, interrupt: &Interrupt) -> anyhow::Result<ExitCode> {
    let code = if rejected.get() > 0 { ExitCode::from(REJECTED) } else { ExitCode::SUCCESS };
    match outcome {
        Err(error) if rejected.get() > 0 && is_reader_gone(&error) => Ok(code),
        outcome => outcome.map(|()| interrupt.ended_early().unwrap_or(code)),
    }
}

/// Prints one digest over all verdicts.
fn print_digest(
    parallel_reader: ParallelReader<'_>,
    new_decider: impl Fn() -> Decider,
    policy: &Policy,
    rejected: &Cell<u64>,
) -> anyhow::Result<()> {
    let digested = digest(parallel_reader, new_decider)?;
    tell_topics(&digested.topics);
    let mut report = counted(rejected);
    digested.faults.iter().try_for_each(|(number, fault)| report(*number, fault))?;
    writeln!(Finding, "{}", digested.verdicts.digest())?;
    say_redacted(digested.redacted, policy);
    say_cut_turns(digested.cut_threads, &[]);
    if digested.displaced > 0 {
        say!(
            "tollgate: {} threads were refused or made room for others (limits.threads_per_partition_max), so the digest depends on how threads are split over partitions",
            digested.displaced
        );
    }
    Ok(())
}

/// Counts a captured signals topic.
fn count_again(args: &EvalArgs, path: &Path, settings: &Settings) -> anyhow::Result<ExitCode> {
    let sinks = args.counting.create(&[path])?;
    let rules = Arc::new(settings.abuse.rules.clone());
    let lines = open(path)?;
    let (interrupt, rejected) = (Interrupt::watch()?, Cell::new(0));
    let folded = fold(interrupt.input(lines)?, &settings.kafka.topics.signals, &rules, sinks, &mut counted(&rejected));
    exit_code(folded.map(|folded| say_found(&folded)), &rejected, &interrupt)
}

impl EvalArgs {
    /// Checks that what is asked for can be counted.
    fn check_counting(&self, settings: &Settings) -> anyhow::Result<()> {
        if self.digest {
            return Err(wrong(
                "--digest: found with an option that counts; a digest is made on all cores at once, and whom a rule suspends depends on the order of all events; leave one out",
            ));
        }
        if !settings.abuse.signals {
            return Err(wrong("abuse.signals: found false, so that there is nothing to count; write true, or leave it out"));
        }
        if settings.abuse.rules.rules.is_empty() {
            return Err(wrong(
                "abuse.rules: found no rule, and abuse.pack is off, so that nothing can be found; write a rule, or pack: alert",
            ));
        }
        Ok(())
    }

    /// Returns what counts, and makes the files that are written.
    fn counting(&self, settings: &Settings, controls: &Arc<Controls>) -> anyhow::Result<Counting> {
        let reads: Vec<_> = [self.file.as_deref(), self.controls.as_deref()].into_iter().flatten().collect();
        let rules = Arc::new(settings.abuse.rules.clone());
        let local_abuse = LocalAbuse::new(&settings.kafka.topics.signals, &rules, self.counting.signals_partitions);
        Ok(Counting::new(local_abuse, self.counting.create(&reads)?, Arc::clone(controls)))
    }
}
