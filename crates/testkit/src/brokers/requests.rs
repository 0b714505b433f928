//! Requests of Kafka's protocol for which the clients that the tests use have none: who is the active controller, and leaders that go home.

use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::protocol;

const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(20);

/// Keys of requests, each with the version of it that is spoken.
const DESCRIBE_QUORUM: (i16, i16) = (55, 0);
const ELECT_LEADERS: (i16, i16) = (43, 1);
const METADATA_TOPIC: &[u8] = b"__cluster_metadata";
/// The error of a request for elections where every leader is the preferred one.
const ELECTION_NOT_NEEDED: i16 = 84;

/// Returns the number of the active controller, as the node at this port knows it.
pub(super) fn active_controller(port: u16) -> Result<i32> {
    // One topic with one partition, in the compact form: every length is one more, and every structure ends with its count of tags.
    let mut body = vec![2, u8::try_from(METADATA_TOPIC.len() + 1)?];
    body.extend(METADATA_TOPIC);
    body.extend([2, 0, 0, 0, 0, 0, 0, 0]);
    let answer = ask(port, DESCRIBE_QUORUM, true, &body)?;
    // Tags of the header, error, topics, name, partitions, partition, error, leader.
    let name_at = 1 + 2 + 1;
    let leader_at = name_at + 1 + METADATA_TOPIC.len() + 1 + 4 + 2;
    ensure!(short(&answer, 1)? == 0 && short(&answer, leader_at - 2)? == 0, "no controller is known: {answer:?}");
    let leader = answer.get(leader_at..leader_at + 4).context("a short answer")?;
    Ok(i32::from_be_bytes(leader.try_into()?))
}

/// Makes the first replica of every partition its leader, where it is in sync.
pub(super) fn elect_preferred_leaders(port: u16) -> Result<()> {
    // The preferred ones (0), of all topics (-1), within so many milliseconds.
    let mut body = vec![0];
    body.extend((-1_i32).to_be_bytes());
    body.extend(i32::try_from(ANSWER_TIME_MAX.as_millis())?.to_be_bytes());
    let answer = ask(port, ELECT_LEADERS, false, &body)?;
    // The error stands after the throttle time.
    let error = short(&answer, 4)?;
    ensure!(error == 0 || error == ELECTION_NOT_NEEDED, "leaders were not elected: error {error}");
    Ok(())
}

fn short(answer: &[u8], at: usize) -> Result<i16> {
    let bytes = answer.get(at..at + 2).context("a short answer")?;
    Ok(i16::from_be_bytes(bytes.try_into()?))
}

fn ask(port: u16, request: (i16, i16), has_tags: bool, body: &[u8]) -> Result<Vec<u8>> {
    let stream = TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), CONNECT_TIME_MAX)?;
    protocol::ask(stream, ANSWER_TIME_MAX, request, has_tags, body)
}
