//! Timers for use inside one process, on timing wheels.
//!
//! [`wheel`] holds the timer queues themselves, for one thread and without a clock. [`lanes`] puts
//! several wheels side by side so that any thread may arm and cancel timers while one thread fires
//! them. [`DelayQueue`] hands out items when their time has come, to waiting threads and tasks.
//!
//! ```
//! use tourbillon::lanes::Lanes;
//!
//! let (lanes, mut driver) = Lanes::builder().build(|| { /* wake the thread that drives */ });
//! let ping = lanes.insert_at(1_000, "send a ping")?;
//! let timeout = lanes.insert_at(5_000, "connection 7 timed out")?;
//!
//! let mut fired = Vec::new();
//! driver.advance(2_000, usize::MAX, |_handle, _deadline, what| fired.push(what));
//! assert_eq!(fired, ["send a ping"]);
//! assert_eq!(lanes.cancel(ping), None); // it has fired
//!
//! // An answer came: the timeout and its memory are gone at once, and it will never fire.
//! assert_eq!(lanes.cancel(timeout), Some("connection 7 timed out"));
//! assert_eq!(driver.prepare_sleep(), None); // nothing to wake up for
//! # Ok::<(), tourbillon::lanes::Full<&str>>(())
//! ```
//!
//! In the wheels and lanes time is an argument, in ticks of whatever length the caller likes, and there
//! are no clocks, no threads and no callbacks kept in timers. A delay queue reads the machine's
//! monotonic clock.

#[doc(inline)]
pub use tourbillon_wheel as wheel;

pub mod delay_queue;
pub mod lanes;
mod sync;

#[doc(inline)]
pub use delay_queue::DelayQueue;
