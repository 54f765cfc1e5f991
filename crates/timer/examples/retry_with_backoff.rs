//! A call that fails now and then is tried again, each time after twice the delay, up to a limit. No
//! thread sleeps meanwhile: each attempt arms the next.
//!
//! `cargo run -p tourbillon --example retry_with_backoff`

use std::error::Error;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use tourbillon::Timer;

const ATTEMPTS_MAX: u32 = 6;

/// The third attempt succeeds.
fn call(attempt: u32) -> Result<&'static str, &'static str> {
    if attempt < 3 { Err("connection refused") } else { Ok("200 OK") }
}

fn attempt(timer: &Timer, number: u32, delay: Duration, result: Sender<String>) {
    let own = timer.clone();
    let tell = result.clone();
    let armed = timer.after(delay, move || match call(number) {
        Ok(answer) => drop(result.send(format!("attempt {number}: {answer}"))),
        Err(error) if number == ATTEMPTS_MAX => {
            drop(result.send(format!("given up after {number} attempts: {error}")));
        }
        Err(error) => {
            let delay = (delay * 2).clamp(Duration::from_millis(10), Duration::from_secs(1));
            println!("attempt {number}: {error}; the next in {delay:?}");
            attempt(&own, number + 1, delay, result);
        }
    });
    if let Err(refused) = armed {
        drop(tell.send(format!("not tried again: {refused}")));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let timer = Timer::new();
    let begun = Instant::now();
    let (result, end) = channel();
    attempt(&timer, 1, Duration::ZERO, result);
    println!("{} after {:?}", end.recv()?, begun.elapsed());
    Ok(())
}
