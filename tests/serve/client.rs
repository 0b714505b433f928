//! A client that writes its requests byte by byte, so that wrong requests can be sent too.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;
use tollgate_testkit::TIME_MAX;

use super::document;

/// The answer of a server.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The head, in lower case.
    pub head: String,
    pub body: String,
}

impl Answer {
    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

/// A server's address.
#[derive(Debug, Clone)]
pub struct Client {
    pub address: String,
}

impl Client {
    /// Sends an event or a list of events.
    pub fn events(&self, body: &str) -> Answer {
        self.post("/v1/events", &[], body)
    }

    /// Sends JSON with headers besides the usual ones.
    pub fn post(&self, path: &str, headers: &[&str], body: &str) -> Answer {
        let own: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        let host = if own.to_lowercase().contains("host:") { String::new() } else { format!("host: {}\r\n", self.address) };
        self.send(&format!("POST {path} HTTP/1.1\r\n{host}content-type: application/json\r\ncontent-length: {length}\r\n{own}\r\n{body}"))
    }

    /// Asks for a path.
    pub fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.address))
    }

    /// Sends a request as it stands, and returns the answer.
    pub fn send(&self, request: &str) -> Answer {
        self.exchange(request.as_bytes(), 1).pop().unwrap()
    }

    /// Sends bytes on a connection, and returns all that comes until the server closes it.
    pub fn until_closed(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        let _refused = stream.write_all(bytes);
        let (mut got, mut part) = (Vec::new(), [0; 65_536]);
        // What was not read of a request makes the end a reset.
        while let Ok(count @ 1..) = stream.read(&mut part) {
            got.extend_from_slice(&part[..count]);
        }
        String::from_utf8(got).unwrap()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIME_MAX)).unwrap();
        stream
    }

    /// Sends bytes on a connection, and returns so many answers.
    pub fn exchange(&self, bytes: &[u8], count: usize) -> Vec<Answer> {
        let mut stream = self.connect();
        // A server may refuse before it has read everything.
        let _refused = stream.write_all(bytes);
        let mut got = Vec::new();
        let answers: Vec<_> = (0..count).map(|_| answer(&mut stream, &mut got)).collect();
        let head = String::from_utf8_lossy(bytes.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
        if let [method, target, "HTTP/1.1"] = head.split(' ').collect::<Vec<_>>()[..] {
            answers.iter().for_each(|answer| document::check(method, target, answer));
        }
        answers
    }
}

/// Reads an answer. What comes behind it stays in `got`.
fn answer(stream: &mut TcpStream, got: &mut Vec<u8>) -> Answer {
    let find = |got: &[u8]| got.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    while find(got).is_none() {
        more(stream, got);
    }
    let end = find(got).unwrap() + 4;
    let head = String::from_utf8(got.drain(..end).collect()).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1).map_or(0, |rest| rest.split("\r\n").next().unwrap().parse().unwrap());
    while got.len() < length {
        more(stream, got);
    }
    let body = String::from_utf8(got.drain(..length).collect()).unwrap();
    Answer { status: head.split(' ').nth(1).unwrap().parse().unwrap(), head, body }
}

fn more(stream: &mut TcpStream, got: &mut Vec<u8>) {
    let mut bytes = [0; 65_536];
    let count = stream.read(&mut bytes).unwrap();
    assert!(count > 0, "the server closed the connection behind {:?}", String::from_utf8_lossy(got));
    got.extend_from_slice(&bytes[..count]);
}
