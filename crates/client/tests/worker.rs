//! The worker against a source in memory, on paused time: what it claims, extends, reports and
//! gives back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use tourbillon_client::wire::{
    ClaimRequest, ClaimedTask, CompleteItem, CompleteOutcome, HeartbeatItem, HoldReply, HoldStatus,
    Json,
};
use tourbillon_client::{Context, Outcome, Source, StopReason, Worker, WorkerError};

/// A handler's work: takes that many seconds of the paused time.
async fn work(seconds: u64) {
    let nothing = std::future::pending::<()>();
    assert!(tokio::time::timeout(Duration::from_secs(seconds), nothing).await.is_err());
}

#[derive(Debug)]
struct Refusal {
    retryable: bool,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refusal {}

#[derive(Default)]
struct State {
    ready: VecDeque<ClaimedTask>,
    claims: Vec<ClaimRequest>,
    held: usize,
    held_max: usize,
    beats: Vec<(Duration, HeartbeatItem)>,
    ends: Vec<CompleteItem>,
    status: Option<HoldStatus>,
    claim_failures: VecDeque<bool>,
    complete_failures: u32,
    beats_fail: bool,
}

#[derive(Clone)]
struct Fake {
    state: Arc<Mutex<State>>,
    added: Arc<Notify>,
    ended: watch::Sender<usize>,
    began: Instant,
}

impl Fake {
    fn new() -> Fake {
        let (ended, _) = watch::channel(0);
        Fake { state: Arc::default(), added: Arc::default(), ended, began: Instant::now() }
    }

    fn add(&self, n: usize, kind: &str, period: &str) {
        let mut state = self.state.lock().unwrap();
        for _ in 0..n {
            let i = state.ready.len() + state.ends.len() + state.held;
            state.ready.push_back(
                serde_json::from_value(serde_json::json!({
                    "id": format!("00000000-0000-7000-8000-{i:012}"), "token": format!("t{i}"), "attempt": 1,
                    "fence": "1", "queue": "q", "kind": kind, "payload": i,
                    "due_at": "2026-01-01T00:00:00Z", "claim_period": period
                }))
                .unwrap(),
            );
        }
        drop(state);
        self.added.notify_one();
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap())
    }

    /// Ends when that many attempts have been reported.
    fn ends(&self, n: usize) -> impl Future<Output = ()> + use<> {
        let mut ended = self.ended.subscribe();
        async move {
            ended.wait_for(|count| *count >= n).await.unwrap();
        }
    }
}

impl Source for Fake {
    type Error = Refusal;

    async fn claim(
        &self,
        _queue: &str,
        request: ClaimRequest,
    ) -> Result<Vec<ClaimedTask>, Refusal> {
        let wait: Duration = request.wait.unwrap().into();
        let max = request.max as usize;
        let failure = self.with(|s| {
            s.claims.push(request);
            s.claim_failures.pop_front()
        });
        if let Some(retryable) = failure {
            return Err(Refusal { retryable });
        }
        let deadline = Instant::now() + wait;
        loop {
            let tasks = self.with(|s| {
                let n = max.min(s.ready.len());
                s.held += n;
                s.held_max = s.held_max.max(s.held);
                s.ready.drain(..n).collect::<Vec<_>>()
            });
            if !tasks.is_empty()
                || tokio::time::timeout_at(deadline, self.added.notified()).await.is_err()
            {
                return Ok(tasks);
            }
        }
    }

    async fn complete(&self, items: Vec<CompleteItem>) -> Result<Vec<HoldReply>, Refusal> {
        let replies = self.with(|s| {
            if s.complete_failures > 0 {
                s.complete_failures -= 1;
                return Err(Refusal { retryable: true });
            }
            s.held -= items.len();
            s.ends.extend(items.iter().cloned());
            Ok(items
                .into_iter()
                .map(|i| HoldReply { token: i.token, status: HoldStatus::Yours })
                .collect())
        });
        self.ended.send_replace(self.with(|s| s.ends.len()));
        replies
    }

    async fn heartbeat(&self, items: Vec<HeartbeatItem>) -> Result<Vec<HoldReply>, Refusal> {
        let at = self.began.elapsed();
        self.with(|s| {
            if s.beats_fail {
                return Err(Refusal { retryable: true });
            }
            let status = s.status.unwrap_or(HoldStatus::Yours);
            s.beats.extend(items.iter().cloned().map(|i| (at, i)));
            Ok(items.into_iter().map(|i| HoldReply { token: i.token, status }).collect())
        })
    }

    fn is_retryable(error: &Refusal) -> bool {
        error.retryable
    }
}

