//! One ring of 256 slots, and which of them hold records.
//!
//! Always: a slot's bit is set exactly when its line is not empty.

use super::chunks::{CHUNK, Chunks, Record};
use super::place::SLOTS;
use crate::bitmap::Bitmap256;
use crate::slab::NIL;

pub(super) struct Level {
    pub(super) occupied: Bitmap256,
    pub(super) slots: [Slot; SLOTS],
}

/// The line of records of one slot, in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// The first chunk.
    pub(super) head: u32,
    /// The last chunk.
    pub(super) tail: u32,
    /// The first record of the first chunk that is still in line.
    pub(super) first: u32,
    /// Records in the last chunk. What the chunk itself says counts only when another is behind
    /// it, so adding a record touches one cache line of the chunk. As without chunks nothing can
    /// be added to one, an empty line counts as full.
    pub(super) tail_len: u32,
    /// Records in the chunks before the last one, those that have left the line included.
    pub(super) before: usize,
    /// No deadline in the line is earlier. `u64::MAX` for an empty line.
    pub(super) min: u64,
}

const FULL: u32 = CHUNK as u32;

impl Slot {
    pub(super) const EMPTY: Self =
        Self { head: NIL, tail: NIL, first: 0, tail_len: FULL, before: 0, min: u64::MAX };

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// Records in line.
    #[inline]
    pub(super) fn count(&self) -> usize {
        if self.is_empty() { 0 } else { self.before + self.tail_len as usize - self.first as usize }
    }

    /// Adds a record at the end of the line. Answers whether it is the first.
    #[inline(always)]
    fn push(&mut self, chunks: &mut Chunks, record: Record) -> bool {
        // Rarely true: testing first saves a write.
        if record.deadline < self.min {
            self.min = record.deadline;
        }
        if self.tail_len == FULL {
            return self.push_chunk(chunks, record);
        }
        chunks.get_mut(self.tail).records[self.tail_len as usize] = record;
        self.tail_len += 1;
        false
    }

    /// Adds a record that begins a chunk.
    #[inline(never)]
    fn push_chunk(&mut self, chunks: &mut Chunks, record: Record) -> bool {
        let fresh = chunks.take();
        let first = self.tail == NIL;
        if first {
            (self.head, self.first) = (fresh, 0);
        } else {
            let before = chunks.get_mut(self.tail);
            (before.next, before.len) = (fresh, FULL);
            self.before += CHUNK;
        }
        (self.tail, self.tail_len) = (fresh, 1);
        chunks.get_mut(fresh).records[0] = record;
        first
    }

    /// Tells the last chunk how many records it has.
    #[inline]
    pub(super) fn settle(&self, chunks: &mut Chunks) {
        if self.tail != NIL {
            chunks.get_mut(self.tail).len = self.tail_len;
        }
    }

    /// The records of a chunk of the line, and the number of the next one.
    #[inline]
    fn piece<'a>(&self, chunks: &'a Chunks, number: u32) -> (&'a [Record], u32) {
        let chunk = chunks.get(number);
        let (len, next) =
            if number == self.tail { (self.tail_len, NIL) } else { (chunk.len, chunk.next) };
        (&chunk.records[..len as usize], next)
    }

    /// The first record in line.
    #[inline]
    pub(super) fn front(&self, chunks: &Chunks) -> Option<Record> {
        if self.head == NIL {
            return None;
        }
        Some(chunks.get(self.head).records[self.first as usize])
    }

    /// Takes so many records of the first chunk out of the line. Answers whether that emptied the
    /// chunk.
    #[inline]
    fn pop(&mut self, chunks: &mut Chunks, count: usize) -> bool {
        self.first += count as u32;
        let (records, next) = self.piece(chunks, self.head);
        let len = records.len();
        if (self.first as usize) < len {
            return false;
        }
        chunks.give(self.head);
        if next == NIL {
            *self = Self::EMPTY;
        } else {
            (self.head, self.first) = (next, 0);
            self.before -= len;
        }
        true
    }

    /// The records in line, chunk by chunk.
    pub(super) fn pieces(self, chunks: &Chunks) -> impl Iterator<Item = &[Record]> + Clone {
        let (mut number, mut first) = (self.head, self.first as usize);
        core::iter::from_fn(move || {
            if number == NIL {
                return None;
            }
            let (records, next) = self.piece(chunks, number);
            let piece = &records[first..];
            (number, first) = (next, 0);
            Some(piece)
        })
    }

    /// The records in line.
    pub(super) fn records(self, chunks: &Chunks) -> impl Iterator<Item = Record> {
        self.pieces(chunks).flatten().copied()
    }
}

impl Level {
    pub(super) const EMPTY: Self = Self { occupied: Bitmap256::EMPTY, slots: [Slot::EMPTY; SLOTS] };

    #[inline]
    pub(super) fn slot(&self, slot: u8) -> &Slot {
        &self.slots[usize::from(slot)]
    }

    /// Adds a record at the end of a slot's line. Answers whether it is the first there.
    #[inline(always)]
    pub(super) fn push(&mut self, slot: u8, chunks: &mut Chunks, record: Record) -> bool {
        let first = self.slots[usize::from(slot)].push(chunks, record);
        if first {
            self.occupied.insert(slot);
        }
        first
    }

    /// Takes so many records of the first chunk of a slot out of its line. Answers whether that
    /// emptied the chunk.
    #[inline]
    pub(super) fn pop(&mut self, slot: u8, chunks: &mut Chunks, count: usize) -> bool {
        let line = &mut self.slots[usize::from(slot)];
        let emptied = line.pop(chunks, count);
        if emptied && line.is_empty() {
            self.occupied.remove(slot);
        }
        emptied
    }

    /// Forgets what a slot holds.
    pub(super) fn empty(&mut self, slot: u8) {
        self.slots[usize::from(slot)] = Slot::EMPTY;
        self.occupied.remove(slot);
    }

    /// Panics when something is wrong; answers how many chunks and records there are.
    pub(super) fn check_invariants(&self, chunks: &Chunks) -> (usize, usize) {
        self.occupied.check_invariants();
        let (mut used, mut records) = (0, 0);
        for (number, slot) in self.slots.iter().enumerate() {
            let occupied = self.occupied.contains(number as u8);
            assert_eq!(occupied, !slot.is_empty(), "bit and line of slot {number} disagree");
            if slot.is_empty() {
                assert_eq!(*slot, Slot::EMPTY, "slot {number}");
                continue;
            }
            let first = slot.piece(chunks, slot.head).0.len();
            assert!((slot.first as usize) < first, "first record of slot {number}");
            assert_eq!(slot.records(chunks).count(), slot.count(), "records of slot {number}");
            assert!(
                slot.records(chunks).all(|record| record.deadline >= slot.min),
                "bound of slot {number}"
            );
            let (mut chunk, mut last) = (slot.head, NIL);
            while chunk != NIL {
                let (records, next) = slot.piece(chunks, chunk);
                assert!(!records.is_empty(), "empty chunk in slot {number}");
                (last, chunk) = (chunk, next);
                used += 1;
            }
            assert_eq!(slot.tail, last, "end of slot {number}");
            records += slot.count();
        }
        (used, records)
    }
}
