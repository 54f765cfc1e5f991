//! A receiver of webhooks that knows of each call its schedule, its planned time and how late it came.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tourbillon_schedule::parse_instant;

use crate::service::client::wall_us;

/// What came.
#[derive(Default)]
pub(super) struct Calls {
    /// How often each (schedule, planned time in microseconds) was called.
    pub(super) planned: HashMap<(u64, i64), u32>,
    /// When each was called, with its lateness, in microseconds.
    pub(super) lateness: Vec<(i64, i64)>,
    /// The same of the other queue's tasks.
    pub(super) probes: Vec<(i64, i64)>,
}

pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    calls: Arc<Mutex<Calls>>,
}

impl Receiver {
    pub(super) async fn start() -> Result<Receiver> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let calls = Arc::new(Mutex::new(Calls::default()));
        let shared = Arc::clone(&calls);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                tokio::spawn(answer(stream, Arc::clone(&shared)));
            }
        });
        Ok(Receiver { address, calls })
    }

    /// What came since the last time.
    pub(super) fn take(&self) -> Calls {
        std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn answer(mut stream: TcpStream, calls: Arc<Mutex<Calls>>) -> Result<()> {
    let mut buffer = Vec::with_capacity(4096);
    loop {
        while let Some(length) = request_length(&buffer) {
            note(&buffer[..length], &calls);
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
    let length = header(head, "content-length").and_then(|v| v.parse::<usize>().ok()).unwrap_or(0);
    (buffer.len() >= head_end + length).then_some(head_end + length)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn note(request: &[u8], calls: &Mutex<Calls>) {
    let now = wall_us();
    let Some((path, due, logical)) = read(request) else { return };
    let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
    match (path.strip_prefix("/s/").and_then(|n| n.parse().ok()), logical) {
        (Some(n), Some(logical)) => {
            *calls.planned.entry((n, logical)).or_default() += 1;
            calls.lateness.push((now, now - due));
        }
        _ => calls.probes.push((now, now - due)),
    }
}

/// The path, the due time and the planned time of a request.
fn read(request: &[u8]) -> Option<(&str, i64, Option<i64>)> {
    let head = std::str::from_utf8(request).ok()?;
    let path = head.split(' ').nth(1)?;
    let instant = |name: &str| parse_instant(header(head, name)?, None).ok();
    Some((path, instant("tourbillon-due-at")?, instant("tourbillon-logical-time")))
}

/// A quantile in milliseconds.
pub(super) fn quantile_ms(lateness: impl Iterator<Item = i64>, quantile: f64) -> Result<f64> {
    let mut histogram: Histogram<u64> = Histogram::new(3)?;
    for late in lateness {
        histogram.record(late.max(0).unsigned_abs()).context("a lateness")?;
    }
    Ok(histogram.value_at_quantile(quantile) as f64 / 1e3)
}
