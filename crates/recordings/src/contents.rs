//! A look at a capture that is to be gone on with: what it holds, and where its last whole line ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};

use super::envelope::is_redacted;
use super::own_file::own;
use super::pieces::{Label, Pieces, is_compressed};
use super::{Format, Reader};

const BUFFER_BYTES: usize = 256 * 1024;

/// What a capture holds.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Contents {
    /// How many bytes of the file are whole lines, or whole frames of them.
    pub good_bytes: u64,
    /// How many bytes the file has, without the label of its end.
    pub bytes: u64,
    /// How many whole pieces it has, if it is compressed, and how many lines in them.
    pub(crate) pieces: Label,
    /// How many records it has.
    pub records: u64,
    /// The topic of its records; `None` if there are none.
    pub topic: Option<String>,
    /// Whether its records are without their contents; `None` if there are none.
    pub is_redacted: Option<bool>,
    /// The first offset of each partition.
    pub first: BTreeMap<i32, i64>,
    /// The last offset of each partition.
    pub last: BTreeMap<i32, i64>,
    /// The last line; `None` if there are none.
    pub last_line: Option<LastLine>,
}

/// The last line of a capture.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct LastLine {
    /// The partition of its record.
    pub partition: i32,
    /// The offset of its record.
    pub offset: i64,
    /// The line, without its line end.
    pub line: Vec<u8>,
}

/// Looks at a capture.
///
/// # Errors
/// The file cannot be read, or is another program's, or holds records of more than one topic, or another process writes it.
pub fn contents(path: &Path, line_bytes_max: usize) -> anyhow::Result<Contents> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("{name}: cannot be read"))?;
    // A file that grows would be taken for a file that is cut off.
    own(&file).with_context(|| format!("{name}: cannot be gone on with"))?;
    let mut contents = Contents { bytes: file.metadata()?.len(), ..Contents::default() };
    let mut counted = Counted { inner: BufReader::with_capacity(BUFFER_BYTES, file), consumed: 0 };
    if !is_compressed(path) {
        let lines = contents.lines(&mut counted, line_bytes_max);
        return lines.with_context(|| contents.refusal(path)).map(|()| contents);
    }
    let mut pieces = Pieces::new(counted);
    loop {
        let before = contents.clone();
        match contents.piece(&mut pieces, line_bytes_max) {
            Ok(true) => {}
            // The label of the end is written again.
            Ok(false) => return Ok(Contents { bytes: contents.good_bytes, ..contents }),
            // The last piece was cut off: what is before it is good. Where nothing of a first piece can be read, the file may be anybody's,
            // and where a piece in the middle is damaged, nothing behind it may be thrown away.
            Err(error) if is_cut_off(&error) && contents.records > 0 => return Ok(before),
            Err(error) if is_cut_off(&error) => {
                return Err(error).with_context(|| format!("{name}: is cut off before its first record; --force replaces it"));
            }
            Err(error) => return Err(error).with_context(|| contents.refusal(path)),
        }
    }
}

/// Returns whether a frame ended before its end.
fn is_cut_off(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
}

impl Contents {
    /// Returns why a file is not gone on with that holds something else behind what was found of it.
    fn refusal(&self, path: &Path) -> String {
        match (path.display(), self.records) {
            (name, 0) => format!("{name}: is no capture, and is left as it is"),
            (name, records) => format!(
                "{name}: is no capture of one topic behind {records} records, and is left as it is; capture into another file, or replace it with \
                 --force"
            ),
        }
    }

    /// Takes the next piece, and returns whether there is one.
    fn piece<R: BufRead>(&mut self, pieces: &mut Pieces<Counted<R>>, line_bytes_max: usize) -> anyhow::Result<bool> {
        let is_there = pieces.next()?;
        if is_there {
            self.lines(&mut BufReader::with_capacity(BUFFER_BYTES, &mut *pieces), line_bytes_max)?;
            self.good_bytes = pieces.file().map_or(self.good_bytes, |file| file.consumed);
            self.pieces = pieces.read_so_far();
        }
        Ok(is_there)
    }

