//! Measures the cost by live threads: calls and results of many agents in one partition processor.
//!
//! There are two orders of events: uniform, where every event goes to a thread that was not touched for long, and by Zipf's law with
//! exponent 1, as real groups have busy agents and quiet ones. A seeded generator draws both. Every thread makes eight calls in a turn, and
//! measuring begins in the middle of that: of eight threads one has made no call, one has made one, and so on.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Lines, Write, stdin};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use serde_json::json;
use tollgate_core::decide::deciding::Outcome;
use tollgate_core::decide::policy::Policy;
use tollgate_fixtures::events::{At, Feed};
use tollgate_fixtures::gate::settings;
use tollgate_fixtures::measure::{median, time_per_event};
use tollgate_fixtures::traffic::{Random, Zipf};

use super::{Growth, SIZES};

const THREADS: [usize; SIZES] = [1_000, 1_000_000];
const ROUNDS: usize = 61;
/// The events that begin a round and bring the processor back into the caches, as far as it fits: another one was there meanwhile.
const WARM_UP: usize = 2_000;
const EVENTS: usize = 6_000;
/// The events that are timed at once. They take about a millisecond, so that other programs interrupt few of a round's blocks.
const BLOCK: usize = 250;
const CALLS_PER_TURN: usize = 8;
const SEED: u64 = 20_260_101;
/// The line that the process writes once its threads live.
const READY: &str = "ready";

pub fn measure(show: &mut impl FnMut(&Growth)) {
    let mut groups = THREADS.map(RemoteAgents::start);
    groups.iter_mut().for_each(|agents| assert_eq!(agents.next_line(), READY));
    for order in ["uniform", "Zipf"] {
        let mut growth = Growth::new(format!("threads, {order}"), THREADS);
        for _ in 0..ROUNDS {
            for (size, agents) in groups.iter_mut().enumerate() {
                growth.push(size, agents.run(order));
            }
        }
        show(&growth);
    }
    groups.into_iter().for_each(RemoteAgents::stop);
}

/// A agents in a process of its own, so that the memory of one agents does not change how fast another one allocates.
struct RemoteAgents {
    process: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl RemoteAgents {
    fn start(threads: usize) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["growth", "--fleet", &threads.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("it starts");
        let (orders, answers) = (process.stdin.take().expect("it is piped"), process.stdout.take().expect("it is piped"));
        Self { process, orders, answers: BufReader::new(answers).lines() }
    }

    fn next_line(&mut self) -> String {
        self.answers.next().expect("an answer").expect("an answer")
    }

    /// Runs one round and returns nanoseconds per event.
    fn run(&mut self, order: &str) -> f64 {
        writeln!(self.orders, "{order}").expect("it listens");
        self.next_line().parse().expect("a number")
    }

    fn stop(self) {
        let Self { mut process, orders, .. } = self;
        // The process ends when its input ends.
        drop(orders);
        assert!(process.wait().expect("it ends").success());
    }
}

/// Runs rounds of a agents of so many threads for the process that started this one.
pub fn serve(threads: usize) {
    let policy = Arc::new(Policy::new(&settings(&json!({"limits": {"threads_per_partition_max": 2_000_000}}))));
    let mut agents = Agents::new(&policy, threads);
    println!("{READY}");
    for order in stdin().lines() {
        let order: Order = if order.expect("an order") == "Zipf" { |agents| agents.zipf() } else { |agents| agents.uniform() };
        println!("{}", agents.run(order));
    }
    assert_eq!(agents.feed.processor.stage().threads().len(), agents.stands.len(), "no thread has left");
}

/// A function that chooses the next thread.
type Order = fn(&mut Agents) -> usize;

/// Events one behind the other, as a batch of records lies in memory. The memory is used again, so that making events leaves no holes.
#[derive(Debug, Default)]
struct Batch {
    text: String,
    ends: Vec<usize>,
}

impl Batch {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn push(&mut self, event: &str) {
        self.text.push_str(event);
        self.ends.push(self.text.len());
    }

    fn events(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }
}

/// The position of a thread: its turn and its call.
#[derive(Debug, Clone, Copy)]
struct Stand {
    turn: usize,
    call: usize,
    is_open: bool,
}

/// The agents whose threads live in one partition processor.
struct Agents {
    feed: Feed,
    stands: Vec<Stand>,
    random: Random,
    zipf: Zipf,
    batch: Batch,
}

impl Agents {
    fn new(policy: &Arc<Policy>, threads: usize) -> Self {
        let mut agents = Self {
            feed: Feed::new(policy),
            stands: vec![Stand { turn: 1, call: 0, is_open: false }; threads],
            random: Random::new(SEED),
            zipf: Zipf::new(threads),
            batch: Batch::default(),
        };
        // A call of every thread in turn, then its result: what a thread remembers lies as scattered in memory as it does in a worker.
        let start: Vec<usize> = shuffled(threads, &mut agents.random);
        for thread in &start {
            agents.apply(&At { thread: *thread, turn: 1, call: 0 }.turn_start());
        }
        for step in 0..2 * (CALLS_PER_TURN - 1) {
            for thread in start.iter().filter(|thread| step / 2 < *thread % CALLS_PER_TURN) {
                let event = agents.event_of(*thread);
                agents.apply(&event);
            }
        }
        agents
    }

    /// Runs one round and returns nanoseconds per event, the median of its blocks.
    fn run(&mut self, order: Order) -> f64 {
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        for _ in 0..WARM_UP + EVENTS {
            let thread = order(self);
            batch.push(&self.event_of(thread));
        }
        batch.events().take(WARM_UP).for_each(|event| self.apply(event));
        let events: Vec<&str> = batch.events().skip(WARM_UP).collect();
        let times = events.chunks(BLOCK).map(|block| time_per_event(block.len(), || block.iter().for_each(|event| self.apply(event))));
        let ns = median(times.collect());
        self.batch = batch;
        ns
    }

    fn apply(&mut self, event: &str) {
        let applied = black_box(self.feed.apply(event));
        assert!(matches!(applied, Outcome::Verdict { .. } | Outcome::Boundary(_)), "{applied:?}");
    }

    fn uniform(&mut self) -> usize {
        self.random.below(self.stands.len())
    }

    /// Draws a thread; threads are numbered in no order of how busy they are.
    fn zipf(&mut self) -> usize {
        let rank = self.zipf.draw(&mut self.random);
        rank * 7_919 % self.stands.len()
    }

    /// Returns the thread's next event: a call, or the result of the call that it has made.
    fn event_of(&mut self, thread: usize) -> String {
        let stand = &mut self.stands[thread];
        if !stand.is_open && stand.call == CALLS_PER_TURN {
            (stand.turn, stand.call) = (stand.turn + 1, 0);
        }
        let at = At { thread, turn: stand.turn, call: stand.call };
        stand.is_open = !stand.is_open;
        if stand.is_open {
            return at.tool_call();
        }
        stand.call += 1;
        at.tool_result()
    }
}

fn shuffled(threads: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..threads).collect();
    (1..threads).rev().for_each(|at| order.swap(at, random.below(at + 1)));
    order
}
