//! Running a server: from flags and a configuration file to a node that serves.
//!
//! Flags win over the file, the file over the defaults. What it deliberately lacks: reading the
//! file again while running.

mod config;
mod signals;
mod token;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tourbillon_client::{Client, ClientConfig};
use tourbillon_node::{Node, NodeOptions};
use tourbillon_schedule::{Crontab, CrontabFormat, Zone};
use tourbillon_server::ServeOptions;
use tourbillon_store::sqlite::{SqliteOptions, SqliteStore};
use tourbillon_store::{Store, Unit, Write};

pub(crate) use config::Config;
use signals::Signals;

use crate::crontab;

/// What `serve` was told.
pub(crate) struct Settings {
    pub(crate) data: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) crontabs: Vec<PathBuf>,
    pub(crate) allow_hosts: Vec<String>,
    pub(crate) advertise: Option<String>,
    pub(crate) after_restore: bool,
    pub(crate) grace: Duration,
    pub(crate) node: NodeOptions,
}

/// The most that stopping the running attempts may take after a second signal: a command is given
/// 5 s to end by itself.
const FORCED: Duration = Duration::from_secs(8);

/// Serves until SIGINT or SIGTERM, then lets running attempts end within the grace. A second
/// signal stops them.
pub(crate) async fn run(settings: Settings) -> anyhow::Result<()> {
    let folder = settings.data.clone();
    let store =
        tokio::task::spawn_blocking(move || SqliteStore::open(&folder, &SqliteOptions::default()))
            .await?
            .with_context(|| format!("the data folder {}", settings.data.display()))?;
    let store = Arc::new(store);
    let info = store.info();
    tracing::info!(store = info.name, durable = info.durable, "{}", info.detail);
    if !info.durable {
        tracing::warn!("what is acknowledged may not survive a power failure: {}", info.detail);
    }
    let token = token::read_or_make(&settings.data)?;
    if settings.after_restore {
        let store = Arc::clone(&store);
        let paused = tokio::task::spawn_blocking(move || pause_all(store.as_ref())).await??;
        eprintln!("after a restore: {paused} queues are paused; see `tourbillon queue resume`");
    }
    let listener = tokio::net::TcpListener::bind(settings.listen)
        .await
        .with_context(|| format!("cannot listen on {}", settings.listen))?;
    let address = listener.local_addr()?;
    let node = Node::start(settings.node, store.clone(), store).await?;
    let options = ServeOptions {
        listen: address,
        token: Some(token.clone()),
        allow_hosts: settings.allow_hosts,
        advertise: settings.advertise,
        ..ServeOptions::default()
    };
    let mut signals = Signals::listen().context("signals cannot be listened to")?;
    // The one line on standard output, so that scripts can read where it listens.
    println!("listening on http://{address}");
    eprintln!("data in {}; the console is at http://{address}/", settings.data.display());
    let crontabs = settings.crontabs;
    if !crontabs.is_empty() {
        let url = format!("http://{}", reachable(address));
        tokio::spawn(async move {
            for file in crontabs {
                if let Err(error) = apply_crontab(&url, &token, &file).await {
                    tracing::error!(file = %file.display(), "crontab not taken over: {error:#}");
                }
            }
        });
    }
    let forced = node.clone();
    let stop = async move {
        signals.next().await;
        eprintln!("stopping: running attempts may end within {:?}", settings.grace);
        tokio::spawn(async move {
            signals.next().await;
            eprintln!("stopping at once: running attempts are stopped");
            // So that no command is left behind. A third signal does not wait for that either.
            tokio::select! {
                () = forced.shutdown(Duration::ZERO) => {}
                () = tokio::time::sleep(FORCED) => {}
                () = signals.next() => {}
            }
            std::process::exit(1);
        });
    };
    tourbillon_server::serve(listener, node.clone(), options, stop).await?;
    node.shutdown(settings.grace).await;
    Ok(())
}

/// An address of this machine under which a wildcard listener is reached.
fn reachable(address: SocketAddr) -> SocketAddr {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    address
}

/// Pauses every queue before anything can start. Answers how many.
fn pause_all(store: &SqliteStore) -> anyhow::Result<usize> {
    let mut queues = store.queues()?;
    queues.retain(|q| !q.config.paused);
    for queue in &mut queues {
        queue.config.paused = true;
        let record = Box::new(queue.clone());
        let unit = Unit { fences: Vec::new(), writes: vec![Write::PutQueue { record }] };
        if let Some(Err(refused)) = store.commit(&[unit])?.into_iter().next() {
            bail!("queue {} cannot be paused: {refused:?}", queue.name);
        }
    }
    Ok(queues.len())
}

/// Makes the file's lines schedules of this server. Lines that were there before stay as they
/// are; a file in `/etc/cron.d` or `/etc/crontab` itself has a user in each line.
async fn apply_crontab(url: &str, token: &str, file: &Path) -> anyhow::Result<()> {
    let text = tokio::fs::read_to_string(file).await.context("cannot be read")?;
    let system = file == Path::new("/etc/crontab") || file.starts_with("/etc/cron.d");
    let format = if system { CrontabFormat::System } else { CrontabFormat::User };
    let zone = crontab::host_zone().unwrap_or_else(|| "UTC".to_owned());
    let parsed = Crontab::parse(&text, format, &Zone::get(&zone)?);
    for error in &parsed.errors {
        tracing::error!("{}:{}: {}", file.display(), error.line, error.error);
    }
    let client = Client::new(ClientConfig::new(url).with_token(token))?;
    for entry in &parsed.entries {
        let document = crontab::schedule(entry, None);
        client
            .put_schedule(&entry.name, &document)
            .await
            .with_context(|| format!("line {}: schedule {}", entry.line, entry.name))?;
    }
    tracing::info!(
        file = %file.display(), schedules = parsed.entries.len(), "crontab taken over"
    );
    Ok(())
}
