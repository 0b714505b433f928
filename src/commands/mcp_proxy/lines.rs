//! Frames of a pipe: one a line, up to a bound.

use std::io::{BufRead as _, BufReader, Read};

use tollgate_hosts::mcp::FRAME_BYTES_MAX;

/// A frame without its line break, or `None` for a frame that is longer than [`FRAME_BYTES_MAX`].
pub(super) type Line = Option<Vec<u8>>;

/// The lines of a pipe, blank lines left out. Bytes behind the last line break are no frame: their writer has ended in the middle.
pub(super) struct Lines<R> {
    pipe: BufReader<R>,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(pipe: R) -> Self {
        Self { pipe: BufReader::new(pipe) }
    }

    /// Returns the next line with its line break, cut behind so many bytes as no frame may have; `None` at the end of the pipe.
    fn part(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        // The bound leaves room for `\r\n`.
        let read = self.pipe.by_ref().take(FRAME_BYTES_MAX as u64 + 2).read_until(b'\n', &mut line);
        read.ok().filter(|count| *count > 0).map(|_| line)
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        loop {
            let mut line = self.part()?;
            let mut is_cut = false;
            while line.last() != Some(&b'\n') {
                (line, is_cut) = (self.part()?, true);
            }
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if is_cut || line.len() > FRAME_BYTES_MAX {
                return Some(None);
            }
            if !line.trim_ascii().is_empty() {
                return Some(Some(line));
            }
        }
    }
}
