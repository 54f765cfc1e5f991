//! Resolving names so that refused addresses are never connected to.
//!
//! What always holds: the addresses judged are the very ones that are connected to, so a name
//! cannot change its mind in between. Of a name with several addresses the refused ones are left
//! out; a name with nothing else is an error. What is deliberately absent: caching, which is the
//! system resolver's, and the judging of literal addresses, which never come here.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::targets::AddressClass;

/// Says what an address is.
pub(super) type AddressRule = Arc<dyn Fn(IpAddr) -> AddressClass + Send + Sync>;

/// Resolves by the system, judged by a rule.
pub(super) struct GuardedResolver {
    rule: Option<AddressRule>,
}

impl GuardedResolver {
    /// Without a rule every address is fine.
    pub(super) fn new(rule: Option<AddressRule>) -> Self {
        Self { rule }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = self.rule.clone();
        let host = name.as_str().to_owned();
        Box::pin(async move {
            // Port 0 stands for the URL's.
            let found = tokio::net::lookup_host((host.clone(), 0))
                .await
                .map_err(|e| ResolveError(format!("{host}: {e}")))?;
            let Some(rule) = rule else {
                return Ok(Box::new(found) as Addrs);
            };
            let mut refused = None;
            let mut allowed: Vec<SocketAddr> = Vec::new();
            for addr in found {
                match refusal(&rule, &host, addr.ip()) {
                    None => allowed.push(addr),
                    Some(why) => refused = Some(why),
                }
            }
            match refused {
                Some(why) if allowed.is_empty() => Err(Box::new(ResolveError(why)).into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

/// Why `ip`, which `host` is or resolves to, may not be connected to.
pub(super) fn refusal(rule: &AddressRule, host: &str, ip: IpAddr) -> Option<String> {
    let class = rule(ip);
    class.is_refused().then(|| {
        let class = class.as_str();
        format!("{host} has the {class} address {ip}; private targets are not allowed")
    })
}

#[derive(Debug)]
struct ResolveError(String);

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ResolveError {}
