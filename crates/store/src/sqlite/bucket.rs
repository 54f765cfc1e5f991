//! Where a scheduled task waits in the outermost wheel: its bucket, [`BUCKET`] wide, and a finer
//! slot where the bucket is dense.
//!
//! The slots are an index of (bucket, slot, sequence) over the tasks of all shards. Coarse slots
//! are what makes inserting cheap: tasks due at random within a day go to the ends of 288 runs, so
//! a batch changes about as many pages of the index and not one for each of its tasks. But what
//! shares a slot is in no order of due time, so to have the first few of a slot all of it is read.
//! So, as in any hierarchical wheel, what is dense is divided: when a bucket got [`DENSE`] tasks,
//! further ones go to the slots of their seconds; when such a second got as many, to those of
//! their instants. In the slot of an instant the tasks are in order, so that ten million tasks due
//! at noon sharp are read a few at a time.
//!
//! Where a task went is a column of its row. How dense slots are is remembered in bounded memory
//! and forgotten when the store is closed: it decides what reading costs, never what is found.

use std::ops::ControlFlow;

use rusqlite::{Connection, Row};

use crate::error::StoreError;
use crate::id::Seq;
use crate::store::{BUCKET, Edge};
use crate::time::{SECOND, Time};

use super::readers::Reader;

/// Tasks that go to one slot before further ones go to finer slots. Few in tests, so that each of
/// them meets all kinds of slots.
pub(super) const DENSE: u32 = if cfg!(test) { 24 } else { 65_536 };

/// Buckets whose density is remembered: of buckets this far apart, the latest counts.
const REMEMBERED: usize = 4_096;

/// Rows of a bucket that are read in one snapshot at least.
const PIECE: i64 = if cfg!(test) { 100 } else { 20_000 };

const SECONDS: usize = (BUCKET / SECOND) as usize;

/// Fine slots of one second: one for the whole of it and one for each microsecond.
const OF_SECOND: i64 = 1 + SECOND;

/// The bucket in which a time lies: buckets since 1970.
pub(super) fn bucket_of(time: Time) -> i64 {
    time.0.div_euclid(BUCKET)
}

/// A slot. Within a bucket, `fine` is 0 for all of it; from 1 on, each second has a slot for all
/// of it, followed by those of its instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) bucket: i64,
    pub(super) fine: i64,
}

impl Slot {
    fn whole_bucket(due: Time) -> Slot {
        Slot { bucket: bucket_of(due), fine: 0 }
    }

    fn whole_second(due: Time) -> Slot {
        let second = due.0.rem_euclid(BUCKET) / SECOND;
        Slot { bucket: bucket_of(due), fine: 1 + second * OF_SECOND }
    }

    fn instant(due: Time) -> Slot {
        let second = Slot::whole_second(due);
        Slot { fine: second.fine + 1 + due.0.rem_euclid(SECOND), ..second }
    }

    /// Whether all tasks in it are due at the same instant, so that they are in order.
    pub(super) fn is_instant(self) -> bool {
        self.fine > 0 && (self.fine - 1) % OF_SECOND > 0
    }

    /// The first instant that belongs to it. All that lies in later slots of the bucket, but the
    /// one of the whole bucket, is due at this instant or after it.
    pub(super) fn start(self) -> Time {
        let bucket = Time(self.bucket.saturating_mul(BUCKET));
        if self.fine == 0 {
            return bucket;
        }
        let (second, within) = ((self.fine - 1) / OF_SECOND, (self.fine - 1) % OF_SECOND);
        bucket.plus(second * SECOND + (within - 1).max(0))
    }
}

/// How many tasks went to which slots since the store was opened.
#[derive(Debug)]
pub(super) struct Density {
    buckets: Vec<OfBucket>,
}

#[derive(Debug, Clone, Default)]
struct OfBucket {
    bucket: i64,
    whole: u32,
    /// By second, once the bucket is dense.
    seconds: Option<Box<[u32; SECONDS]>>,
}