#[tokio::test(start_paused = true)]
async fn every_task_is_run_once_and_no_more_than_allowed_are_held() {
    let fake = Fake::new();
    fake.add(50, "k", "60s");
    Worker::new(fake.clone(), "q")
        .concurrency(4)
        .kind("k", async |context: Context| {
            work(1).await;
            let n: u64 = context.payload()?;
            Json::from_value(&(n * 2))
        })
        .run(fake.ends(50))
        .await
        .unwrap();
    fake.with(|s| {
        assert_eq!(s.ends.len(), 50);
        assert!(s.held_max <= 4, "{} were held", s.held_max);
        assert!(s.claims.iter().all(|c| c.kinds == ["k"] && c.max <= 4));
        let mut results: Vec<u64> =
            s.ends.iter().map(|e| e.result.as_ref().unwrap().parse().unwrap()).collect();
        results.sort_unstable();
        assert_eq!(results, (0..50).map(|n| n * 2).collect::<Vec<_>>());
    });
}

#[tokio::test(start_paused = true)]
async fn each_outcome_is_reported_as_it_was() {
    let fake = Fake::new();
    fake.add(6, "k", "60s");
    Worker::new(fake.clone(), "q")
        .any_kind(async |context: Context| -> Result<Outcome, String> {
            match context.payload::<u64>().unwrap() {
                0 => Ok(Outcome::Succeeded(None)),
                1 => Err("no".into()),
                2 => Ok(Outcome::Retry { error: "busy".into(), after: "5s".parse().ok() }),
                3 => Ok(Outcome::Reject("never".into())),
                4 => Ok(Outcome::Release),
                _ => panic!("oh {}", "dear"),
            }
        })
        .run(fake.ends(6))
        .await
        .unwrap();
    let mut ends = fake.with(|s| s.ends.clone());
    ends.sort_by(|a, b| a.token.cmp(&b.token));
    let seen: Vec<_> = ends
        .iter()
        .map(|e| (e.outcome, e.error.as_deref(), e.retry_in.map(|d| d.to_string())))
        .collect();
    assert_eq!(
        seen,
        [
            (CompleteOutcome::Succeeded, None, None),
            (CompleteOutcome::Failed, Some("no"), None),
            (CompleteOutcome::Retry, Some("busy"), Some("5s".to_owned())),
            (CompleteOutcome::Reject, Some("never"), None),
            (CompleteOutcome::Release, None, None),
            (CompleteOutcome::Failed, Some("the handler panicked: oh dear"), None),
        ]
    );
    assert!(fake.with(|s| s.claims[0].kinds.is_empty()));
}

