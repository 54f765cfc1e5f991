//! Storage for timers: stable indices, entries reused at once, memory given back.
//!
//! Entries live in pages of 256. Growing adds a page and copies nothing, so no insertion
//! pays for a doubling. Freeing the last entry of a page frees the page, except for one that is
//! kept so that a population swinging around a page's edge does not allocate each time.
//! Always: an index stays with its item until the item is removed; the vacant entries of a page
//! form one list; each page that has some is listed once among those with room. A page that was
//! filled stays listed until it comes to the end of that list, so that a slab in which one item
//! goes for each that comes does not list and unlist a page each time.
//! It deliberately never moves an item, so one long-lived item keeps its page.

use crate::Key;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU32;

/// No index: the end of a list.
pub(crate) const NIL: u32 = u32::MAX;

const PAGE_BITS: u32 = 8;
const PAGE_ENTRIES: usize = 1 << PAGE_BITS;
/// One page short of what `u32` can number, so that no index equals `NIL`.
const PAGES_MAX: usize = (1 << (32 - PAGE_BITS)) - 1;
/// No entry of the page is vacant.
const FULL: u16 = u16::MAX;

/// Items named by [`Key`]s, each with a label of four bytes for the owner's use; the label lies
/// in what would otherwise be padding.
pub(crate) struct Slab<E> {
    pages: Vec<Page<E>>,
    len: usize,
    /// Pages that hold entries.
    held: usize,
    /// The generation given out last.
    generation: u32,
    /// The page that is tried first: where an entry became vacant last, since it is in the cache.
    open: u32,
    /// The pages with a vacant entry, and some that have none any more or were given back. The
    /// last is used first.
    room: Vec<u32>,
    /// A page without items that is kept allocated.
    spare: u32,
    /// The page numbers whose memory has been given back. The last is used first.
    released: Vec<u32>,
}

struct Page<E> {
    entries: Option<Box<[Entry<E>; PAGE_ENTRIES]>>,
    state: State,
    /// Whether it is in `room`.
    listed: bool,
}

/// How many items a page has (upper half) and its first vacant entry (lower half). One number, so
/// that a change is one write: what bounds insertion and removal is how many writes the processor
/// can keep back while one of them waits for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State(u32);

impl State {
    const ONE: u32 = 1 << 16;
    /// No entries, hence none vacant.
    const RELEASED: Self = Self(FULL as u32);
    /// All entries vacant.
    const VACANT: Self = Self(0);

    #[inline]
    const fn live(self) -> u32 {
        self.0 >> 16
    }

    /// The first vacant entry, or `FULL`.
    #[inline]
    const fn free(self) -> u16 {
        self.0 as u16
    }

    /// One item more, and what is the first vacant entry then.
    #[inline]
    const fn add(self, free: u16) -> Self {
        Self(((self.0 & !(FULL as u32)) + Self::ONE) | free as u32)
    }

    /// One item less; its entry is the first vacant one.
    #[inline]
    const fn sub(self, free: u16) -> Self {
        Self(((self.0 & !(FULL as u32)) - Self::ONE) | free as u32)
    }
}

enum Entry<E> {
    Vacant { next: u16 },
    Occupied { generation: NonZeroU32, label: u32, item: E },
}

#[inline]
const fn split(index: u32) -> (usize, usize) {
    ((index >> PAGE_BITS) as usize, index as usize % PAGE_ENTRIES)
}

