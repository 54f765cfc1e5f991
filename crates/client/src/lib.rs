//! Rust client of the HTTP API, and the worker SDK.
//!
//! [`Client`] has a method for each endpoint and speaks the documents of `tourbillon-wire`
//! (re-exported as [`wire`]). [`Worker`] pulls tasks from any [`Source`]; the client is one.
//!
//! What always holds: a call that may be made twice without harm is made again, a bounded number of
//! times, when the server says it is busy; no other call is. Creating is such a call because ids are
//! given here. Errors of the libraries underneath do not show in signatures. Every reply has a bound
//! in bytes and every call one in time, except the stream of events, which lasts.
//!
//! Deliberately absent: a blocking variant, configuration files, anything that decides when work
//! is due.
//!
//! ```no_run
//! use tourbillon_client::{Client, ClientConfig, wire::{NewTask, Target}};
//!
//! # async fn example() -> Result<(), tourbillon_client::ClientError> {
//! let client = Client::new(ClientConfig::new("http://127.0.0.1:7070").with_token("secret"))?;
//! let mut task = NewTask::new(Target::worker());
//! task.kind = Some("close-order".into());
//! task.delay = "30m".parse().ok();
//! let task = client.create(task).await?;
//! println!("{} is due at {}", task.id, task.due_at);
//! # Ok(())
//! # }
//! ```

mod admin;
mod attempts;
mod config;
mod error;
mod events;
mod queues;
mod schedules;
mod tasks;
mod transport;
mod worker;

pub use attempts::Output;
pub use config::ClientConfig;
pub use error::ClientError;
pub use events::Events;
pub use transport::Client;
pub use worker::{Context, Outcome, Source, StopReason, Worker, WorkerError};

pub use tourbillon_wire as wire;
