//! Very many tasks due in the same second.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::{Folder, Receiver, SECOND, Server, instant, is_full, now};

/// The most that a task of a queue without a backlog may be late while another queue has a large one.
/// A scheduler with one line for all would keep it waiting until the crowd is through.
const CALM_LATE_MAX: i64 = 2 * SECOND;

/// camunda#14882, db-scheduler#441: a hundred thousand tasks due at once stopped a scheduler, or kept
/// everything else waiting behind them.
///
/// Ten thousand (at full size a hundred thousand) are due in one second. All start in bounded time, and
/// the tasks of another queue are on time meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_starts_in_bounded_time_and_delays_no_other_queue() {
    let (crowd, seconds) = if is_full() { (100_000, 300) } else { (10_000, 60) };
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start(&folder).await;
    let calm = 40;
    let due = (now() / SECOND + 4) * SECOND;
    for from in (0..crowd).step_by(10_000) {
        let batch: Value = (from..from + 10_000)
            .map(|n| {
                // Within one second, at random.
                let at = due + (n * 7_919 % 1_000) * 1_000;
                json!({"queue": "crowd", "target": receiver.target("/crowd"), "due_at": instant(at)})
            })
            .collect();
        server.post("/v1/tasks/batch", &batch).await.is(201);
    }
    // From the burst on, while it is being worked off.
    let batch: Value = (0..calm)
        .map(|n| {
            let at = due + n * SECOND / 20;
            json!({"queue": "calm", "target": receiver.target("/calm"), "due_at": instant(at)})
        })
        .collect();
    server.post("/v1/tasks/batch", &batch).await.is(201);
    assert!(now() < due, "the machine is too slow for this test");

    let total = (crowd + calm) as usize;
    let calls = receiver.until("all start", seconds, |calls| calls.len() >= total).await;
    assert_eq!(calls.iter().map(|c| &c.key).collect::<HashSet<_>>().len(), total);
    assert_eq!(calls.len(), total, "each once");
    assert!(calls.iter().all(|c| c.at >= c.due_at), "none is early");
    let late = calls.iter().filter(|c| c.path == "/calm").map(|c| c.at - c.due_at).max();
    assert!(late < Some(CALM_LATE_MAX), "the other queue waited {late:?} µs");
}