impl Default for Density {
    fn default() -> Density {
        Density { buckets: vec![OfBucket::default(); REMEMBERED] }
    }
}

impl Density {
    /// The slot for a task that becomes scheduled for this time.
    pub(super) fn place(&mut self, due: Time) -> Slot {
        let bucket = bucket_of(due);
        let known = &mut self.buckets[bucket.rem_euclid(REMEMBERED as i64) as usize];
        if known.bucket != bucket {
            *known = OfBucket { bucket, ..OfBucket::default() };
        }
        if known.whole < DENSE {
            known.whole += 1;
            return Slot::whole_bucket(due);
        }
        let seconds = known.seconds.get_or_insert_with(|| Box::new([0; SECONDS]));
        let second = &mut seconds[(due.0.rem_euclid(BUCKET) / SECOND) as usize];
        if *second < DENSE {
            *second += 1;
            return Slot::whole_second(due);
        }
        Slot::instant(due)
    }
}

/// A place in the order in which tasks become due.
pub(super) type Place = (Time, Seq);

/// The first few, by place, of what is put into it.
#[derive(Debug)]
pub(super) struct First<T> {
    room: usize,
    found: Vec<(Place, T)>,
    /// Nothing after this is among them.
    bound: Option<Place>,
}

impl<T> First<T> {
    /// Of which the first `room` are kept, 1 or more.
    pub(super) fn new(room: usize) -> First<T> {
        First { room: room.max(1), found: Vec::new(), bound: None }
    }

    /// Puts one in. Takes constant time on average.
    pub(super) fn put(&mut self, place: Place, entry: T) {
        if self.is_beyond(place) {
            return;
        }
        self.found.push((place, entry));
        if self.found.len() >= self.room.saturating_mul(2).max(1_024) {
            self.trim();
        }
    }

    /// Whether it is known that nothing from this place on is among them.
    pub(super) fn is_beyond(&self, place: Place) -> bool {
        self.bound.is_some_and(|bound| place > bound)
    }

    /// Whether there are enough of them before this time.
    pub(super) fn is_full_before(&mut self, time: Time) -> bool {
        if self.found.len() >= self.room {
            self.trim();
        }
        self.bound.is_some_and(|bound| bound.0 < time)
    }

    fn trim(&mut self) {
        self.found.select_nth_unstable_by_key(self.room - 1, |entry| entry.0);
        self.found.truncate(self.room);
        self.bound = self.found.last().map(|entry| entry.0);
    }

    /// In order.
    pub(super) fn into_sorted(mut self) -> Vec<(Place, T)> {
        self.found.sort_unstable_by_key(|entry| entry.0);
        self.found.truncate(self.room);
        self.found
    }
}

/// Whether a walk over a bucket goes on.
pub(super) type Walk = Result<ControlFlow<()>, StoreError>;

/// What is selected of each row of a bucket: the sequence first, and these columns.
pub(super) struct Columns {
    /// Their names; the slot is added to them.
    pub(super) names: &'static str,
    /// How many they are.
    pub(super) count: usize,
}

