//! `tollgate dev` on a terminal and in a pipe.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use serde_json::Value;
use tollgate_core::event::record::partition_of;

use super::events::{call, cpu_time};
use super::screen::{Terminal, assert_snapshot};
use crate::brokers::dev::Dev;
use crate::support::{run, tollgate};
use tollgate_testkit::{TIME_MAX, wait_until};

const QUIET: &[(&str, &str)] = &[("TOLLGATE__ADMIN__LISTEN", "127.0.0.1:0")];
const SAMPLE: &[&str] = &["dev", "--sample", "--once", "--port", "0"];

#[test]
fn the_sample_is_a_table_in_the_width_of_the_terminal() {
    for columns in [60, 100, 160] {
        let mut terminal = Terminal::start(SAMPLE, (columns, 60), QUIET);
        assert!(terminal.wait().success());
        let shown = terminal.wait_for("played 33 events, 25 verdicts");
        assert!(!shown.contains('\u{1b}'));
        let table: Vec<&str> =
            shown.lines().skip_while(|line| !line.starts_with("time UTC")).filter(|line| !line.starts_with("played")).collect();
        assert_eq!(table.len(), 26, "{shown}");
        assert_snapshot(&format!("dev-sample-{columns}"), &table.join("\n"));
    }
}

#[test]
fn verdicts_have_colours_unless_they_are_not_wanted() {
    let colours = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut terminal = Terminal::start(&[SAMPLE, arguments].concat(), (100, 60), &[QUIET, variables].concat());
        assert!(terminal.wait().success());
        let shown = terminal.wait_for("played 33 events, 25 verdicts");
        assert!(shown.contains("same_call_fails_denied"));
        // A line that is too long for the terminal takes several rows.
        let rows = terminal.look(|screen| screen.rows(0, 100).collect::<Vec<_>>());
        let row = rows.iter().position(|row| row.contains("same_call_fails_denied")).unwrap();
        terminal.look(|screen| screen.cell(u16::try_from(row).unwrap(), 10).unwrap().fgcolor())
    };
    let red = vt100::Color::Idx(1);
    assert_eq!(colours(&[], &[]), red);
    assert_eq!(colours(&[], &[("NO_COLOR", "1")]), vt100::Color::Default);
    assert_eq!(colours(&["--color", "never"], &[]), vt100::Color::Default);
    assert_eq!(colours(&["--color", "always"], &[("NO_COLOR", "1")]), red);
}

#[test]
fn every_verdict_is_a_line_until_ctrl_c() {
    let mut terminal = Terminal::start(&["dev", "--port", "0"], (100, 40), QUIET);
    let is_whole = |shown: &str| shown.lines().any(|line| line.starts_with("time UTC") && line.trim_end().ends_with("wait"));
    let greeting = terminal.wait_until("the head of the table", is_whole);
    assert_snapshot("dev-greeting", &greeting);
    let brokers = greeting.split("embedded broker on ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let producer: rdkafka::producer::BaseProducer =
        ClientConfig::new().set("bootstrap.servers", &brokers).set("partitioner", "murmur2_random").create().unwrap();
    // A tool's name is the agent's word, and must not steer the terminal.
    let event = call("thread-of-mine", "c1", "ls\u{1b}[2J\u{1b}]0;title\u{7}").to_string();
    producer.send(rdkafka::producer::BaseRecord::to("agent.events").key("thread-of-mine").payload(&event)).unwrap();
    rdkafka::producer::Producer::flush(&producer, TIME_MAX).unwrap();
    let shown = terminal.wait_for("ls?[2J");
    let line = shown.lines().find(|line| line.contains("thread-of-mine")).unwrap();
    assert!(line.contains("✓ allow") && line.contains("ls?[2J"), "{line}");
    assert!(terminal.look(|screen| screen.contents().contains("Ctrl-C ends it.")), "nothing was erased");
    terminal.type_in(b"\x03");
    assert!(terminal.wait().success());
}

#[test]
fn the_port_can_be_chosen() {
    let [free] = tollgate_testkit::free_ports().unwrap().map(|port: u16| port.to_string());
    let dev = Dev::run(tollgate().args(["dev", "--port", &free]));
    assert_eq!(dev.brokers, format!("127.0.0.1:{free}"));
    dev.publish(&[call("t", "c1", "ls")]);
    // The same port again is refused, with what to do.
    let second = run(tollgate().args(["dev", "--port", &free]), b"");
    assert_eq!(second.exit, Some(1));
    assert!(second.stderr.contains(&format!("--port {free}: ")) && second.stderr.contains("0 for any"), "{}", second.stderr);
    let wrong = run(tollgate().args(["dev", "--prefix", "x."]), b"");
    assert!(wrong.exit == Some(1) && wrong.stderr.contains("--brokers"), "{}", wrong.stderr);
}

/// Clients wait for half a second and more at a time, and are answered as soon as there is something all the same.
#[test]
fn a_fetch_is_answered_when_there_is_something() {
    let dev = Dev::start();
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &dev.brokers)
        .set("group.id", "none")
        .set("fetch.wait.max.ms", "55000")
        .set("socket.timeout.ms", "60000");
    let consumer: BaseConsumer = config.create().unwrap();
    // One partition: with several, librdkafka may ask for some only once the first fetch is over.
    let mut places = TopicPartitionList::new();
    places.add_partition_offset("agent.decisions", partition_of(b"t", 32).0, Offset::Offset(0)).unwrap();
    consumer.assign(&places).unwrap();
    for round in 0..5 {
        // The fetch is on its way.
        assert!(consumer.poll(Duration::from_secs(1)).is_none());
        let id = format!("c{round}");
        dev.publish(&[call("t", &id, "ls")]);
        let message = consumer.poll(TIME_MAX).expect("a verdict").unwrap();
        let verdict: Value = serde_json::from_slice(message.payload().unwrap()).unwrap();
        assert_eq!(verdict["event_id"], format!("{id}/call"));
    }
}

/// It comes to rest, and then uses less than a quarter of a core: a client that fetches without a pause takes a whole core.
#[test]
fn idling_costs_next_to_nothing() {
    let dev = Dev::start();
    let used_in = |time: Duration| {
        let before = cpu_time(dev.process.id());
        std::thread::sleep(time);
        cpu_time(dev.process.id()) - before
    };
    // How long its beginning takes depends on the machine.
    wait_until("it comes to rest", || Ok(used_in(Duration::from_secs(1)) <= Duration::from_millis(250))).unwrap();
    let used = used_in(Duration::from_secs(4));
    assert!(used < Duration::from_secs(1), "{used:?} in four seconds");
}
