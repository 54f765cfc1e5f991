//! Measurements: `cargo run --release -p tourbillon-bench -- NAME [--quick] [--json]`.

fn main() {}
