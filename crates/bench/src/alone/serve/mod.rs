//! Measures the gate over HTTP: how long a verdict takes through `tollgate serve` over a bare Kafka client on the same worker, what a decision
//! costs the server over an echo of the same bodies, and what requests and connections that wait take of its memory.
//!
//! Sender, server, worker and broker share the machine, so each figure is a ratio of phases that were run in turns within a minute.

mod http;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use nix::sys::resource::{Resource, getrlimit};
use tollgate_testkit::{free_ports, wait_until};

use crate::report::{Row, megabytes, write_rows};
use crate::{Bed, Phase, Ratio, Search, Session, Subject, Worker, sustained};
use http::Http;

/// The first rate that is tried, in events per second.
const SEARCH_START: f64 = 1_000.0;
/// Requests that wait at once, as many as `serve.in_flight_max` allows by default, and how long they are ready to wait.
const IN_FLIGHT: usize = 5_000;
const IN_FLIGHT_WAIT: Duration = Duration::from_secs(60);
/// Connections that ask for nothing, as many as `serve.connections_max` allows by default.
const IDLE: usize = 20_000;
/// Files that a process needs besides its connections, the server's reserve among them.
const OTHER_FILES: usize = 300;
const IDLE_ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
const P50_MAX: f64 = 1.4;
const P99_MAX: f64 = 1.5;
const CPU_MAX: f64 = 4.0;
const IN_FLIGHT_BYTES_MAX: u64 = 100 << 20;
/// The path that the echo answers.
const ECHO_PATH: &str = "/echo";

/// One round: the same load through the server, by a bare client, and on the echo.
struct Round {
    served: Phase,
    bare: Phase,
    echoed: Phase,
}

/// Answers every request with its body.
pub(super) fn echo(port: u16) -> Result<()> {
    let router = Router::new().route(ECHO_PATH, post(async |body: Bytes| body)).layer(DefaultBodyLimit::disable());
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        Ok(axum::serve(listener, router).await?)
    })
}

/// The processes that are measured beside the worker, and the clients of both.
struct Servers {
    server: Worker,
    port: u16,
    http: Http,
    echo: Worker,
    echo_http: Http,
}

impl Session {
    /// Measures a server beside a worker, in so many rounds, and prints the table.
    pub(super) fn serve(&self, rounds: u32) -> Result<()> {
        self.with_worker(&Subject::Gate, |bed| {
            let mut servers = self.start_servers(bed)?;
            let peak = self.peak_over_http(bed, &mut servers)?;
            let rounds = (0..rounds).map(|round| self.round(round, bed, &mut servers, peak / 2.0)).collect::<Result<Vec<_>>>()?;
            let mut rows = compared(&rounds)?;
            rows.push(self.in_flight(bed, &mut servers)?);
            rows.push(self.idle(servers)?);
            let mut out = format!("{:.0} events/s are sustained over HTTP; phases at {:.0}/s\n", peak, peak / 2.0);
            write_rows(&mut out, rows)?;
            print!("{out}");
            Ok(())
        })
    }

    fn start_servers(&self, bed: &Bed<'_>) -> Result<Servers> {
        let topics = bed.load.topics;
        let [port, echo_port] = free_ports()?;
        self.topics.create_named(&[&topics.replies], 1, &[])?;
        let server = Worker::start(&self.invocation, &Subject::Server(port), topics, "serve")?;
        let command = format!("exec {:?} serve --echo {echo_port}", std::env::current_exe()?);
        let echo = Worker::start(&self.invocation, &Subject::Baseline { name: "echo".to_owned(), command }, topics, "echo")?;
        let mut servers = Servers { server, port, http: Http::new(port, "/v1/events")?, echo, echo_http: Http::new(echo_port, ECHO_PATH)? };
        servers.server.wait_ready()?;
        wait_until("the echo listens", || Ok(TcpStream::connect(("127.0.0.1", echo_port)).is_ok()))?;
        Ok(servers)
    }

    /// Searches the highest rate that worker and server sustain together.
    fn peak_over_http(&self, bed: &mut Bed<'_>, servers: &mut Servers) -> Result<f64> {
        let probe = |rate| {
            let phase = servers.http.run(&mut bed.load.sender, &mut servers.server, rate, self.plan.probe_times)?;
            let judged = sustained(&phase);
            self.say("serve", &phase);
            Ok(judged.is_ok())
        };
        Search { start: SEARCH_START, ..self.plan.search }.run(probe, || false)?.context("no rate is sustained over HTTP")
    }

