//! The receiver of webhooks: answers 204 and notes how late each came.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

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
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let seen =
            Seen { calls: 0, early: 0, lateness_us: Histogram::new(3)?, first: None, last: None };
        let seen = Arc::new(Mutex::new(seen));
        let shared = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                tokio::spawn(answer(stream, Arc::clone(&shared)));
            }
        });
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

async fn answer(mut stream: TcpStream, seen: Arc<Mutex<Seen>>) -> Result<()> {
    let mut buffer = Vec::with_capacity(4096);
    loop {
        while let Some(length) = request_length(&buffer) {
            note(&buffer[..length], &seen);
            buffer.drain(..length);
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await?;
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

/// Bytes of the first request, when it is there as a whole.
fn request_length(buffer: &[u8]) -> Option<usize> {
    let head_end = buffer.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&buffer[..head_end]).ok()?;
    let length = head
        .lines()
        .filter_map(|l| l.split_once(':'))
        .find(|(k, _)| k.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, v)| v.trim().parse::<usize>().ok())
        .unwrap_or(0);
    (buffer.len() >= head_end + length).then_some(head_end + length)
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
