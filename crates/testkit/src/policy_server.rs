//! A policy server that speaks OPA's dialect: it decides by the tool, takes its time, and remembers what it was asked. And the web server
//! below it.

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
        let asked = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&asked);
        let address = serve_http(move |_, body| {
            let question: Value = serde_json::from_slice(&body).expect("a question is JSON");
            let input = &question["input"];
            shared.lock().expect("no handler panics").push(input.clone());
            let (delay, result) = decide(input);
            std::thread::sleep(delay);
            ("200 OK", "application/json", serde_json::json!({"result": result}).to_string().into_bytes())
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

/// An answer: its status, its content type and its body.
pub type HttpAnswer = (&'static str, &'static str, Vec<u8>);

/// Serves HTTP on a free port of the loopback interface. `answer` gets the head and the body of each request. The threads of the server end
/// with the process.
///
/// # Panics
/// The machine has no free port.
pub fn serve_http(answer: impl Fn(String, Vec<u8>) -> HttpAnswer + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            // A client that goes away in the middle ends its connection only.
            std::thread::spawn(move || _ = serve(&connection, &*answer));
        }
    });
    address
}

fn serve(mut connection: &TcpStream, answer: &impl Fn(String, Vec<u8>) -> HttpAnswer) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    loop {
        let (mut head, mut length) = (String::new(), 0);
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
            head += &line;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let (status, content_type, body) = answer(head, body);
        write!(connection, "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n", body.len())?;
        connection.write_all(&body)?;
    }
}
