//! The configuration file: TOML, every field optional, unknown fields refused.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use tourbillon_node::NodeOptions;
use tourbillon_schedule::parse_duration;

/// What the file may say. Durations are texts such as `30s`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The address to listen on.
    pub(crate) listen: Option<String>,
    /// The data folder.
    pub(crate) data: Option<PathBuf>,
    /// Whether HTTP targets may reach private addresses.
    pub(crate) allow_private_targets: Option<bool>,
    /// Further names that requests may be addressed to.
    #[serde(default)]
    pub(crate) allow_hosts: Vec<String>,
    /// The address that others reach this node at.
    pub(crate) advertise: Option<String>,
    /// Crontabs to take over at start.
    #[serde(default)]
    pub(crate) crontabs: Vec<PathBuf>,
    /// How long running attempts may go on when the server stops.
    pub(crate) shutdown_grace: Option<String>,
    /// The node's name in attempts.
    pub(crate) node: Option<String>,
    /// The near future in memory.
    #[serde(default)]
    window: Window,
    /// Where neither task nor queue says.
    #[serde(default)]
    defaults: Defaults,
    /// How long finished tasks are kept.
    #[serde(default)]
    history: History,
    /// Writing.
    #[serde(default)]
    commit: Commit,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    length: Option<String>,
    max_resident: Option<usize>,
    max_payload_bytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Defaults {
    http_timeout: Option<String>,
    command_timeout: Option<String>,
    claim_timeout: Option<String>,
    max_attempts: Option<u32>,
    max_lost: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct History {
    keep_succeeded: Option<String>,
    keep_others: Option<String>,
    keep_statistics: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Commit {
    max_writes: Option<usize>,
    linger: Option<String>,
    max_pending_writes: Option<usize>,
    max_pending_bytes: Option<u64>,
}

impl Config {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Config> {
        let name = || format!("the configuration file {}", path.display());
        let text = std::fs::read_to_string(path).with_context(name)?;
        toml::from_str(&text).with_context(name)
    }

    /// Puts what it says of the node into the options.
    pub(crate) fn apply(&self, options: &mut NodeOptions) -> anyhow::Result<()> {
        let engine = &mut options.engine;
        set(&mut engine.window, "window.length", &self.window.length)?;
        copy(&mut engine.max_resident, self.window.max_resident);
        copy(&mut engine.max_payload_bytes, self.window.max_payload_bytes);
        set(&mut engine.http_timeout, "defaults.http_timeout", &self.defaults.http_timeout)?;
        let command = &self.defaults.command_timeout;
        set(&mut engine.command_timeout, "defaults.command_timeout", command)?;
        set(&mut engine.claim_timeout, "defaults.claim_timeout", &self.defaults.claim_timeout)?;
        copy(&mut engine.max_attempts, self.defaults.max_attempts);
        copy(&mut engine.max_lost, self.defaults.max_lost);
        copy(&mut engine.batch_max, self.commit.max_writes);
        set(&mut engine.linger, "commit.linger", &self.commit.linger)?;
        copy(&mut engine.max_pending_writes, self.commit.max_pending_writes);
        copy(&mut options.max_accept_bytes, self.commit.max_pending_bytes);
        let succeeded = &self.history.keep_succeeded;
        if let Some(keep) = duration("history.keep_succeeded", succeeded)? {
            options.keep_succeeded = keep;
        }
        if let Some(keep) = duration("history.keep_others", &self.history.keep_others)? {
            options.keep_others = keep;
        }
        let statistics = &self.history.keep_statistics;
        if let Some(keep) = duration("history.keep_statistics", statistics)? {
            options.keep_statistics = keep;
        }
        if let Some(name) = &self.node {
            options.name.clone_from(name);
        }
        for (field, value) in [
            ("window.max_resident", engine_min(self.window.max_resident)),
            ("commit.max_writes", engine_min(self.commit.max_writes)),
            ("commit.max_pending_writes", engine_min(self.commit.max_pending_writes)),
        ] {
            anyhow::ensure!(value, "{field}: given 0; expected at least 1");
        }
        anyhow::ensure!(options.engine.window >= 2_000_000, "window.length: expected at least 2s");
        Ok(())
    }

    /// How long running attempts may go on at shutdown.
    pub(crate) fn grace(&self) -> anyhow::Result<Option<Duration>> {
        duration("shutdown_grace", &self.shutdown_grace)
    }
}

fn engine_min(value: Option<usize>) -> bool {
    value != Some(0)
}

fn copy<T: Copy>(to: &mut T, from: Option<T>) {
    if let Some(value) = from {
        *to = value;
    }
}

fn set(to: &mut i64, field: &str, text: &Option<String>) -> anyhow::Result<()> {
    if let Some(value) = duration(field, text)? {
        *to = i64::try_from(value.as_micros()).unwrap_or(i64::MAX);
    }
    Ok(())
}

fn duration(field: &str, text: &Option<String>) -> anyhow::Result<Option<Duration>> {
    let Some(text) = text else { return Ok(None) };
    let micros = parse_duration(text).map_err(|e| anyhow::anyhow!("{field}: {e}"))?;
    Ok(Some(Duration::from_micros(micros.max(0) as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_sets_what_it_names_and_nothing_else() {
        let text = "listen = '127.0.0.1:0'\n[window]\nlength = '5m'\n[defaults]\nmax_lost = 1\n";
        let config: Config = toml::from_str(text).unwrap();
        let mut options = NodeOptions::default();
        config.apply(&mut options).unwrap();
        assert_eq!(options.engine.window, 300_000_000);
        assert_eq!(options.engine.max_lost, 1);
        assert_eq!(options.engine.max_attempts, NodeOptions::default().engine.max_attempts);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        assert!(toml::from_str::<Config>("lisen = 'x'").unwrap_err().to_string().contains("lisen"));
        let config: Config = toml::from_str("[window]\nlength = 'soon'").unwrap();
        let error = config.apply(&mut NodeOptions::default()).unwrap_err();
        assert!(error.to_string().contains("window.length"), "{error}");
    }
}
