//! The server under measurement: this program again, as a process of its own on a temporary
//! folder, at default durability.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use tourbillon_node::{Node, NodeOptions};
use tourbillon_server::ServeOptions;
use tourbillon_store::sqlite::{SqliteOptions, SqliteStore};

use super::client::get;

/// What the child is told.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    data: PathBuf,
}

/// Runs the server until standard input ends; prints its address first.
pub(crate) fn serve(args: &ServeArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = Arc::new(SqliteStore::open(&args.data, &SqliteOptions::default())?);
        let options = NodeOptions {
            allow_private_targets: true,
            data_dir: Some(args.data.clone()),
            ..NodeOptions::default()
        };
        let node = Node::start(options, store.clone(), store).await?;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let (stopped, stop) = tokio::sync::oneshot::channel::<()>();
        std::thread::spawn(move || {
            let _ = std::io::stdin().lock().lines().count();
            let _ = stopped.send(());
        });
        let end = async move {
            let _ = stop.await;
        };
        tourbillon_server::serve(listener, node.clone(), ServeOptions::default(), end).await?;
        node.shutdown(Duration::from_secs(5)).await;
        Ok(())
    })
}

/// A running server and its folder.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    child: Option<Child>,
    address: SocketAddr,
}

/// Some of what `/metrics` tells.
pub(crate) struct Metrics {
    pub(crate) commits: f64,
}

impl Server {
    /// Starts on an empty folder and waits until it is ready.
    pub(crate) async fn start() -> Result<Server> {
        let folder = tempfile::tempdir()?;
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Server { folder, child: None, address };
        server.restart().await?;
        Ok(server)
    }

    /// Starts again on the same folder and waits until it is ready.
    pub(crate) async fn restart(&mut self) -> Result<()> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("__serve")
            .arg(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().context("no output")?;
        BufReader::new(out).read_line(&mut line)?;
        self.child = Some(child);
        self.address = line.trim().parse().context("the server did not start")?;
        let end = Instant::now() + Duration::from_secs(60);
        while get(self.address, "/readyz").await?.0 != 200 {
            anyhow::ensure!(Instant::now() < end, "not ready after 60 s");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    fn pid(&self) -> Result<u32> {
        Ok(self.child.as_ref().context("not running")?.id())
    }

    /// Resident memory, in MB.
    pub(crate) fn rss_mb(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()?))?;
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).context("no VmRSS")?;
        let kib: f64 = line.split_whitespace().nth(1).context("no VmRSS")?.parse()?;
        Ok(kib * 1024.0 / 1e6)
    }

    fn cpu_ticks(&self) -> Result<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()?))?;
        let rest = stat.rsplit(") ").next().context("no stat")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Ok(fields[11].parse::<u64>()? + fields[12].parse::<u64>()?)
    }

    /// Share of one core used over a span in which nothing is asked of it.
    pub(crate) async fn cpu_percent(&self, span: Duration) -> Result<f64> {
        let before = self.cpu_ticks()?;
        tokio::time::sleep(span).await;
        let ticks = self.cpu_ticks()? - before;
        // Linux counts 100 ticks a second for user programs.
        Ok(ticks as f64 / span.as_secs_f64())
    }

    /// Waits until the log is checkpointed and the server is at rest.
    pub(crate) async fn settle(&self) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let before = self.cpu_ticks()?;
            tokio::time::sleep(Duration::from_secs(2)).await;
            if self.cpu_ticks()? - before <= 4 || Instant::now() > end {
                return Ok(());
            }
        }
    }

    pub(crate) async fn metrics(&self) -> Result<Metrics> {
        let (status, text) = get(self.address, "/metrics").await?;
        anyhow::ensure!(status == 200, "/metrics answered {status}");
        let commits = text
            .lines()
            .find_map(|l| l.strip_prefix("tourbillon_store_commits_total "))
            .context("no commits in /metrics")?
            .parse()?;
        Ok(Metrics { commits })
    }

    /// Bytes of the data folder.
    pub(crate) fn disk_bytes(&self) -> Result<u64> {
        bytes_in(self.folder.path())
    }

    /// Ends it in order.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            let status = tokio::task::spawn_blocking(move || child.wait()).await??;
            anyhow::ensure!(status.success(), "the server ended with {status}");
        }
        Ok(())
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

fn bytes_in(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        sum += if meta.is_dir() { bytes_in(&entry.path())? } else { meta.len() };
    }
    Ok(sum)
}
