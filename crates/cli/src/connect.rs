//! The server to talk to and the token to show it.

use std::path::{Path, PathBuf};

use tourbillon_client::{Client, ClientConfig};

use crate::cli::Global;

/// Where a token was found.
pub(crate) struct Token {
    pub(crate) value: String,
    pub(crate) source: String,
}

/// A client of the server that the options name.
pub(crate) fn client(global: &Global) -> anyhow::Result<Client> {
    let mut config = ClientConfig::new(&global.url);
    if let Some(token) = token(&global.url) {
        config = config.with_token(token.value);
    }
    if let Some(namespace) = &global.namespace {
        config = config.with_namespace(namespace);
    }
    Ok(Client::new(config)?)
}

/// `TOURBILLON_TOKEN`, else the token file of the local data folder. That file speaks for the local
/// server only, so it is not read for a URL on another machine.
pub(crate) fn token(url: &str) -> Option<Token> {
    if let Some(value) = variable("TOURBILLON_TOKEN") {
        return Some(Token { value, source: "TOURBILLON_TOKEN".to_owned() });
    }
    if !is_loopback(url) {
        return None;
    }
    let file = data_folder()?.join("token");
    let value = read_token(&file)?;
    Some(Token { value, source: file.display().to_string() })
}

fn read_token(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let token = text.trim();
    (!token.is_empty()).then(|| token.to_owned())
}

/// The data folder that `serve` takes when none is named (XDG base directories).
pub(crate) fn data_folder() -> Option<PathBuf> {
    let base = variable("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/share")))?;
    Some(base.join("tourbillon"))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    // A name before `@` is a user, not a host.
    let host = authority.rsplit('@').next().unwrap_or("");
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_local_token_stays_on_this_machine() {
        for local in
            ["http://127.0.0.1:7070", "http://localhost", "http://[::1]:7070/x", "http://127.9.9.9"]
        {
            assert!(is_loopback(local), "{local}");
        }
        for remote in [
            "http://10.0.0.1:7070",
            "https://localhost.example",
            "http://127.0.0.1@evil.example",
            "http://127.0.0.1:1@evil.example/",
            "http://[2001:db8::1]",
            "",
        ] {
            assert!(!is_loopback(remote), "{remote}");
        }
    }
}
