//! The answer to a produce request that is larger than the embedded broker can hold.

use super::protocol::{Request, Unread};

/// The largest produce request, in bytes. The mock cluster keeps 5 MiB of a partition. Where a new batch takes the place of the last batch
/// before it, the mock cluster loses the new batch too, and nobody ever reads it. Two batches of half of 5 MiB always stand side by side.
pub(super) const PRODUCE_BYTES_MAX: usize = 5 * 1024 * 1024 / 2;

/// Kafka's code of a record that is too large.
const MESSAGE_TOO_LARGE: i16 = 10;
/// An offset or a time that is not known.
const UNKNOWN: i64 = -1;

/// Returns the response that refuses every batch of a produce request because of its size; `None` if the request cannot be read.
pub(super) fn too_large(request: &Request<'_>) -> Option<Vec<u8>> {
    let (version, mut unread) = (request.version, Unread(request.body));
    if version >= 3 {
        unread.skip_string()?;
    }
    let (_acks, _timeout_ms) = (unread.i16()?, unread.i32()?);
    let mut out = request.correlation_id.to_be_bytes().to_vec();
    let topics = unread.i32()?;
    out.extend(topics.to_be_bytes());
    for _topic in 0..topics {
        let length = unread.i16()?;
        out.extend(length.to_be_bytes());
        out.extend(unread.bytes(usize::try_from(length).ok()?)?);
        let partitions = unread.i32()?;
        out.extend(partitions.to_be_bytes());
        for _partition in 0..partitions {
            out.extend(unread.i32()?.to_be_bytes());
            let records = usize::try_from(unread.i32()?).unwrap_or(0);
            unread.bytes(records)?;
            out.extend(MESSAGE_TOO_LARGE.to_be_bytes());
            // The offset, from version 2 on the time, and from version 5 on where the log begins.
            let numbers = 1 + usize::from(version >= 2) + usize::from(version >= 5);
            out.extend(UNKNOWN.to_be_bytes().repeat(numbers));
            if version >= 8 {
                out.extend([&0_i32.to_be_bytes()[..], &(-1_i16).to_be_bytes()].concat());
            }
        }
    }
    if version >= 1 {
        out.extend(0_i32.to_be_bytes());
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::super::protocol::PRODUCE;
    use super::super::protocol::tests::request;
    use super::*;

    #[test]
    fn every_batch_is_refused_in_the_format_of_the_request() {
        let batch = |records: &[u8]| [&3_i32.to_be_bytes()[..], &(records.len() as i32).to_be_bytes(), records].concat();
        let topic = [&1_i16.to_be_bytes()[..], b"t", &2_i32.to_be_bytes(), &batch(b"records"), &batch(b"")].concat();
        let body = [&1_i16.to_be_bytes()[..], &9_i32.to_be_bytes(), &1_i32.to_be_bytes(), &topic].concat();
        for (version, bytes) in [(0, 14), (1, 14), (2, 22), (3, 22), (5, 30), (8, 36)] {
            let head = if version >= 3 { (-1_i16).to_be_bytes().to_vec() } else { Vec::new() };
            let frame = request(PRODUCE, version, &[head, body.clone()].concat());
            let answer = too_large(&Request::read(&frame).unwrap()).unwrap();
            let throttled = if version >= 1 { 4 } else { 0 };
            assert_eq!(answer.len(), 4 + 4 + 3 + 4 + 2 * bytes + throttled, "version {version}");
            assert_eq!(&answer[15..21], [0, 0, 0, 3, 0, 10], "version {version}");
        }
        let short = request(PRODUCE, 7, &[0; 9]);
        assert_eq!(too_large(&Request::read(&short).unwrap()), None);
    }
}