impl<E> Slab<E> {
    pub(crate) const fn new() -> Self {
        Self {
            pages: Vec::new(),
            len: 0,
            held: 0,
            generation: 0,
            open: 0,
            room: Vec::new(),
            spare: NIL,
            released: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many pages the table has numbers for.
    pub(crate) fn pages(&self) -> usize {
        self.pages.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.held * PAGE_ENTRIES
    }

    /// Stores an item. O(1).
    ///
    /// Panics when 2^32 - 256 entries are in use.
    #[inline]
    pub(crate) fn insert(&mut self, label: u32, item: E) -> Key {
        self.insert_with(item, |_| label)
    }

    /// Stores an item under a label that depends on its key. O(1).
    ///
    /// Panics as [`insert`](Self::insert).
    #[inline(always)]
    pub(crate) fn insert_with(&mut self, item: E, label: impl FnOnce(Key) -> u32) -> Key {
        let number = match self.pages.get(self.open as usize) {
            Some(page) if page.state.free() != FULL => self.open,
            _ => self.find_room(),
        };
        let generation = self.next_generation();
        let page = &mut self.pages[number as usize];
        let state = page.state;
        if state.live() == 0 {
            self.spare = NIL;
        }
        let offset = state.free();
        let entry = &mut entries_mut(page)[usize::from(offset) % PAGE_ENTRIES];
        let Entry::Vacant { next } = *entry else {
            unreachable!("the free list of page {number} leads to a used entry");
        };
        let key = Key::new(number << PAGE_BITS | u32::from(offset), generation);
        *entry = Entry::Occupied { generation, label: label(key), item };
        page.state = state.add(next);
        self.len += 1;
        key
    }

    /// Removes the item at an index that is in use. O(1).
    #[inline]
    pub(crate) fn remove_at(&mut self, index: u32) -> (Key, u32, E) {
        match self.remove_when(index, |_, _| true) {
            Some(removed) => removed,
            None => unreachable!("entry {index} is not in use"),
        }
    }

    /// Removes the item of a key; `None` for a stale one. O(1).
    #[inline]
    pub(crate) fn remove(&mut self, key: Key) -> Option<E> {
        let generation = key.generation();
        let (_, _, item) = self.remove_when(key.index(), |there, _| there.get() == generation)?;
        Some(item)
    }

    /// Removes the item at an index if it is in use under this label. O(1).
    #[inline]
    pub(crate) fn remove_labelled(&mut self, index: u32, label: u32) -> Option<(Key, E)> {
        let (key, _, item) = self.remove_when(index, |_, there| there == label)?;
        Some((key, item))
    }

    #[inline(always)]
    fn remove_when(
        &mut self,
        index: u32,
        wanted: impl FnOnce(NonZeroU32, u32) -> bool,
    ) -> Option<(Key, u32, E)> {
        let (number, offset) = split(index);
        let page = self.pages.get_mut(number)?;
        let entry = &mut page.entries.as_mut()?[offset];
        match entry {
            Entry::Occupied { generation, label, .. } if wanted(*generation, *label) => {}
            _ => return None,
        }
        let next = page.state.free();
        let Entry::Occupied { generation, label, item } =
            core::mem::replace(entry, Entry::Vacant { next })
        else {
            unreachable!("entry {index} was in use just now");
        };
        page.state = page.state.sub(offset as u16);
        self.len -= 1;
        self.open = number as u32;
        if !page.listed {
            page.listed = true;
            self.room.push(number as u32);
        }
        if page.state.live() == 0 {
            self.emptied(number as u32);
        }
        Some((Key::new(index, generation), label, item))
    }

    /// The last item of a page was removed.
    #[cold]
    fn emptied(&mut self, number: u32) {
        if self.spare == NIL {
            self.spare = number;
        } else {
            self.release(number);
        }
    }

    /// Whether the index is in use under this label, with an item that is as wanted.
    #[inline]
    pub(crate) fn holds(&self, index: u32, wanted: u32, check: impl FnOnce(&E) -> bool) -> bool {
        match self.entry(index) {
            Some(Entry::Occupied { label, item, .. }) => (*label == wanted) & check(item),
            _ => false,
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<&E> {
        match self.entry(key.index())? {
            Entry::Occupied { generation, item, .. } if generation.get() == key.generation() => {
                Some(item)
            }
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut E> {
        let (number, offset) = split(key.index());
        match &mut self.pages.get_mut(number)?.entries.as_mut()?[offset] {
            Entry::Occupied { generation, item, .. } if generation.get() == key.generation() => {
                Some(item)
            }
            _ => None,
        }
    }

    /// The key, label and item at an index that is in use.
    pub(crate) fn at(&self, index: u32) -> (Key, u32, &E) {
        match self.entry(index) {
            Some(Entry::Occupied { generation, label, item }) => {
                (Key::new(index, *generation), *label, item)
            }
            _ => unreachable!("entry {index} is not in use"),
        }
    }

    /// The label and item at an index that is in use, to be changed.
    pub(crate) fn at_mut(&mut self, index: u32) -> (&mut u32, &mut E) {
        let (number, offset) = split(index);
        match &mut entries_mut(&mut self.pages[number])[offset] {
            Entry::Occupied { label, item, .. } => (label, item),
            Entry::Vacant { .. } => unreachable!("entry {index} is not in use"),
        }
    }

    /// The keys and items, in the order of storage. O(capacity).
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &E)> {
        let pages = self.pages.iter().enumerate();
        pages.flat_map(|(number, page)| {
            let entries = page.entries.iter().flat_map(|entries| entries.iter()).enumerate();
            entries.filter_map(move |(offset, entry)| match entry {
                Entry::Occupied { generation, item, .. } => {
                    Some((Key::new((number << PAGE_BITS | offset) as u32, *generation), item))
                }
                Entry::Vacant { .. } => None,
            })
        })
    }

    /// Takes all items out, page by page, giving the memory of each page back when done with
    /// it. Generations go on from where they are.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = (Key, E)> + use<E> {
        let generation = self.generation;
        let taken = core::mem::replace(self, Self { generation, ..Self::new() });
        taken.pages.into_iter().enumerate().flat_map(|(number, page)| {
            let entries = page.entries.map(|entries| (entries as Box<[Entry<E>]>).into_vec());
            entries.into_iter().flatten().enumerate().filter_map(move |(offset, entry)| match entry
            {
                Entry::Occupied { generation, item, .. } => {
                    let index = (number << PAGE_BITS | offset) as u32;
                    Some((Key::new(index, generation), item))
                }
                Entry::Vacant { .. } => None,
            })
        })
    }

    /// Gives back the spare page and the tail of the page table. O(pages).
    pub(crate) fn compact(&mut self) {
        if self.spare != NIL {
            let spare = core::mem::replace(&mut self.spare, NIL);
            self.release(spare);
        }
        while self.pages.last().is_some_and(|page| page.entries.is_none()) {
            self.pages.pop();
        }
        self.pages.shrink_to_fit();
        let pages = &mut self.pages;
        self.room.retain(|number| match pages.get_mut(*number as usize) {
            Some(page) => {
                page.listed = page.state.free() != FULL;
                page.listed
            }
            None => false,
        });
        self.room.shrink_to_fit();
        // The lowest last, so that the lowest numbers are used first and the table's tail can
        // shrink again.
        let without =
            self.pages.iter().enumerate().rev().filter(|(_, page)| page.entries.is_none());
        self.released = without.map(|(number, _)| number as u32).collect();
    }

    /// Panics when the lists and counts disagree with the entries.
    pub(crate) fn check_invariants(&self) {
        let mut live_total = 0;
        let mut released = 0;
        for (number, page) in self.pages.iter().enumerate() {
            let listed = self.room.iter().filter(|room| **room as usize == number).count();
            assert_eq!(listed, usize::from(page.listed), "times that page {number} is listed");
            let Some(entries) = &page.entries else {
                released += 1;
                assert_eq!(page.state, State::RELEASED, "released page {number} has items");
                continue;
            };
            let live = entries.iter().filter(|e| matches!(e, Entry::Occupied { .. })).count();
            assert_eq!(live, page.state.live() as usize, "live count of page {number}");
            live_total += live;
            assert!(page.listed || live == PAGE_ENTRIES, "page {number} has room, unlisted");
            let mut vacant = 0;
            let mut offset = page.state.free();
            while offset != FULL {
                let Entry::Vacant { next } = entries[usize::from(offset)] else {
                    panic!("free list of page {number} leads to a used entry");
                };
                offset = next;
                vacant += 1;
                assert!(vacant <= PAGE_ENTRIES, "free list of page {number} is a circle");
            }
            assert_eq!(vacant, PAGE_ENTRIES - live, "free list of page {number}");
            if live == 0 {
                assert_eq!(self.spare, number as u32, "empty page {number} is not the spare");
            }
        }
        assert_eq!(live_total, self.len, "number of items");
        assert_eq!(self.held, self.pages.len() - released, "pages held");
        assert_eq!(self.released.len(), released, "released pages");
        for number in &self.released {
            assert!(self.pages[*number as usize].entries.is_none(), "page {number} is held");
        }
    }

    #[inline]
    fn entry(&self, index: u32) -> Option<&Entry<E>> {
        let (number, offset) = split(index);
        Some(&self.pages.get(number)?.entries.as_ref()?[offset])
    }

    /// A number that was not given out before, unless four billion were.
    #[inline]
    pub(crate) fn next_generation(&mut self) -> NonZeroU32 {
        self.generation = self.generation.wrapping_add(1).max(1);
        NonZeroU32::new(self.generation).unwrap_or(NonZeroU32::MIN)
    }

    /// A page with a vacant entry, now the one to be tried first. Amortised O(1): each page that
    /// it strikes off the list was put there by a removal.
    #[cold]
    fn find_room(&mut self) -> u32 {
        loop {
            let Some(&number) = self.room.last() else {
                self.add_page();
                continue;
            };
            let page = &mut self.pages[number as usize];
            if page.state.free() != FULL {
                self.open = number;
                return number;
            }
            page.listed = false;
            self.room.pop();
        }
    }

    fn add_page(&mut self) {
        let next =
            |offset: usize| if offset + 1 == PAGE_ENTRIES { FULL } else { offset as u16 + 1 };
        let entries: Vec<Entry<E>> =
            (0..PAGE_ENTRIES).map(|offset| Entry::Vacant { next: next(offset) }).collect();
        let Ok(entries) = entries.into_boxed_slice().try_into() else {
            unreachable!("a page is made of {PAGE_ENTRIES} entries");
        };
        let page = Page { entries: Some(entries), state: State::VACANT, listed: true };
        // No page is listed now, so the number is not either.
        let number = if let Some(number) = self.released.pop() {
            self.pages[number as usize] = page;
            number
        } else {
            assert!(
                self.pages.len() < PAGES_MAX,
                "timer queue is full: {} timers are pending, which is the most it can hold",
                PAGES_MAX * PAGE_ENTRIES
            );
            self.pages.push(page);
            (self.pages.len() - 1) as u32
        };
        self.held += 1;
        self.room.push(number);
    }

    /// Gives the memory of a page without items back.
    fn release(&mut self, number: u32) {
        self.held -= 1;
        let page = &mut self.pages[number as usize];
        page.entries = None;
        page.state = State::RELEASED;
        self.released.push(number);
    }
}

#[inline]
fn entries_mut<E>(page: &mut Page<E>) -> &mut [Entry<E>; PAGE_ENTRIES] {
    match &mut page.entries {
        Some(entries) => entries,
        None => unreachable!("a page without memory has no items and no room"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    #[test]
    fn an_entry_costs_eight_bytes_besides_the_item() {
        assert_eq!(size_of::<Entry<(u64, u32, u32, u64)>>(), 32);
    }

    #[test]
    fn a_swing_around_a_page_edge_keeps_one_spare_page() {
        let mut slab = Slab::new();
        let _first: Vec<Key> = (0..PAGE_ENTRIES).map(|n| slab.insert(0, n)).collect();
        for _ in 0..3 {
            let key = slab.insert(0, 0);
            assert_eq!(slab.capacity(), 2 * PAGE_ENTRIES);
            slab.remove_at(key.index());
            assert_eq!(slab.capacity(), 2 * PAGE_ENTRIES);
        }
        slab.compact();
        assert_eq!(slab.capacity(), PAGE_ENTRIES);
        slab.check_invariants();
    }

    #[test]
    fn generations_skip_zero_when_they_wrap() {
        let mut slab = Slab::new();
        slab.generation = u32::MAX - 1;
        let keys: Vec<u32> = (0..3).map(|n| slab.insert(0, n).generation()).collect();
        assert_eq!(keys, [u32::MAX, 1, 2]);
    }

    #[test]
    fn old_keys_stay_stale_after_compacting_and_clearing() {
        let mut slab = Slab::new();
        let old: Vec<Key> = (0..1000).map(|n| slab.insert(0, n)).collect();
        for key in &old {
            slab.remove_at(key.index());
        }
        slab.compact();
        assert_eq!(slab.capacity(), 0);
        let newer: Vec<Key> = (0..1000).map(|n| slab.insert(0, n)).collect();
        assert!(old.iter().all(|key| slab.get(*key).is_none()));
        assert_eq!(slab.take_all().count(), 1000);
        assert_eq!(slab.capacity(), 0);
        for n in 0..1000 {
            slab.insert(0, n);
        }
        assert!(old.iter().chain(&newer).all(|key| slab.get(*key).is_none()));
    }

    proptest! {
        #[test]
        fn behaves_as_a_map(ops in proptest::collection::vec((0u8..8, any::<u16>()), 0..200)) {
            let mut slab = Slab::new();
            let mut model = BTreeMap::new();
            for (op, n) in ops {
                match op {
                    0..=3 => for i in 0..usize::from(n % 300) {
                        let key = slab.insert(n.into(), i);
                        prop_assert!(model.insert(key, (u32::from(n), i)).is_none());
                    },
                    4..=6 => {
                        let step = usize::from(n % 5) + 1;
                        let keys: Vec<Key> = model.keys().copied().step_by(step).collect();
                        for key in keys {
                            let (removed, label, item) = slab.remove_at(key.index());
                            prop_assert_eq!(removed, key);
                            prop_assert_eq!(model.remove(&key), Some((label, item)));
                            prop_assert_eq!(slab.get(key), None);
                        }
                    }
                    _ => slab.compact(),
                }
                slab.check_invariants();
                prop_assert_eq!(slab.len(), model.len());
                for (key, (label, item)) in &model {
                    prop_assert_eq!(slab.at(key.index()), (*key, *label, item));
                }
            }
            let all: BTreeMap<Key, usize> = slab.take_all().collect();
            let expected = model.into_iter().map(|(k, (_, i))| (k, i)).collect();
            prop_assert_eq!(all, expected);
            slab.check_invariants();
        }
    }
}
