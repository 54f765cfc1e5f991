//! A real server with very many schedules, each every minute: spread over the minute, then all at second 0.
//!
//! Lateness is arrival at the receiver minus due, so it has the call in it. That each planned time came once is
//! ensured, not measured: a minute that is not whole ends the bench with what was wrong. Beside the
//! schedules a few tasks a second go through another queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};

use super::Options;
use super::calls::{Calls, Receiver, quantile_ms};
use crate::report::Report;
use crate::service::client::{Connection, wall_us, write_instant};
use crate::service::server::Server;

const SCHEDULES: u64 = 100_000;
const SCHEDULES_QUICK: u64 = 10_000;
const MINUTE: i64 = 60_000_000;
/// Connections that store the schedules.
const CONNECTIONS: u64 = 8;
/// Attempts of the schedules' queue that may be under way.
const CONCURRENCY: u32 = 256;
/// Between two tasks of the other queue.
const PROBE_EVERY: Duration = Duration::from_millis(25);

pub(super) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::new("schedule", options.json);
    let n = options.schedules.unwrap_or(if options.quick { SCHEDULES_QUICK } else { SCHEDULES });
    let minutes = if options.quick { 1 } else { options.minutes };
    ensure!(n > 0 && minutes > 0, "--schedules and --minutes take at least 1");
    for spread in [true, false] {
        runtime.block_on(phase(n, minutes, spread, &mut report))?;
        if options.quick {
            break;
        }
    }
    report.finish();
    Ok(())
}

async fn phase(n: u64, minutes: u64, spread: bool, report: &mut Report) -> Result<()> {
    let receiver = Receiver::start().await?;
    let mut server = Server::start().await?;
    let mut connection = Connection::open(server.address()).await?;
    let queue = format!("{{\"concurrency\":{CONCURRENCY}}}");
    let status = connection.put("/v1/queues/many", &queue).await?;
    ensure!(status < 300, "the queue: {status}: {}", connection.text());
    let begun = wall_us();
    store(n, spread, &server, &receiver).await?;
    let took = (wall_us() - begun) as f64 / 1e6;
    report.add(n, "put_schedules_per_s", "schedules/s", &[n as f64 / took]);
    // The minute that is under way is not whole; the one after is for what was due while they were stored.
    let first = (wall_us().div_euclid(MINUTE) + 2) * MINUTE;
    let end = first + minutes as i64 * MINUTE;
    let probing = Arc::new(AtomicBool::new(true));
    let probe = tokio::spawn(probe(server.address(), receiver.address, Arc::clone(&probing)));
    until(first - 500_000).await;
    // What came before is warming up.
    let _ = receiver.take();
    until(end + 20_000_000).await;
    probing.store(false, Ordering::Relaxed);
    probe.await??;
    let calls = receiver.take();
    once_each(&calls, n, minutes, first, spread)?;
    let within = |pair: &&(i64, i64)| (first..end + 20_000_000).contains(&pair.0);
    let late = || calls.lateness.iter().filter(within).map(|(_, late)| *late);
    ensure!(late().all(|late| late >= 0), "a call came early");
    let probes = || calls.probes.iter().filter(within).map(|(_, late)| *late);
    let (p50, p99, max, other) = match spread {
        true => ("spread_p50_ms", "spread_p99_ms", "spread_max_ms", "spread_other_queue_p99_ms"),
        false => ("burst_p50_ms", "burst_p99_ms", "burst_max_ms", "burst_other_queue_p99_ms"),
    };
    report.add(n, p50, "ms", &[quantile_ms(late(), 0.5)?]);
    report.add(n, p99, "ms", &[quantile_ms(late(), 0.99)?]);
    report.add(n, max, "ms", &[quantile_ms(late(), 1.0)?]);
    report.add(n, other, "ms", &[quantile_ms(probes(), 0.99)?]);
    server.stop().await
}

/// Stores the schedules, over several connections.
async fn store(n: u64, spread: bool, server: &Server, receiver: &Receiver) -> Result<()> {
    let next = Arc::new(AtomicU64::new(0));
    let mut parts = Vec::new();
    for _ in 0..CONNECTIONS {
        let (next, address, hook) = (Arc::clone(&next), server.address(), receiver.address);
        parts.push(tokio::spawn(async move {
            let mut connection = Connection::open(address).await?;
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= n {
                    return anyhow::Ok(());
                }
                let rule = if spread {
                    let mut start = String::new();
                    write_instant(&mut start, (i * 60_000 / n) as i64);
                    format!(r#""every":"1m","start":"{start}""#)
                } else {
                    r#""cron":"* * * * *""#.to_owned()
                };
                let body = format!(
                    r#"{{{rule},"overlap":"allow","misfire":{{"policy":"all"}},"task":{{"queue":"many","target":{{"http":{{"url":"http://{hook}/s/{i}"}}}}}}}}"#
                );
                loop {
                    match connection.put(&format!("/v1/schedules/s{i}"), &body).await? {
                        200 | 201 => break,
                        // Back-pressure: what it asks for is to wait.
                        503 | 409 => tokio::time::sleep(Duration::from_millis(20)).await,
                        other => anyhow::bail!("s{i} answered {other}: {}", connection.text()),
                    }
                }
            }
        }));
    }
    for part in parts {
        part.await??;
    }
    Ok(())
}

/// Tasks of another queue, a few a second, due soon.
async fn probe(
    server: std::net::SocketAddr,
    hook: std::net::SocketAddr,
    on: Arc<AtomicBool>,
) -> Result<()> {
    let mut connection = Connection::open(server).await?;
    let mut ticks = tokio::time::interval(PROBE_EVERY);
    while on.load(Ordering::Relaxed) {
        ticks.tick().await;
        let mut due = String::new();
        write_instant(&mut due, wall_us() / 1_000 + 2_000);
        let body = format!(
            r#"{{"queue":"other","due_at":"{due}","target":{{"http":{{"url":"http://{hook}/probe"}}}}}}"#
        );
        let status = connection.post("/v1/tasks", &body).await?;
        ensure!(matches!(status, 201 | 503), "a task answered {status}: {}", connection.text());
    }
    Ok(())
}

/// Each schedule was called once for each of the minutes.
fn once_each(calls: &Calls, n: u64, minutes: u64, first: i64, spread: bool) -> Result<()> {
    for i in 0..n {
        let offset = if spread { (i * 60_000 / n) as i64 * 1_000 } else { 0 };
        for minute in 0..minutes as i64 {
            let planned = first + offset + minute * MINUTE;
            let times = calls.planned.get(&(i, planned)).copied().unwrap_or(0);
            ensure!(times == 1, "schedule {i} was called {times} times for minute {minute}");
        }
    }
    Ok(())
}

async fn until(at: i64) {
    let micros = u64::try_from(at - wall_us()).unwrap_or_default();
    tokio::time::sleep(Duration::from_micros(micros)).await;
}
