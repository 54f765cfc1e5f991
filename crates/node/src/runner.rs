//! The thread that owns the engine: takes messages, steps, performs effects in order.
//!
//! Messages that have gathered are stepped together, so that their writes share a batch. When
//! nothing comes the thread sleeps until the engine's next wake, at most [`SLEEP_MAX`], so that
//! a step of the wall clock is noticed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::sync::{broadcast, oneshot};
use tourbillon_clock::StoreClock;
use tourbillon_engine::api::{
    Answer, Completion, Effect, Event, Notice, Now, ReplyId, WorkerOutcome,
};
use tourbillon_engine::{Engine, EngineView};
use tourbillon_store::Time;

use crate::attempts::Attempts;
use crate::threads::{ReadJob, WriteJob};

/// Longest sleep between two looks at the clock.
const SLEEP_MAX: Duration = Duration::from_millis(500);
/// Messages taken into one step.
const TAKE_MAX: usize = 4_096;
/// Time between two refreshes of the numbers that others read, in microseconds.
const VIEW_EVERY: i64 = 200_000;

/// What the runner is told.
pub(crate) enum Message {
    /// An event without an answer.
    Event(Event),
    /// An event whose answer somebody waits for.
    Ask { reply: ReplyId, to: oneshot::Sender<Answer>, event: Event },
    /// The engine's numbers, now.
    View(oneshot::Sender<EngineView>),
    /// Whether all is written and nothing runs.
    Quiet(oneshot::Sender<bool>),
    /// Stop, now.
    Stop,
}

/// Numbers that are refreshed now and then, for health checks and metrics.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauges {
    pub(crate) resident: usize,
    pub(crate) ready: usize,
    pub(crate) ready_by_queue: Vec<(tourbillon_store::QueueId, usize)>,
    pub(crate) running: usize,
    pub(crate) backlog: usize,
    pub(crate) shards_active: usize,
    pub(crate) waiting_claims: usize,
    pub(crate) epoch: u32,
}

/// Where effects go.
pub(crate) struct Hands {
    pub(crate) writer: Sender<WriteJob>,
    /// Loads and reloads, in turn.
    pub(crate) readers: Vec<Sender<ReadJob>>,
    /// Tasks about to start, which wait for nothing else.
    pub(crate) fetcher: Sender<ReadJob>,
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) notices: broadcast::Sender<Notice>,
}

pub(crate) struct Runner {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<StoreClock>,
    pub(crate) inbox: Receiver<Message>,
    pub(crate) hands: Hands,
    pub(crate) gauges: Arc<Mutex<Gauges>>,
    pub(crate) publish: Arc<AtomicBool>,
    pub(crate) waiting: FxHashMap<ReplyId, oneshot::Sender<Answer>>,
    pub(crate) next_reader: usize,
    pub(crate) viewed_at: i64,
}

/// The present, as the engine wants it.
pub(crate) fn now_of(clock: &StoreClock) -> Now {
    let now = clock.now();
    Now { mono: now.mono.as_micros(), store: Time(now.store) }
}

impl Runner {
    /// Performs the first effects, then runs.
    pub(crate) fn run_after(mut self, effects: Vec<Effect>) {
        self.perform(effects);
        self.run();
    }

    /// Runs until told to stop, or until nobody can tell it anything any more.
    fn run(mut self) {
        let mut events = Vec::new();
        loop {
            match self.inbox.recv_timeout(self.patience()) {
                Ok(message) => {
                    if self.take(message, &mut events).is_break() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while events.len() < TAKE_MAX
                && let Ok(message) = self.inbox.try_recv()
            {
                if self.take(message, &mut events).is_break() {
                    return;
                }
            }
            self.clock.observe_wall();
            if let Some(step) = self.clock.poll() {
                tracing::warn!(from = step.from, to = step.to, "the wall clock stepped");
                events.push(Event::ClockStepped);
            }
            self.engine.set_publish(self.publish.load(Ordering::Relaxed));
            let now = now_of(&self.clock);
            let effects = self.engine.step_all(now, events.drain(..));
            self.perform(effects);
            if now.store.0 - self.viewed_at >= VIEW_EVERY || now.store.0 < self.viewed_at {
                self.viewed_at = now.store.0;
                self.refresh();
            }
        }
    }

    fn patience(&self) -> Duration {
        let Some(wake) = self.engine.next_wake() else { return SLEEP_MAX };
        let now = now_of(&self.clock).store;
        Duration::from_micros(wake.since(now).max(0) as u64).min(SLEEP_MAX)
    }

    fn take(&mut self, message: Message, events: &mut Vec<Event>) -> std::ops::ControlFlow<()> {
        match message {
            Message::Event(event) => events.push(event),
            Message::Ask { reply, to, event } => {
                self.waiting.insert(reply, to);
                events.push(event);
            }
            Message::View(to) => {
                let _ = to.send(self.engine.view());
            }
            Message::Quiet(to) => {
                let _ = to.send(self.engine.is_quiet() && events.is_empty());
            }
            Message::Stop => return std::ops::ControlFlow::Break(()),
        }
        std::ops::ControlFlow::Continue(())
    }

    fn refresh(&self) {
        let numbers = self.engine.numbers();
        let mut gauges = self.gauges.lock().unwrap_or_else(PoisonError::into_inner);
        *gauges = Gauges {
            resident: numbers.resident,
            ready: numbers.ready,
            ready_by_queue: numbers.ready_by_queue,
            running: numbers.running,
            backlog: numbers.backlog,
            shards_active: numbers.shards_active,
            waiting_claims: numbers.waiting_claims,
            epoch: numbers.epoch,
        };
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        let mut effects: VecDeque<Effect> = effects.into();
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Commit { call, units } => {
                    let _ = self.hands.writer.send(WriteJob::Batch { call, units });
                }
                Effect::Load { call, from, until, limit } => {
                    self.read(ReadJob::Load { call, from, until, limit });
                }
                Effect::LoadOverdue { call, partition, after, limit } => {
                    self.read(ReadJob::LoadOverdue { call, partition, after, limit });
                }
                Effect::Reload { call, shard, probe } => {
                    self.read(ReadJob::Reload { call, shard, probe });
                }
                Effect::Fetch { call, seqs } => {
                    let _ = self.hands.fetcher.send(ReadJob::Fetch { call, seqs });
                }
                Effect::Start(order) => self.hands.attempts.start(*order),
                Effect::Stop { seq, nonce } => self.hands.attempts.stop(seq, nonce),
                Effect::Reply { reply, answer } => effects.extend(self.reply(reply, answer)),
                Effect::Publish(notice) => {
                    let _ = self.hands.notices.send(notice);
                }
            }
        }
    }

    fn read(&mut self, job: ReadJob) {
        self.next_reader = (self.next_reader + 1) % self.hands.readers.len();
        let _ = self.hands.readers[self.next_reader].send(job);
    }

    /// Answers whoever waits. Tasks claimed for somebody who is gone go back at once.
    fn reply(&mut self, reply: ReplyId, answer: Answer) -> Vec<Effect> {
        let Some(to) = self.waiting.remove(&reply) else { return Vec::new() };
        let Err(Answer::Claimed(orders)) = to.send(answer) else { return Vec::new() };
        if orders.is_empty() {
            return Vec::new();
        }
        let items = orders
            .iter()
            .map(|order| Completion {
                token: order.open.token(order.task.shard, order.task.seq),
                outcome: WorkerOutcome::Release,
                result: None,
                error: None,
                output: None,
            })
            .collect();
        self.engine.step(now_of(&self.clock), Event::Complete { reply, items })
    }
}
