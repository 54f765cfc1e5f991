//! What an attempt answered or printed: the first and the last bytes, and how many there were.
//!
//! [`OutputBuffer`] is written by the attempt and read by any number of others meanwhile, by
//! [`OutputBuffer::snapshot`] or as a [`Follower`]. What always holds: memory is bounded by
//! [`OutputLimits`] however much is written, the writer never waits for a reader, and head and
//! tail never overlap. What is deliberately absent: text. Bytes are kept as they came.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Bytes kept from the beginning. Default 64 KiB.
    pub head_bytes: usize,
    /// Bytes kept from the end. Default 64 KiB.
    pub tail_bytes: usize,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self { head_bytes: 64 * 1024, tail_bytes: 64 * 1024 }
    }
}

/// What was kept of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, beginning at [`Output::tail_offset`]; never bytes that `head` has.
    pub tail: Vec<u8>,
    /// How many bytes there were in all.
    pub total_bytes: u64,
}

impl Output {
    /// Whether bytes are missing.
    pub fn is_truncated(&self) -> bool {
        self.omitted_bytes() > 0
    }

    /// How many bytes are missing between head and tail.
    pub fn omitted_bytes(&self) -> u64 {
        self.tail_offset().saturating_sub(self.head.len() as u64)
    }

    /// Where the tail begins, counted from the first byte.
    pub fn tail_offset(&self) -> u64 {
        self.total_bytes.saturating_sub(self.tail.len() as u64)
    }

    /// As text: invalid UTF-8 as replacement characters, a note where bytes are missing.
    pub fn to_text_lossy(&self) -> String {
        if self.is_truncated() {
            format!(
                "{}\n… {} bytes left out …\n{}",
                String::from_utf8_lossy(&self.head),
                self.omitted_bytes(),
                String::from_utf8_lossy(&self.tail)
            )
        } else {
            // In one piece, since a character may lie on the seam.
            let whole = [self.head.as_slice(), self.tail.as_slice()].concat();
            String::from_utf8_lossy(&whole).into_owned()
        }
    }
}

/// An output that is being written. Cheap to clone; clones share one output.
#[derive(Clone)]
pub struct OutputBuffer {
    shared: Arc<Shared>,
}

struct Shared {
    limits: OutputLimits,
    state: Mutex<State>,
    progress: watch::Sender<Progress>,
}

#[derive(Default)]
struct State {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    total_bytes: u64,
    closed: bool,
}

impl OutputBuffer {
    /// An empty output.
    pub fn new(limits: OutputLimits) -> Self {
        Self {
            shared: Arc::new(Shared {
                limits,
                state: Mutex::default(),
                progress: watch::Sender::new(Progress::default()),
            }),
        }
    }

    /// Appends `bytes` and wakes the followers. O(bytes), never waits for a reader.
    pub fn push(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let total_bytes = {
            let mut state = self.lock();
            state.push(bytes, self.shared.limits);
            state.total_bytes
        };
        self.shared.progress.send_modify(|p| p.total_bytes = total_bytes);
    }

    /// Says that nothing more comes, which ends the followers. Closing twice is fine.
    pub fn close(&self) {
        self.shared.progress.send_modify(|p| p.closed = true);
    }

