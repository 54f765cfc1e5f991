//! The HTTP API and the console over real sockets, on a real node with the memory store.

mod calendars;
mod common;
mod console;
mod doors;
mod fuzz;
mod openapi;
mod queues;
mod refusals;
mod schedules;
mod stats;
mod streams;
mod tasks;
mod workers;
