//! What a server costs that has nothing to do.

// sleeps: the span over which idleness is measured.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Folder, Server, eventually, is_full};

/// How long it is watched.
const WATCHED: Duration = Duration::from_secs(3);
/// The most it may use meanwhile, in hundredths of a core.
const PERCENT_MAX: f64 = 2.0;

/// netty#9710, pulsar#6414: a wheel that ticks through its empty slots, and a scheduler that polls its
/// table, use a core for nothing.
///
/// A hundred thousand tasks wait, some near and most far, and none is due: next to no time is used.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_nothing_due_is_idle() {
    let count = if is_full() { 1_000_000 } else { 100_000 };
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    for from in (0..count).step_by(10_000) {
        let batch: Value = (from..from + 10_000)
            .map(|n| {
                // From five minutes to about a month, a fifth of it within the hour.
                let seconds = if n % 5 == 0 { 300 + n % 3_300 } else { 3_600 + n * 26 % 2_500_000 };
                json!({"target": {"worker": {}}, "delay": format!("{seconds}s")})
            })
            .collect();
        server.post("/v1/tasks/batch", &batch).await.is(201);
    }
    let queue = server.get("/v1/queues/default").await.is(200).json();
    assert_eq!(queue["counts"]["scheduled"], count);
    // What the load set off (checkpoints, loading) comes to its end first.
    let mut before = used(&server);
    eventually("it has done its work", 60, async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = used(&server);
        let quiet = now - before < 0.01 * PERCENT_MAX * 0.5;
        before = now;
        quiet.then_some(())
    })
    .await;
    let before = used(&server);
    // Not a wait for something: this is the time that is measured.
    tokio::time::sleep(WATCHED).await;
    let percent = 100.0 * (used(&server) - before) / WATCHED.as_secs_f64();
    assert!(percent < PERCENT_MAX, "it used {percent:.1} % of a core");
}

/// Processor time of the server so far, in seconds.
fn used(server: &Server) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).expect("it runs");
    // The name, in parentheses, may hold anything; after it come the fields from the third on.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |field: usize| fields[field - 3].parse::<f64>().expect("a number");
    (ticks(14) + ticks(15)) / rustix::param::clock_ticks_per_second() as f64
}
