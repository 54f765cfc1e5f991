//! HTTP API and web console.
