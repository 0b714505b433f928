//! The forwarder in front of the mock cluster: it gives the cluster a port that can be chosen, and fetches that wait as a real broker's do.
//!
//! librdkafka's mock cluster picks its port itself, and answers an empty fetch only when its wait is over, whatever is produced meanwhile.
//! So clients connect to the forwarder. It puts its own address where responses name the cluster's, and it answers a fetch as soon as there
//! are records: it sends the fetch on without its wait, and again after each produce request, until there is something or the wait is over.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout_at};

use super::produce::{PRODUCE_BYTES_MAX, too_large};
use super::protocol::{
    API_VERSIONS, FETCH, FIND_COORDINATOR, JOIN_GROUP, METADATA, PRODUCE, Request, SYNC_GROUP, address_bytes, is_empty_fetch,
    name_controller, replace_address,
};

/// The largest request, as brokers have it by default.
const FRAME_BYTES_MAX: usize = 100 * 1024 * 1024;
/// The longest time that a fetch is held.
const FETCH_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long the first fetch of a connection is held at most. A client asks for those of its partitions that it knows of by then, and
/// cannot ask for the others before it has an answer. Each empty answer doubles the time.
const FETCH_WAIT_FIRST: Duration = Duration::from_millis(10);
/// How long the cluster may take for a produce request that it does not answer.
const UNANSWERED_PAUSE: Duration = Duration::from_millis(10);
/// How many requests of a client are read before the first of them is answered.
const REQUESTS_AHEAD: usize = 1_000;
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How the mock cluster's own id begins.
const CLUSTER_ID: &[u8] = b"mockCluster";

/// What every connection needs.
#[derive(Debug, Clone)]
struct Forwarding {
    cluster: SocketAddr,
    /// What stands in place of [`CLUSTER_ID`].
    cluster_id: String,
    cluster_bytes: Vec<u8>,
    own_bytes: Vec<u8>,
    /// How often something was produced. Fetches that wait look again when it changes.
    produced: watch::Sender<u64>,
}

