//! The durable scheduler as a pure state machine.
