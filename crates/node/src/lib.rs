//! What surrounds the engine: runner, store threads, targets.
