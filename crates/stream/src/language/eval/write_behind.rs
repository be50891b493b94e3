//! Files that are written on a thread of their own, behind the computation.
//!
//! Items are written while the next ones are computed. A bounded queue of blocks is between the threads, so memory
//! stays bounded where the file is slower. An error shows at the next block, or at the end.

use crate::language::format::Encoder;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Blocks in the queue.
const BLOCKS: usize = 4;

/// A file that is written on a thread.
pub(super) struct WriteBehind {
    blocks: SyncSender<Vec<u8>>,
    /// The first error.
    failed: Arc<Mutex<Option<io::Error>>>,
    thread: JoinHandle<Encoder>,
}

impl WriteBehind {
    /// Begins to write a file.
    pub(super) fn begin(file: Encoder) -> io::Result<WriteBehind> {
        let (blocks, received) = sync_channel(BLOCKS);
        let failed = Arc::new(Mutex::new(None));
        let own = failed.clone();
        let thread = thread::Builder::new().name("write".into()).spawn(move || write(file, &received, &own))?;
        Ok(WriteBehind { blocks, failed, thread })
    }

    /// Hands over words of whole items.
    pub(super) fn write(&self, words: Vec<u8>) -> io::Result<()> {
        match self.blocks.send(words) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.error()),
        }
    }

    /// Waits until everything is written. Returns the file.
    pub(super) fn finish(self) -> io::Result<Encoder> {
        let WriteBehind { blocks, failed, thread } = self;
        drop(blocks);
        let file = thread.join().map_err(|_| stopped())?;
        match failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(file),
        }
    }

    fn error(&self) -> io::Error {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_else(stopped)
    }
}

fn stopped() -> io::Error {
    io::Error::other("the thread that writes it has stopped")
}

fn write(mut file: Encoder, blocks: &Receiver<Vec<u8>>, failed: &Mutex<Option<io::Error>>) -> Encoder {
    for words in blocks {
        if let Err(error) = file.write_all(&words) {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            break;
        }
    }
    file
}
