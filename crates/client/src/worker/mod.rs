//! The worker SDK: pulls tasks from a source, runs handlers, reports how they ended.
//!
//! What always holds: no more than `concurrency` tasks are held; a claim is extended until its
//! end has been acknowledged; a handler that panics or hangs hurts its own task only; a handler
//! whose claim is lost is told so and its result is dropped. A stop ends claiming first, lets
//! handlers finish, and gives back what was claimed meanwhile.
//!
//! Deliberately absent: transports (see [`Source`]), threads of its own, retry decisions: those are
//! the task's policy, kept by the server.

mod completer;
mod context;
mod holds;
mod source;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;
use tourbillon_wire::{ClaimRequest, ClaimedTask, CompleteItem};

pub use context::{Context, Outcome, StopReason};
pub use source::Source;

use completer::Finished;
use holds::Holds;

type Handler = Arc<dyn Fn(Context) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync>;

/// Pulls tasks of one queue and runs them.
///
/// ```no_run
/// use tourbillon_client::{Client, ClientConfig, Context, Outcome, Worker};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::new(ClientConfig::new("http://127.0.0.1:7070"))?;
/// Worker::new(client, "orders")
///     .kind("close-order", async |context: Context| -> Result<(), String> {
///         let order: u64 = context.payload().map_err(|e| e.to_string())?;
///         println!("closing {order}");
///         Ok(())
///     })
///     .run(async { /* ends when the worker should stop */ })
///     .await?;
/// # Ok(())
/// # }
/// ```
pub struct Worker<S> {
    source: Arc<S>,
    queue: String,
    name: Option<String>,
    handlers: HashMap<String, Handler>,
    any: Option<Handler>,
    concurrency: u32,
    wait: Duration,
    grace: Duration,
}

/// The most tasks asked for in one claim.
const CLAIM_MAX: u32 = 100;

/// How long a handler that was told to stop may take before it is dropped.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// The shortest time between two claims that found nothing.
const IDLE_WAIT_MIN: Duration = Duration::from_secs(1);

impl<S: Source> Worker<S> {
    /// A worker on `queue` without handlers yet, 8 tasks at once.
    pub fn new(source: S, queue: impl Into<String>) -> Worker<S> {
        Worker {
            source: Arc::new(source),
            queue: queue.into(),
            name: None,
            handlers: HashMap::new(),
            any: None,
            concurrency: 8,
            wait: Duration::from_secs(20),
            grace: Duration::from_secs(30),
        }
    }

    /// Runs tasks of that kind with `handler`. Only kinds with a handler are claimed.
    #[must_use]
    pub fn kind<H, F>(mut self, kind: impl Into<String>, handler: H) -> Worker<S>
    where
        H: Fn(Context) -> F + Send + Sync + 'static,
        F: Future<Output: Into<Outcome>> + Send + 'static,
    {
        self.handlers.insert(kind.into(), boxed(handler));
        self
    }

    /// Runs tasks of every other kind with `handler`, so that tasks of any kind are claimed.
    #[must_use]
    pub fn any_kind<H, F>(mut self, handler: H) -> Worker<S>
    where
        H: Fn(Context) -> F + Send + Sync + 'static,
        F: Future<Output: Into<Outcome>> + Send + 'static,
    {
        self.any = Some(boxed(handler));
        self
    }

