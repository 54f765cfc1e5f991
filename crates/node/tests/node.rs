//! A whole node on the memory store: real threads, real clocks, real HTTP on loopback.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tourbillon_engine::calendars::days_of;
use tourbillon_node::api::{
    CalendarDraft, Cancelled, ClaimAsk, CompleteAsk, Draft, Due, NodeError, OnConflict, QueueDraft,
    ScheduleDraft,
};
use tourbillon_node::engine_api::{TokenState, WorkerOutcome};
use tourbillon_node::{Node, NodeOptions};
use tourbillon_store::memory::{Fault, MemoryStore};
use tourbillon_store::schedule::{Misfire, Overlap, Rule};
use tourbillon_store::task::{CommandTarget, HttpTarget, Retry, Target};
use tourbillon_store::{
    AttemptOutcome, CalendarDoc, Queries, QueueConfig, ScheduleDoc, State, Task, TaskId, TaskSpec,
};

const SPACE: &str = "default";

/// A receiver that answers 200 and reports the id of each call.
async fn receiver() -> (SocketAddr, mpsc::UnboundedReceiver<(String, Instant)>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, calls) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let seen = seen.clone();
            let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let id = request.headers()["idempotency-key"].to_str().unwrap().to_owned();
                let _ = seen.send((id, Instant::now()));
                async {
                    Ok::<_, std::convert::Infallible>(hyper::Response::new(Empty::<Bytes>::new()))
                }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service),
            );
        }
    });
    (address, calls)
}

async fn node_on(store: Arc<MemoryStore>) -> Node {
    let options = NodeOptions { allow_private_targets: true, ..NodeOptions::default() };
    let node = Node::start(options, store.clone(), store).await.unwrap();
    until(|| node.status().ready.is_ok()).await;
    node
}

async fn node() -> Node {
    node_on(Arc::new(MemoryStore::new())).await
}

async fn until(mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < end, "it did not come true in 30 s");
        tokio::task::yield_now().await;
    }
}

fn spec(target: Target) -> TaskSpec {
    TaskSpec {
        kind: "test".into(),
        key: None,
        target,
        payload: Some("{\"n\":1}".into()),
        priority: 0,
        timeout: None,
        expires_at: None,
        at_most_once: false,
        retry: Retry::default(),
        concurrency_key: None,
        tags: Vec::new(),
    }
}

fn http(address: SocketAddr) -> Target {
    Target::Http(HttpTarget {
        method: "POST".into(),
        url: format!("http://{address}/hook"),
        headers: Vec::new(),
    })
}

fn command(argv: &[&str]) -> Target {
    Target::Command(CommandTarget {
        argv: argv.iter().map(|s| (*s).to_owned()).collect(),
        env: Vec::new(),
        cwd: None,
        stdin: None,
    })
}

fn draft(due: Due, target: Target) -> Draft {
    Draft {
        namespace: SPACE.into(),
        queue: "default".into(),
        id: None,
        due,
        spec: spec(target),
        on_conflict: OnConflict::Reject,
    }
}

async fn task(node: &Node, id: TaskId) -> Task {
    let space = node.namespace_id(SPACE).unwrap();
    node.query(move |q| q.task(space, id)).await.unwrap().unwrap()
}

