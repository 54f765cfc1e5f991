//! The receiver of webhooks: answers 204 and notes how late each came.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use hdrhistogram::Histogram;

use super::webhook;

/// See the module.
pub(crate) struct Receiver {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

/// What came.
#[derive(Clone)]
pub(crate) struct Seen {
    calls: u64,
    pub(crate) early: u64,
    lateness_us: Histogram<u64>,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Seen {
    pub(crate) fn lateness_ms(&self, quantile: f64) -> f64 {
        self.lateness_us.value_at_quantile(quantile) as f64 / 1e3
    }

    /// From the first call to the last.
    pub(crate) fn span(&self) -> Duration {
        self.first.zip(self.last).map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

impl Receiver {
    pub(crate) async fn start() -> Result<Receiver> {
        let seen =
            Seen { calls: 0, early: 0, lateness_us: Histogram::new(3)?, first: None, last: None };
        let seen = Arc::new(Mutex::new(seen));
        let shared = Arc::clone(&seen);
        let address = webhook::listen(move |request| note(request, &shared)).await?;
        Ok(Receiver { address, seen })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn count(&self) -> u64 {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).calls
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn wait_for(&self, n: u64, at_most: Duration) -> Result<()> {
        let end = Instant::now() + at_most;
        while self.count() < n {
            anyhow::ensure!(Instant::now() < end, "{} of {n} calls came", self.count());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

fn note(request: &[u8], seen: &Mutex<Seen>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64);
    let at = Instant::now();
    let marker = b"\"due_ms\":";
    let Some(from) = request.windows(marker.len()).position(|w| w == marker) else { return };
    let digits: String = request[from + marker.len()..]
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .map(|b| char::from(*b))
        .collect();
    let Ok(due_ms) = digits.parse::<i64>() else { return };
    let late = now - due_ms * 1_000;
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.calls += 1;
    seen.early += u64::from(late < 0);
    let _ = seen.lateness_us.record(late.max(0) as u64);
    seen.first.get_or_insert(at);
    seen.last = Some(at);
}
