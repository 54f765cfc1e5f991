//! `service`: what a user of the whole server gets. A server process of its own, a client and a
//! receiver of webhooks in this process, on the same machine.

pub(crate) mod client;
mod receiver;
pub(crate) mod server;
pub(crate) mod webhook;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;

use crate::report::Report;
use client::{Load, Shape};
use receiver::Receiver;
use server::Server;

/// What to measure.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    /// End within a minute: fewer and smaller rounds, at most 200,000 pending.
    #[arg(long)]
    quick: bool,
    /// Pending tasks up to which acceptance is measured.
    #[arg(long, default_value_t = 10_000_000)]
    pending: u64,
    /// Also fire so many tasks that are due within five minutes, and watch memory.
    #[arg(long, value_name = "N")]
    flood: Option<u64>,
    /// Measure only these parts: accept, random, single, lateness, fired, idle, syncs, flood.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|p| p == part)
    }
}

/// Tasks in one request of the batch measurements.
const BATCH: usize = 1_000;
/// Connections of the batch measurements.
const BATCH_CONNECTIONS: usize = 8;
/// Connections of the one-by-one measurements.
const SINGLE_CONNECTIONS: usize = 64;
const DAY: i64 = 24 * 3_600 * 1_000;

pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::new("service", options.json);
    runtime.block_on(async {
        if options.wants("single") {
            single(options, &mut report).await.context("single")?;
        }
        if options.wants("random") {
            random(options, &mut report).await.context("random")?;
        }
        if options.wants("lateness") {
            lateness(options, &mut report).await.context("lateness")?;
        }
        if options.wants("fired") {
            fired(options, &mut report).await.context("fired")?;
        }
        if options.wants("accept") || options.wants("idle") {
            accept(options, &mut report).await.context("accept")?;
        }
        if let Some(n) = options.flood
            && options.wants("flood")
        {
            flood(n, &mut report).await.context("flood")?;
        }
        anyhow::Ok(())
    })?;
    report.finish();
    Ok(())
}

/// Batches on an empty store, and with more and more pending; then memory, restart, disk.
async fn accept(options: &Options, report: &mut Report) -> Result<()> {
    let receiver = Receiver::start().await?;
    let mut server = Server::start().await?;
    let (round, rounds) = if options.quick { (50_000, 3) } else { (300_000, 3) };
    let pending = if options.quick { options.pending.min(200_000) } else { options.pending };
    let load = |n| Load {
        tasks: n,
        batch: BATCH,
        connections: BATCH_CONNECTIONS,
        shape: Shape::Spread { within_ms: DAY },
        hook: receiver.address(),
    };
    let mut have = 0;
    let mut steps = vec![0, 1_000_000, 10_000_000];
    steps.retain(|s| *s <= pending);
    if options.quick {
        steps.push(pending);
    }
    for n in steps {
        while have < n {
            let more = (n - have).min(500_000);
            load(more).run(server.address()).await?;
            have += more;
        }
        let mut rates = Vec::new();
        for _ in 0..rounds {
            let done = load(round).run(server.address()).await?;
            rates.push(done.rate());
            have += round;
        }
        report.add(n, "accept_batch_per_s", "tasks/s", &rates);
        if n > 0 && options.wants("idle") {
            server.settle().await?;
            let span = Duration::from_secs(if options.quick { 5 } else { 20 });
            report.add(n, "idle_cpu_percent", "%", &[server.cpu_percent(span).await?]);
        }
        if n > 0 {
            report.add(have, "rss_mb", "MB", &[server.rss_mb()?]);
        }
    }
    let metrics = server.metrics().await?;
    report.add(have, "commits", "commits", &[metrics.commits]);
    server.stop().await?;
    report.add(have, "disk_bytes_per_task", "bytes", &[server.disk_bytes()? as f64 / have as f64]);
    let mut times = Vec::new();
    for _ in 0..3 {
        let begun = Instant::now();
        server.restart().await?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        server.kill()?;
    }
    report.add(have, "restart_ms", "ms", &times);
    server.restart().await?;
    report.add(have, "rss_mb_after_restart", "MB", &[server.rss_mb()?]);
    server.stop().await
}

/// Batches with random ids and a key for each task.
async fn random(options: &Options, report: &mut Report) -> Result<()> {
    let receiver = Receiver::start().await?;
    let mut server = Server::start().await?;
    let (round, rounds) = if options.quick { (30_000, 3) } else { (200_000, 5) };
    let mut rates = Vec::new();
    for _ in 0..rounds {
        let load = Load {
            tasks: round,
            batch: BATCH,
            connections: BATCH_CONNECTIONS,
            shape: Shape::RandomIds { within_ms: DAY },
            hook: receiver.address(),
        };
        rates.push(load.run(server.address()).await?.rate());
    }
    report.add(0, "accept_batch_random_per_s", "tasks/s", &rates);
    server.stop().await
}