    /// Runs the same load through the server, on the echo and by a bare client. The bare client comes first in every second round.
    fn round(&self, round: u32, bed: &mut Bed<'_>, servers: &mut Servers, rate: f64) -> Result<Round> {
        let times = self.plan.times;
        let first = round.is_multiple_of(2).then(|| bed.run(rate, times)).transpose()?;
        let served = servers.http.run(&mut bed.load.sender, &mut servers.server, rate, times)?;
        let echoed = servers.echo_http.run(&mut bed.load.sender, &mut servers.echo, rate, times)?;
        let bare = first.map_or_else(|| bed.run(rate, times), Ok)?.phase;
        for (name, phase) in [("serve", &served), ("bare client", &bare), ("echo", &echoed)] {
            self.say(name, phase);
        }
        Ok(Round { served, bare, echoed })
    }

    fn say(&self, name: &str, phase: &Phase) {
        let Phase { asked_per_second, tally, cpu_us_per_event, .. } = phase;
        let (p50, p99, cpu) = (tally.latency_ms.p50, tally.latency_ms.p99, cpu_us_per_event.unwrap_or(f64::NAN));
        self.progress.say(&format!(
            "{name}: {asked_per_second:>6.0}/s, p50 {p50:>6.1} ms, p99 {p99:>6.1} ms, {} misses, {cpu:.0} us of CPU an event: {:?}",
            tally.misses,
            sustained(phase)
        ));
    }

    /// Has as many requests wait as may, while the worker stands still, and measures what they take of the server's memory.
    fn in_flight(&self, bed: &mut Bed<'_>, servers: &mut Servers) -> Result<Row> {
        let before = servers.server.usage()?.resident_bytes;
        bed.worker.signal("STOP")?;
        let mut grown = 0;
        let Servers { server, http, .. } = servers;
        let verdicts = http.flood(&mut bed.load.sender, IN_FLIGHT, IN_FLIGHT_WAIT, || {
            let waited = wait_until("all requests wait", || Ok(server.metric("tollgate_serve_in_flight")? >= IN_FLIGHT as f64));
            grown = server.usage()?.resident_bytes.saturating_sub(before);
            bed.worker.signal("CONT")?;
            waited
        })?;
        ensure!(verdicts == IN_FLIGHT, "only {verdicts} of {IN_FLIGHT} requests that waited got verdicts");
        let measured = format!("{:.0} MB, and all got verdicts", megabytes(grown));
        Ok(row("memory for 5,000 requests in flight", "≤ 100 MB", measured, Some(grown <= IN_FLIGHT_BYTES_MAX)))
    }

    /// Opens as many connections as may be, which ask for nothing, and then asks on each.
    fn idle(&self, servers: Servers) -> Result<Row> {
        let Servers { server, port, http, .. } = servers;
        drop(http);
        let (files, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
        let count = IDLE.min(usize::try_from(files)?.saturating_sub(OTHER_FILES));
        let before = server.usage()?.resident_bytes;
        let open = |_| TcpStream::connect(("127.0.0.1", port));
        let mut connections = (0..count).map(open).collect::<std::io::Result<Vec<_>>>().context("connections")?;
        let ask = |connection: &mut TcpStream| {
            connection.set_read_timeout(Some(IDLE_ANSWER_TIME_MAX))?;
            connection.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
            let mut status = [0; 12];
            connection.read_exact(&mut status)?;
            Ok(status == *b"HTTP/1.1 404")
        };
        let answered = connections.iter_mut().map(ask).collect::<Result<Vec<_>>>()?.into_iter().filter(|answered| *answered).count();
        let grown = server.usage()?.resident_bytes.saturating_sub(before);
        let each = grown as f64 / count as f64 / 1_024.0;
        let limit = if count < IDLE { format!("; no process may open more than {files} files here") } else { String::new() };
        let measured = format!("{answered} answered, {each:.1} KB each{limit}");
        Ok(row("idle connections", "20,000", measured, Some(answered == IDLE)))
    }
}

/// Returns the rows of the ratios.
fn compared(rounds: &[Round]) -> Result<Vec<Row>> {
    let ratio = |what, max: f64, over: &dyn Fn(&Round) -> Option<(f64, f64)>| {
        let ratio = Ratio::of(rounds.iter().filter_map(over).map(|(over, under)| over / under)).context("nothing was measured")?;
        anyhow::Ok(row(what, &format!("≤ {max}×"), ratio.to_string(), Some(ratio.median <= max)))
    };
    let latency = |of: fn(&Phase) -> f64| move |round: &Round| Some((of(&round.served), of(&round.bare)));
    Ok(vec![
        ratio("p50 over a bare client, at half of the peak", P50_MAX, &latency(|phase| phase.tally.latency_ms.p50))?,
        ratio("p99 over a bare client, at half of the peak", P99_MAX, &latency(|phase| phase.tally.latency_ms.p99))?,
        ratio("CPU of the server per event over an echo of its body", CPU_MAX, &|round| {
            Some((round.served.cpu_us_per_event?, round.echoed.cpu_us_per_event?))
        })?,
    ])
}

fn row(what: &str, target: &str, measured: String, met: Option<bool>) -> Row {
    Row { what: what.to_owned(), target: target.to_owned(), measured: Some(measured), met, why: None }
}
