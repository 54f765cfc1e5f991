//! The memory of the slots: chunks of records, each a piece of one slot's line.
//!
//! A record says when a timer is due and where it is kept, in 16 bytes; a line of chunks is read
//! as a stream, where a list through the timers would be a chain of cache misses. Always: a chunk
//! is in one slot's line, or among a few kept spare, or has given its memory back.

use crate::slab::NIL;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Records of a chunk: as many as go into a kilobyte.
pub(super) const CHUNK: usize = 63;

/// Records of a cache line.
const LINE: usize = 64 / size_of::<Record>();

/// Spare chunks kept whatever is in use.
const SPARES: usize = 8;

/// That a timer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) deadline: u64,
    /// The timer's place in the slab (low half), and its label there (high half) as long as this
    /// record is the one that counts. One number, so that a record travels in two registers.
    name: u64,
}

impl Record {
    pub(super) const NONE: Record = Record::new(0, NIL, 0);

    #[inline]
    pub(super) const fn new(deadline: u64, index: u32, label: u32) -> Self {
        Self { deadline, name: (label as u64) << 32 | index as u64 }
    }

    /// The timer's place in the slab.
    #[inline]
    pub(super) const fn index(self) -> u32 {
        self.name as u32
    }

    /// The timer's label there, as long as this record is the one that counts.
    #[inline]
    pub(super) const fn label(self) -> u32 {
        (self.name >> 32) as u32
    }
}

#[derive(Debug)]
pub(super) struct Chunk {
    /// The next one of the line; of a spare one, the next spare one.
    pub(super) next: u32,
    /// Records that it holds.
    pub(super) len: u32,
    pub(super) records: [Record; CHUNK],
}

impl Chunk {
    /// Reads a word of each cache line. None of the reads waits for another, so a chunk that was
    /// not looked at for long comes from memory all at once.
    #[inline]
    pub(super) fn fetch(&self) {
        let words = self.records.iter().step_by(LINE).fold(0, |sum, record| sum ^ record.name);
        core::hint::black_box(words);
    }
}

#[derive(Debug)]
pub(super) struct Chunks {
    /// By number; none where the memory was given back.
    cells: Vec<Option<Box<Chunk>>>,
    /// The numbers without a chunk.
    free: Vec<u32>,
    /// First of the spare chunks.
    spare: u32,
    spares: usize,
    /// Chunks in lines.
    used: usize,
}

impl Chunks {
    pub(super) const fn new() -> Self {
        Self { cells: Vec::new(), free: Vec::new(), spare: NIL, spares: 0, used: 0 }
    }

    /// How many chunks the table has numbers for.
    pub(super) fn numbers(&self) -> usize {
        self.cells.len()
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> &Chunk {
        match &self.cells[number as usize] {
            Some(chunk) => chunk,
            None => unreachable!("chunk {number} is not here"),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> &mut Chunk {
        match &mut self.cells[number as usize] {
            Some(chunk) => chunk,
            None => unreachable!("chunk {number} is not here"),
        }
    }

    /// Takes a chunk out for a while, so that its records can be read while others are written.
    #[inline]
    pub(super) fn lift(&mut self, number: u32) -> Box<Chunk> {
        match self.cells[number as usize].take() {
            Some(chunk) => chunk,
            None => unreachable!("chunk {number} is not here"),
        }
    }

    /// Puts a chunk back that was taken out.
    #[inline]
    pub(super) fn put_back(&mut self, number: u32, chunk: Box<Chunk>) {
        self.cells[number as usize] = Some(chunk);
    }

    /// An empty chunk at the end of no line.
    #[inline]
    pub(super) fn take(&mut self) -> u32 {
        self.used += 1;
        if self.spare != NIL {
            let number = self.spare;
            self.spares -= 1;
            let chunk = self.get_mut(number);
            let next = chunk.next;
            (chunk.next, chunk.len) = (NIL, 0);
            self.spare = next;
            return number;
        }
        self.add()
    }

    #[cold]
    fn add(&mut self) -> u32 {
        let chunk = Box::new(Chunk { next: NIL, len: 0, records: [Record::NONE; CHUNK] });
        if let Some(number) = self.free.pop() {
            self.cells[number as usize] = Some(chunk);
            return number;
        }
        self.cells.push(Some(chunk));
        (self.cells.len() - 1) as u32
    }

    /// Takes a chunk back that is in no line any more.
    #[inline]
    pub(super) fn give(&mut self, number: u32) {
        self.used -= 1;
        if self.spares < SPARES.max(self.used / 16) {
            let spare = self.spare;
            self.get_mut(number).next = spare;
            self.spare = number;
            self.spares += 1;
        } else {
            self.cells[number as usize] = None;
            self.free.push(number);
        }
    }

    /// Takes a whole line back.
    pub(super) fn give_line(&mut self, mut number: u32) {
        while number != NIL {
            let next = self.get(number).next;
            self.give(number);
            number = next;
        }
    }

    /// Gives the memory of the spare chunks back, and the tail of the table.
    pub(super) fn compact(&mut self) {
        while self.spare != NIL {
            let number = self.spare;
            self.spare = self.get(number).next;
            self.cells[number as usize] = None;
        }
        self.spares = 0;
        while matches!(self.cells.last(), Some(None)) {
            self.cells.pop();
        }
        self.cells.shrink_to_fit();
        // The lowest numbers last, so that they are used first and the table's tail can shrink
        // again.
        let without = self.cells.iter().enumerate().rev().filter(|(_, cell)| cell.is_none());
        self.free = without.map(|(number, _)| number as u32).collect();
    }

    /// Panics when the counts and lists are wrong; `used` is what the slots use.
    pub(super) fn check_invariants(&self, used: usize) {
        assert_eq!(self.used, used, "chunks in lines");
        let held = self.cells.iter().flatten().count();
        assert_eq!(held, self.used + self.spares, "chunks held");
        let (mut number, mut spares) = (self.spare, 0);
        while number != NIL {
            number = self.get(number).next;
            spares += 1;
            assert!(spares <= self.spares, "the list of spare chunks is a circle");
        }
        assert_eq!(spares, self.spares, "spare chunks");
        assert_eq!(self.free.len(), self.cells.len() - held, "free numbers");
        for number in &self.free {
            assert!(self.cells[*number as usize].is_none(), "free number {number} has a chunk");
        }
    }
}
