//! Opening a file of records: plain, compressed, or stdin. Whether it is compressed is told by its first bytes, whatever it is called.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use anyhow::Context as _;

use super::pieces::is_compressed;
use super::pieces::{AllPieces, Pieces};

const BUFFER_BYTES: usize = 256 * 1024;
/// What a file begins with that is compressed with zstd.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// What stands behind the first byte, 0x50 to 0x5f, of a frame that readers of zstd pass over.
const SKIPPABLE_MAGIC_END: [u8; 3] = [0x2a, 0x4d, 0x18];

/// The bytes of a file of records. What is buffered can be read without waiting for more.
pub type Input = BufReader<Box<dyn Read + Send>>;

/// Opens a file of records; `-` is stdin. A file that is compressed with zstd is decompressed as it is read.
///
/// # Errors
/// The file cannot be opened, or its name ends in `.zst` and it is nothing of the kind.
pub fn open(path: &Path) -> anyhow::Result<Input> {
    if path.as_os_str() == "-" {
        return unpacked(io::stdin(), false).context("stdin: cannot be read");
    }
    let unreadable = || format!("{}: cannot be read", path.display());
    let file = File::open(path).with_context(unreadable)?;
    anyhow::ensure!(!file.metadata().with_context(unreadable)?.is_dir(), "{}: found a folder; name a file, or - for stdin", path.display());
    unpacked(file, is_compressed(path)).with_context(unreadable)
}

/// Returns the bytes of a file, or of what is compressed in it. One that is `named_so` has to be compressed: a capture without records is a
/// frame too.
fn unpacked(mut bytes: impl Read + Send + 'static, named_so: bool) -> anyhow::Result<Input> {
    let mut head = Vec::with_capacity(ZSTD_MAGIC.len());
    bytes.by_ref().take(ZSTD_MAGIC.len() as u64).read_to_end(&mut head)?;
    let is_skippable = head.split_first().is_some_and(|(first, rest)| first >> 4 == 5 && rest == SKIPPABLE_MAGIC_END);
    let is_zstd = head == ZSTD_MAGIC || is_skippable;
    anyhow::ensure!(
        is_zstd || !named_so,
        "found no file of zstd, as its name says ({} bytes); give it a name without .zst if it is plain, or take the capture again",
        if head.is_empty() { "0" } else { "some" }
    );
    let whole = io::Cursor::new(head).chain(bytes);
    if !is_zstd {
        return Ok(buffered(whole));
    }
    Ok(buffered(AllPieces(Pieces::new(BufReader::with_capacity(BUFFER_BYTES, whole)))))
}

fn buffered(bytes: impl Read + Send + 'static) -> Input {
    BufReader::with_capacity(BUFFER_BYTES, Box::new(bytes))
}