    /// Whether [`Self::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.shared.progress.borrow().closed
    }

    /// What is kept at this moment. Copies at most the limits.
    pub fn snapshot(&self) -> Output {
        let state = self.lock();
        Output {
            head: state.head.clone(),
            tail: state.tail.iter().copied().collect(),
            total_bytes: state.total_bytes,
        }
    }

    /// Follows the output from its first byte.
    pub fn subscribe(&self) -> Follower {
        self.subscribe_at(0)
    }

    /// Follows the output from byte `offset` on.
    pub fn subscribe_at(&self, offset: u64) -> Follower {
        Follower { buffer: self.clone(), progress: self.shared.progress.subscribe(), offset }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Bytes are appended by calls that do not panic halfway, so a poisoned lock is usable.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for OutputBuffer {
    fn default() -> Self {
        Self::new(OutputLimits::default())
    }
}

impl fmt::Debug for OutputBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputBuffer")
            .field("total_bytes", &self.lock().total_bytes)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl State {
    fn push(&mut self, bytes: &[u8], limits: OutputLimits) {
        self.total_bytes = self.total_bytes.saturating_add(bytes.len() as u64);
        let room = limits.head_bytes.saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(limits.tail_bytes)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(limits.tail_bytes);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// The kept bytes from `offset` on that are contiguous, and where they begin.
    fn kept_from(&self, offset: u64) -> (u64, Vec<u8>) {
        let head_end = self.head.len() as u64;
        let tail_start = self.total_bytes - self.tail.len() as u64;
        if offset < head_end {
            let mut bytes = self.head[offset as usize..].to_vec();
            if tail_start == head_end {
                bytes.extend(&self.tail);
            }
            (offset, bytes)
        } else {
            let start = offset.max(tail_start).min(self.total_bytes);
            let skip = (start - tail_start) as usize;
            (start, self.tail.range(skip..).copied().collect())
        }
    }
}

/// A piece of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Where it begins, counted from the first byte. Ahead of the end of the last chunk when the
    /// follower was slower than the limits allow for: what lies between is lost.
    pub offset: u64,
    /// The bytes, at least one, at most head and tail together.
    pub bytes: Vec<u8>,
}

/// Reads an output while it is written.
#[derive(Debug)]
pub struct Follower {
    buffer: OutputBuffer,
    progress: watch::Receiver<Progress>,
    offset: u64,
}

impl Follower {
    /// The next bytes, waiting for them; `None` when the output is closed and all was given.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<Chunk> {
        loop {
            // Taken before looking at the bytes, so that what comes in between is not slept over.
            let seen = *self.progress.borrow_and_update();
            if seen.total_bytes > self.offset {
                let (offset, bytes) = self.buffer.lock().kept_from(self.offset);
                if !bytes.is_empty() {
                    self.offset = offset + bytes.len() as u64;
                    return Some(Chunk { offset, bytes });
                }
                // Nothing of it was kept, as with limits of zero.
                self.offset = seen.total_bytes;
            }
            if seen.closed || self.progress.changed().await.is_err() {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn head_and_tail_of_anything(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..40),
            head_bytes in 0usize..50,
            tail_bytes in 0usize..50,
            from in 0u64..200,
        ) {
            let buffer = OutputBuffer::new(OutputLimits { head_bytes, tail_bytes });
            let mut all = Vec::new();
            for piece in &pieces {
                buffer.push(piece);
                all.extend_from_slice(piece);
            }
            let out = buffer.snapshot();
            prop_assert_eq!(out.total_bytes, all.len() as u64);
            let head = all.len().min(head_bytes);
            let tail = (all.len() - head).min(tail_bytes);
            prop_assert_eq!(&out.head, &all[..head]);
            prop_assert_eq!(&out.tail, &all[all.len() - tail..]);
            prop_assert_eq!(out.omitted_bytes(), (all.len() - head - tail) as u64);
            // A follower gives exactly what is kept from its offset on.
            buffer.close();
            let mut follower = buffer.subscribe_at(from);
            let mut given = Vec::new();
            let rt = tokio::runtime::Builder::new_current_thread().build().unwrap();
            rt.block_on(async {
                while let Some(chunk) = follower.next().await {
                    for (i, byte) in chunk.bytes.into_iter().enumerate() {
                        given.push((chunk.offset as usize + i, byte));
                    }
                }
            });
            let kept: Vec<(usize, u8)> = all.iter().copied().enumerate()
                .filter(|(i, _)| *i < head || *i >= all.len() - tail)
                .filter(|(i, _)| *i as u64 >= from)
                .collect();
            prop_assert_eq!(given, kept);
        }
    }

    #[tokio::test]
    async fn followers_see_writes_as_they_come() {
        let buffer = OutputBuffer::default();
        let mut early = buffer.subscribe();
        buffer.push(b"one ");
        assert_eq!(early.next().await.unwrap().bytes, b"one ");
        let next = tokio::spawn(async move { (early.next().await, early) });
        buffer.push(b"two");
        let (chunk, mut early) = next.await.unwrap();
        assert_eq!(chunk, Some(Chunk { offset: 4, bytes: b"two".to_vec() }));
        buffer.close();
        assert_eq!(early.next().await, None);
        let mut late = buffer.subscribe_at(2);
        assert_eq!(late.next().await.unwrap().bytes, b"e two");
        assert_eq!(late.next().await, None);
    }

    #[test]
    fn text_is_lossy_and_whole_across_the_seam() {
        let limits = OutputLimits { head_bytes: 1, tail_bytes: 3 };
        let buffer = OutputBuffer::new(limits);
        buffer.push("éa".as_bytes());
        assert_eq!(buffer.snapshot().to_text_lossy(), "éa");
        buffer.push(b"\xffxy");
        assert_eq!(buffer.snapshot().to_text_lossy(), "\u{fffd}\n… 2 bytes left out …\n\u{fffd}xy");
    }
}
