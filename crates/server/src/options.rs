//! How the server is set up.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::Limits;

/// What the server needs to know besides the node.
#[derive(Clone)]
pub struct ServeOptions {
    /// The address that is listened on; [`crate::serve`] takes it from the socket. Beyond loopback
    /// the token is needed. Default `127.0.0.1:7070`.
    pub listen: SocketAddr,
    /// The token that callers show as `Authorization: Bearer`. Without one nothing that needs it
    /// can be done. Default: none.
    pub token: Option<String>,
    /// Further host names that requests may be addressed to. Default: none.
    pub allow_hosts: Vec<String>,
    /// The address under which others reach this node: a host, with or without port. Default: none.
    pub advertise: Option<String>,
    /// Bounds of requests.
    pub limits: Limits,
    /// Connections open at a time; more wait to be accepted. Default 10,000.
    pub connections_max: usize,
    /// How long the head of a request may take to come, and so how long an idle connection is kept.
    /// Default 120 s, longer than clients commonly keep theirs.
    pub header_timeout: Duration,
    /// How long the body of a request may take to come. Default 60 s.
    pub body_timeout: Duration,
    /// How long requests under way may go on after shutdown began. Default 10 s.
    pub drain: Duration,
}

impl Default for ServeOptions {
    fn default() -> ServeOptions {
        ServeOptions {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7070)),
            token: None,
            allow_hosts: Vec::new(),
            advertise: None,
            limits: Limits::default(),
            connections_max: 10_000,
            header_timeout: Duration::from_secs(120),
            body_timeout: Duration::from_secs(60),
            drain: Duration::from_secs(10),
        }
    }
}

impl std::fmt::Debug for ServeOptions {
    /// Everything but the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServeOptions")
            .field("listen", &self.listen)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .field("allow_hosts", &self.allow_hosts)
            .field("advertise", &self.advertise)
            .finish_non_exhaustive()
    }
}
