//! The durable scheduler as a pure state machine.
pub mod api;
