//! A cache whose entries go at their time, not when somebody happens to look for them, and whose
//! entries live on while they are used.
//!
//! `cargo run -p tourbillon --example cache_expiry`

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tourbillon::{JobHandle, Refused, Timer};

type Entries = HashMap<String, (String, JobHandle<()>)>;

#[derive(Clone)]
struct Cache {
    timer: Timer,
    keep: Duration,
    entries: Arc<Mutex<Entries>>,
}

impl Cache {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, key: &str, value: &str) -> Result<(), Refused> {
        let (cache, own_key) = (self.clone(), key.to_owned());
        let expiry = self.timer.after(self.keep, move || {
            // Whoever replaced the entry cancelled this, unless it had begun.
            let mut entries = cache.lock();
            if entries.get(&own_key).is_some_and(|(_, expiry)| expiry.deadline().is_none()) {
                entries.remove(&own_key);
                println!("{own_key} has expired");
            }
        })?;
        let old = self.lock().insert(key.to_owned(), (value.to_owned(), expiry));
        if let Some((_, expiry)) = old {
            expiry.cancel();
        }
        Ok(())
    }

    fn get(&self, key: &str) -> Option<String> {
        let entries = self.lock();
        let (value, expiry) = entries.get(key)?;
        expiry.reset(self.keep);
        Some(value.clone())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let keep = Duration::from_millis(60);
    let cache = Cache { timer: Timer::new(), keep, entries: Arc::default() };
    cache.put("used", "stays")?;
    cache.put("forgotten", "goes")?;
    for _ in 0..6 {
        // sleeps: time passes, and one of them is asked for
        thread::sleep(keep / 3);
        println!("used: {:?}", cache.get("used"));
    }
    println!("forgotten: {:?}", cache.get("forgotten"));
    println!("{} in the cache, {} timers", cache.lock().len(), cache.timer.len());
    Ok(())
}