impl Reader {
    /// Shows the tasks of a bucket, slot by slot, until it is told to stop. Of those that are not
    /// after `after`, as few as the slots allow. Gives its snapshot up on the way.
    pub(super) fn walk_bucket(
        &mut self,
        columns: &Columns,
        (bucket, overdue): (i64, bool),
        after: Edge,
        show: &mut impl FnMut(&Row<'_>, Slot) -> Walk,
    ) -> Result<(), StoreError> {
        let sql = format!(
            "SELECT {}, fine FROM tasks INDEXED BY tasks_due
             WHERE state = 0 AND overdue = ?1 AND bucket = ?2 AND (fine, seq) > (?3, ?4)
                 AND fine <= ?5
             ORDER BY fine, seq LIMIT {PIECE}",
            columns.names
        );
        let mut ranges = vec![(0, i64::MIN, 0)];
        if bucket_of(after.due) == bucket {
            let second = Slot::whole_second(after.due).fine;
            ranges.push((second, i64::MIN, second));
            ranges.push((Slot::instant(after.due).fine, after.seq.0, i64::MAX));
        } else {
            ranges.push((1, i64::MIN, i64::MAX));
        }
        for (mut fine, mut seq, last) in ranges {
            loop {
                let mut read = 0;
                let mut select = self.conn.prepare_cached(&sql)?;
                let mut rows = select.query((overdue, bucket, fine, seq, last))?;
                while let Some(row) = rows.next()? {
                    read += 1;
                    (seq, fine) = (row.get(0)?, row.get(columns.count)?);
                    if show(row, Slot { bucket, fine })?.is_break() {
                        return Ok(());
                    }
                }
                drop(rows);
                drop(select);
                if read < PIECE {
                    break;
                }
                self.renew()?;
            }
        }
        Ok(())
    }
}

/// The first bucket at or after `from` in which tasks are scheduled.
pub(super) fn next_bucket(
    conn: &Connection,
    overdue: bool,
    from: i64,
) -> Result<Option<i64>, StoreError> {
    let mut select = conn.prepare_cached(
        "SELECT min(bucket) FROM tasks INDEXED BY tasks_due
         WHERE state = 0 AND overdue = ?1 AND bucket >= ?2",
    )?;
    Ok(select.query_row((overdue, from), |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_holds_its_time_and_begins_no_later() {
        for due in [0, 1, 59_999_999, 60_000_000, -1, -60_000_000, 1_780_000_000_123_456] {
            let due = Time(due);
            let slots = [Slot::whole_bucket(due), Slot::whole_second(due), Slot::instant(due)];
            assert!(slots.is_sorted_by_key(|slot| (slot.start(), slot.fine)), "{due:?}");
            assert!(slots.iter().all(|slot| slot.bucket == bucket_of(due)));
            assert!(slots[1].start() <= due && due < slots[1].start().plus(SECOND));
            assert_eq!(slots[2].start(), due);
            assert_eq!(slots.map(Slot::is_instant), [false, false, true]);
            let next = Slot::whole_second(due.plus(SECOND));
            assert!(next.bucket > bucket_of(due) || next.fine > slots[2].fine);
        }
        for end in [Time::MIN, Time::MAX] {
            assert_eq!(Slot::instant(end).bucket, bucket_of(end));
        }
    }

    #[test]
    fn what_is_dense_is_divided() {
        let mut density = Density::default();
        let noon = Time(1_780_000_200_000_000);
        let mut slots = |due: Time, n: u32| (0..n).fold(None, |_, _| Some(density.place(due)));
        assert_eq!(slots(noon, DENSE), Some(Slot::whole_bucket(noon)));
        assert_eq!(slots(noon, DENSE), Some(Slot::whole_second(noon)));
        assert_eq!(slots(noon, 9), Some(Slot::instant(noon)));
        let later = noon.plus(SECOND);
        assert_eq!(slots(later, 1), Some(Slot::whole_second(later)), "its second is not dense");
        let other = noon.plus(BUCKET);
        assert_eq!(slots(other, 1), Some(Slot::whole_bucket(other)), "its bucket is not dense");
    }

    #[test]
    fn the_first_few_are_kept_whatever_the_order() {
        for room in [1, 7, 2_000, 9_000] {
            let mut first = First::new(room);
            let places = (0..5_000).map(|n| (Time(n * 2_741 % 5_000), Seq(n)));
            places.clone().for_each(|place| first.put(place, ()));
            let mut wanted: Vec<Place> = places.collect();
            wanted.sort();
            wanted.truncate(room);
            let last = wanted[wanted.len() - 1];
            assert_eq!(first.is_full_before(last.0.plus(1)), room < 5_000);
            assert!(!first.is_full_before(last.0));
            let kept: Vec<Place> = first.into_sorted().into_iter().map(|e| e.0).collect();
            assert_eq!(kept, wanted);
        }
    }
}