/// Forwards connections to the cluster for as long as it is polled. Its id begins with `cluster_id`, of as many bytes as [`CLUSTER_ID`].
pub(super) async fn forward(listener: TcpListener, cluster: SocketAddr, cluster_id: &str) -> std::io::Result<()> {
    let own = listener.local_addr()?;
    let bytes = |address: SocketAddr| address_bytes(&address.ip().to_string(), address.port());
    let (cluster_bytes, own_bytes, produced) = (bytes(cluster), bytes(own), watch::Sender::new(0));
    let forwarding = Forwarding { cluster, cluster_id: cluster_id.to_owned(), cluster_bytes, own_bytes, produced };
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let forwarding = forwarding.clone();
                tokio::spawn(async move {
                    if let Err(error) = forwarding.serve(client).await {
                        tracing::debug!(%error, "a connection to the embedded broker ended");
                    }
                });
            }
            // Such as too many open files: others may close some.
            Err(error) => {
                tracing::warn!(%error, "the embedded broker cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

impl Forwarding {
    /// Serves a client. Its requests are answered one after the other, as a broker does.
    async fn serve(&self, mut client: TcpStream) -> std::io::Result<()> {
        let mut cluster = TcpStream::connect(self.cluster).await?;
        client.set_nodelay(true)?;
        cluster.set_nodelay(true)?;
        let (incoming, outgoing) = client.split();
        let (frames, requests) = mpsc::channel(REQUESTS_AHEAD);
        let (connected, gone) = oneshot::channel();
        let served = tokio::try_join!(read_requests(incoming, frames, connected), self.answer(&mut cluster, outgoing, requests, gone));
        if served.is_err() {
            // The cluster reads nothing from a connection whose answer it holds, so that it notices a reset only.
            cluster.set_zero_linger()?;
        }
        served.map(|_| ())
    }

    /// Answers a client's requests. `gone` ends when the client has closed the connection.
    async fn answer(
        &self,
        cluster: &mut TcpStream,
        mut client: WriteHalf<'_>,
        mut requests: mpsc::Receiver<Vec<u8>>,
        mut gone: oneshot::Receiver<()>,
    ) -> std::io::Result<()> {
        let mut patience = FETCH_WAIT_FIRST;
        while let Some(frame) = requests.recv().await {
            let Some(request) = Request::read(&frame) else { return Err(invalid("a request without a head")) };
            let response = match request.kind {
                API_VERSIONS => request.versions_response(),
                FETCH => self.fetch(cluster, &request, &frame, &mut patience).await?,
                PRODUCE if frame.len() > PRODUCE_BYTES_MAX => {
                    tracing::warn!(
                        bytes = frame.len(),
                        bytes_max = PRODUCE_BYTES_MAX,
                        "the embedded broker takes no batch of that size and refuses it; try larger events on a real broker"
                    );
                    // Brokers close the connection of a producer that awaits no answer.
                    let refusal = request.is_answered().then(|| too_large(&request)).flatten();
                    refusal.ok_or_else(|| invalid("a batch that is too large"))?
                }
                _ => {
                    write_frame(cluster, &frame).await?;
                    if !request.is_answered() {
                        self.note_unanswered();
                        continue;
                    }
                    // The cluster aborts the process if a member joins anew while it holds the answer to that member's last request.
                    tokio::select! {
                        response = self.response(cluster, &request) => response?,
                        _ = &mut gone, if [JOIN_GROUP, SYNC_GROUP].contains(&request.kind) => return Err(invalid("no member waits")),
                    }
                }
            };
            write_frame(&mut client, &response).await?;
        }
        Ok(())
    }

    /// Returns the cluster's response, with our address in place of its own.
    async fn response(&self, cluster: &mut TcpStream, request: &Request<'_>) -> std::io::Result<Vec<u8>> {
        let Some(mut response) = read_frame(cluster).await? else { return Err(invalid("a request that the embedded broker refuses")) };
        if request.kind == METADATA {
            name_controller(request.version, &mut response);
            replace_address(&mut response, CLUSTER_ID, self.cluster_id.as_bytes());
        }
        match request.kind {
            METADATA | FIND_COORDINATOR => replace_address(&mut response, &self.cluster_bytes, &self.own_bytes),
            PRODUCE => self.produced.send_modify(|count| *count = count.wrapping_add(1)),
            _ => {}
        }
        Ok(response)
    }

    /// Returns the response to a fetch, once there is something, its wait is over, or the connection's patience is.
    async fn fetch(
        &self,
        cluster: &mut TcpStream,
        request: &Request<'_>,
        frame: &[u8],
        patience: &mut Duration,
    ) -> std::io::Result<Vec<u8>> {
        let wait = Duration::from_millis(request.fetch_wait_ms().unwrap_or(0)).min(*patience);
        let (deadline, sent) = (Instant::now() + wait, request.without_wait(frame));
        let mut produced = self.produced.subscribe();
        loop {
            produced.mark_unchanged();
            write_frame(cluster, &sent).await?;
            let response = self.response(cluster, request).await?;
            // Whatever was produced since the mark was set may not be in the response, and wakes us at once.
            if !is_empty_fetch(request.version, &response) {
                return Ok(response);
            }
            if timeout_at(deadline, produced.changed()).await.is_err() {
                *patience = (*patience * 2).min(FETCH_WAIT_MAX);
                return Ok(response);
            }
        }
    }

    /// Wakes the fetches that wait once a produce request without a response has been dealt with.
    fn note_unanswered(&self) {
        let produced = self.produced.clone();
        tokio::spawn(async move {
            sleep(UNANSWERED_PAUSE).await;
            produced.send_modify(|count| *count = count.wrapping_add(1));
        });
    }
}

/// Reads a client's requests until it closes the connection, or nobody answers any more. Then `connected` is dropped.
async fn read_requests(mut client: ReadHalf<'_>, frames: mpsc::Sender<Vec<u8>>, connected: oneshot::Sender<()>) -> std::io::Result<()> {
    while let Some(frame) = read_frame(&mut client).await? {
        if frames.send(frame).await.is_err() {
            break;
        }
    }
    drop(connected);
    Ok(())
}

/// Reads a frame; `None` if the connection has ended before one.
async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length).await {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    };
    let length = usize::try_from(i32::from_be_bytes(length)).ok().filter(|length| *length <= FRAME_BYTES_MAX);
    let mut frame = vec![0; length.ok_or_else(|| invalid("a frame of more than 100 MiB"))?];
    stream.read_exact(&mut frame).await?;
    Ok(Some(frame))
}

async fn write_frame(stream: &mut (impl AsyncWrite + Unpin), frame: &[u8]) -> std::io::Result<()> {
    let length = i32::try_from(frame.len()).map_err(|_| invalid("a frame of more than 2 GiB"))?;
    stream.write_all(&[&length.to_be_bytes(), frame].concat()).await
}

