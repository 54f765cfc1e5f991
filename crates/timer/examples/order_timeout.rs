//! Orders that are closed when they were not paid in time. Whether an order was paid or closed is
//! decided once: `cancel` says which.
//!
//! `cargo run -p tourbillon --example order_timeout`
//!
//! When the process ends, so does what it was to do. Orders that must be closed whatever happens belong
//! to the server.

use std::collections::HashMap;
use std::error::Error;
use std::thread;
use std::time::Duration;

use tourbillon::Timer;

fn main() -> Result<(), Box<dyn Error>> {
    let timer = Timer::new();
    let time_to_pay = Duration::from_millis(80);
    let mut unpaid = HashMap::new();
    for order in 1..=5 {
        let close = timer.after(time_to_pay, move || {
            println!("order {order} was not paid and is closed");
            order
        })?;
        unpaid.insert(order, close);
    }

    for order in [2, 4] {
        if let Some(close) = unpaid.remove(&order)
            && close.cancel()
        {
            println!("order {order} is paid");
        }
    }

    // sleeps: until the rest are closed
    thread::sleep(time_to_pay * 2);
    if let Some(close) = unpaid.remove(&5)
        && !close.cancel()
    {
        println!("order 5 is paid too late: it gets its money back");
    }

    let mut closed = Vec::new();
    for close in unpaid.into_values() {
        closed.push(close.join()?);
    }
    closed.sort_unstable();
    println!("closed: {closed:?} and 5");
    Ok(())
}
