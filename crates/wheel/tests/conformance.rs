//! Runs the conformance suite on every structure.

mod suite;

use tourbillon_wheel::HierarchicalWheel;

conformance!(hierarchical_wheel, HierarchicalWheel::<u64>::starting_at);
