//! Items whose deadline lies before that of an item which was taken already.
//!
//! A wheel cannot go back: what is inserted behind its present counts as due now, in the order of
//! insertion. The queue promises the order of deadlines, so such items, which are rare, stand in an
//! ordered map. Their values stay in the wheel, where the keys lead.
//!
//! What always holds: both maps have the same items. All of them come before all others of the queue.
//! It lacks any idea of time.

use std::collections::{BTreeMap, HashMap};
use tourbillon_wheel::Key;

#[derive(Default)]
pub(super) struct Late {
    /// By deadline, then by insertion.
    order: BTreeMap<(u64, u64), Key>,
    places: HashMap<Key, (u64, u64)>,
    /// How many were ever inserted.
    inserted: u64,
}

impl Late {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) fn insert(&mut self, deadline: u64, key: Key) {
        let place = (deadline, self.inserted);
        self.inserted += 1;
        self.order.insert(place, key);
        self.places.insert(key, place);
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<u64> {
        let place = self.places.remove(&key)?;
        self.order.remove(&place);
        Some(place.0)
    }

    pub(super) fn deadline(&self, key: Key) -> Option<u64> {
        Some(self.places.get(&key)?.0)
    }

    pub(super) fn first(&self) -> Option<(u64, Key)> {
        self.order.first_key_value().map(|((deadline, _), key)| (*deadline, *key))
    }

    pub(super) fn pop_first(&mut self) -> Option<(u64, Key)> {
        let ((deadline, _), key) = self.order.pop_first()?;
        self.places.remove(&key);
        Some((deadline, key))
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.order.clear();
        self.places = HashMap::new();
    }

    /// Panics when the maps disagree.
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.order.len(), self.places.len(), "late items in both maps");
        for (place, key) in &self.order {
            assert_eq!(self.places.get(key), Some(place), "place of the late {key:?}");
        }
    }
}
