//! Reading lines of bounded length.

use std::io::{self, BufRead, Read as _};

/// The result of reading a line.
#[derive(Debug, PartialEq)]
pub enum Line {
    /// The whole line.
    Whole,
    /// The beginning of a line that is too long.
    TooLong,
    /// There are no more lines.
    End,
}

/// Reads the next line into `line`, without its line end. A line longer than `bytes_max` is skipped.
pub fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>, bytes_max: usize) -> io::Result<Line> {
    line.clear();
    let limit = bytes_max as u64 + 2;
    if input.by_ref().take(limit).read_until(b'\n', line)? == 0 {
        return Ok(Line::End);
    }
    let is_whole = line.ends_with(b"\n") || (line.len() as u64) < limit;
    if !is_whole {
        skip_line(input)?;
    }
    if line.ends_with(b"\n") {
        line.pop();
    }
    if line.ends_with(b"\r") {
        line.pop();
    }
    Ok(if is_whole && line.len() <= bytes_max { Line::Whole } else { Line::TooLong })
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let (consumed, is_end) = match memchr::memchr(b'\n', buffer) {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        input.consume(consumed);
        if is_end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_the_rest_goes_on() {
        let mut input = io::Cursor::new(b"ab\r\nabcdef\nabcdefghijkl\n\nabcd".to_vec());
        let mut line = Vec::new();
        let mut read = || {
            let kind = read_line(&mut input, &mut line, 4).unwrap();
            (kind, String::from_utf8(line.clone()).unwrap())
        };
        assert_eq!(read(), (Line::Whole, "ab".to_owned()));
        assert_eq!(read().0, Line::TooLong);
        assert_eq!(read().0, Line::TooLong);
        assert_eq!(read(), (Line::Whole, String::new()));
        assert_eq!(read(), (Line::Whole, "abcd".to_owned()));
        assert_eq!(read().0, Line::End);
    }
}
