//! A hundred thousand connections, each closed when it was silent for too long. Nearly all timeouts are
//! pushed on or cancelled, and that costs as little as arming one.
//!
//! `cargo run --release -p tourbillon --example connection_timeouts`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tourbillon::{Precision, Timer};

fn main() -> Result<(), Box<dyn Error>> {
    // Nobody minds if a timeout comes a millisecond late, so wake-ups are merged.
    let slack = Duration::from_millis(1);
    let timer = Timer::builder().precision(Precision::Economy { slack }).build()?;
    let closed = Arc::new(AtomicUsize::new(0));
    let silence = Duration::from_millis(300);

    let mut timeouts = Vec::new();
    for _connection in 0..100_000 {
        let closed = Arc::clone(&closed);
        timeouts.push(timer.after(silence, move || closed.fetch_add(1, Ordering::Relaxed))?);
    }

    // Something arrives on each: its timeout starts anew, in place.
    let begun = Instant::now();
    let pushed = timeouts.iter().filter(|timeout| timeout.reset(silence)).count();
    println!("pushed {pushed} timeouts on, {:.0} ns each", per(begun, pushed));

    // All but a few close by themselves.
    let begun = Instant::now();
    let cancelled = timeouts.drain(100..).filter(|timeout| timeout.cancel()).count();
    println!("cancelled {cancelled}, {:.0} ns each", per(begun, cancelled));

    for timeout in timeouts {
        timeout.join()?;
    }
    println!("{} were silent for {silence:?} and were closed", closed.load(Ordering::Relaxed));
    Ok(())
}

fn per(begun: Instant, n: usize) -> f64 {
    begun.elapsed().as_nanos() as f64 / n.max(1) as f64
}
