//! How late 100,000 timers fire that are due at random over ten seconds, on a machine with nothing else
//! to do, and what that costs.
//!
//! - `lateness_p50_us`, `lateness_p99_us`, `lateness_max_us`: from the deadline, in nanoseconds, to a
//!   reading of the clock in the callback (or in the task that slept)
//! - `lateness_cpu_s`: CPU seconds of the whole process from the first deadline to the last
//! - `early`: timers that fired before their deadline
//!
//! `bare_sleep_loop` has no timer structure: one thread sleeps until one deadline after the other, with
//! the system's default timer slack; `bare_sleep_loop_exact` asks for a slack of a nanosecond, as
//! `tourbillon` does. `tourbillon` runs closures on its own thread, as the loop does; `tourbillon_pool`
//! hands each to a worker.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use tourbillon::{Precision, Timer};

use super::heap::HeapTimer;
use super::{Figure, Numbers, usage, wait_for};

pub(super) const SUBJECTS: &[&str] = &[
    "tourbillon",
    "tourbillon_pool",
    "tourbillon_economy",
    "tourbillon_precise",
    "tourbillon_sleep",
    "bare_sleep_loop",
    "bare_sleep_loop_exact",
    "heap_thread",
    "tokio_sleep",
    "tokio_util_delay_queue",
];

/// Before the first deadline, so that all are armed in time.
const LEAD: Duration = Duration::from_millis(500);

pub(super) fn timers(quick: bool) -> usize {
    if quick { 20_000 } else { 100_000 }
}

/// What was seen, by the threads or tasks that saw it.
#[derive(Clone)]
struct Seen(Arc<Mutex<Vec<i64>>>);

impl Seen {
    fn new(n: usize) -> Self {
        Self(Arc::new(Mutex::new(Vec::with_capacity(n))))
    }

    fn at(&self, deadline: Instant) {
        let now = Instant::now();
        let late = match now.checked_duration_since(deadline) {
            Some(late) => late.as_nanos() as i64,
            None => -((deadline - now).as_nanos() as i64),
        };
        self.0.lock().expect("no panic").push(late);
    }

    fn len(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }
}

pub(super) fn measure(subject: &str, quick: bool) -> Result<Vec<Figure>> {
    let n = timers(quick);
    let span = Duration::from_micros(100 * n as u64);
    let seen = Seen::new(n);
    let start = Instant::now() + LEAD;
    let mut numbers = Numbers::new(77);
    let deadlines: Vec<Instant> = (0..n)
        .map(|_| start + Duration::from_nanos(numbers.below(span.as_nanos() as u64)))
        .collect();
    let before = match subject {
        "tourbillon" => ours(Timer::builder().inline(), &deadlines, &seen)?,
        "tourbillon_pool" => ours(Timer::builder(), &deadlines, &seen)?,
        "tourbillon_economy" => {
            ours(Timer::builder().inline().precision(Precision::ECONOMY), &deadlines, &seen)?
        }
        "tourbillon_precise" => {
            ours(Timer::builder().inline().precision(Precision::PRECISE), &deadlines, &seen)?
        }
        "tourbillon_sleep" => {
            let timer = Timer::new();
            let sleep = move |at| timer.sleep_until(at);
            tasks(sleep, &deadlines, &seen)?
        }
        "tokio_sleep" => {
            tasks(|at: Instant| tokio::time::sleep_until(at.into()), &deadlines, &seen)?
        }
        "tokio_util_delay_queue" => delay_queue(&deadlines, &seen)?,
        "heap_thread" => {
            let timer = HeapTimer::new();
            for &deadline in &deadlines {
                let seen = seen.clone();
                timer.after(deadline - Instant::now(), move || seen.at(deadline));
            }
            let before = usage().0;
            wait_for("the heap's timers", || seen.len() == deadlines.len())?;
            before
        }
        "bare_sleep_loop" => bare(&deadlines, &seen, false)?,
        "bare_sleep_loop_exact" => bare(&deadlines, &seen, true)?,
        other => bail!("no such subject: {other}"),
    };
    let cpu = usage().0.saturating_sub(before);
    let mut late = std::mem::take(&mut *seen.0.lock().expect("no panic"));
    ensure!(late.len() == n, "{subject}: {} of {n} timers fired", late.len());
    late.sort_unstable();
    let at = |share: f64| late[((n - 1) as f64 * share) as usize] as f64 / 1e3;
    let early = late.iter().filter(|&&late| late < 0).count();
    Ok(vec![
        ("lateness_p50_us", "us", at(0.5)),
        ("lateness_p99_us", "us", at(0.99)),
        ("lateness_max_us", "us", at(1.0)),
        ("lateness_cpu_s", "s", cpu.as_secs_f64()),
        ("early", "timers", early as f64),
    ])
}

fn ours(builder: tourbillon::Builder, deadlines: &[Instant], seen: &Seen) -> Result<Duration> {
    let timer = builder.build()?;
    for &deadline in deadlines {
        let seen = seen.clone();
        drop(timer.at(deadline, move || seen.at(deadline))?);
    }
    let before = usage().0;
    wait_for("our timers", || seen.len() == deadlines.len())?;
    let after = usage().0;
    // Pool threads stay, so that their time is counted by the caller too.
    std::mem::forget(timer);
    ensure!(after >= before, "CPU time goes back");
    Ok(before)
}

fn tasks<S, F>(sleep: F, deadlines: &[Instant], seen: &Seen) -> Result<Duration>
where
    F: Fn(Instant) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    {
        let _guard = runtime.enter();
        for &deadline in deadlines {
            let (seen, sleep) = (seen.clone(), sleep(deadline));
            runtime.spawn(async move {
                sleep.await;
                seen.at(deadline);
            });
        }
    }
    let before = usage().0;
    wait_for("the tasks", || seen.len() == deadlines.len())?;
    std::mem::forget(runtime);
    Ok(before)
}

fn delay_queue(deadlines: &[Instant], seen: &Seen) -> Result<Duration> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let (deadlines, seen_there) = (deadlines.to_vec(), seen.clone());
    let n = deadlines.len();
    runtime.spawn(async move {
        let mut queue = tokio_util::time::DelayQueue::with_capacity(n);
        for deadline in deadlines {
            queue.insert_at(deadline, deadline.into());
        }
        while let Some(expired) = std::future::poll_fn(|cx| queue.poll_expired(cx)).await {
            seen_there.at(expired.into_inner());
        }
    });
    let before = usage().0;
    wait_for("the delay queue", || seen.len() == n)?;
    std::mem::forget(runtime);
    Ok(before)
}

/// One thread that sleeps until each deadline in turn.
fn bare(deadlines: &[Instant], seen: &Seen, exact: bool) -> Result<Duration> {
    let mut deadlines = deadlines.to_vec();
    deadlines.sort_unstable();
    let (n, seen_there) = (deadlines.len(), seen.clone());
    let before = usage().0;
    let sleeper = thread::spawn(move || {
        if exact {
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        }
        for deadline in deadlines {
            let left = deadline.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                // sleeps: this is what is measured
                thread::sleep(left);
            }
            seen_there.at(deadline);
        }
        // Stays until its time has been counted.
        thread::park();
    });
    wait_for("the loop", || seen.len() == n)?;
    std::mem::forget(sleeper);
    Ok(before)
}
