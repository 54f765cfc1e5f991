//! Build, test and release chores: `cargo xtask help`.

fn main() {}