    /// A name that people find it by. Default: left to the server.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Worker<S> {
        self.name = Some(name.into());
        self
    }

    /// How many tasks it holds at once, at least 1. Default: 8.
    #[must_use]
    pub fn concurrency(mut self, tasks: u32) -> Worker<S> {
        self.concurrency = tasks.max(1);
        self
    }

    /// How long a claim waits at the server when nothing is ready. Default: 20 s.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Worker<S> {
        self.wait = wait;
        self
    }

    /// How long handlers may finish in after the stop; then they are told to stop, and 5 s later
    /// dropped, which reports their attempt as failed. Default: 30 s.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Worker<S> {
        self.grace = grace;
        self
    }

    /// Works until `shutdown` ends and what was begun is reported.
    ///
    /// A source that is busy or unreachable is tried again, ever more slowly up to every 10 s.
    ///
    /// # Errors
    /// When there is no handler, or the source refuses to hand out tasks for a reason that will
    /// not go away (such as a wrong token). What was begun is finished and reported even then.
    pub async fn run(
        self,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), WorkerError<S::Error>> {
        if self.handlers.is_empty() && self.any.is_none() {
            return Err(WorkerError::NoHandler);
        }
        let permits = Arc::new(Semaphore::new(self.concurrency as usize));
        let holds = Arc::new(Holds::default());
        // Everything sent is held, so the channel is never fuller than the holds.
        let (finished, receiver) = mpsc::channel(self.concurrency as usize);
        let beats = tokio::spawn(holds::beat(self.source.clone(), holds.clone()));
        let completer =
            tokio::spawn(completer::complete(self.source.clone(), holds.clone(), receiver));

        let mut running = Running { worker: &self, permits, holds, finished, claim: None };
        let result = tokio::select! {
            error = running.work() => Err(WorkerError::Refused(error)),
            () = shutdown => Ok(()),
        };
        running.drain().await;
        beats.abort();
        completer.abort();
        result
    }
}

fn boxed<H, F>(handler: H) -> Handler
where
    H: Fn(Context) -> F + Send + Sync + 'static,
    F: Future<Output: Into<Outcome>> + Send + 'static,
{
    Arc::new(move |context| {
        let future = handler(context);
        Box::pin(async move { future.await.into() })
    })
}

type Claim<E> = tokio::task::JoinHandle<Result<Vec<ClaimedTask>, E>>;

/// A worker at work.
struct Running<'a, S: Source> {
    worker: &'a Worker<S>,
    permits: Arc<Semaphore>,
    holds: Arc<Holds>,
    finished: mpsc::Sender<Finished>,
    /// The claim in flight. It is a task of its own, so that a stop need not drop it: what it
    /// brings is given back.
    claim: Option<Claim<S::Error>>,
}

