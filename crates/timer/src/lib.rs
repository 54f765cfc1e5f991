//! Timers for use inside one process, on timing wheels.
//!
//! | | |
//! |---|---|
//! | [`Timer`] | closures that run later: after a delay, at an instant, at a fixed rate, with a fixed delay, at civil times |
//! | [`sleep`], [`sleep_until`], [`timeout`], [`interval`] | futures for any runtime |
//! | [`DelayQueue`] | items that threads and tasks take when their time has come |
//! | [`purgatory`] | operations that wait for a condition or a deadline, whichever comes first |
//! | [`lanes`] | several wheels side by side, for those who bring their own thread |
//! | [`wheel`] | the timer queues themselves, for one thread and without a clock |
//!
//! ```
//! use std::time::Duration;
//! use tourbillon::Timer;
//!
//! let timer = Timer::new();
//! let order = timer.after(Duration::from_millis(3), || "the order was not paid and is closed")?;
//! let answer = timer.after(Duration::from_secs(30), || println!("no answer within 30 s"))?;
//!
//! assert!(answer.cancel()); // it has come: the closure and its memory are gone, and it never runs
//! assert_eq!(order.join()?, "the order was not paid and is closed");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything here is never early, takes O(1) to arm and to cancel, and costs nothing while it waits.
//! What a process forgets when it ends is not kept anywhere: for that there is the server.
//!
//! # Features
//!
//! - `cron` (default): periodic jobs at civil times, by the crate `tourbillon-schedule`.

#[doc(inline)]
pub use tourbillon_wheel as wheel;

#[cfg(feature = "cron")]
#[doc(inline)]
pub use tourbillon_schedule as schedule;

pub mod delay_queue;
pub mod lanes;
mod sync;

// What follows is not made of loom's primitives.
#[cfg(not(loom))]
mod block;
#[cfg(not(loom))]
mod futures;
#[cfg(not(loom))]
pub mod purgatory;
#[cfg(not(loom))]
mod time;
#[cfg(not(loom))]
pub mod timer;

#[doc(inline)]
pub use delay_queue::DelayQueue;
#[cfg(not(loom))]
pub use futures::{Elapsed, Interval, Sleep, Timeout, interval, sleep, sleep_until, timeout};
#[cfg(not(loom))]
pub use purgatory::Purgatory;
#[cfg(not(loom))]
pub use time::ClockKind;
#[cfg(not(loom))]
pub use timer::{
    Builder, Due, JobHandle, JobPanic, JoinError, Missed, OnFailure, Outcome, PeriodicHandle, Plan,
    Precision, Refused, Run, Timer, Verdict,
};
pub use tourbillon_clock::{Clock, ManualClock};
