//! The only reader of clocks: system, boot-time and manual.
