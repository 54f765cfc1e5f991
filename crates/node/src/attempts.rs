//! The attempts this node makes: each a task of the runtime, its stop switch, its live output.
//!
//! Every attempt that was started ends in exactly one [`Event::Ended`], whatever the target does
//! (a panic of the code around it included). Logs of workers' attempts are gathered here too.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tourbillon_engine::api::{Ended, Event, StartOrder};
use tourbillon_schedule::format_instant;
use tourbillon_store::task::Target;
use tourbillon_store::{AttemptOutcome, Output, QueueId, Seq};

use crate::runner::Message;
use crate::targets::command::CommandRunner;
use crate::targets::http::HttpRunner;
use crate::targets::{self, AttemptContext, AttemptEnd, OutputBuffer};

/// Worker attempts whose logs are gathered at once; further ones log nothing.
const WORKER_LOGS_MAX: usize = 1_000;

/// See the module.
pub(crate) struct Attempts {
    live: Mutex<HashMap<(Seq, u64), Live>>,
    worker_logs: Mutex<HashMap<(Seq, u32), OutputBuffer>>,
    http: HttpRunner,
    command: CommandRunner,
    runtime: Handle,
    events: Sender<Message>,
    names: Arc<dyn Fn(QueueId) -> Option<(String, String)> + Send + Sync>,
    shutting_down: AtomicBool,
}

struct Live {
    attempt: u32,
    cancel: CancellationToken,
    output: OutputBuffer,
}

impl Attempts {
    pub(crate) fn new(
        http: HttpRunner,
        runtime: Handle,
        events: Sender<Message>,
        names: Arc<dyn Fn(QueueId) -> Option<(String, String)> + Send + Sync>,
    ) -> Attempts {
        Attempts {
            live: Mutex::default(),
            worker_logs: Mutex::default(),
            http,
            command: CommandRunner::default(),
            runtime,
            events,
            names,
            shutting_down: AtomicBool::new(false),
        }
    }

