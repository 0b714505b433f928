//! The few parts of Kafka's wire format that the forwarder reads and changes.
//!
//! A frame is a length and that many bytes. A request begins with its kind, version, correlation id and client id; a response begins with
//! the correlation id of its request.

/// Kinds of requests that the forwarder treats in its own way.
pub(super) const PRODUCE: i16 = 0;
pub(super) const FETCH: i16 = 1;
pub(super) const METADATA: i16 = 3;
pub(super) const FIND_COORDINATOR: i16 = 10;
pub(super) const JOIN_GROUP: i16 = 11;
pub(super) const SYNC_GROUP: i16 = 14;
pub(super) const API_VERSIONS: i16 = 18;

/// The requests that are offered to clients, with the lowest and the highest version: what librdkafka's mock cluster speaks and has right.
/// It does not understand every client's requests in compact formats (JoinGroup from version 6 on), so groups are offered older ones.
/// Produce and Fetch stop before the versions whose format the forwarder would have to read anew.
const OFFERED: [(i16, i16, i16); 19] = [
    (PRODUCE, 0, 8),
    (FETCH, 0, 11),
    (2, 0, 5),
    (METADATA, 0, METADATA_MAX),
    (8, 0, 7),
    (9, 0, 5),
    (FIND_COORDINATOR, 0, 3),
    (JOIN_GROUP, 0, 5),
    (12, 0, 3),
    (13, 0, 2),
    (SYNC_GROUP, 0, 3),
    (API_VERSIONS, 0, API_VERSIONS_MAX),
    (22, 0, 4),
    (23, 2, 2),
    (24, 0, 1),
    (25, 0, 1),
    (26, 0, 1),
    (28, 0, 3),
    (68, 1, 1),
];
/// The highest version of metadata, and the first one in the compact format.
const METADATA_MAX: i16 = 12;
const METADATA_COMPACT: i16 = 9;
/// The highest version of the question for the versions.
const API_VERSIONS_MAX: i16 = 4;
/// The code of a version that is not known.
const UNSUPPORTED_VERSION: i16 = 35;

/// A request, read as far as its body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) kind: i16,
    pub(super) version: i16,
    pub(super) correlation_id: i32,
    pub(super) body: &'a [u8],
    /// Where the body begins in the frame.
    body_at: usize,
}

/// The bytes that are not read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unread<'a>(pub(super) &'a [u8]);

impl<'a> Unread<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (read, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(read)
    }

    pub(super) fn i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.bytes(2)?.try_into().ok()?))
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    /// Skips a string, or nothing for null.
    pub(super) fn skip_string(&mut self) -> Option<()> {
        let length = usize::try_from(self.i16()?).unwrap_or(0);
        self.bytes(length).map(|_| ())
    }

    /// Reads a length of the compact format. Those of more than one byte are not awaited here.
    fn short_length(&mut self) -> Option<usize> {
        self.bytes(1)?.first().filter(|byte| **byte < 0x80).map(|byte| usize::from(*byte))
    }

    /// Skips a string in one of both formats, or nothing for null.
    fn skip_name(&mut self, is_compact: bool) -> Option<()> {
        if !is_compact {
            return self.skip_string();
        }
        let length = self.short_length()?.saturating_sub(1);
        self.bytes(length).map(|_| ())
    }

    /// Skips the tags of the compact format, if there are none.
    fn skip_tags(&mut self) -> Option<()> {
        (self.short_length()? == 0).then_some(())
    }
}

impl<'a> Request<'a> {
    /// Reads a request's head; `None` if the frame holds none.
    pub(super) fn read(frame: &'a [u8]) -> Option<Self> {
        let mut unread = Unread(frame);
        let (kind, version, correlation_id) = (unread.i16()?, unread.i16()?, unread.i32()?);
        unread.skip_string()?;
        Some(Self { kind, version, correlation_id, body: unread.0, body_at: frame.len() - unread.0.len() })
    }

