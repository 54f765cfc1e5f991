//! `tourbillon serve`: the options of the server.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tourbillon_node::NodeOptions;
use tracing_subscriber::EnvFilter;

use crate::connect;
use crate::exit::{Status, usage};
use crate::serve::{self, Config, Settings};

/// How long running attempts may go on when the server stops, unless configured.
const GRACE: Duration = Duration::from_secs(30);

/// Run the server.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The data folder of the embedded store [default: the platform's data folder].
    #[arg(long, value_name = "DIR", conflicts_with = "store")]
    pub(crate) data: Option<PathBuf>,
    /// The store of a cluster, such as postgres://user@host/database.
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// The address to listen on; beyond loopback every call needs the token
    /// [default: 127.0.0.1:7070].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// A configuration file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A crontab to run; can be repeated.
    #[arg(long = "crontab", value_name = "FILE")]
    pub(crate) crontabs: Vec<PathBuf>,
    /// Let HTTP targets reach private, loopback and link-local addresses.
    #[arg(long)]
    pub(crate) allow_private_targets: bool,
    /// A further name that requests may be addressed to; can be repeated.
    #[arg(long = "allow-host", value_name = "NAME")]
    pub(crate) allow_hosts: Vec<String>,
    /// The address that other nodes reach this one at.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) advertise: Option<String>,
    /// The store was restored from a backup: start with every queue paused.
    #[arg(long)]
    pub(crate) after_restore: bool,
    /// The most tasks of the near future kept in memory.
    #[arg(long, value_name = "N")]
    pub(crate) max_resident: Option<usize>,
    /// The most bytes of payloads kept in memory.
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_payload_bytes: Option<usize>,
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<Status> {
        if self.store.is_some() {
            return Err(usage("--store: this version keeps its data in a folder; see --data"));
        }
        let settings = self.settings()?;
        tracing_subscriber::fmt()
            .with_env_filter(
                EnvFilter::try_from_env("TOURBILLON_LOG").unwrap_or_else(|_| "info".into()),
            )
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .init();
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the runtime cannot be set up")?
            .block_on(serve::run(settings))?;
        Ok(Status::Done)
    }

    fn settings(self) -> anyhow::Result<Settings> {
        let config = match &self.config {
            Some(path) => Config::read(path).map_err(usage_of)?,
            None => Config::default(),
        };
        let mut node = NodeOptions::default();
        config.apply(&mut node).map_err(usage_of)?;
        if let Some(n) = self.max_resident {
            node.engine.max_resident = n.max(1);
        }
        if let Some(bytes) = self.max_payload_bytes {
            node.engine.max_payload_bytes = bytes as u64;
        }
        let grace = config.grace().map_err(usage_of)?.unwrap_or(GRACE);
        node.allow_private_targets =
            self.allow_private_targets || config.allow_private_targets.unwrap_or(false);
        let data = match self.data.or(config.data) {
            Some(data) => data,
            None => connect::data_folder().ok_or_else(|| {
                usage("--data: give a folder; neither XDG_DATA_HOME nor HOME is set")
            })?,
        };
        node.data_dir = Some(data.clone());
        let listen = match (self.listen, config.listen) {
            (Some(listen), _) => listen,
            (None, Some(text)) => text
                .parse()
                .map_err(|_| usage(format!("listen: given {text:?}; expected ADDRESS:PORT")))?,
            (None, None) => SocketAddr::from(([127, 0, 0, 1], 7070)),
        };
        // On loopback, whoever can call the server can call what it can call.
        node.allow_private_targets |= listen.ip().is_loopback();
        let mut allow_hosts = config.allow_hosts;
        allow_hosts.extend(self.allow_hosts);
        let mut crontabs = config.crontabs;
        crontabs.extend(self.crontabs);
        Ok(Settings {
            data,
            listen,
            crontabs,
            allow_hosts,
            advertise: self.advertise.or(config.advertise),
            after_restore: self.after_restore,
            grace,
            node,
        })
    }
}

/// A configuration that makes no sense is wrong use.
fn usage_of(error: anyhow::Error) -> anyhow::Error {
    usage(format!("{error:#}"))
}