    fn live(&self) -> MutexGuard<'_, HashMap<(Seq, u64), Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn logs(&self) -> MutexGuard<'_, HashMap<(Seq, u32), OutputBuffer>> {
        self.worker_logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an attempt.
    pub(crate) fn start(self: &Arc<Self>, order: StartOrder) {
        let key = (order.task.seq, order.open.nonce);
        let cancel = CancellationToken::new();
        let output = OutputBuffer::default();
        let live = Live { attempt: order.open.n, cancel: cancel.clone(), output: output.clone() };
        self.live().insert(key, live);
        let this = Arc::clone(self);
        self.runtime.spawn(async move {
            // Ends the attempt also when what is inside panics or the runtime drops it.
            let mut guard = EndGuard { attempts: this, key, ended: None };
            let context = guard.attempts.context(&order, cancel);
            let end = guard.attempts.run(order, context, &output).await;
            guard.ended = Some(end);
        });
    }

    async fn run(
        &self,
        order: StartOrder,
        context: AttemptContext,
        output: &OutputBuffer,
    ) -> AttemptEnd {
        match order.task.spec.target {
            Target::Http(target) => {
                let target = targets::HttpTarget {
                    method: target.method,
                    url: target.url,
                    headers: target.headers,
                };
                let end = self.http.run(target, context).await;
                output.push(&end.output.head);
                output.close();
                end
            }
            Target::Command(target) => {
                let target = targets::CommandTarget {
                    argv: target.argv,
                    env: target.env,
                    cwd: target.cwd,
                    stdin: target.stdin,
                };
                self.command.run(target, context, output).await
            }
            Target::Worker => AttemptEnd::failed("a worker's task was handed to a node"),
        }
    }

    fn context(&self, order: &StartOrder, cancel: CancellationToken) -> AttemptContext {
        let task = &order.task;
        let (namespace, queue) = (self.names)(task.partition.queue).unwrap_or_default();
        AttemptContext {
            task_id: task.id.to_string(),
            attempt: order.open.n,
            fence: order.open.fence().0,
            kind: task.spec.kind.clone(),
            queue,
            namespace,
            key: task.spec.key.clone(),
            due_at: Some(format_instant(order.open.due.0)),
            schedule: task.schedule.as_ref().map(|s| s.name.clone()),
            logical_time: task.schedule.as_ref().map(|s| format_instant(s.logical.0)),
            timeout: Duration::from_micros(order.timeout.max(0) as u64),
            payload: task.spec.payload.clone(),
            cancel,
        }
    }

    /// Asks an attempt to stop.
    pub(crate) fn stop(&self, seq: Seq, nonce: u64) {
        if let Some(live) = self.live().get(&(seq, nonce)) {
            live.cancel.cancel();
        }
    }

    /// Stops everything: the node shuts down, and what did not end in time is lost.
    pub(crate) fn stop_all(&self) {
        self.shutting_down.store(true, Ordering::SeqCst);
        for live in self.live().values() {
            live.cancel.cancel();
        }
    }

    /// How many are under way.
    pub(crate) fn count(&self) -> usize {
        self.live().len()
    }

    /// The output of an attempt under way.
    pub(crate) fn output(&self, seq: Seq, attempt: u32) -> Option<OutputBuffer> {
        let live = self.live();
        let own = live.iter().find(|((s, _), l)| *s == seq && l.attempt == attempt);
        own.map(|(_, l)| l.output.clone()).or_else(|| self.logs().get(&(seq, attempt)).cloned())
    }

    /// Appends to the log of a worker's attempt.
    pub(crate) fn log(&self, seq: Seq, attempt: u32, text: &str) {
        let mut logs = self.logs();
        if logs.len() < WORKER_LOGS_MAX || logs.contains_key(&(seq, attempt)) {
            logs.entry((seq, attempt)).or_default().push(text.as_bytes());
        }
    }

    /// Ends the log of a worker's attempt.
    pub(crate) fn take_log(&self, seq: Seq, attempt: u32) -> Option<Box<Output>> {
        let buffer = self.logs().remove(&(seq, attempt))?;
        buffer.close();
        stored(buffer.snapshot())
    }

    fn ended(&self, key: (Seq, u64), end: Option<AttemptEnd>) {
        let live = self.live().remove(&key);
        if let Some(live) = live {
            live.output.close();
        }
        let end = end.unwrap_or_else(|| AttemptEnd::failed("the attempt broke down in the node"));
        let mut ended = Ended::new(key.0, key.1, outcome(end.outcome));
        ended.reject = end.reject;
        ended.retry_in = end.retry_after.map(|d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX));
        ended.error = end.error;
        ended.http_status = end.http_status;
        ended.exit_code = end.exit_code;
        ended.output = stored(end.output);
        if ended.outcome == AttemptOutcome::Cancelled && self.shutting_down.load(Ordering::SeqCst) {
            ended.outcome = AttemptOutcome::Lost;
            ended.error = Some("the node shut down before the attempt had ended".to_owned());
        }
        // When the runner is gone there is nobody to tell; the next owner finds it lost.
        let _ = self.events.send(Message::Event(Event::Ended(ended)));
    }
}

struct EndGuard {
    attempts: Arc<Attempts>,
    key: (Seq, u64),
    ended: Option<AttemptEnd>,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.attempts.ended(self.key, self.ended.take());
    }
}

fn outcome(of: targets::AttemptOutcome) -> AttemptOutcome {
    match of {
        targets::AttemptOutcome::Succeeded => AttemptOutcome::Succeeded,
        targets::AttemptOutcome::Failed => AttemptOutcome::Failed,
        targets::AttemptOutcome::TimedOut => AttemptOutcome::TimedOut,
        targets::AttemptOutcome::Cancelled => AttemptOutcome::Cancelled,
    }
}

fn stored(output: targets::Output) -> Option<Box<Output>> {
    (output.total_bytes > 0).then(|| {
        Box::new(Output { head: output.head, tail: output.tail, total: output.total_bytes })
    })
}
