//! Many changes in a row, one reaction: it comes when nothing has changed for a while.
//!
//! `cargo run -p tourbillon --example debounce`

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tourbillon::{JobHandle, Refused, Timer};

/// Calls a closure once it was not asked to for `quiet`.
struct Debounced<F> {
    timer: Timer,
    quiet: Duration,
    call: Arc<F>,
    pending: Mutex<Option<JobHandle<()>>>,
}

impl<F: Fn() + Send + Sync + 'static> Debounced<F> {
    fn new(timer: Timer, quiet: Duration, call: F) -> Self {
        Self { timer, quiet, call: Arc::new(call), pending: Mutex::new(None) }
    }

    fn ask(&self) -> Result<(), Refused> {
        let mut pending = self.pending.lock().unwrap_or_else(|e| e.into_inner());
        // `reset` says whether the call was still to come.
        if !pending.as_ref().is_some_and(|job| job.reset(self.quiet)) {
            let call = Arc::clone(&self.call);
            *pending = Some(self.timer.after(self.quiet, move || call())?);
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let timer = Timer::new();
    let saves = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&saves);
    let save = Debounced::new(timer, Duration::from_millis(40), move || {
        *counted.lock().unwrap_or_else(|e| e.into_inner()) += 1;
        println!("saved");
    });
    for burst in 0..2 {
        for key in 0..20 {
            println!("burst {burst}, key {key}");
            save.ask()?;
            // sleeps: somebody types
            thread::sleep(Duration::from_millis(2));
        }
        // sleeps: somebody thinks
        thread::sleep(Duration::from_millis(120));
    }
    println!("40 changes, {} saves", saves.lock().unwrap_or_else(|e| e.into_inner()));
    Ok(())
}