    /// Takes every whole line. What is left behind the last line end was cut off.
    fn lines(&mut self, input: &mut impl BufRead, line_bytes_max: usize) -> anyhow::Result<()> {
        let (mut reader, mut line) = (Reader::new(Format::Envelope), Vec::new());
        loop {
            line.clear();
            let read = input.by_ref().take(line_bytes_max as u64).read_until(b'\n', &mut line)?;
            let Some(text) = line.strip_suffix(b"\n") else {
                // Only where the file ends has a line been cut off.
                let (number, is_end) = (self.records + 1, input.fill_buf()?.is_empty());
                ensure!(is_end, "line {number}: found a line of more than {line_bytes_max} bytes; raise limits.event_bytes_max");
                ensure!(self.records > 0 || read == 0, "line 1: found no line end; --force replaces the file");
                return Ok(());
            };
            self.take(&mut reader, text)?;
            self.good_bytes += read as u64;
        }
    }

    fn take(&mut self, reader: &mut Reader, line: &[u8]) -> anyhow::Result<()> {
        let number = self.records + 1;
        let captured =
            reader.read(line).map_err(|fault| anyhow::anyhow!("line {number}: {}: found {}; {}", fault.field, fault.found, fault.fix))?;
        let (Some(topic), Some(partition), Some(offset)) = (&captured.topic, captured.partition, captured.offset) else {
            bail!("line {number}: found no captured record")
        };
        let first = self.topic.get_or_insert_with(|| topic.to_string());
        ensure!(first == topic, "line {number}: found a record of topic {topic} in a capture of {first}");
        let is_redacted = is_redacted(line);
        ensure!(*self.is_redacted.get_or_insert(is_redacted) == is_redacted, "line {number}: found contents and stand-ins in one file");
        self.first.entry(partition).or_insert(offset);
        self.last.insert(partition, offset);
        let last_line = self.last_line.get_or_insert_default();
        (last_line.partition, last_line.offset) = (partition, offset);
        last_line.line.clear();
        last_line.line.extend_from_slice(line);
        self.records += 1;
        Ok(())
    }
}

