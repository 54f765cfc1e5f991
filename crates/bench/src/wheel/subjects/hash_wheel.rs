//! hierarchical_hash_wheel_timer's wheel whose entries can be cancelled.
//!
//! It moves by one tick at a time, or skips ticks at which it has nothing to do. Cancelling takes
//! the entry out of a hash map; its allocation stays in the slot until the slot's tick has come. The
//! id of an entry is the caller's, and cancelling does not give the value back.

use std::rc::Rc;
use std::time::Duration;

use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::{
    CancellableTimerEntry, QuadWheelWithOverflow,
};

use crate::wheel::subject::Subject;

pub(super) struct HashWheel {
    wheel: QuadWheelWithOverflow<Timer>,
    now: u64,
    last_id: u64,
}

#[derive(Debug)]
struct Timer {
    id: u64,
    value: u64,
}

impl CancellableTimerEntry for Timer {
    type Id = u64;

    fn id(&self) -> &u64 {
        &self.id
    }
}

impl Subject for HashWheel {
    type Handle = u64;
    const NAME: &'static str = "hierarchical_hash_wheel_timer";
    /// An empty one is not advanced: it says that it is empty.
    const IDLES: bool = false;

    fn new() -> Self {
        HashWheel { wheel: QuadWheelWithOverflow::new(), now: 0, last_id: 0 }
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> u64 {
        self.last_id += 1;
        let timer = Rc::new(Timer { id: self.last_id, value });
        let delay = Duration::from_millis(deadline - self.now);
        let inserted = self.wheel.insert_ref_with_delay(timer, delay);
        assert!(inserted.is_ok(), "a deadline that does not lie ahead");
        self.last_id
    }

    #[inline]
    fn cancel(&mut self, handle: u64) -> Option<u64> {
        self.wheel.cancel(&handle).is_ok().then_some(0)
    }

    #[inline]
    fn advance(&mut self, to: u64, fired: &mut impl FnMut(u64, u64)) {
        while self.now < to {
            // Asking what can be skipped costs more than one tick.
            if to - self.now > 1 {
                let ticks = match self.wheel.can_skip() {
                    Skip::Millis(ticks) => ticks,
                    Skip::Empty => u32::MAX,
                    Skip::None => 0,
                };
                let ticks = (to - self.now).min(ticks.into());
                self.wheel.skip(ticks as u32);
                self.now += ticks;
                if ticks > 0 {
                    continue;
                }
            }
            self.now += 1;
            for timer in self.wheel.tick() {
                fired(self.now, timer.value);
            }
        }
    }
}