/// A task that ran longer than the default claim was handed to a second worker although the first
/// was alive (apalis#530).
#[tokio::test(start_paused = true)]
async fn a_long_run_is_extended_at_a_third_of_its_claim() {
    let fake = Fake::new();
    fake.add(1, "k", "60s");
    Worker::new(fake.clone(), "q")
        .kind("k", async |_: Context| -> Result<(), String> {
            work(195).await;
            Ok(())
        })
        .run(fake.ends(1))
        .await
        .unwrap();
    let beats: Vec<u64> = fake.with(|s| s.beats.iter().map(|(at, _)| at.as_secs()).collect());
    assert_eq!(beats, [20, 40, 60, 80, 100, 120, 140, 160, 180]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_extended_until_its_end_is_acknowledged() {
    let fake = Fake::new();
    fake.add(1, "k", "3s");
    fake.with(|s| s.complete_failures = 8);
    Worker::new(fake.clone(), "q")
        .kind("k", async |_: Context| Ok::<(), String>(()))
        .run(fake.ends(1))
        .await
        .unwrap();
    fake.with(|s| {
        assert_eq!(s.ends.len(), 1);
        assert!(
            s.beats.len() >= 5,
            "only {} heartbeats while the end could not be told",
            s.beats.len()
        );
    });
}

#[tokio::test(start_paused = true)]
async fn progress_and_log_go_along_soon_and_the_last_words_are_not_lost() {
    let fake = Fake::new();
    fake.add(1, "k", "60s");
    Worker::new(fake.clone(), "q")
        .kind("k", async |context: Context| -> Result<(), String> {
            context.log("one\n");
            context.progress(&0.5).unwrap();
            context.log("two\n");
            work(5).await;
            context.log("three\n");
            context.log(&"x".repeat(100_000));
            Ok(())
        })
        .run(fake.ends(1))
        .await
        .unwrap();
    let beats = fake.with(|s| s.beats.clone());
    assert_eq!(beats.len(), 2);
    assert_eq!((beats[0].0.as_secs(), beats[0].1.log.as_deref()), (1, Some("one\ntwo\n")));
    assert_eq!(beats[0].1.progress.as_ref().unwrap().get(), "0.5");
    assert_eq!(
        beats[1].1.log.as_deref(),
        Some("three\n\n[100000 bytes came too fast and were dropped]\n")
    );
}

async fn stopped_because(prepare: impl FnOnce(&Fake)) -> (StopReason, Fake) {
    let fake = Fake::new();
    fake.add(1, "k", "6s");
    prepare(&fake);
    let (tell, told) = oneshot::channel();
    let tell = Arc::new(Mutex::new(Some(tell)));
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(fake.clone(), "q").kind("k", move |context: Context| {
        let tell = tell.lock().unwrap().take();
        async move {
            let reason = context.stopped().await;
            let _ = tell.unwrap().send(reason);
            Err::<(), _>("stopped")
        }
    });
    let running = tokio::spawn(worker.run(async move {
        let _ = stopped.await;
    }));
    let reason = told.await.unwrap();
    drop(stop);
    running.await.unwrap().unwrap();
    (reason, fake)
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_told_so_and_its_end_is_reported() {
    let (reason, fake) =
        stopped_because(|f| f.with(|s| s.status = Some(HoldStatus::Cancelled))).await;
    assert_eq!(reason, StopReason::Cancelled);
    assert_eq!(fake.with(|s| s.ends.len()), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_claim_is_gone_is_told_so_and_nothing_is_reported() {
    let (reason, fake) = stopped_because(|f| f.with(|s| s.status = Some(HoldStatus::Gone))).await;
    assert_eq!(reason, StopReason::Gone);
    assert_eq!(fake.with(|s| s.ends.len()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_could_not_be_extended_for_its_period_counts_as_gone() {
    let began = Instant::now();
    let (reason, fake) = stopped_because(|f| f.with(|s| s.beats_fail = true)).await;
    assert_eq!(reason, StopReason::Gone);
    assert_eq!(fake.with(|s| s.ends.len()), 0);
    let took = began.elapsed();
    assert!((6..8).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_handlers_finish_and_claims_nothing_more() {
    let fake = Fake::new();
    fake.add(1, "k", "60s");
    let began = Arc::new(Notify::new());
    let wait = began.clone();
    Worker::new(fake.clone(), "q")
        .concurrency(2)
        .kind("k", move |_: Context| {
            let began = began.clone();
            async move {
                began.notify_one();
                work(10).await;
                Ok::<(), String>(())
            }
        })
        .run(async move { wait.notified().await })
        .await
        .unwrap();
    fake.add(1, "k", "60s");
    fake.with(|s| {
        assert_eq!(s.ends.len(), 1);
        assert_eq!(s.ends[0].outcome, CompleteOutcome::Succeeded);
        assert_eq!(s.ready.len(), 1);
    });
}

#[tokio::test(start_paused = true)]
async fn what_a_claim_brings_after_the_stop_is_given_back() {
    let fake = Fake::new();
    fake.add(1, "k", "60s");
    let began = Arc::new(Notify::new());
    let wait = began.clone();
    let later = fake.clone();
    Worker::new(fake.clone(), "q")
        .concurrency(2)
        .kind("k", move |_: Context| {
            let (began, later) = (began.clone(), later.clone());
            async move {
                work(1).await;
                began.notify_one();
                work(1).await;
                later.add(1, "k", "60s");
                work(1).await;
                Ok::<(), String>(())
            }
        })
        .run(async move { wait.notified().await })
        .await
        .unwrap();
    let outcomes: Vec<_> = fake.with(|s| s.ends.iter().map(|e| e.outcome).collect());
    assert_eq!(outcomes, [CompleteOutcome::Release, CompleteOutcome::Succeeded]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_stop_is_dropped_and_reported() {
    let fake = Fake::new();
    fake.add(1, "k", "60s");
    let began = Arc::new(Notify::new());
    let wait = began.clone();
    let start = Instant::now();
    Worker::new(fake.clone(), "q")
        .grace(Duration::from_secs(10))
        .kind("k", move |_: Context| {
            began.notify_one();
            std::future::pending::<Result<(), String>>()
        })
        .run(async move { wait.notified().await })
        .await
        .unwrap();
    fake.with(|s| {
        assert_eq!(s.ends[0].outcome, CompleteOutcome::Failed);
        assert!(s.ends[0].error.as_ref().unwrap().contains("worker stopped"));
    });
    assert_eq!(start.elapsed().as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_busy_source_is_asked_again_and_a_refusing_one_ends_the_worker() {
    let fake = Fake::new();
    fake.with(|s| s.claim_failures.extend([true, true, true, false]));
    let result = Worker::new(fake.clone(), "q")
        .kind("k", async |_: Context| Ok::<(), String>(()))
        .run(std::future::pending())
        .await;
    assert!(matches!(result, Err(WorkerError::Refused(Refusal { retryable: false }))));
    assert_eq!(fake.with(|s| s.claims.len()), 4);

    let result = Worker::new(fake, "q").run(std::future::pending()).await;
    assert!(matches!(result, Err(WorkerError::NoHandler)));
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_does_not_ask_in_a_circle() {
    let fake = Fake::new();
    Worker::new(fake.clone(), "q")
        .wait(Duration::ZERO)
        .kind("k", async |_: Context| Ok::<(), String>(()))
        .run(work(1))
        .await
        .unwrap();
    let claims = fake.with(|s| s.claims.len());
    assert!((2..=101).contains(&claims), "{claims} claims in a second");
}
