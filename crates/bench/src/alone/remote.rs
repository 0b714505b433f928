//! Measures what asking a policy server costs over a bare exchange of the same bytes: latency, and processor time per question.
//!
//! The server is a process of its own, so that its processor time does not count, but it shares the machine. Questions are asked as members
//! ask them: from a plain thread, on a runtime of one thread.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use nix::sys::resource::UsageWho;
use tollgate_core::decide::guardrail::{Dialect, HttpSettings};
use tollgate_worker::metrics::Metrics;
use tollgate_worker::policy_servers::{Endpoint, PolicyServers};

use super::cpu_seconds;
use crate::abuse::Delays;

const QUESTIONS: usize = 30_000;
/// About as many bytes as the question of a tool call holds.
const QUESTION: &[u8] = &[b'q'; 600];
const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n{\"allow\":true}";

/// Starts the server, and asks it one question and 64 questions at a time.
pub(super) fn measure() -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut server = command.args(["remote", "--serve"]).stdout(Stdio::piped()).spawn()?;
    let mut address = String::new();
    BufReader::new(server.stdout.take().context("it is piped")?).read_line(&mut address)?;
    let address: SocketAddr = address.trim().parse()?;
    for concurrency in [1, 64] {
        bare(address, concurrency)?;
        asked(address, concurrency)?;
    }
    server.kill()?;
    server.wait()?;
    Ok(())
}

/// Runs a thread per connection that answers as soon as it has read a whole question.
pub(super) fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    for stream in listener.incoming() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        std::thread::spawn(move || answer(stream));
    }
    Ok(())
}

/// Answers the questions of a connection until it is closed.
fn answer(mut stream: TcpStream) -> Result<()> {
    let (mut buffer, mut question) = ([0; 4_096], Vec::<u8>::new());
    while let read @ 1.. = stream.read(&mut buffer)? {
        question.extend(buffer.iter().take(read));
        let head = question.windows(4).position(|window| window == b"\r\n\r\n");
        if head.is_some_and(|head| question.len() >= head + 4 + QUESTION.len()) {
            question.clear();
            stream.write_all(ANSWER.as_bytes())?;
        }
    }
    Ok(())
}

/// Measures the same bytes over plain sockets, with a thread for each.
fn bare(address: SocketAddr, concurrency: usize) -> Result<()> {
    let head = format!("POST / HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n", QUESTION.len());
    let question = [head.as_bytes(), QUESTION].concat();
    let exchange_all = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut answer = [0; ANSWER.len()];
        let exchange = |_| {
            let asked_at = Instant::now();
            stream.write_all(&question)?;
            stream.read_exact(&mut answer)?;
            Ok(asked_at.elapsed())
        };
        (0..QUESTIONS / concurrency).map(exchange).collect::<Result<Vec<_>>>()
    };
    let (cpu, start) = (cpu_seconds(UsageWho::RUSAGE_SELF)?, Instant::now());
    let latencies = std::thread::scope(|threads| {
        let askers: Vec<_> = (0..concurrency).map(|_| threads.spawn(exchange_all)).collect();
        let join = |asker: std::thread::ScopedJoinHandle<'_, _>| asker.join().map_err(|_| anyhow!("a thread panicked"))?;
        askers.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    report("bare sockets", concurrency, &latencies.concat(), start, cpu)
}

/// Measures requests through an endpoint; whenever an answer comes, the next question is asked.
fn asked(address: SocketAddr, concurrency: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let settings = HttpSettings { timeout_ms: 10_000, ..HttpSettings::at("policy", format!("http://{address}/"), Dialect::Tollgate) };
    let remotes = PolicyServers::new(vec![(0, Endpoint::new(&settings, &Metrics::new()?)?)], runtime.handle().clone());
    let (answers, received) = std::sync::mpsc::channel();
    let (cpu, start) = (cpu_seconds(UsageWho::RUSAGE_SELF)?, Instant::now());
    (0..concurrency).for_each(|_| remotes.ask(0, QUESTION.to_vec(), Instant::now(), &answers));
    let mut latencies = Vec::with_capacity(QUESTIONS);
    while latencies.len() < QUESTIONS {
        let (asked_at, answer) = received.recv()?;
        ensure!(answer.is_ok_and(|answer| ANSWER.as_bytes().ends_with(&answer)), "the server gives another answer");
        latencies.push(asked_at.elapsed());
        remotes.ask(0, QUESTION.to_vec(), Instant::now(), &answers);
    }
    report("asked", concurrency, &latencies, start, cpu)
}

/// Prints what asking came to since `start`, when `cpu_before` seconds of processor time were used.
fn report(what: &str, concurrency: usize, latencies: &[Duration], start: Instant, cpu_before: f64) -> Result<()> {
    let (elapsed, count) = (start.elapsed().as_secs_f64(), latencies.len() as f64);
    let cpu_us = (cpu_seconds(UsageWho::RUSAGE_SELF)? - cpu_before) * 1e6 / count;
    let delays = Delays::of(latencies.iter().map(|latency| latency.as_secs_f64() * 1e3).collect(), 0).context("nothing was asked")?;
    println!(
        "{what:>12}, {concurrency:>2} at once: p50 {:>6.0} us, p99 {:>6.0} us, {:>7.0} questions/s, {cpu_us:>5.1} us of processor each",
        delays.p50_ms * 1e3,
        delays.p99_ms * 1e3,
        count / elapsed
    );
    Ok(())
}