    /// Returns whether the request gets a response. A producer may ask for none.
    pub(super) fn is_answered(&self) -> bool {
        let acks = || {
            let mut unread = Unread(self.body);
            if self.version >= 3 {
                unread.skip_string()?;
            }
            unread.i16()
        };
        self.kind != PRODUCE || acks() != Some(0)
    }

    /// Returns how long a fetch would wait for records, in milliseconds.
    pub(super) fn fetch_wait_ms(&self) -> Option<u64> {
        let mut unread = Unread(self.body);
        let (_replica, wait) = (unread.i32()?, unread.i32()?);
        Some(u64::try_from(wait).unwrap_or(0))
    }

    /// Returns the frame of a fetch with its wait and the least number of bytes set to zero, so that it is answered at once.
    pub(super) fn without_wait(&self, frame: &[u8]) -> Vec<u8> {
        let mut changed = frame.to_vec();
        if let Some(fields) = changed.get_mut(self.body_at + 4..self.body_at + 12) {
            fields.fill(0);
        }
        changed
    }

    /// Returns the response to a question for the versions.
    pub(super) fn versions_response(&self) -> Vec<u8> {
        let mut out = self.correlation_id.to_be_bytes().to_vec();
        let is_known = (0..=API_VERSIONS_MAX).contains(&self.version);
        // A client that asks in a version that is not known reads the response in the lowest one, and asks again.
        let version = if is_known { self.version } else { 0 };
        out.extend(if is_known { 0 } else { UNSUPPORTED_VERSION }.to_be_bytes());
        let is_compact = version >= 3;
        if is_compact {
            out.push(OFFERED.len() as u8 + 1);
        } else {
            out.extend((OFFERED.len() as i32).to_be_bytes());
        }
        for (kind, lowest, highest) in OFFERED {
            [kind, lowest, highest].iter().for_each(|field| out.extend(field.to_be_bytes()));
            if is_compact {
                out.push(0);
            }
        }
        if version >= 1 {
            out.extend(0_i32.to_be_bytes());
        }
        if is_compact {
            out.push(0);
        }
        out
    }
}

/// Returns whether the response to a fetch of this version holds no record and no error, so that a broker would still wait.
pub(super) fn is_empty_fetch(version: i16, response: &[u8]) -> bool {
    let mut unread = Unread(response);
    read_empty_fetch(version, &mut unread).unwrap_or(false)
}

/// Reads the response; `None` if it ends early or has another format.
fn read_empty_fetch(version: i16, unread: &mut Unread<'_>) -> Option<bool> {
    let _correlation_id = unread.i32()?;
    if version >= 1 {
        let _throttled_ms = unread.i32()?;
    }
    if version >= 7 {
        let (error, _session) = (unread.i16()?, unread.i32()?);
        if error != 0 {
            return Some(false);
        }
    }
    for _topic in 0..unread.i32()? {
        unread.skip_string()?;
        for _partition in 0..unread.i32()? {
            let (_number, error, _end) = (unread.i32()?, unread.i16()?, unread.bytes(8)?);
            if version >= 4 {
                let _stable_end = unread.bytes(8)?;
            }
            if version >= 5 {
                let _start = unread.bytes(8)?;
            }
            if version >= 4 {
                let aborted = usize::try_from(unread.i32()?).unwrap_or(0);
                unread.bytes(aborted.checked_mul(16)?)?;
            }
            if version >= 11 {
                let _preferred_replica = unread.i32()?;
            }
            if error != 0 || unread.i32()? > 0 {
                return Some(false);
            }
        }
    }
    Some(true)
}

/// Names the first broker as the controller, in a response with metadata of this version: the mock cluster names one that is not there.
pub(super) fn name_controller(version: i16, response: &mut [u8]) {
    let found = find_controller(version, &mut Unread(response)).map(|(broker, left)| (broker, response.len() - left));
    if let Some((broker, at)) = found
        && let Some(field) = response.get_mut(at..at + 4)
    {
        field.copy_from_slice(&broker.to_be_bytes());
    }
}

