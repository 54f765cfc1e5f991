//! `tourbillon serve`: the options of the server.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::exit::Status;

/// Run the server.
#[derive(Debug, Args)]
#[allow(dead_code, reason = "nothing reads the options until the server is part of the command")]
pub(crate) struct Serve {
    /// The data folder of the embedded store [default: the platform's data folder].
    #[arg(long, value_name = "DIR", conflicts_with = "store")]
    pub(crate) data: Option<PathBuf>,
    /// The store of a cluster, such as postgres://user@host/database.
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// The address to listen on; beyond loopback every call needs the token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    pub(crate) listen: SocketAddr,
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
        anyhow::bail!("the server is not part of this build of the command")
    }
}
