//! Measures what asking a policy server costs over a bare exchange of the same bytes: latency, and processor time per question.
//!
//! The server is a process of its own, so that its processor time does not count, but it shares the machine. Questions are asked as members
//! ask them: from a plain thread, on a runtime of one thread. `cargo bench -p tollgate-bench --bench remote`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a benchmark fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tollgate_core::decide::guardrail::{Dialect, HttpSettings};
use tollgate_worker::metrics::Metrics;
use tollgate_worker::policy_servers::{Endpoint, PolicyServers};

const SERVE: &str = "--serve";
const QUESTIONS: usize = 30_000;
/// About as many bytes as the question of a tool call holds.
const QUESTION: &[u8] = &[b'q'; 600];
const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n{\"allow\":true}";
/// Processor time is counted in ticks of this length on every Linux.
const TICK: Duration = Duration::from_millis(10);

fn main() {
    if std::env::args().any(|argument| argument == SERVE) {
        return serve();
    }
    let mut server = start_server();
    let mut address = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let address: SocketAddr = address.trim().parse().unwrap();
    for concurrency in [1, 64] {
        bare(address, concurrency);
        asked(address, concurrency);
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

fn start_server() -> Child {
    Command::new(std::env::current_exe().unwrap()).arg(SERVE).stdout(Stdio::piped()).spawn().unwrap()
}

/// Runs a thread per connection that answers as soon as it has read a whole question.
fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        stream.set_nodelay(true).unwrap();
        std::thread::spawn(move || {
            let (mut buffer, mut length) = ([0; 4_096], 0);
            while let Ok(read @ 1..) = stream.read(&mut buffer[length..]) {
                length += read;
                let head = buffer[..length].windows(4).position(|window| window == b"\r\n\r\n");
                if head.is_some_and(|head| length >= head + 4 + QUESTION.len()) {
                    length = 0;
                    stream.write_all(ANSWER.as_bytes()).unwrap();
                }
            }
        });
    }
}

/// Measures the same bytes over plain sockets, with a thread for each.
fn bare(address: SocketAddr, concurrency: usize) {
    let head = format!("POST / HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n", QUESTION.len());
    let question = [head.as_bytes(), QUESTION].concat();
    let (cpu, started_at) = (cpu(), Instant::now());
    let latencies = std::thread::scope(|scope| {
        let askers: Vec<_> = (0..concurrency)
            .map(|_| {
                scope.spawn(|| {
                    let mut stream = TcpStream::connect(address).unwrap();
                    stream.set_nodelay(true).unwrap();
                    let mut answer = [0; ANSWER.len()];
                    let exchange = |_| {
                        let asked_at = Instant::now();
                        stream.write_all(&question).unwrap();
                        stream.read_exact(&mut answer).unwrap();
                        asked_at.elapsed()
                    };
                    (0..QUESTIONS / concurrency).map(exchange).collect::<Vec<_>>()
                })
            })
            .collect();
        askers.into_iter().flat_map(|asker| asker.join().unwrap()).collect()
    });
    report("bare sockets", concurrency, latencies, started_at.elapsed(), cpu);
}

/// Measures requests through an endpoint; whenever an answer comes, the next question is asked.
fn asked(address: SocketAddr, concurrency: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let endpoint = Endpoint::new(&settings(address), &Metrics::new().unwrap()).unwrap();
    let remotes = PolicyServers::new(vec![(0, endpoint)], runtime.handle().clone());
    let (answers, received) = std::sync::mpsc::channel();
    let (cpu, started_at) = (cpu(), Instant::now());
    (0..concurrency).for_each(|_| remotes.ask(0, QUESTION.to_vec(), Instant::now(), &answers));
    let mut latencies = Vec::with_capacity(QUESTIONS);
    while latencies.len() < QUESTIONS {
        let (asked_at, answer) = received.recv().unwrap();
        assert_eq!(answer.unwrap(), b"{\"allow\":true}");
        latencies.push(asked_at.elapsed());
        remotes.ask(0, QUESTION.to_vec(), Instant::now(), &answers);
    }
    report("asked", concurrency, latencies, started_at.elapsed(), cpu);
}

fn settings(address: SocketAddr) -> HttpSettings {
    HttpSettings { timeout_ms: 10_000, ..HttpSettings::at("policy", format!("http://{address}/"), Dialect::Tollgate) }
}

fn report(what: &str, concurrency: usize, mut latencies: Vec<Duration>, elapsed: Duration, cpu_before: Duration) {
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    let cpu = (cpu() - cpu_before).as_secs_f64() * 1e6 / latencies.len() as f64;
    let rate = latencies.len() as f64 / elapsed.as_secs_f64();
    println!(
        "{what:>12}, {concurrency:>2} at once: p50 {:>6.0} us, p99 {:>6.0} us, {rate:>7.0} questions/s, {cpu:>5.1} us of processor each",
        at(0.5),
        at(0.99)
    );
}

/// Returns the processor time of this process so far.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name in parentheses may hold spaces.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u32 = fields[11..13].iter().map(|field| field.parse::<u32>().unwrap()).sum();
    TICK * ticks
}