/// Returns the first broker, and how many bytes are left where the controller stands.
fn find_controller(version: i16, unread: &mut Unread<'_>) -> Option<(i32, usize)> {
    let is_compact = version >= METADATA_COMPACT;
    let _correlation_id = unread.i32()?;
    if version == 0 || version > METADATA_MAX {
        return None;
    }
    if is_compact {
        unread.skip_tags()?;
    }
    if version >= 3 {
        let _throttled_ms = unread.i32()?;
    }
    let count = if is_compact { unread.short_length()?.checked_sub(1)? } else { usize::try_from(unread.i32()?).ok()? };
    let mut first = None;
    for _broker in 0..count {
        let broker = unread.i32()?;
        first.get_or_insert(broker);
        unread.skip_name(is_compact)?;
        let _port = unread.i32()?;
        unread.skip_name(is_compact)?;
        if is_compact {
            unread.skip_tags()?;
        }
    }
    if version >= 2 {
        unread.skip_name(is_compact)?;
    }
    Some((first?, unread.0.len()))
}

/// An address as responses carry it: the host's bytes, and behind them the port in four bytes.
pub(super) fn address_bytes(host: &str, port: u16) -> Vec<u8> {
    [host.as_bytes(), &u32::from(port).to_be_bytes()].concat()
}

