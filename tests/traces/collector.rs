//! A collector of traces: it takes OTLP over HTTP, or misbehaves as it is told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use prost::Message;
use tollgate_testkit::{HttpAnswer, serve_http, wait_until};
use tollgate_worker::traces::message::{Answer, AnyValue, KeyValue, PartialSuccess, Request, Value, WireSpan};

/// What the collector does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Takes,
    /// It takes the request and refuses all spans but one.
    TakesOne,
    Fails,
    Hangs,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Received {
    pub head: String,
    pub body: Vec<u8>,
}

impl Received {
    pub fn request(&self) -> Request {
        Request::decode(self.body.as_slice()).expect("OTLP")
    }
}

/// A running collector. Its threads end with the process.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Collector {
    pub fn start(manner: Manner) -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&received);
        Self { address: serve_http(move |head, body| answer(manner, Received { head, body }, &shared)), received }
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1/traces", self.address)
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    pub fn spans(&self) -> Vec<WireSpan> {
        let resources = self.received().into_iter().flat_map(|received| received.request().resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// Waits for this many spans, in the order of their offsets.
    pub fn wait_for(&self, count: usize) -> Vec<WireSpan> {
        wait_until("all spans came", || Ok(self.spans().len() >= count)).unwrap();
        let mut spans = self.spans();
        spans.sort_by_key(|span| (span.start_time_unix_nano, attribute(&span.attributes, "messaging.kafka.offset")));
        spans
    }
}

fn answer(manner: Manner, got: Received, received: &Mutex<Vec<Received>>) -> HttpAnswer {
    let spans: usize = got.request().resource_spans.iter().flat_map(|resource| &resource.scope_spans).map(|part| part.spans.len()).sum();
    received.lock().unwrap().push(got);
    let rejected_spans = i64::try_from(spans).unwrap() - 1;
    let (status, answer) = match manner {
        Manner::Takes => ("200 OK", Answer::default()),
        Manner::TakesOne => (
            "200 OK",
            Answer { partial_success: Some(PartialSuccess { rejected_spans, error_message: "too many\n\u{1b}[31m".to_owned() }) },
        ),
        Manner::Fails => ("500 Internal Server Error", Answer::default()),
        Manner::Hangs => loop {
            std::thread::park();
        },
    };
    (status, "application/x-protobuf", answer.encode_to_vec())
}

/// Returns an attribute as text.
pub fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match &found.value {
        Some(AnyValue { value: Some(Value::Text(text)) }) => Some(text.clone()),
        Some(AnyValue { value: Some(Value::Number(number)) }) => Some(number.to_string()),
        _ => None,
    }
}
