//! What surrounds the engine: runner, store threads, targets.

pub mod api;
pub mod targets;
