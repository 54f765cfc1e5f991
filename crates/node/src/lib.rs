//! What surrounds the engine: the thread that steps it, the threads of the store, the targets,
//! and the [`Node`] that everything above holds.
//!
//! One thread owns the engine and is the only one that steps it (`runner`). One thread writes,
//! so that commits are grouped; a few read (`threads`). Attempts are tasks of the caller's
//! runtime (`attempts`). `node`, `tasks`, `catalogue` and `calendars` are what may be asked; `api`
//! has their types. Nothing here knows HTTP as a server.

pub mod api;
mod attempts;
mod backfill;
mod calendars;
mod catalogue;
mod housekeeping;
mod ids;
mod node;
mod options;
mod runner;
pub mod targets;
mod tasks;
mod threads;

pub use node::Node;
pub use options::NodeOptions;
pub use tourbillon_engine::{EngineConfig, EngineNumbers, EngineView, api as engine_api, timing};
