//! What the tests of the timer share.
#![allow(dead_code)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tourbillon::{Builder, ClockKind, ManualClock, Timer};

/// Longer than anything takes on the slowest machine: a test that runs into it fails.
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A timer whose time the test moves; closures run one after the other on the timer's thread.
pub(crate) fn manual() -> (Timer, ManualClock) {
    manual_with(Timer::builder().inline().lanes(1))
}

pub(crate) fn manual_with(builder: Builder) -> (Timer, ManualClock) {
    let clock = ManualClock::new(1_700_000_000_000_000);
    let timer = builder.clock(ClockKind::Manual(clock.clone())).build().expect("a thread");
    (timer, clock)
}

/// Moves the clock and waits until everything that this made due has run.
pub(crate) fn pass(timer: &Timer, clock: &ManualClock, by: Duration) {
    clock.advance(by);
    assert!(timer.wait_idle(SOON), "still busy: {timer:?}");
}

/// A list that closures write to.
#[derive(Clone)]
pub(crate) struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Send + 'static> Log<T> {
    pub(crate) fn add(&self, item: T) {
        self.0.lock().expect("no panic while it is held").push(item);
    }

    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().expect("no panic while it is held"))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().expect("no panic while it is held").len()
    }
}
