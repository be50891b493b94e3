//! Files that are read on a thread of their own, before their items are wanted.
//!
//! The file is read while kernels run. A batch finds all that has arrived meanwhile, also more than a pipe holds. A
//! bounded queue of blocks is between the threads, so memory stays bounded where the reader is faster.

use crate::language::format::Decoder;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

/// Bytes of a block. It is more than a pipe holds, so that a pipe gives less when it has no more.
const BLOCK: usize = 1 << 17;
/// Blocks in the queue.
const BLOCKS: usize = 64;

/// Words of items, or the end of a file.
enum Block {
    Words(Vec<u8>),
    /// The end, and an error if the file cannot be read further.
    End(Decoder, Option<io::Error>),
}

/// A file that is read on a thread.
pub(super) struct Prefetch {
    blocks: Receiver<Block>,
    /// The file behind its end.
    ended: Option<Decoder>,
}

impl Prefetch {
    /// Begins to read a file. The thread ends with the file, or at the first block that nobody wants.
    pub(super) fn begin(file: Decoder) -> io::Result<Prefetch> {
        let (sender, blocks) = sync_channel(BLOCKS);
        thread::Builder::new().name("read".into()).spawn(move || read(file, &sender))?;
        Ok(Prefetch { blocks, ended: None })
    }

    /// Appends a block to some bytes. Returns `None` if `waits` is false and no block is ready, and `Some(0)` at the end.
    pub(super) fn append(&mut self, into: &mut Vec<u8>, waits: bool) -> io::Result<Option<usize>> {
        if self.ended.is_some() {
            return Ok(Some(0));
        }
        let block = match (waits, self.blocks.try_recv()) {
            (_, Ok(block)) => block,
            (false, Err(TryRecvError::Empty)) => return Ok(None),
            (true, Err(TryRecvError::Empty)) => self.blocks.recv().map_err(|_| stopped())?,
            (_, Err(TryRecvError::Disconnected)) => return Err(stopped()),
        };
        match block {
            Block::Words(words) => {
                into.extend_from_slice(&words);
                Ok(Some(words.len()))
            }
            Block::End(file, error) => {
                self.ended = Some(file);
                error.map_or(Ok(Some(0)), Err)
            }
        }
    }

    /// Returns the bytes in the file of the last partial item, as [`Decoder::partial_item`] does. Behind the end only.
    pub(super) fn partial_item(&self, words: (usize, usize)) -> (usize, usize) {
        self.ended.as_ref().map_or((0, words.1), |file| file.partial_item(words))
    }
}

fn stopped() -> io::Error {
    io::Error::other("the thread that reads it has stopped")
}

fn read(mut file: Decoder, blocks: &SyncSender<Block>) {
    let mut block = vec![0; BLOCK];
    let error = loop {
        match file.read(&mut block) {
            Ok(0) => break None,
            Ok(count) => {
                if blocks.send(Block::Words(block[..count].to_vec())).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Some(error),
        }
    };
    let _ = blocks.send(Block::End(file, error));
}
