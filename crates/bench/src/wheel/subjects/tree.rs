//! std's `BTreeMap` from (deadline, sequence) to value.

use std::collections::BTreeMap;

use crate::wheel::subject::Subject;

#[derive(Default)]
pub(super) struct Tree {
    timers: BTreeMap<(u64, u64), u64>,
    sequence: u64,
}

impl Subject for Tree {
    type Handle = (u64, u64);
    const NAME: &'static str = "BTreeMap";

    fn new() -> Self {
        Tree::default()
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> (u64, u64) {
        self.sequence += 1;
        let key = (deadline, self.sequence);
        self.timers.insert(key, value);
        key
    }

    #[inline]
    fn cancel(&mut self, handle: (u64, u64)) -> Option<u64> {
        self.timers.remove(&handle)
    }

    #[inline]
    fn advance(&mut self, to: u64, fired: &mut impl FnMut(u64, u64)) {
        while let Some(first) = self.timers.first_entry() {
            if first.key().0 > to {
                break;
            }
            fired(to, first.remove());
        }
    }
}
