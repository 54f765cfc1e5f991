//! Timing wheels and other timer queues: no clock, no threads, no dependencies.
