//! Requests of Kafka's protocol for which the clients that the tests use have none: who is the active controller, and leaders that go home.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
/// The answer's size is bounded, so that a peer that is no broker is noticed.
const ANSWER_BYTES_MAX: usize = 1 << 20;

const DESCRIBE_QUORUM: i16 = 55;
const ELECT_LEADERS: i16 = 43;
const METADATA_TOPIC: &[u8] = b"__cluster_metadata";
/// The error of a request for elections where every leader is the preferred one.
const ELECTION_NOT_NEEDED: i16 = 84;

/// Returns the number of the active controller, as the node at this port knows it.
pub(super) fn active_controller(port: u16) -> Result<i32> {
    // One topic with one partition, in the compact form: every length is one more, and every structure ends with its count of tags.
    let mut body = vec![2, u8::try_from(METADATA_TOPIC.len() + 1)?];
    body.extend(METADATA_TOPIC);
    body.extend([2, 0, 0, 0, 0, 0, 0, 0]);
    let answer = ask(port, DESCRIBE_QUORUM, 0, true, &body)?;
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
    let answer = ask(port, ELECT_LEADERS, 1, false, &body)?;
    // The error stands after the throttle time.
    let error = short(&answer, 4)?;
    ensure!(error == 0 || error == ELECTION_NOT_NEEDED, "leaders were not elected: error {error}");
    Ok(())
}

fn short(answer: &[u8], at: usize) -> Result<i16> {
    let bytes = answer.get(at..at + 2).context("a short answer")?;
    Ok(i16::from_be_bytes(bytes.try_into()?))
}

/// Returns the answer behind the number of its request.
fn ask(port: u16, key: i16, version: i16, has_tags: bool, body: &[u8]) -> Result<Vec<u8>> {
    let client = b"tests";
    let mut request = [key.to_be_bytes(), version.to_be_bytes()].concat();
    request.extend(1_i32.to_be_bytes());
    request.extend(i16::try_from(client.len())?.to_be_bytes());
    request.extend(client);
    request.extend(has_tags.then_some(0_u8));
    request.extend(body);
    let mut stream = TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), CONNECT_TIME_MAX)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    stream.write_all(&u32::try_from(request.len())?.to_be_bytes())?;
    stream.write_all(&request)?;
    let mut size = [0; 4];
    stream.read_exact(&mut size)?;
    let size = usize::try_from(u32::from_be_bytes(size))?;
    ensure!((4..ANSWER_BYTES_MAX).contains(&size), "an answer of {size} bytes");
    let mut answer = vec![0; size];
    stream.read_exact(&mut answer)?;
    Ok(answer.split_off(4))
}