/// One task a request.
async fn single(options: &Options, report: &mut Report) -> Result<()> {
    let receiver = Receiver::start().await?;
    let mut server = Server::start().await?;
    let (round, rounds) = if options.quick { (20_000, 3) } else { (100_000, 5) };
    let (mut rates, mut tails) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let load = Load {
            tasks: round,
            batch: 1,
            connections: SINGLE_CONNECTIONS,
            shape: Shape::Spread { within_ms: DAY },
            hook: receiver.address(),
        };
        let done = load.run(server.address()).await?;
        rates.push(done.rate());
        tails.push(done.latency_ms(0.99));
    }
    report.add(0, "accept_single_per_s", "tasks/s", &rates);
    report.add(0, "accept_single_p99_ms", "ms", &tails);
    server.stop().await
}

/// Webhooks at 5,000 a second: arrival at the receiver minus due.
async fn lateness(options: &Options, report: &mut Report) -> Result<()> {
    const PER_SECOND: u64 = 5_000;
    let receiver = Receiver::start().await?;
    let mut server = Server::start().await?;
    let seconds: u64 = if options.quick { 6 } else { 20 };
    let n = PER_SECOND * seconds;
    let from = client::wall_ms() + 3_000 + (n / 40_000) as i64 * 1_000;
    let load = Load {
        tasks: n,
        batch: BATCH,
        connections: BATCH_CONNECTIONS,
        shape: Shape::Between { from_ms: from, within_ms: seconds as i64 * 1_000 },
        hook: receiver.address(),
    };
    load.run(server.address()).await?;
    receiver.wait_for(n, Duration::from_secs(seconds + 60)).await?;
    let seen = receiver.seen();
    anyhow::ensure!(seen.early == 0, "{} calls came early", seen.early);
    report.add(n, "lateness_p50_ms", "ms", &[seen.lateness_ms(0.50)]);
    report.add(n, "lateness_p99_ms", "ms", &[seen.lateness_ms(0.99)]);
    report.add(n, "lateness_max_ms", "ms", &[seen.lateness_ms(1.0)]);
    server.stop().await
}

/// Everything due at one moment: how fast it is fired.
async fn fired(options: &Options, report: &mut Report) -> Result<()> {
    let receiver = Receiver::start().await?;
    let mut server = Server::start().await?;
    let n: u64 = if options.quick { 30_000 } else { 200_000 };
    let from = client::wall_ms() + 3_000 + (n / 40_000) as i64 * 1_000;
    let load = Load {
        tasks: n,
        batch: BATCH,
        connections: BATCH_CONNECTIONS,
        shape: Shape::Between { from_ms: from, within_ms: 1 },
        hook: receiver.address(),
    };
    load.run(server.address()).await?;
    receiver.wait_for(n, Duration::from_secs(300)).await?;
    let seen = receiver.seen();
    anyhow::ensure!(seen.early == 0, "{} calls came early", seen.early);
    report.add(n, "fired_per_s", "tasks/s", &[n as f64 / seen.span().as_secs_f64()]);
    server.stop().await
}

/// Far more due within five minutes than can be fired: memory stays bounded, all is fired.
async fn flood(n: u64, report: &mut Report) -> Result<()> {
    let receiver = Receiver::start().await?;
    let mut server = Server::start().await?;
    let from = client::wall_ms() + (n / 40_000) as i64 * 1_000;
    let load = Load {
        tasks: n,
        batch: BATCH,
        connections: BATCH_CONNECTIONS,
        shape: Shape::Between { from_ms: from, within_ms: 300_000 },
        hook: receiver.address(),
    };
    load.run(server.address()).await?;
    let begun = Instant::now();
    let mut most: f64 = 0.0;
    while receiver.count() < n {
        most = most.max(server.rss_mb()?);
        anyhow::ensure!(begun.elapsed() < Duration::from_secs(7_200), "not all fired in 2 h");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let seen = receiver.seen();
    report.add(n, "flood_rss_mb", "MB", &[most]);
    report.add(n, "flood_early", "tasks", &[seen.early as f64]);
    report.add(n, "flood_fired_per_s", "tasks/s", &[n as f64 / seen.span().as_secs_f64()]);
    server.stop().await
}
