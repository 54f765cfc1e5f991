//! Tests of the delay queue through its public side: the model, examples, faults of its relatives,
//! tasks step by step under a manual clock, and real threads.
#![cfg(not(loom))]

mod examples;
mod faults;
mod model;
mod support;
mod tasks;
mod threads;
