//! Rust client of the HTTP API.
