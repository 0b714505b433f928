//! Writing a capture: whole lines, in whole pieces. What a full disk or a killed process leaves behind can be read, and can be gone on with.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::path::Path;

use super::contents::Contents;
use super::own_file::{create_file, own};
use super::pieces::{Label, is_compressed};

/// How many bytes of lines make a piece. A compressed piece is a frame of its own, and larger ones hardly get smaller.
const PIECE_BYTES: usize = 4 << 20;
/// The level of compression at which reading a topic is still slower.
const ZSTD_LEVEL: i32 = 3;

/// Returns a piece as a compressed frame, with a checksum: a reader finds a bit that has turned.
fn packed(piece: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
    compressor.set_parameter(zstd::zstd_safe::CParameter::ChecksumFlag(true))?;
    compressor.compress(piece)
}

/// A capture that is being written.
#[derive(Debug)]
pub struct CaptureWriter {
    sink: Sink,
    is_compressed: bool,
    /// Lines of the next piece.
    piece: Vec<u8>,
    /// How many pieces and lines were written.
    pieces: Label,
    /// How many bytes the file has in whole pieces.
    bytes_written: u64,
}

#[derive(Debug)]
enum Sink {
    File(File),
    Stdout,
}

impl CaptureWriter {
    /// Returns a writer to stdout.
    pub fn stdout() -> Self {
        Self { sink: Sink::Stdout, is_compressed: false, piece: Vec::new(), pieces: Label::default(), bytes_written: 0 }
    }

    /// Returns a writer of a new file, or of one that is emptied first if it `replaces` what is there.
    ///
    /// # Errors
    /// The file cannot be made, is there already, or another process writes it.
    pub fn create(path: &Path, replaces: bool) -> io::Result<Self> {
        if !replaces {
            File::create_new(path)?;
        }
        let sink = Sink::File(create_file(path)?);
        Ok(Self { sink, is_compressed: is_compressed(path), piece: Vec::new(), pieces: Label::default(), bytes_written: 0 })
    }

    /// Returns a writer that goes on behind what is good of a file. What stands behind it is cut off.
    ///
    /// # Errors
    /// The file cannot be written, or another process writes it.
    pub fn resume(path: &Path, found: &Contents) -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        own(&file)?;
        file.set_len(found.good_bytes)?;
        file.seek(SeekFrom::End(0))?;
        let (sink, piece, pieces) = (Sink::File(file), Vec::new(), found.pieces);
        Ok(Self { sink, is_compressed: is_compressed(path), piece, pieces, bytes_written: found.good_bytes })
    }

    /// Has `write` append lines, which are on their way to the file once there are enough of them.
    ///
    /// # Errors
    /// The file cannot be written. It then ends with its last whole piece.
    pub fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        write(&mut self.piece);
        if self.piece.len() < PIECE_BYTES { Ok(()) } else { self.flush() }
    }

    /// Writes the lines that are left as a piece of their own.
    ///
    /// # Errors
    /// The file cannot be written. It then ends with its last whole piece.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::take(&mut self.piece);
        if self.is_compressed {
            let label = Label { pieces: self.pieces.pieces + 1, lines: memchr::memchr_iter(b'\n', &piece).count() as u64 };
            self.write(&[label.of_piece(), packed(&piece)?].concat())?;
            self.pieces = Label { lines: self.pieces.lines + label.lines, ..label };
        } else {
            self.write(&piece)?;
        }
        self.piece = piece;
        self.piece.clear();
        Ok(())
    }

    /// Writes a whole piece.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.sink {
            Sink::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes)?;
                stdout.flush()?;
            }
            Sink::File(file) => {
                if let Err(error) = file.write_all(bytes) {
                    // Half a piece would have to be found and cut off by whoever reads the file.
                    let _cut = file.set_len(self.bytes_written).and_then(|()| file.seek(SeekFrom::Start(self.bytes_written)));
                    return Err(error);
                }
            }
        }
        self.bytes_written += bytes.len() as u64;
        Ok(())
    }

    /// Writes what is left, and waits until it is on the disk. Returns how many bytes the file has.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> io::Result<u64> {
        self.flush()?;
        if self.is_compressed {
            self.write(&self.pieces.of_end())?;
        }
        if let Sink::File(file) = &self.sink {
            file.sync_all()?;
        }
        Ok(self.bytes_written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn pieces_can_be_read_on_their_own_and_together() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.jsonl", "a.jsonl.zst"] {
            let path = folder.path().join(name);
            let mut writer = CaptureWriter::create(&path, false).unwrap();
            writer.append(|line| line.extend_from_slice(b"{\"a\":1}\n")).unwrap();
            writer.flush().unwrap();
            let first = writer.bytes_written;
            writer.append(|line| line.extend_from_slice(b"{\"b\":2}\n")).unwrap();
            assert_eq!(writer.finish().unwrap(), std::fs::metadata(&path).unwrap().len());
            let read = |path: &Path| {
                let mut text = String::new();
                super::super::open(path).unwrap().read_to_string(&mut text).unwrap();
                text
            };
            assert_eq!(read(&path), "{\"a\":1}\n{\"b\":2}\n", "{name}");
            let found = Contents { good_bytes: first, pieces: Label { pieces: 1, lines: 1 }, ..Contents::default() };
            let mut again = CaptureWriter::resume(&path, &found).unwrap();
            again.append(|line| line.extend_from_slice(b"{\"c\":3}\n")).unwrap();
            again.finish().unwrap();
            assert_eq!(read(&path), "{\"a\":1}\n{\"c\":3}\n", "{name}");
            assert!(CaptureWriter::create(&path, false).is_err(), "{name}");
        }
    }

    /// The first writer goes on, and a second writer takes nothing from the file.
    #[test]
    fn a_file_has_a_single_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut writer = CaptureWriter::create(&path, false).unwrap();
        writer.append(|line| line.extend_from_slice(b"{\"a\":1}\n")).unwrap();
        writer.flush().unwrap();
        for second in [CaptureWriter::resume(&path, &Contents::default()), CaptureWriter::create(&path, true)] {
            let error = second.unwrap_err().to_string();
            assert!(error.starts_with("it is being written already; "), "{error}");
        }
        let error = format!("{:#}", super::super::contents(&path, 1 << 20).unwrap_err());
        assert!(error.contains("cannot be gone on with: it is being written already"), "{error}");
        writer.finish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":1}\n");
        CaptureWriter::create(&path, true).unwrap().finish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    }

    #[test]
    fn a_bit_that_has_turned_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl.zst");
        let mut writer = CaptureWriter::create(&path, false).unwrap();
        writer.append(|line| line.extend_from_slice("{\"text\":\"some words that are stored as they stand\"}\n".as_bytes())).unwrap();
        writer.finish().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut turned = whole.clone();
            turned[at] ^= 1;
            std::fs::write(&path, turned).unwrap();
            let mut text = String::new();
            let read = super::super::open(&path).and_then(|mut input| Ok(input.read_to_string(&mut text)?));
            assert!(read.is_err(), "byte {at}: {text}");
        }
    }
}
