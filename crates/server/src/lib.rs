//! The HTTP API and the web console of a node.
//!
//! [`serve`] takes a bound socket and a node; [`router`] gives the same without a socket, for
//! embedding and tests. Every request passes the doors first (host, origin, token), has its
//! documents judged against [`Limits`], and is answered with a document of `tourbillon-wire` or
//! a problem document (RFC 9457).
//!
//! What always holds: nothing a client sends makes it panic or answer 5xx by itself; everything
//! is bounded. What it deliberately lacks: TLS, users and roles, the token's file, and any
//! knowledge of how tasks are run, which is the node's.

mod acts;
mod api;
mod body;
mod console;
mod convert;
mod doors;
mod events;
mod failure;
mod limits;

mod options;
mod plan;
mod routes;
mod serve;
mod show;
mod state;
mod workers;

pub use limits::Limits;
pub use options::ServeOptions;
pub use routes::openapi_document;
pub use serve::serve;

pub use tourbillon_node::Node;

/// The API and the console of `node`, behind their doors. Call it within a tokio runtime.
pub fn router(node: Node, options: ServeOptions) -> axum::Router {
    routes::router(state::Shared::new(node, options))
}
