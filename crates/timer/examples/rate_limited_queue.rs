//! Calls to a service that allows so many a second: a delay queue hands out each at its time, and any
//! number of workers take them.
//!
//! `cargo run -p tourbillon --example rate_limited_queue`

use std::error::Error;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use tourbillon::DelayQueue;

/// Spreads what comes in so that any two items are a gap apart.
struct RateLimited<T> {
    queue: DelayQueue<T>,
    gap: Duration,
    next: Mutex<Instant>,
}

impl<T> RateLimited<T> {
    fn new(per_second: u32) -> Self {
        let gap = Duration::from_secs(1) / per_second.max(1);
        Self { queue: DelayQueue::new(), gap, next: Mutex::new(Instant::now()) }
    }

    fn push(&self, item: T) -> bool {
        let mut next = self.next.lock().unwrap_or_else(|e| e.into_inner());
        let turn = (*next).max(Instant::now());
        *next = turn + self.gap;
        self.queue.insert_at(item, turn).is_ok()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let calls = RateLimited::new(200);
    for n in 0..60 {
        assert!(calls.push(n), "there is no bound here");
    }
    // No more come; what is there is still handed out at its time.
    calls.queue.close();

    let begun = Instant::now();
    thread::scope(|scope| {
        for worker in 0..3 {
            let queue = calls.queue.clone();
            scope.spawn(move || {
                while let Some(call) = queue.poll() {
                    println!(
                        "{:>6.1?}  worker {worker} makes call {}",
                        begun.elapsed(),
                        call.get_ref()
                    );
                }
            });
        }
    });
    println!("60 calls in {:?}, at 200 a second", begun.elapsed());
    Ok(())
}
