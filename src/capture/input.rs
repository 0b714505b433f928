//! Opening a file of records: plain, compressed, or stdin.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use anyhow::Context as _;

const BUFFER_BYTES: usize = 256 * 1024;
/// What the names of files end with that are compressed with zstd.
const ZSTD: &str = "zst";

/// The bytes of a file of records. What is buffered can be read without waiting for more.
pub(crate) type Input = BufReader<Box<dyn Read + Send>>;

/// Opens a file of records; `-` is stdin. A file whose name ends in `.zst` is decompressed as it is read.
///
/// # Errors
/// The file cannot be opened.
pub(crate) fn open(path: &Path) -> anyhow::Result<Input> {
    if path.as_os_str() == "-" {
        return Ok(buffered(io::stdin()));
    }
    let unreadable = || format!("{}: cannot be read", path.display());
    let file = File::open(path).with_context(unreadable)?;
    anyhow::ensure!(!file.metadata().with_context(unreadable)?.is_dir(), "{}: found a folder; name a file, or - for stdin", path.display());
    if path.extension().is_some_and(|extension| extension == ZSTD) {
        return Ok(buffered(zstd::Decoder::new(file).with_context(unreadable)?));
    }
    Ok(buffered(file))
}

fn buffered(bytes: impl Read + Send + 'static) -> Input {
    BufReader::with_capacity(BUFFER_BYTES, Box::new(bytes))
}