/// Replaces every occurrence of a text, such as an address, by another one of the same length. No name that responses carry holds the zero
/// bytes of a port.
pub(super) fn replace_address(response: &mut [u8], from: &[u8], to: &[u8]) {
    let mut at = 0;
    while let Some(place) = response.get_mut(at..at + from.len()) {
        if place == from {
            place.copy_from_slice(to);
        }
        at += 1;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The frame of a request.
    pub(in super::super) fn request(kind: i16, version: i16, body: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &version.to_be_bytes(), &7_i32.to_be_bytes(), &2_i16.to_be_bytes(), b"me", body].concat()
    }

    #[test]
    fn a_producer_may_ask_for_no_response() {
        let old = |acks: i16| request(PRODUCE, 2, &acks.to_be_bytes());
        let new = |acks: i16| request(PRODUCE, 7, &[&(-1_i16).to_be_bytes()[..], &acks.to_be_bytes()].concat());
        for (frame, is_answered) in [(old(0), false), (old(-1), true), (new(0), false), (new(1), true), (request(FETCH, 4, &[0; 8]), true)]
        {
            assert_eq!(Request::read(&frame).unwrap().is_answered(), is_answered, "{frame:?}");
        }
    }

    #[test]
    fn a_fetch_is_sent_on_without_its_wait() {
        let body = [(-1_i32).to_be_bytes(), 500_i32.to_be_bytes(), 1_i32.to_be_bytes(), 99_i32.to_be_bytes()].concat();
        let frame = request(FETCH, 11, &body);
        let read = Request::read(&frame).unwrap();
        assert_eq!(read.fetch_wait_ms(), Some(500));
        let changed = read.without_wait(&frame);
        let expected = [(-1_i32).to_be_bytes(), [0; 4], [0; 4], 99_i32.to_be_bytes()].concat();
        assert_eq!(changed, request(FETCH, 11, &expected));
        // A frame that ends early is no fetch, and stays as it is.
        let short = request(FETCH, 11, &[0; 3]);
        let read = Request::read(&short).unwrap();
        assert_eq!((read.fetch_wait_ms(), read.without_wait(&short)), (None, short.clone()));
        assert!(Request::read(&[0; 9]).is_none());
    }

    /// A response to a fetch of one partition.
    fn fetched(version: i16, error: i16, records: &[u8]) -> Vec<u8> {
        let mut out = [[0; 4], [0; 4]].concat();
        if version >= 7 {
            out.extend([0; 6]);
        }
        out.extend(1_i32.to_be_bytes());
        out.extend([&1_i16.to_be_bytes()[..], b"t"].concat());
        out.extend(1_i32.to_be_bytes());
        out.extend([&3_i32.to_be_bytes()[..], &error.to_be_bytes(), &[1; 8]].concat());
        out.extend(vec![1; if version >= 5 { 16 } else { 8 }]);
        out.extend(0_i32.to_be_bytes());
        if version >= 11 {
            out.extend((-1_i32).to_be_bytes());
        }
        out.extend((records.len() as i32).to_be_bytes());
        out.extend(records);
        out
    }

    #[test]
    fn an_empty_fetch_is_known_in_every_version() {
        for version in [4, 5, 6, 7, 10, 11] {
            assert!(is_empty_fetch(version, &fetched(version, 0, b"")), "version {version}");
            assert!(!is_empty_fetch(version, &fetched(version, 0, b"records")), "version {version}");
            assert!(!is_empty_fetch(version, &fetched(version, 1, b"")), "version {version}");
            // What cannot be read is passed on.
            assert!(!is_empty_fetch(version, &fetched(version, 0, b"")[..20]), "version {version}");
        }
    }

    #[test]
    fn versions_are_given_in_the_format_that_was_asked_for() {
        let lengths = |version| Request::read(&request(API_VERSIONS, version, &[])).unwrap().versions_response();
        assert_eq!(lengths(0).len(), 4 + 2 + 4 + 6 * OFFERED.len());
        assert_eq!(lengths(2).len(), lengths(0).len() + 4);
        assert_eq!(lengths(3).len(), 4 + 2 + 1 + 7 * OFFERED.len() + 4 + 1);
        assert_eq!(lengths(3), lengths(4));
        let unknown = lengths(9);
        assert_eq!((&unknown[..6], unknown.len()), (&[0, 0, 0, 7, 0, 35][..], lengths(0).len()));
    }

    #[test]
    fn the_controller_is_a_broker_that_is_there() {
        let old = |version: i16, controller: i32| {
            let mut out = vec![0; if version >= 3 { 8 } else { 4 }];
            out.extend(1_i32.to_be_bytes());
            out.extend([&1_i32.to_be_bytes()[..], &2_i16.to_be_bytes(), b"ab", &9_i32.to_be_bytes(), &(-1_i16).to_be_bytes()].concat());
            if version >= 2 {
                out.extend([&3_i16.to_be_bytes()[..], b"xyz"].concat());
            }
            out.extend([controller.to_be_bytes(), [7; 4]].concat());
            out
        };
        let compact = |controller: i32| {
            let broker = [&1_i32.to_be_bytes()[..], &[3], b"ab", &9_i32.to_be_bytes(), &[0, 0]].concat();
            [&[0; 4][..], &[0], &[0; 4], &[2], &broker, &[4], b"xyz", &controller.to_be_bytes(), &[7; 4]].concat()
        };
        for version in [1, 2, 3, 8] {
            let mut response = old(version, 0);
            name_controller(version, &mut response);
            assert_eq!(response, old(version, 1), "version {version}");
        }
        for version in [9, 12] {
            let mut response = compact(0);
            name_controller(version, &mut response);
            assert_eq!(response, compact(1), "version {version}");
        }
        // What cannot be read stays as it is.
        for (version, mut response) in [(0, old(1, 0)), (13, compact(0)), (12, compact(0)[..12].to_vec())] {
            let before = response.clone();
            name_controller(version, &mut response);
            assert_eq!(response, before);
        }
    }

    #[test]
    fn addresses_are_replaced_wherever_they_stand() {
        let (from, to) = (address_bytes("127.0.0.1", 40_001), address_bytes("127.0.0.1", 9092));
        let mut response = [&[9][..], &from, b"127.0.0.1", &from[..12], &from].concat();
        replace_address(&mut response, &from, &to);
        assert_eq!(response, [&[9][..], &to, b"127.0.0.1", &from[..12], &to].concat());
    }
}
