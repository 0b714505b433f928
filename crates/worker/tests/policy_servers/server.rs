//! A policy server that misbehaves on command, over raw sockets, and counts what it sees.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server on a port of its own. It is gone when this is dropped.
#[derive(Debug)]
pub struct Server {
    pub url: String,
    pub seen: Arc<Seen>,
    task: JoinHandle<()>,
}

/// Counts of what the server has seen and done.
#[derive(Debug, Default)]
pub struct Seen {
    pub connections: AtomicUsize,
    /// Questions that arrived whole.
    pub questions: AtomicUsize,
    /// Questions between their arrival and their answer, and the most there were.
    pub now: AtomicUsize,
    pub peak: AtomicUsize,
    /// Bytes of answers that the operating system took.
    pub written: AtomicUsize,
}

impl Seen {
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }
}

/// One accepted connection.
#[derive(Debug)]
pub struct Peer<S = TcpStream> {
    pub stream: S,
    pub seen: Arc<Seen>,
    /// The number of the connection, from 0.
    pub number: usize,
    unread: Vec<u8>,
}

impl Server {
    /// Handles every connection with `handle`.
    pub async fn start<F, H>(handle: H) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
        H: Fn(Peer) -> F + Send + 'static,
    {
        Self::listen(TcpListener::bind("127.0.0.1:0").await.unwrap(), handle)
    }

    pub fn listen<F, H>(listener: TcpListener, handle: H) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
        H: Fn(Peer) -> F + Send + 'static,
    {
        let url = format!("http://{}/v1/decide", listener.local_addr().unwrap());
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = shared.connections.fetch_add(1, Ordering::SeqCst);
                connections.spawn(handle(Peer { stream, seen: Arc::clone(&shared), number, unread: Vec::new() }));
                while connections.try_join_next().is_some() {}
            }
        });
        Self { url, seen, task }
    }

    /// Answers every question with its own body and status 200.
    pub async fn echo() -> Self {
        Self::start(|mut peer| async move {
            while let Some(question) = peer.question().await {
                peer.answer(200, &question).await;
            }
        })
        .await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<S: AsyncReadExt + AsyncWriteExt + Unpin> Peer<S> {
    /// Returns the stream, and the peer without it.
    #[cfg(feature = "tls")]
    pub fn split(self) -> (S, Peer<()>) {
        (self.stream, Peer { stream: (), seen: self.seen, number: self.number, unread: self.unread })
    }

    /// Reads the body of the next question; none if the client has gone.
    pub async fn question(&mut self) -> Option<Vec<u8>> {
        let (_, body) = self.question_with_head().await?;
        Some(body)
    }

    pub async fn question_with_head(&mut self) -> Option<(String, Vec<u8>)> {
        let head_end = loop {
            if let Some(end) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            self.read_more().await?;
        };
        let head = String::from_utf8(self.unread.drain(..head_end).collect()).unwrap().to_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()).map_or(0, |text| text.parse().unwrap());
        while self.unread.len() < length {
            self.read_more().await?;
        }
        self.seen.questions.fetch_add(1, Ordering::SeqCst);
        let now = self.seen.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.seen.peak.fetch_max(now, Ordering::SeqCst);
        Some((head, self.unread.drain(..length).collect()))
    }

    async fn read_more(&mut self) -> Option<()> {
        let read = self.stream.read_buf(&mut self.unread).await.unwrap_or(0);
        (read > 0).then_some(())
    }

    pub async fn answer(&mut self, status: u16, body: &[u8]) {
        self.seen.now.fetch_sub(1, Ordering::SeqCst);
        let head = format!("HTTP/1.1 {status} Whatever\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        let _gone = self.send(&[head.as_bytes(), body].concat()).await;
    }

    /// Writes bytes and counts them; false if the client has gone.
    pub async fn send(&mut self, bytes: &[u8]) -> bool {
        let is_sent = self.stream.write_all(bytes).await.is_ok();
        if is_sent {
            self.seen.written.fetch_add(bytes.len(), Ordering::SeqCst);
        }
        is_sent
    }

    /// Waits until the client has gone.
    pub async fn linger(&mut self) {
        while self.read_more().await.is_some() {}
    }
}

#[cfg(feature = "tls")]
impl Peer<()> {
    pub fn over<S>(self, stream: S) -> Peer<S> {
        Peer { stream, seen: self.seen, number: self.number, unread: self.unread }
    }
}
