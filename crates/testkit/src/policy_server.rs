//! A policy server that speaks OPA's dialect: it decides by the tool, takes its time, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

/// Decides on a question's `input`: how long the answer takes, and its `result`.
pub type Decide = fn(&Value) -> (Duration, Value);

/// A running policy server. Its threads end with the process.
#[derive(Debug)]
pub struct PolicyServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl PolicyServer {
    /// Starts a server on a free port of the loopback interface.
    ///
    /// # Panics
    /// The machine has no free port.
    #[must_use]
    pub fn start(decide: Decide) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&asked);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let asked = Arc::clone(&shared);
                // A client that goes away in the middle ends its connection only.
                std::thread::spawn(move || _ = serve(&connection, decide, &asked));
            }
        });
        Self { address, asked }
    }

    /// Returns the URL to post questions to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1/data/agent/decision", self.address)
    }

    /// Returns the inputs of all questions so far.
    ///
    /// # Panics
    /// A handler has panicked.
    #[must_use]
    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().expect("no handler panics").clone()
    }
}

fn serve(connection: &TcpStream, decide: Decide, asked: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some((name, value)) = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
                length = value.trim().parse().unwrap_or_else(|_| panic!("{name}: {value}"));
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let question: Value = serde_json::from_slice(&body)?;
        let input = &question["input"];
        asked.lock().expect("no handler panics").push(input.clone());
        let (delay, result) = decide(input);
        std::thread::sleep(delay);
        let answer = serde_json::json!({"result": result}).to_string();
        write!(&mut &*connection, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}", answer.len())?;
    }
}
