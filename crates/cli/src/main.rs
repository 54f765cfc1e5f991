//! The `tourbillon` command.

fn main() {}
