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

/// Spare chunks kept whatever is in use.
const SPARES: usize = 8;

/// That a timer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) deadline: u64,
    /// The timer's place in the slab.
    pub(super) index: u32,
    /// The timer's label there, as long as this record is the one that counts.
    pub(super) label: u32,
}

impl Record {
    const NONE: Record = Record { deadline: 0, index: NIL, label: 0 };
}

#[derive(Debug)]
pub(super) struct Chunk {
    /// The next one of the line; of a spare one, the next spare one.
    pub(super) next: u32,
    /// Records that it holds.
    pub(super) len: u32,
    pub(super) records: [Record; CHUNK],
}

#[derive(Debug)]
enum Cell {
    /// A number without a chunk, and the next such number.
    Free(u32),
    Held(Box<Chunk>),
}

#[derive(Debug)]
pub(super) struct Chunks {
    cells: Vec<Cell>,
    /// First of the numbers without a chunk.
    free: u32,
    /// First of the spare chunks.
    spare: u32,
    spares: usize,
    /// Chunks in lines.
    used: usize,
}

impl Chunks {
    pub(super) const fn new() -> Self {
        Self { cells: Vec::new(), free: NIL, spare: NIL, spares: 0, used: 0 }
    }

    pub(super) fn get(&self, number: u32) -> &Chunk {
        match &self.cells[number as usize] {
            Cell::Held(chunk) => chunk,
            Cell::Free(_) => unreachable!("chunk {number} was given back"),
        }
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Chunk {
        match &mut self.cells[number as usize] {
            Cell::Held(chunk) => chunk,
            Cell::Free(_) => unreachable!("chunk {number} was given back"),
        }
    }

    /// An empty chunk at the end of no line.
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
        let chunk = Box::new(Chunk { next: NIL, len: 0, records: [Record::NONE; CHUNK] });
        let number = self.free;
        if let Some(cell) = self.cells.get_mut(number as usize) {
            if let Cell::Free(next) = *cell {
                self.free = next;
            }
            *cell = Cell::Held(chunk);
            return number;
        }
        self.cells.push(Cell::Held(chunk));
        (self.cells.len() - 1) as u32
    }

    /// Takes a chunk back that is in no line any more.
    pub(super) fn give(&mut self, number: u32) {
        self.used -= 1;
        if self.spares < SPARES.max(self.used / 16) {
            let spare = self.spare;
            self.get_mut(number).next = spare;
            self.spare = number;
            self.spares += 1;
        } else {
            self.cells[number as usize] = Cell::Free(self.free);
            self.free = number;
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
            self.cells[number as usize] = Cell::Free(NIL);
        }
        self.spares = 0;
        while matches!(self.cells.last(), Some(Cell::Free(_))) {
            self.cells.pop();
        }
        self.cells.shrink_to_fit();
        self.free = NIL;
        for (number, cell) in self.cells.iter_mut().enumerate().rev() {
            if let Cell::Free(next) = cell {
                *next = self.free;
                self.free = number as u32;
            }
        }
    }

    /// Panics when the counts and lists are wrong; `used` is what the slots use.
    pub(super) fn check_invariants(&self, used: usize) {
        assert_eq!(self.used, used, "chunks in lines");
        let held = self.cells.iter().filter(|cell| matches!(cell, Cell::Held(_))).count();
        assert_eq!(held, self.used + self.spares, "chunks held");
        let (mut number, mut spares) = (self.spare, 0);
        while number != NIL {
            number = self.get(number).next;
            spares += 1;
            assert!(spares <= self.spares, "the list of spare chunks is a circle");
        }
        assert_eq!(spares, self.spares, "spare chunks");
        let (mut number, mut free) = (self.free, 0);
        while number != NIL {
            let Cell::Free(next) = self.cells[number as usize] else {
                panic!("free number {number} has a chunk");
            };
            number = next;
            free += 1;
            assert!(free <= self.cells.len() - held, "the list of free numbers is a circle");
        }
        assert_eq!(free, self.cells.len() - held, "free numbers");
    }
}
