//! Lines that end where a signal stops the command, so that it prints what it has.

use std::io::{self, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use tollgate_recordings::Input;
use tollgate_worker::Stop;

const BLOCK_BYTES: usize = 256 * 1024;
/// How many blocks are read ahead.
const BLOCKS: usize = 2;
/// How long to wait for a block until the signal is looked for.
const POLL: Duration = Duration::from_millis(20);

/// Returns the same bytes, which end as soon as the sign to stop is given. Somebody at a terminal may never write another line, so they are read
/// on a thread of their own.
///
/// # Errors
/// The system gives no thread.
pub(super) fn until(stop: Stop, mut input: Input) -> anyhow::Result<Input> {
    let (sender, blocks) = sync_channel(BLOCKS);
    let read = move || {
        loop {
            let mut block = vec![0; BLOCK_BYTES];
            let read = match input.read(&mut block) {
                Ok(0) => return,
                Ok(count) => {
                    block.truncate(count);
                    Ok(block)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_last = read.is_err();
            if sender.send(read).is_err() || is_last {
                return;
            }
        }
    };
    thread::Builder::new().name("input".to_owned()).spawn(read).context("no thread")?;
    Ok(BufReader::with_capacity(BLOCK_BYTES, Box::new(Blocks { stop, blocks, block: io::Cursor::default() })))
}

struct Blocks {
    stop: Stop,
    blocks: Receiver<io::Result<Vec<u8>>>,
    block: io::Cursor<Vec<u8>>,
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stop.is_given() {
                return Ok(0);
            }
            let count = self.block.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            match self.blocks.recv_timeout(POLL) {
                Ok(block) => self.block = io::Cursor::new(block?),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
    }
}
