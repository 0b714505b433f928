//! The first process: it starts the workers and gathers what they tell.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use nix::unistd::Uid;
use serde_json::Value;

use super::finding::Finding;
use super::options::Options;
use super::plan::{Plan, SHELLS};
use super::rules::RULE_SETS;
use super::worker::{Message, work};

/// The user that workers are if this process is root: root in a namespace may still set what the whole machine has.
const NOBODY: u32 = 65_534;

/// The corpus of the rules, in which lines are expected to be allowed or not.
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shell/tests/commands/corpus.jsonl");

/// Does what the options say. Returns whether nothing was found.
///
/// # Errors
/// If programs are missing, or if a jail cannot be built here.
pub fn run(options: &Options) -> Result<bool> {
    if let Some(plan) = &options.inside {
        return work(plan).map(|()| true);
    }
    if let Some(unknown) = options.rules.iter().find(|name| !RULE_SETS.iter().any(|set| set.name == **name)) {
        bail!("there is no rule set {unknown}; there are {}", RULE_SETS.map(|set| set.name).join(", "));
    }
    let folder = tempfile::Builder::new().prefix("tollgate-commands-").tempdir()?;
    // Workers are another user.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let mut plan = Plan::new(options, folder.path())?;
    plan.corpus = corpus(options)?;
    let count = match options.workers {
        _ if options.self_test || options.replay => 1,
        Some(count) => count.max(1),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    Lead { options, plan, findings: Vec::new(), kinds: HashSet::new(), totals: Totals::default() }.run(folder.path(), count)
}

/// Returns the lines to start from.
fn corpus(options: &Options) -> Result<Vec<String>> {
    let mut lines = options.line.clone();
    let mut files = options.corpus.clone();
    if !options.replay {
        files.push(CORPUS.into());
    }
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let value: Value = serde_json::from_str(line).with_context(|| format!("{}, line {}", file.display(), number + 1))?;
            let fields = ["minimised", "line", "command"];
            let text = value.as_str().or_else(|| fields.iter().find_map(|field| value.get(field)?.as_str()));
            lines.extend(text.filter(|text| !text.contains('\0')).map(str::to_owned));
        }
    }
    Ok(lines)
}

#[derive(Debug, Default)]
struct Totals {
    made: Vec<u64>,
    allowed: Vec<u64>,
    run: u64,
    repeated: u64,
    faults: usize,
}

struct Lead<'o> {
    options: &'o Options,
    plan: Plan,
    findings: Vec<Finding>,
    kinds: HashSet<String>,
    totals: Totals,
}

impl Lead<'_> {
    fn run(mut self, folder: &Path, count: usize) -> Result<bool> {
        let begin = Instant::now();
        let (send, receive) = channel();
        let mut children = Vec::new();
        for number in 0..count {
            children.push(self.start(folder, number, send.clone())?);
        }
        drop(send);
        let mut kept =
            self.options.keep_going.as_ref().map(|path| File::create(path).with_context(|| path.display().to_string())).transpose()?;
        let mut result = Ok(());
        for message in receive {
            if let Message::Error(error) = message {
                result = Err(anyhow::anyhow!(error));
                break;
            }
            self.take(message, kept.as_mut())?;
            if !self.findings.is_empty() && kept.is_none() && !self.options.replay {
                break;
            }
        }
        for child in &mut children {
            // A worker that has ended already is not there any more.
            let _ = child.kill();
            child.wait()?;
        }
        result?;
        if self.options.self_test {
            return self.end_self_test();
        }
        self.summary(begin);
        Ok(self.findings.is_empty())
    }

    /// Starts a worker in namespaces of its own.
    fn start(&self, folder: &Path, number: usize, send: Sender<Message>) -> Result<Child> {
        let mut plan = self.plan.clone();
        plan.seed = plan.seed.wrapping_add(u64::try_from(number)?);
        let path = folder.join(format!("plan-{number}.json"));
        fs::write(&path, serde_json::to_vec(&plan)?)?;
        // A copy, because nobody may not be able to reach the folder that this program is in.
        let program = folder.join("commands");
        if !program.exists() {
            fs::copy(std::env::current_exe()?, &program)?;
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        }
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child", "--"]);
        command.arg(program).arg("--inside").arg(&path).current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped());
        if Uid::effective().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let mut child = command.spawn().context("unshare")?;
        let out = child.stdout.take().context("the worker has no output")?;
        std::thread::spawn(move || {
            let mut ended = false;
            // A line of the output that is no message was written by a line that found the worker's output.
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let Ok(message) = serde_json::from_str::<Message>(&line) else { continue };
                ended |= matches!(message, Message::Ended);
                if send.send(message).is_err() {
                    return;
                }
            }
            if !ended {
                let error = "a worker ended early; see what it wrote above. It needs user namespaces: kernel.unprivileged_userns_clone=1";
                let _ = send.send(Message::Error(error.to_owned()));
            }
        });
        Ok(child)
    }

    fn take(&mut self, message: Message, kept: Option<&mut File>) -> Result<()> {
        match message {
            Message::Finding(finding) if !self.kinds.insert(finding.kind()) => self.totals.repeated += 1,
            Message::Finding(finding) => {
                println!("{finding}\n");
                if let Some(file) = kept {
                    writeln!(file, "{}", serde_json::to_string(&finding)?)?;
                }
                self.findings.push(*finding);
            }
            Message::Stats(stats) => {
                add(&mut self.totals.made, &stats.made);
                add(&mut self.totals.allowed, &stats.allowed);
                self.totals.run += stats.run;
                self.totals.repeated += stats.repeated;
            }
            Message::Sample(rules, line) => println!("allowed under {rules}: {line:?}"),
            Message::Fault(fault) => {
                self.totals.faults += 1;
                println!("{fault}");
            }
            Message::Ended | Message::Error(_) => {}
        }
        Ok(())
    }

    fn end_self_test(&self) -> Result<bool> {
        match self.totals.faults {
            0 => println!("the jail sees what it has to see"),
            faults => println!("{faults} times the jail did not see what it has to see"),
        }
        Ok(self.totals.faults == 0)
    }

    #[allow(clippy::cast_precision_loss, reason = "rates are shown with one digit")]
    fn summary(&self, begin: Instant) {
        let seconds = begin.elapsed().as_secs_f64();
        let totals = &self.totals;
        for (place, set) in RULE_SETS.iter().enumerate() {
            let count = |counts: &[u64]| counts.get(place).copied().unwrap_or(0);
            let (made, allowed) = (count(&totals.made), count(&totals.allowed));
            if made > 0 {
                println!("{:>6}: {made} lines made, {allowed} allowed ({:.1} %)", set.name, 100.0 * allowed as f64 / made as f64);
            }
        }
        let (made, allowed): (u64, u64) = (totals.made.iter().sum(), totals.allowed.iter().sum());
        let shells = SHELLS.map(|(name, _)| format!("{name} {}", totals.run)).join(", ");
        println!("{made} lines made, {allowed} allowed ({:.1} %), in {seconds:.0} s", 100.0 * allowed as f64 / made.max(1) as f64);
        println!("runs: {shells}; {:.0} lines a second in all four", totals.run as f64 / seconds);
        println!("{} findings, and {} more of the same kinds; the seed was {}", self.findings.len(), totals.repeated, self.plan.seed);
    }
}

fn add(to: &mut Vec<u64>, counts: &[u64]) {
    to.resize(to.len().max(counts.len()), 0);
    to.iter_mut().zip(counts).for_each(|(to, count)| *to += count);
}
