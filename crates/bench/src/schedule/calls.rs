//! A receiver of webhooks that knows of each call its schedule, its planned time and how late it came.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use tourbillon_schedule::parse_instant;

use crate::service::client::wall_us;
use crate::service::webhook::{self, header};

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
        let calls = Arc::new(Mutex::new(Calls::default()));
        let shared = Arc::clone(&calls);
        let address = webhook::listen(move |request| note(request, &shared)).await?;
        Ok(Receiver { address, calls })
    }

    /// What came since the last time.
    pub(super) fn take(&self) -> Calls {
        std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
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
