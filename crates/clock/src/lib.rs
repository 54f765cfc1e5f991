//! The only reader of clocks.
//!
//! Everything else in Tourbillon takes time as an argument. This crate says where that time comes
//! from: [`SystemClock`] (monotonic, stands still while the machine is suspended), [`BootClock`]
//! (monotonic, counts suspend), [`ManualClock`] (moved by a test), and [`StoreClock`], which turns
//! measurements of another clock (the wall, a database) into a store time that never goes back
//! unless it says so.
//!
//! What always holds: monotonic readings of one clock never decrease, and all times are whole
//! microseconds. What is deliberately absent: time zones, calendars, sleeping, threads.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use tourbillon_clock::{Clock, ManualClock, StoreClock};
//!
//! let clock = ManualClock::new(1_700_000_000_000_000);
//! let store = StoreClock::new(Arc::new(clock.clone()));
//! store.observe_wall();
//! clock.advance(Duration::from_secs(5));
//! assert_eq!(store.now().store, 1_700_000_005_000_000);
//! assert_eq!(store.now().mono, clock.mono());
//! ```

mod clock;
mod manual;
mod store_clock;
mod system;

pub use clock::{Clock, Mono, Now};
pub use manual::ManualClock;
pub use store_clock::{Step, StoreClock, StoreClockLimits};
pub use system::{BootClock, SystemClock};
