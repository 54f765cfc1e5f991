//! `kill -9` while webhooks are being delivered.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::support::{Call, Folder, Receiver, SECOND, Server, eventually, instant, is_full, now};

/// How long before a kill an attempt may have been answered and yet be unknown to the store, because
/// the batch with its end was not committed.
const UNDER_WAY: i64 = 2 * SECOND;
/// The most attempts that one kill may cut short. The queue lets 64 run at once; the others had been
/// answered within the last group commit.
const REPEATS_MAX: i64 = 500;
/// The most that a delivery may be late, counted from its due time or, when it was due earlier,
/// from the moment the server took work again. Generous, since the machine may be busy.
const LATE_MAX: i64 = 10 * SECOND;

/// beanstalkd#62: after a restart of the server, jobs that were delayed waited their whole delay
/// again. Others lost what was accepted and not yet due, or sent everything twice.
///
/// Thousands of webhooks are due over some seconds; the server is killed in the middle of that,
/// more than once. All are delivered, none early, none late by more than the time the server was
/// away; only attempts that were under way at a kill come twice, under a higher fence number.
#[tokio::test(flavor = "multi_thread")]
async fn webhooks_survive_kills_and_keep_their_time() {
    let (count, span, kills) = if is_full() { (20_000, 12, 3) } else { (4_000, 6, 2) };
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let mut server = Server::start(&folder).await;
    let base = (now() + 2 * SECOND) / 1_000 * 1_000;
    let mut due_times: HashMap<String, i64> = HashMap::new();
    let tasks: Vec<(Value, i64)> = (0..count)
        .map(|n| {
            let due = base + span * SECOND * n / count / 1_000 * 1_000;
            (json!({"target": receiver.target("/hook"), "due_at": instant(due), "payload": n}), due)
        })
        .collect();
    for part in tasks.chunks(1_000) {
        let batch: Value = part.iter().map(|(task, _)| task.clone()).collect();
        let ids = server.post("/v1/tasks/batch", &batch).await.is(201).json();
        let ids = ids["ids"].as_array().expect("ids").iter();
        due_times.extend(ids.zip(part).map(|(id, (_, due))| (id.as_str().unwrap().into(), *due)));
    }
    assert_eq!(due_times.len() as i64, count);

    // From before the kill until it took work again.
    let mut outages: Vec<(i64, i64)> = Vec::new();
    for n in 1..=kills {
        let so_far = (count * n / (kills + 1)) as usize;
        receiver.until("the stream is under way", 60, |calls| calls.len() >= so_far).await;
        let killed = now();
        server.kill().await;
        server = Server::start(&folder).await;
        outages.push((killed, now()));
    }
    eventually("all succeed", 120, async || {
        let queue = server.get("/v1/queues/default").await.is(200).json();
        (queue["counts"]["succeeded"] == count).then_some(())
    })
    .await;

    let mut by_task: HashMap<String, Vec<Call>> = HashMap::new();
    for call in receiver.calls() {
        by_task.entry(call.key.clone()).or_default().push(call);
    }
    let mut repeats = 0;
    assert_eq!(by_task.len(), due_times.len(), "every task was delivered, and nothing else");
    for (id, calls) in &by_task {
        let due = due_times[id];
        let first = &calls[0];
        assert!(first.at >= due, "{id} came {} µs early", due - first.at);
        // An attempt that a kill ended before its call came in was lost, and is made again at once.
        let lost = outages.iter().any(|(killed, _)| due <= *killed && first.due_at > *killed);
        assert!(
            first.due_at == due || (first.attempt > 1 && lost),
            "{id}: its due time is the one it was created with: {first:?}"
        );
        let away = outages.iter().filter(|(from, to)| (*from..*to).contains(&due));
        let from = away.map(|(_, to)| *to).next().unwrap_or(due);
        // One whose start a kill cut short comes after it.
        let cut = outages.iter().filter(|(at, _)| due <= *at && first.at > *at).map(|(_, to)| *to);
        let from = cut.fold(from, i64::max);
        assert!(first.at - from <= LATE_MAX, "{id} was {} µs late", first.at - from);
        for pair in calls.windows(2) {
            let (one, two) = (&pair[0], &pair[1]);
            repeats += 1;
            assert!(two.fence > one.fence, "{id}: a repeat has a higher fence: {calls:?}");
            assert!(two.attempt >= one.attempt, "{id}: attempts count upwards: {calls:?}");
            // The high half of a fence number is the epoch, which grows with every start of the
            // server: the one belongs to an earlier life, and came shortly before its end.
            let lives = (two.fence >> 32) - (one.fence >> 32);
            let last_before_kill = outages.iter().any(|(killed, back)| {
                (killed - UNDER_WAY..=*back).contains(&one.at) && two.at > *killed
            });
            assert!(
                lives > 0 && last_before_kill,
                "{id} came twice without cause: {calls:?}, outages {outages:?}"
            );
        }
    }
    // Those under way (as many as the queue lets run at once) and those whose end was not committed.
    assert!(repeats <= kills * REPEATS_MAX, "{repeats} repeats after {kills} kills");
}
