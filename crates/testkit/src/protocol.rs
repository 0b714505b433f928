//! One request of Kafka's protocol and its answer, for what the clients that the tests use have no call for.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Result, ensure};

/// The answer's size is bounded, so that a peer that is no broker is noticed.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Sends a request of this key and version, and returns the answer behind the number of its request. `has_tags` says whether the request's
/// header ends with its count of tags.
pub(crate) fn ask(mut stream: TcpStream, timeout: Duration, (key, version): (i16, i16), has_tags: bool, body: &[u8]) -> Result<Vec<u8>> {
    let mut request = [key.to_be_bytes(), version.to_be_bytes()].concat();
    request.extend(1_i32.to_be_bytes());
    text("tests", &mut request)?;
    request.extend(has_tags.then_some(0_u8));
    request.extend(body);
    stream.set_read_timeout(Some(timeout))?;
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

/// Writes a text with its length before it.
pub(crate) fn text(text: &str, out: &mut Vec<u8>) -> Result<()> {
    out.extend(i16::try_from(text.len())?.to_be_bytes());
    out.extend(text.as_bytes());
    Ok(())
}
