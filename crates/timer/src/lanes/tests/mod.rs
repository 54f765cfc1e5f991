//! Tests of lanes and driver on one thread, which may look inside: any lane can be chosen by setting
//! the thread's hint. Tests with threads are in the crate's `tests/` folder.

mod examples;
mod model;
mod ops;
