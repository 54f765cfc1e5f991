//! What is left when a million timers were cancelled, and what an idle timer does.
//!
//! - `cancelled_left_bytes`: bytes alive 100 ms after the last of a million was cancelled, less those
//!   alive before the first was armed
//! - `cancelled_left_share`: the same, as a share of what the million took
//! - `idle_wakeups`: how often any thread of the process woke up in three seconds with one timer an
//!   hour away

use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use tourbillon::{JobHandle, Timer};

use super::{Figure, Numbers, usage};
use crate::allocator::Count;

pub(super) const SUBJECTS: &[&str] = &["tourbillon"];

const TIMERS: usize = 1_000_000;

pub(super) fn measure(subject: &str) -> Result<Vec<Figure>> {
    if subject != "tourbillon" {
        bail!("no such subject: {subject}");
    }
    let timer = Timer::new();
    let mut numbers = Numbers::new(5);
    let mut handles: Vec<JobHandle<()>> = Vec::with_capacity(TIMERS);
    let count = Count::start();
    let before = count.live();
    for _ in 0..TIMERS {
        let delay = Duration::from_millis(60_000 + numbers.below(3_600_000));
        handles.push(timer.after(delay, || {})?);
    }
    let full = count.live();
    for handle in handles.drain(..) {
        handle.cancel();
    }
    // sleeps: the bound says "within 100 ms"
    thread::sleep(Duration::from_millis(100));
    let left = count.live() - before;
    drop(count);

    let hour = timer.after(Duration::from_secs(3_600), || {})?;
    // sleeps: until the driver has gone to sleep for the hour
    thread::sleep(Duration::from_millis(100));
    let (_, before_idle) = usage();
    // sleeps: what is measured is that nothing happens meanwhile
    thread::sleep(Duration::from_secs(3));
    // This thread's own sleep is one.
    let woken = usage().1.saturating_sub(before_idle).saturating_sub(1);
    hour.cancel();
    Ok(vec![
        ("cancelled_left_bytes", "bytes", left as f64),
        ("cancelled_left_share", "", left as f64 / (full - before) as f64),
        ("idle_wakeups", "", woken as f64),
    ])
}
