//! End to end: the real binary, real processes, real signals, real HTTP, a real browser.
//!
//! One module a promise. Each test starts servers of its own in a folder of its own. Deliberately
//! absent: what a test inside a crate can show as well, and clusters of nodes.

mod attempts;
mod burst;
mod console;
mod creates;
mod doors;
mod fsync;
mod idle;
mod input;
mod kill;
mod lifecycle;
mod rules;
mod schedules;
mod support;
mod user;
mod workers;
