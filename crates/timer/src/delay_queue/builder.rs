//! How many items, and whose time.
//!
//! Every setting has a default that is right for most; what is out of range is brought to the nearest
//! value that is in it. It lacks a tick length: a tick is a microsecond, which costs the wheel no
//! more than a millisecond would.

use super::DelayQueue;
use super::shared::Shared;
use super::store::ITEMS_MAX;
use super::time::Time;
use std::fmt;
use std::sync::Arc;
use tourbillon_clock::ManualClock;

/// Settings of a [`DelayQueue`], which [`build`](Self::build) makes.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::DelayQueue;
///
/// let queue = DelayQueue::builder().max_len(1).build();
/// let retry = queue.insert("order 42", Duration::from_secs(5))?;
///
/// let refused = queue.insert("order 43", Duration::from_secs(5)).unwrap_err();
/// assert!(refused.is_full());
/// assert_eq!(refused.into_value(), "order 43"); // nothing is lost by asking
///
/// queue.remove(retry);
/// assert!(queue.insert("order 43", Duration::from_secs(5)).is_ok());
/// # Ok::<(), tourbillon::delay_queue::Refused<&str>>(())
/// ```
pub struct Builder<T> {
    max_len: usize,
    time: Option<Manual<T>>,
}

/// A manual clock, and how to have it tell a queue that it has moved.
struct Manual<T> {
    clock: ManualClock,
    listen: fn(&ManualClock, &Arc<Shared<T>>),
}

impl<T> Builder<T> {
    pub(super) fn new() -> Self {
        Self { max_len: usize::MAX, time: None }
    }

    /// How many items may be in the queue, due ones included. Default: no bound but that of the
    /// wheel, 2^32 - 256.
    ///
    /// With `0` every item is refused.
    pub fn max_len(mut self, items: usize) -> Self {
        self.max_len = items;
        self
    }

    /// Has the queue live by a clock that the caller moves. For tests of code that uses the queue.
    /// Default: the machine's monotonic time.
    ///
    /// At the moment of [`build`](Self::build) the clock's reading stands for the present
    /// [`Instant`](std::time::Instant); from then on only the clock counts, also for the patience of
    /// [`poll_timeout`](DelayQueue::poll_timeout). Ask [`DelayQueue::now`] for the present.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::DelayQueue;
    /// use tourbillon::delay_queue::ManualClock;
    ///
    /// let clock = ManualClock::new(0);
    /// let queue = DelayQueue::builder().manual_clock(&clock).build();
    /// queue.insert("tea", Duration::from_secs(180)).unwrap();
    ///
    /// clock.advance(Duration::from_secs(179));
    /// assert!(queue.try_poll().is_none());
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(queue.poll().map(|tea| tea.into_inner()), Some("tea"));
    /// ```
    pub fn manual_clock(mut self, clock: &ManualClock) -> Self
    where
        T: Send + 'static,
    {
        self.time = Some(Manual { clock: clock.clone(), listen });
        self
    }

    /// Makes the queue.
    pub fn build(self) -> DelayQueue<T> {
        let max_len = self.max_len.min(ITEMS_MAX);
        let shared = match self.time {
            None => Arc::new(Shared::new(Time::system(), max_len)),
            Some(Manual { clock, listen }) => {
                let shared = Arc::new(Shared::new(Time::manual(clock.clone()), max_len));
                listen(&clock, &shared);
                shared
            }
        };
        DelayQueue { shared }
    }
}

/// The clock outlives the queue, and keeps of it no more than it needs to find that out.
fn listen<T: Send + 'static>(clock: &ManualClock, shared: &Arc<Shared<T>>) {
    let queue = Arc::downgrade(shared);
    clock.on_change(move || {
        if let Some(queue) = queue.upgrade() {
            queue.clock_moved();
        }
    });
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("max_len", &self.max_len)
            .field("manual_clock", &self.time.as_ref().map(|time| &time.clock))
            .finish()
    }
}