async fn finished(node: &Node, id: TaskId) -> Task {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let found = task(node, id).await;
        if found.state.is_final() {
            return found;
        }
        assert!(Instant::now() < end, "still {:?} after 30 s", found.state);
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_fire_once_each_and_never_early() {
    let (address, mut calls) = receiver().await;
    let node = node().await;
    let drafts = (0..500).map(|n| draft(Due::In(n % 50 * 4_000), http(address))).collect();
    let created = node.create(drafts).await.unwrap();
    let mut seen = std::collections::HashSet::new();
    while seen.len() < created.len() {
        let (id, _) =
            tokio::time::timeout(Duration::from_secs(30), calls.recv()).await.unwrap().unwrap();
        assert!(seen.insert(id), "called twice");
    }
    for made in &created {
        let task = finished(&node, made.id).await;
        assert_eq!(task.state, State::Succeeded);
        let attempt = &task.attempts[0];
        assert!(attempt.started_at >= task.due, "early");
        assert_eq!((attempt.n, attempt.http_status), (1, Some(200)));
    }
    node.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_task_never_starts() {
    let (address, mut calls) = receiver().await;
    let node = node().await;
    let created = node.create(vec![draft(Due::In(200_000), http(address))]).await.unwrap();
    let id = created[0].id;
    assert_eq!(node.cancel(SPACE, id).await.unwrap(), Cancelled::Cancelled);
    assert_eq!(node.cancel(SPACE, id).await, Err(NodeError::Final(State::Cancelled)));
    let later = node.create(vec![draft(Due::In(300_000), http(address))]).await.unwrap();
    let (called, _) = calls.recv().await.unwrap();
    assert_eq!(called, later[0].id.to_string(), "the cancelled one was called");
    node.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_command_is_cancelled_with_its_output_kept() {
    let node = node().await;
    let argv = ["sh", "-c", "echo started; exec sleep 600"];
    let created = node.create(vec![draft(Due::Now, command(&argv))]).await.unwrap();
    let id = created[0].id;
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let found = task(&node, id).await;
        if found.state == State::Running
            && node.live_output(found.seq, 1).is_some_and(|o| o.head == b"started\n")
        {
            break;
        }
        assert!(Instant::now() < end);
        tokio::task::yield_now().await;
    }
    assert_eq!(node.cancel(SPACE, id).await.unwrap(), Cancelled::Cancelling);
    let task = finished(&node, id).await;
    assert_eq!(task.state, State::Cancelled);
    assert_eq!(task.attempts[0].outcome, AttemptOutcome::Cancelled);
    let output = node.query(move |q| q.output(task.seq, 1)).await.unwrap().unwrap();
    assert_eq!(output.head, b"started\n");
    node.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_claims_completes_and_is_told_what_is_gone() {
    let node = node().await;
    let ask = ClaimAsk {
        namespace: SPACE.into(),
        queue: "default".into(),
        max: 10,
        wait: 30_000_000,
        worker: "w1".into(),
        kinds: vec!["test".into()],
    };
    // The claim waits before there is anything.
    let waiting = tokio::spawn({
        let (node, ask) = (node.clone(), ask.clone());
        async move { node.claim(ask).await.unwrap() }
    });
    until(|| node.status().waiting_claims == 1).await;
    let created = node.create(vec![draft(Due::Now, Target::Worker)]).await.unwrap();
    let claimed = waiting.await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].task.id, created[0].id);
    assert_eq!(claimed[0].task.spec.payload.as_deref(), Some("{\"n\":1}"));
    let done = CompleteAsk {
        token: claimed[0].token,
        outcome: WorkerOutcome::Succeeded,
        result: Some("42".into()),
        error: None,
    };
    assert_eq!(node.complete(vec![done.clone()]).await.unwrap(), [TokenState::Yours]);
    let task = finished(&node, created[0].id).await;
    assert_eq!(task.attempts[0].result.as_deref(), Some("42"));
    assert_eq!(task.attempts[0].worker.as_deref(), Some("w1"));
    assert_eq!(node.complete(vec![done]).await.unwrap(), [TokenState::Gone]);
    node.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_reject_keep_and_replace() {
    let (address, _calls) = receiver().await;
    let node = node().await;
    let keyed = |on_conflict| {
        let mut draft = draft(Due::In(3_600_000_000), http(address));
        draft.spec.key = Some("order-42".into());
        draft.on_conflict = on_conflict;
        draft
    };
    let first = node.create(vec![keyed(OnConflict::Reject)]).await.unwrap()[0].id;
    assert_eq!(
        node.create(vec![keyed(OnConflict::Reject)]).await,
        Err(NodeError::KeyTaken { index: 0, by: first })
    );
    let kept = node.create(vec![keyed(OnConflict::Keep)]).await.unwrap();
    assert_eq!((kept[0].id, kept[0].existing), (first, true));
    let second = node.create(vec![keyed(OnConflict::Replace)]).await.unwrap()[0].id;
    assert_ne!(first, second);
    assert_eq!(task(&node, first).await.state, State::Cancelled);
    assert_eq!(task(&node, second).await.state, State::Scheduled);
    node.shutdown(Duration::from_secs(5)).await;
}

/// Ten times a second.
fn tick(target: Target) -> ScheduleDoc {
    ScheduleDoc {
        rule: Rule::Every(100_000),
        tz: "UTC".into(),
        gap: "shift".into(),
        fold: "first".into(),
        start: None,
        end: None,
        max_runs: None,
        jitter: 0,
        exclude: Vec::new(),
        misfire: Misfire::Once,
        misfire_grace: None,
        misfire_limit: 100,
        overlap: Overlap::Skip,
        expect_within: None,
        task: spec(target),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_runs_and_is_removed_with_its_waiting_occurrence() {
    let (address, mut calls) = receiver().await;
    let node = node().await;
    let doc = tick(http(address));
    let draft = ScheduleDraft {
        namespace: SPACE.into(),
        name: "tick".into(),
        queue: "default".into(),
        paused: false,
        doc,
    };
    let put = node.put_schedule(draft.clone()).await.unwrap();
    assert!(put.created && put.changed);
    for _ in 0..3 {
        tokio::time::timeout(Duration::from_secs(30), calls.recv()).await.unwrap().unwrap();
    }
    node.delete_schedule(SPACE, "tick").await.unwrap();
    assert_eq!(node.delete_schedule(SPACE, "tick").await, Err(NodeError::NotFound("schedule")));
    // The last run's end may still be under way; the waiting occurrence is gone.
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let counts = node.query(|q| q.counts()).await.unwrap();
        let live: u64 = counts.iter().filter(|c| !c.state.is_final()).map(|c| c.count).sum();
        if live == 0 {
            break;
        }
        assert!(Instant::now() < end, "{live} tasks of the schedule are left");
        tokio::task::yield_now().await;
    }
    node.shutdown(Duration::from_secs(5)).await;
}

fn calendar(weekdays: &[&str]) -> CalendarDraft {
    let weekdays = weekdays.iter().map(|day| (*day).to_owned()).collect();
    let doc = CalendarDoc { weekdays, ..CalendarDoc::default() };
    let days = Arc::new(days_of(&doc).unwrap());
    CalendarDraft { namespace: SPACE.into(), name: "c".into(), doc, days }
}

/// A calendar is known after a restart, and after a write of which it was not known what it came to:
/// what the store has is what schedules are planned by.
#[tokio::test(flavor = "multi_thread")]
async fn schedules_stand_by_the_calendar_that_is_stored() {
    const ALL: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let store = Arc::new(MemoryStore::new());
    let node = node_on(Arc::clone(&store)).await;
    assert_eq!(node.delete_calendar(SPACE, "c").await, Err(NodeError::NotFound("calendar")));
    let put = node.put_calendar(calendar(&[])).await.unwrap();
    assert!(put.created && put.changed);
    let (address, _calls) = receiver().await;
    let draft = ScheduleDraft {
        namespace: SPACE.into(),
        name: "s".into(),
        queue: "default".into(),
        paused: false,
        doc: ScheduleDoc {
            rule: Rule::Every(3_600_000_000),
            exclude: vec!["c".into()],
            ..tick(http(address))
        },
    };
    node.put_schedule(draft.clone()).await.unwrap();
    let namespace = node.namespace_id(SPACE).unwrap();
    let next = |store: &MemoryStore| {
        store.schedule(namespace, "s").unwrap().unwrap().cursor.next.map(|next| next.logical)
    };
    assert!(next(&store).is_some());
    // The fault may meet a batch of the engine instead; then it is tried again.
    let mut wanted: &[&str] = &ALL;
    let failed = loop {
        store.inject(Fault::UnknownCommitted);
        match node.put_calendar(calendar(wanted)).await {
            Err(error) => break error,
            Ok(_) => wanted = if wanted.is_empty() { &ALL } else { &[] },
        }
    };
    assert!(matches!(failed, NodeError::Store(_)), "{failed}");
    // It was committed, and asking again makes sure of the rest.
    let again = node.put_calendar(calendar(wanted)).await.unwrap();
    assert!(!again.created && !again.changed, "{again:?}");
    assert_eq!(next(&store).is_none(), wanted.len() == 7);
    node.put_calendar(calendar(&ALL)).await.unwrap();
    assert_eq!(next(&store), None, "no day is left");
    node.shutdown(Duration::from_secs(5)).await;

    let node = node_on(Arc::clone(&store)).await;
    let known = node.calendars();
    assert!(known.get(namespace, "c").is_some(), "it is known before anybody asks");
    assert_eq!(next(&store), None);
    let in_use = node.delete_calendar(SPACE, "c").await;
    assert_eq!(
        in_use,
        Err(NodeError::InUse { what: "calendar", by: vec!["s".into()], more: false })
    );
    node.put_calendar(calendar(&[])).await.unwrap();
    assert!(next(&store).is_some());
    node.delete_schedule(SPACE, "s").await.unwrap();
    node.delete_calendar(SPACE, "c").await.unwrap();
    let refused = node.put_schedule(draft).await.unwrap_err();
    assert!(
        matches!(&refused, NodeError::Invalid { field, .. } if field == "exclude[0]"),
        "{refused}"
    );
    assert!(refused.to_string().contains("there is no calendar"), "{refused}");
    node.shutdown(Duration::from_secs(5)).await;
}

/// A client left while its calendar was being written: it was stored, and the schedules were planned by
/// the old one until the next start.
///
/// On one thread, so that the change cannot be through before the client has left: with several it once
/// was.
#[tokio::test]
async fn a_change_of_a_calendar_goes_on_when_its_client_leaves() {
    let node = node().await;
    let mut left = Box::pin(node.put_calendar(calendar(&["sun"])));
    tokio::select! {
        biased;
        _ = &mut left => panic!("it cannot be done at once"),
        () = std::future::ready(()) => {}
    }
    drop(left);
    until(|| {
        let namespace = node.namespace_id(SPACE).unwrap_or_default();
        node.calendars().get(namespace, "c").is_some()
    })
    .await;
    node.delete_calendar(SPACE, "c").await.unwrap();
    node.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_queue_starts_nothing_until_it_is_resumed() {
    let (address, mut calls) = receiver().await;
    let node = node().await;
    let config = QueueConfig { paused: true, ..QueueConfig::default() };
    let queue = QueueDraft { namespace: SPACE.into(), name: "default".into(), config };
    node.put_queue(queue).await.unwrap();
    let created = node.create(vec![draft(Due::Now, http(address))]).await.unwrap();
    until(|| node.status().ready_tasks == 1).await;
    assert!(calls.try_recv().is_err());
    node.pause_queue(SPACE, "default", false).await.unwrap();
    let (id, _) = calls.recv().await.unwrap();
    assert_eq!(id, created[0].id.to_string());
    node.shutdown(Duration::from_secs(5)).await;
}

/// A restart on the same store: what was accepted and not yet due is still there, and attempts
/// that died with the node are lost and made again.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_on_where_the_last_node_stopped() {
    let store = Arc::new(MemoryStore::new());
    let first = node_on(Arc::clone(&store)).await;
    let later = first.create(vec![draft(Due::In(2_000_000), command(&["true"]))]).await.unwrap();
    let slow = first
        .create(vec![draft(
            Due::Now,
            command(&["sh", "-c", "test $TOURBILLON_ATTEMPT -gt 1 || sleep 600"]),
        )])
        .await
        .unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while task(&first, slow[0].id).await.state != State::Running {
        assert!(Instant::now() < end);
        tokio::task::yield_now().await;
    }
    first.shutdown(Duration::ZERO).await;
    let second = node_on(store).await;
    let task = finished(&second, slow[0].id).await;
    let outcomes: Vec<_> = task.attempts.iter().map(|a| a.outcome).collect();
    assert_eq!(outcomes, [AttemptOutcome::Lost, AttemptOutcome::Succeeded]);
    assert!(task.attempts[1].fence > task.attempts[0].fence);
    assert_eq!(finished(&second, later[0].id).await.state, State::Succeeded);
    second.shutdown(Duration::from_secs(5)).await;
}
