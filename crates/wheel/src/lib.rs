//! Timing wheels and other timer queues: no clock, no threads, no dependencies.
//!
//! A timer queue holds values until their deadline. Time is an argument: deadlines are `u64`
//! ticks, of whatever length the caller likes, and nothing happens until the caller says how
//! late it is. Round deadlines *up* to ticks and the time *down*, and no timer is early.
//!
//! ```
//! use tourbillon_wheel::{HierarchicalWheel, TimerQueue};
//!
//! let mut wheel = HierarchicalWheel::new();
//! let timeout = wheel.insert_at(5_000, "connection 7 timed out");
//! wheel.insert_at(1_000, "send a ping");
//!
//! let mut fired = Vec::new();
//! wheel.advance(2_000, usize::MAX, |_key, _deadline, what| fired.push(what));
//! assert_eq!(fired, ["send a ping"]);
//!
//! // An answer came: the timeout and its memory are gone at once.
//! assert_eq!(wheel.cancel(timeout), Some("connection 7 timed out"));
//! assert_eq!(wheel.next_deadline(), None);
//! ```
//!
//! # Which one
//!
//! | | insert, cancel, reset | fire | good for |
//! |---|---|---|---|
//! | [`HierarchicalWheel`] | O(1) | O(1), at most seven moves | nearly everything: any number of timers, any deadlines |
//! | [`HashedWheel`] | O(1) | O(timers in the slot) | deadlines within one turn of a ring of known size |
//! | [`BinaryHeapQueue`] | O(log n) | O(log n) | a few hundred timers; `next_deadline` always exact |
//!
//! All keep the contract of [`TimerQueue`] to the letter: exact order, budgets, keys that are
//! never mistaken, memory given back on cancelling.
//!
//! # How a hierarchical wheel works
//!
//! Write a tick as eight digits of eight bits. The wheel has a *level* for each digit and in it
//! a *slot* for each of its 256 values. A timer goes to the level of the highest digit in which
//! its deadline differs from now, and there to the slot of that digit. A slot of level 0 spans
//! one tick, one of level 1 spans 256 ticks, one of level 2 65,536, and so on: the farther
//! away, the coarser. With eight levels every `u64` has its slot, so no deadline is too far and
//! nothing wraps around.
//!
//! ```text
//!  now = 0x01_05_f0                      (upper digits are zero)
//!
//!  level 2   slot 01 is now's  [..|  |02|  |..|ff]     65,536 ticks each
//!                                     |
//!                      0x02_40_07 ----'
//!  level 1   slot 05 is now's  [..|  |06|07|..|ff]        256 ticks each
//!                                     |
//!                      0x01_06_22 ----'
//!  level 0   slot f0 is now's  [..|f0|f1|f2|..|ff]          1 tick each
//!                                  |     |
//!     due: 0x01_05_f0 and before --'     '-- 0x01_05_f2
//! ```
//!
//! When time reaches the first tick of a slot above level 0, the slot is *cascaded*: its timers
//! now agree with now in that digit, so each moves to the level of the next digit in which it
//! differs. A timer thus comes down to its exact tick in at most seven moves. All occupied
//! slots lie ahead of now, and a bitmap for each level finds the next one in a few
//! instructions, so empty time costs nothing, be it a tick or a century. Moves and fires both
//! draw on the budget of [`advance`](TimerQueue::advance): when a million timers fall due at
//! once, or must be cascaded at once, the caller gets control back after as many as it asked
//! for and goes on later, without any change in the order.
//!
//! The scheme is that of G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels"
//! (SOSP 1987; IEEE/ACM Transactions on Networking 5(6), 1997), with the placement by
//! highest differing digit.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bitmap;
mod budget;
mod hashed;
mod heap;
mod hierarchical;
mod key;
mod list;
mod queue;
mod slab;
mod snapshot;

pub use budget::{Advance, Budget};
pub use hashed::HashedWheel;
pub use heap::BinaryHeapQueue;
pub use hierarchical::HierarchicalWheel;
pub use key::Key;
pub use queue::TimerQueue;
pub use snapshot::{LevelSnapshot, SlotSnapshot, Snapshot, Totals};
