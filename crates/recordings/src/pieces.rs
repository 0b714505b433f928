//! The pieces of a compressed capture. A label stands before each piece, and one behind the last: a reader notices a piece that is missing.
//!
//! ```text
//! label (piece 1, 1204 lines) · frame of lines · label (piece 2, …) · frame of lines · … · end (2 pieces, 2318 lines)
//! ```
//!
//! A label is a skippable frame of zstd, over which every other reader of zstd passes. A file without labels was compressed by another program,
//! and is read as it is.

use std::io::{self, BufRead, Chain, Cursor, Read};
use std::path::Path;

/// Returns whether a file of this name holds compressed lines.
pub fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// What a label begins with: the magic number of a skippable frame, and how many bytes follow.
const LABEL_MAGIC: [u8; 4] = [0x54, 0x2a, 0x4d, 0x18];
const PAYLOAD_BYTES: u32 = 24;
/// What the payload of a label begins with.
const PIECE_TAG: [u8; 8] = *b"tg.piece";
const END_TAG: [u8; 8] = *b"tg.end\0\0";

/// What stands before a piece: its number, from 1, and how many lines it has. Behind the last piece: how many pieces and lines there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Label {
    /// The number of the piece, or of the pieces.
    pub pieces: u64,
    /// The number of lines in it, or in all of them.
    pub lines: u64,
}

impl Label {
    fn bytes(self, tag: [u8; 8]) -> Vec<u8> {
        [&LABEL_MAGIC[..], &PAYLOAD_BYTES.to_le_bytes(), &tag, &self.pieces.to_le_bytes(), &self.lines.to_le_bytes()].concat()
    }

    /// Returns the label before a piece.
    pub(crate) fn of_piece(self) -> Vec<u8> {
        self.bytes(PIECE_TAG)
    }

    /// Returns the label behind the last piece.
    pub(crate) fn of_end(self) -> Vec<u8> {
        self.bytes(END_TAG)
    }
}

/// Reads a compressed file piece by piece: [`Pieces::next`] begins a piece, and the reader then gives the lines of that piece.
pub(crate) struct Pieces<R: BufRead> {
    state: State<R>,
    /// What stands in the label before the piece that is read.
    label: Option<Label>,
    /// The pieces and lines so far, since the last end. Lines of pieces without labels do not count.
    read: Label,
    /// The lines of the piece that is read, so far.
    lines: u64,
}

enum State<R: BufRead> {
    Between(R),
    Within(zstd::Decoder<'static, Framed<R>>),
    /// The file cannot be read any further.
    Over,
}

/// A frame whose first bytes were read already.
type Framed<R> = Chain<Cursor<[u8; 4]>, R>;

impl<R: BufRead> Pieces<R> {
    pub(crate) fn new(file: R) -> Self {
        Self { state: State::Between(file), label: None, read: Label::default(), lines: 0 }
    }

    /// Returns the file, if no piece is being read.
    pub(crate) fn file(&self) -> Option<&R> {
        if let State::Between(file) = &self.state { Some(file) } else { None }
    }

    /// Returns how many pieces and lines were read.
    pub(crate) fn read_so_far(&self) -> Label {
        self.read
    }

    /// Begins the next piece, and returns whether there is one.
    ///
    /// # Errors
    /// The file cannot be read, is cut off, or lacks a piece.
    pub(crate) fn next(&mut self) -> io::Result<bool> {
        let State::Between(mut file) = std::mem::replace(&mut self.state, State::Over) else { return Ok(false) };
        loop {
            let Some(head) = read_head(&mut file)? else {
                let unfinished = self.read.pieces > 0;
                self.state = State::Between(file);
                return if unfinished { Err(self.without_end()) } else { Ok(false) };
            };
            if head != LABEL_MAGIC {
                return self.begin(head, file).map(|()| true);
            }
            match read_label(&mut file)? {
                (PIECE_TAG, label) => self.expect(label)?,
                (END_TAG, label) => self.end(label)?,
                _ => return Err(damaged("found a label of another program".to_owned())),
            }
        }
    }