fn invalid(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::super::protocol::tests::request;
    use super::*;

    /// Far longer than the test waits.
    const HOUR: Duration = Duration::from_secs(3_600);
    /// How long to wait for what has to come.
    const TIME_MAX: Duration = Duration::from_secs(120);
    /// A correlation id and no topics.
    const EMPTY: &[u8] = &[0; 8];
    /// What holds more than no records is passed on as it is.
    const RECORDS: &[u8] = &[7; 6];

    #[tokio::test]
    async fn a_fetch_that_waits_is_answered_when_something_is_produced() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut cluster = TcpStream::connect(address).await.unwrap();
        let (mut broker, _) = listener.accept().await.unwrap();
        let (cluster_bytes, own_bytes) = (address_bytes("a", 1), address_bytes("b", 1));
        let produced = watch::Sender::new(0);
        let forwarding = Forwarding { cluster: address, cluster_id: String::new(), cluster_bytes, own_bytes, produced };
        let wait_ms = i32::try_from(HOUR.as_millis()).unwrap();
        let frame = request(FETCH, 0, &[-1_i32, wait_ms, 1].map(i32::to_be_bytes).concat());
        let (fetch, mut patience) = (Request::read(&frame).unwrap(), HOUR);
        let answering = async {
            assert!(read_frame(&mut broker).await.unwrap().is_some());
            write_frame(&mut broker, EMPTY).await.unwrap();
            forwarding.produced.send_modify(|count| *count += 1);
            assert!(read_frame(&mut broker).await.unwrap().is_some());
            write_frame(&mut broker, RECORDS).await.unwrap();
        };
        let fetching = forwarding.fetch(&mut cluster, &fetch, &frame, &mut patience);
        let fetched = timeout_at(Instant::now() + TIME_MAX, async { tokio::join!(fetching, answering).0 }).await;
        assert_eq!(fetched.expect("it does not wait for its time to be over").unwrap(), RECORDS);
    }

    /// Connects a client to a forwarder in front of a listener, which stands for the cluster.
    async fn forwarded() -> (TcpStream, TcpStream) {
        let (cluster, own) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let (address, own_address) = (cluster.local_addr().unwrap(), own.local_addr().unwrap());
        tokio::spawn(async move { forward(own, address, "0123456789a").await });
        let client = TcpStream::connect(own_address).await.unwrap();
        (client, cluster.accept().await.unwrap().0)
    }

    /// librdkafka's mock cluster ends the process with an assertion if a member joins again on a new connection while it holds the answer
    /// to the member's last request on the old one.
    #[tokio::test]
    async fn a_client_that_goes_while_it_joins_leaves_no_request_behind() {
        for kind in [JOIN_GROUP, SYNC_GROUP] {
            let (mut client, mut broker) = forwarded().await;
            let frame = request(kind, 0, &[]);
            write_frame(&mut client, &frame).await.unwrap();
            assert_eq!(read_frame(&mut broker).await.unwrap(), Some(frame));
            // A request behind it does not hide that the client has gone.
            write_frame(&mut client, &request(METADATA, 0, &[])).await.unwrap();
            drop(client);
            let ended = timeout_at(Instant::now() + TIME_MAX, read_frame(&mut broker)).await;
            let ended = ended.expect("the connection to the cluster ends").unwrap_err();
            assert_eq!(ended.kind(), std::io::ErrorKind::ConnectionReset, "kind {kind}");
        }
    }

    /// The cluster would lose the batch, and nobody would ever read it.
    #[tokio::test]
    async fn a_batch_that_the_cluster_would_lose_is_refused() {
        let (mut client, _broker) = forwarded().await;
        let records = vec![0_u8; PRODUCE_BYTES_MAX];
        let batch = [&0_i32.to_be_bytes()[..], &(records.len() as i32).to_be_bytes(), &records].concat();
        let body = [
            &(-1_i16).to_be_bytes()[..],
            &0_i32.to_be_bytes(),
            &1_i32.to_be_bytes(),
            &1_i16.to_be_bytes(),
            b"t",
            &1_i32.to_be_bytes(),
            &batch,
        ];
        write_frame(&mut client, &request(PRODUCE, 2, &body.concat())).await.unwrap();
        let answer = timeout_at(Instant::now() + TIME_MAX, read_frame(&mut client)).await.expect("it is answered").unwrap().unwrap();
        assert_eq!(&answer[15..21], [0, 0, 0, 0, 0, 10], "{answer:?}");
        // A producer that awaits no answer is cut off.
        let unanswered = [&0_i16.to_be_bytes()[..], &body[1..].concat()].concat();
        write_frame(&mut client, &request(PRODUCE, 2, &unanswered)).await.unwrap();
        let ended = timeout_at(Instant::now() + TIME_MAX, read_frame(&mut client)).await.expect("the connection ends");
        assert!(!matches!(ended, Ok(Some(_))), "{ended:?}");
    }

    /// A producer that awaits no answers may close its connection at once.
    #[tokio::test]
    async fn requests_of_a_client_that_has_gone_are_still_passed_on() {
        let (mut client, mut broker) = forwarded().await;
        let frame = request(PRODUCE, 2, &0_i16.to_be_bytes());
        for _ in 0..3 {
            write_frame(&mut client, &frame).await.unwrap();
        }
        drop(client);
        for _ in 0..3 {
            assert_eq!(read_frame(&mut broker).await.unwrap().as_deref(), Some(&frame[..]));
        }
        assert_eq!(read_frame(&mut broker).await.unwrap(), None);
    }
}