impl<S: Source> Running<'_, S> {
    /// Claims and starts for ever; ends with an error that will not go away.
    async fn work(&mut self) -> S::Error {
        let mut backoff = Duration::from_millis(200);
        loop {
            let mut room = self.room().await;
            let asked_at = Instant::now();
            match self.claim(room.len() as u32).await {
                Ok(tasks) => {
                    backoff = Duration::from_millis(200);
                    let nothing = tasks.is_empty();
                    for task in tasks {
                        self.start(task, room.pop());
                    }
                    drop(room);
                    if nothing {
                        // A server that answers without waiting must not be asked in a circle.
                        let pause =
                            IDLE_WAIT_MIN.min(self.worker.wait.max(Duration::from_millis(10)));
                        tokio::time::sleep_until(asked_at + pause).await;
                    }
                }
                Err(error) if S::is_retryable(&error) => {
                    drop(room);
                    tracing::debug!(queue = self.worker.queue, %error, "claim failed, trying again");
                    let wait = S::retry_after(&error).unwrap_or(backoff).max(backoff);
                    tokio::time::sleep(wait).await;
                    backoff = (backoff * 2).min(Duration::from_secs(10));
                }
                Err(error) => return error,
            }
        }
    }

    /// Waits for room for one task, and takes what more there is.
    async fn room(&self) -> Vec<OwnedSemaphorePermit> {
        let mut room = Vec::new();
        // The semaphore is never closed.
        if let Ok(first) = self.permits.clone().acquire_owned().await {
            room.push(first);
        }
        while room.len() < CLAIM_MAX as usize
            && let Ok(next) = self.permits.clone().try_acquire_owned()
        {
            room.push(next);
        }
        room
    }

    async fn claim(&mut self, max: u32) -> Result<Vec<ClaimedTask>, S::Error> {
        let worker = self.worker;
        let kinds = match worker.any {
            Some(_) => Vec::new(),
            None => worker.handlers.keys().cloned().collect(),
        };
        let request = ClaimRequest {
            max,
            wait: tourbillon_wire::Duration::try_from(worker.wait).ok(),
            worker: worker.name.clone(),
            kinds,
        };
        let (source, queue) = (worker.source.clone(), worker.queue.clone());
        let claim =
            self.claim.insert(tokio::spawn(async move { source.claim(&queue, request).await }));
        let result = claim.await;
        self.claim = None;
        // Only a panic of the source ends here otherwise; it claimed nothing that is known of.
        result.unwrap_or_else(|_| Ok(Vec::new()))
    }

    fn start(&self, task: ClaimedTask, permit: Option<OwnedSemaphorePermit>) {
        let worker = self.worker;
        let handler = worker.handlers.get(&task.kind).or(worker.any.as_ref());
        let (Some(handler), Some(permit)) = (handler, permit) else {
            // More than was asked for, or of another kind: the source's fault, not the task's.
            tracing::warn!(task = %task.id, kind = task.kind, "given back: nothing here was to run it");
            let (source, item) = (worker.source.clone(), Outcome::Release.into_item(task.token));
            tokio::spawn(async move { source.complete(vec![item]).await });
            return;
        };
        let token = task.token.clone();
        let stop = self.holds.add(&task, permit);
        let context = Context::new(task, stop, self.holds.clone());
        let run = tokio::spawn(handler(context));
        self.holds.set_abort(&token, run.abort_handle());
        let finished = self.finished.clone();
        tokio::spawn(async move {
            let outcome = match run.await {
                Ok(outcome) => outcome,
                Err(error) => Outcome::Failed(match error.try_into_panic() {
                    Ok(panic) => format!("the handler panicked: {}", panic_text(&*panic)),
                    Err(_) => "the worker stopped before the handler had finished".to_owned(),
                }),
            };
            let _ = finished.send(Finished { token, outcome }).await;
        });
    }

    /// Lets handlers finish, tells those that take too long to stop, drops those that do not.
    async fn drain(mut self) {
        let claim = self.claim.take();
        let give_back = async {
            if let Some(mut claim) = claim {
                let _stop = AbortOnDrop(claim.abort_handle());
                if let Ok(Ok(tasks)) = (&mut claim).await
                    && !tasks.is_empty()
                {
                    let items: Vec<CompleteItem> =
                        tasks.into_iter().map(|t| Outcome::Release.into_item(t.token)).collect();
                    let _ = self.worker.source.complete(items).await;
                }
            }
            std::future::pending::<()>().await;
        };
        let finish = async {
            if self.drained(self.worker.grace).await {
                return;
            }
            self.holds.stop_all(StopReason::Shutdown);
            if self.drained(STOP_WAIT).await {
                return;
            }
            self.holds.abort_all();
            self.drained(STOP_WAIT).await;
        };
        tokio::select! {
            () = give_back => {}
            () = finish => {}
        }
    }

    /// Waits until nothing is held any more; false when that takes longer than `limit`.
    async fn drained(&self, limit: Duration) -> bool {
        let all = self.permits.acquire_many(self.worker.concurrency);
        tokio::time::timeout(limit, all).await.is_ok()
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

/// Why a worker ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum WorkerError<E> {
    /// It has no handler: nothing to do.
    NoHandler,
    /// The source refuses to hand out tasks.
    Refused(E),
}

impl<E: fmt::Display> fmt::Display for WorkerError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkerError::NoHandler => {
                f.write_str("the worker has no handler; give it one with `kind`")
            }
            WorkerError::Refused(error) => write!(f, "claiming was refused: {error}"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for WorkerError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WorkerError::NoHandler => None,
            WorkerError::Refused(error) => Some(error),
        }
    }
}