    /// Takes the label of the next piece.
    fn expect(&mut self, label: Label) -> io::Result<()> {
        let expected = self.read.pieces + 1;
        if self.label.is_some() || label.pieces != expected {
            return Err(damaged(format!("found piece {} where piece {expected} has to be: a piece is missing", label.pieces)));
        }
        self.label = Some(label);
        Ok(())
    }

    /// Takes the label behind the last piece.
    fn end(&mut self, label: Label) -> io::Result<()> {
        if self.label.is_some() || label != self.read {
            let Label { pieces, lines } = self.read;
            return Err(damaged(format!(
                "found {pieces} pieces with {lines} lines, and {} with {} were written: a piece is missing",
                label.pieces, label.lines
            )));
        }
        self.read = Label::default();
        Ok(())
    }

    fn begin(&mut self, head: [u8; 4], file: R) -> io::Result<()> {
        if self.label.is_none() && self.read.pieces > 0 {
            return Err(damaged(format!("found a piece without its label behind piece {}", self.read.pieces)));
        }
        self.state = State::Within(zstd::Decoder::with_buffer(Cursor::new(head).chain(file))?.single_frame());
        self.lines = 0;
        Ok(())
    }

    /// Ends the piece that was read.
    fn close(&mut self) -> io::Result<()> {
        let State::Within(decoder) = std::mem::replace(&mut self.state, State::Over) else { return Ok(()) };
        if let Some(label) = self.label.take() {
            if label.lines != self.lines {
                return Err(damaged(format!("found {} lines in piece {}, and {} were written", self.lines, label.pieces, label.lines)));
            }
            self.read = Label { pieces: label.pieces, lines: self.read.lines + label.lines };
        }
        self.state = State::Between(decoder.finish().into_inner().1);
        Ok(())
    }

    fn without_end(&self) -> io::Error {
        let message = format!("found no end behind piece {}: the capture was not finished, or pieces are missing", self.read.pieces);
        io::Error::new(io::ErrorKind::UnexpectedEof, message)
    }
}

impl<R: BufRead> Read for Pieces<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let State::Within(decoder) = &mut self.state else { return Ok(0) };
        let count = decoder.read(buffer)?;
        if count == 0 && !buffer.is_empty() {
            self.close()?;
        }
        self.lines += memchr::memchr_iter(b'\n', buffer.get(..count).unwrap_or_default()).count() as u64;
        Ok(count)
    }
}

/// The lines of all pieces.
pub(crate) struct AllPieces<R: BufRead>(pub(crate) Pieces<R>);

impl<R: BufRead> Read for AllPieces<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.0.read(buffer)?;
            if count > 0 || buffer.is_empty() || !self.0.next()? {
                return Ok(count);
            }
        }
    }
}

fn damaged(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Reads what a frame begins with; `None` at the end of the file.
fn read_head(file: &mut impl BufRead) -> io::Result<Option<[u8; 4]>> {
    if file.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut head = [0; 4];
    file.read_exact(&mut head)?;
    Ok(Some(head))
}

/// Reads the rest of a label.
fn read_label(file: &mut impl BufRead) -> io::Result<([u8; 8], Label)> {
    let (mut size, mut tag, mut pieces, mut lines) = ([0; 4], [0; 8], [0; 8], [0; 8]);
    file.read_exact(&mut size)?;
    if u32::from_le_bytes(size) != PAYLOAD_BYTES {
        return Err(damaged("found a label of another program".to_owned()));
    }
    for part in [&mut tag, &mut pieces, &mut lines] {
        file.read_exact(part)?;
    }
    Ok((tag, Label { pieces: u64::from_le_bytes(pieces), lines: u64::from_le_bytes(lines) }))
}