/// Counts what is taken from a reader.
struct Counted<R> {
    inner: R,
    consumed: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.consumed += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.consumed += bytes as u64;
        self.inner.consume(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::CaptureWriter;
    use super::*;

    fn line(partition: i32, offset: i64) -> String {
        format!(
            "{{\"topic\":\"t\",\"partition\":{partition},\"offset\":{offset},\"timestamp\":1,\"key\":null,\"headers\":[],\"value\":\"x\"}}\n"
        )
    }

    /// Writes three pieces of two lines, and returns where each ends.
    fn capture(path: &Path) -> Vec<u64> {
        let mut writer = CaptureWriter::create(path, true).unwrap();
        let mut ends = Vec::new();
        for piece in 0..3 {
            for partition in [1, 4] {
                writer.append(|out| out.extend_from_slice(line(partition, 10 + piece).as_bytes())).unwrap();
            }
            writer.flush().unwrap();
            ends.push(std::fs::metadata(path).unwrap().len());
        }
        writer.finish().unwrap();
        ends
    }

    #[test]
    fn a_cut_leaves_what_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.jsonl", "a.jsonl.zst"] {
            let path = folder.path().join(name);
            let ends = capture(&path);
            let whole = contents(&path, 1_000).unwrap();
            assert_eq!((whole.good_bytes, whole.records, whole.last), (ends[2], 6, [(1, 12), (4, 12)].into()), "{name}");
            let bytes = std::fs::read(&path).unwrap();
            for cut in ends[1] + 1..ends[2] {
                std::fs::write(&path, &bytes[..cut as usize]).unwrap();
                let found = contents(&path, 1_000).unwrap();
                assert_eq!(found.bytes, cut);
                assert!(found.good_bytes >= ends[1] && found.good_bytes <= cut, "{name} {cut}: {found:?}");
                assert_eq!(found.last[&1], if found.records == 4 { 11 } else { 12 }, "{name} {cut}");
                let text = String::from_utf8(bytes[..found.good_bytes as usize].to_vec());
                assert!(text.map_or(true, |text| text.ends_with('\n')), "{name} {cut}");
            }
        }
    }

    #[test]
    fn a_first_frame_that_is_cut_off_is_ours_if_a_line_of_it_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl.zst");
        let mut writer = CaptureWriter::create(&path, true).unwrap();
        writer.append(|out| (0..20_000).for_each(|offset| out.extend_from_slice(line(0, offset * offset).as_bytes()))).unwrap();
        writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 60]).unwrap();
        let found = contents(&path, 1_000).unwrap();
        assert_eq!((found.good_bytes, found.records, found.last.len()), (0, 0, 0));
        std::fs::write(&path, &bytes[..20]).unwrap();
        let error = format!("{:#}", contents(&path, 1_000).unwrap_err());
        assert!(error.contains("is cut off before its first record; --force replaces it"), "{error}");
    }

    #[test]
    fn damage_in_the_middle_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl.zst");
        let ends = capture(&path);
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = usize::try_from(ends[0]).unwrap();
        bytes[middle..middle + 4].fill(0xff);
        std::fs::write(&path, &bytes).unwrap();
        let error = format!("{:#}", contents(&path, 1_000).unwrap_err());
        assert!(error.contains("no capture of one topic behind 2 records") && error.contains("--force"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn a_missing_piece_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl.zst");
        let ends: Vec<usize> = capture(&path).into_iter().map(|end| usize::try_from(end).unwrap()).collect();
        let bytes = std::fs::read(&path).unwrap();
        let missing = [
            (bytes[ends[0]..].to_vec(), 0, "found piece 2 where piece 1 has to be: a piece is missing"),
            ([&bytes[..ends[0]], &bytes[ends[1]..]].concat(), 2, "found piece 3 where piece 2 has to be: a piece is missing"),
            (
                [&bytes[..ends[1]], &bytes[ends[2]..]].concat(),
                4,
                "found 2 pieces with 4 lines, and 3 with 6 were written: a piece is missing",
            ),
            (bytes[..ends[1]].to_vec(), 4, "found no end behind piece 2: the capture was not finished, or pieces are missing"),
        ];
        for (left, lines, expected) in missing {
            std::fs::write(&path, &left).unwrap();
            let mut text = Vec::new();
            let error = super::super::open(&path).unwrap().read_to_end(&mut text).unwrap_err();
            assert_eq!((error.to_string().as_str(), text.iter().filter(|byte| **byte == b'\n').count()), (expected, lines));
            let found = contents(&path, 1_000);
            assert_eq!(
                found.as_ref().ok().map(|found| (found.records, found.bytes)),
                (error.kind() == io::ErrorKind::UnexpectedEof).then_some((4, ends[1] as u64))
            );
        }
        // Two captures behind each other are a capture.
        std::fs::write(&path, [&bytes[..], &bytes].concat()).unwrap();
        let mut text = String::new();
        super::super::open(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text.lines().count(), 12);
    }

    #[test]
    fn what_is_no_capture_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mixed = line(0, 1) + &line(0, 2).replace("\"t\"", "\"u\"") + &line(0, 3);
        for (name, bytes) in [
            ("elf.jsonl", &b"\x7fELF\x02\x01\n"[..]),
            ("elf.jsonl.zst", b"\x7fELF\x02\x01\n"),
            ("events.jsonl", b"{\"type\":\"turn_start\"}\n"),
            ("mixed.jsonl", mixed.as_bytes()),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            assert!(contents(&path, 1_000).is_err(), "{name}");
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name}");
        }
    }
}
