//! The node as its users hold it: asking the engine, reading the store.
//!
//! Cloning is cheap; all clones are one node. Answers of success mean that what was asked is
//! durable. Reads that a request rests on are repeated when it turns out that they were stale.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{broadcast, oneshot};
use tourbillon_clock::{Clock, StoreClock, SystemClock};
use tourbillon_engine::api::{Answer, Event, Notice, ReplyId, Unavailable};
use tourbillon_engine::calendars::{Calendar, Calendars};
use tourbillon_engine::{Engine, EngineView};
use tourbillon_store::time::SECOND;
use tourbillon_store::{
    Done, LeaseAsk, LeaseRow, NamespaceId, Queries, QueueId, QueueRecord, Refusal, Seq, Shard,
    Store, StoreError, Time, Unit, Write,
};

use crate::api::{LiveOutput, NodeError, Status};
use crate::attempts::Attempts;
use crate::housekeeping::Housekeeper;
use crate::ids::{Ids, random_seed};
use crate::options::NodeOptions;
use crate::runner::{Gauges, Hands, Message, Runner, now_of};
use crate::targets::http::{HttpLimits, HttpRunner};
use crate::targets::secret::NodeSecrets;
use crate::threads::{WriteJob, start_reader, start_writer};

/// How often a request whose reads were stale is repeated before the client is asked to.
pub(crate) const STALE_MAX: u32 = 20;
/// Readers that load windows.
const LOADERS: usize = 2;

/// One server process's share of the work. See the module.
#[derive(Clone)]
pub struct Node {
    pub(crate) inner: Arc<Inner>,
}

type QueueNames = RwLock<HashMap<(String, String), Arc<QueueRecord>>>;

pub(crate) struct Inner {
    pub(crate) options: NodeOptions,
    store: Arc<dyn Store>,
    queries: Arc<dyn Queries>,
    clock: Arc<StoreClock>,
    pub(crate) ids: Ids,
    queues: QueueNames,
    names: Arc<RwLock<HashMap<QueueId, (String, String)>>>,
    namespaces: RwLock<HashMap<String, NamespaceId>>,
    /// Shared with whoever looks; replaced as a whole.
    pub(crate) calendars: RwLock<Arc<Calendars>>,
    /// Calendars change one after another.
    pub(crate) calendar_turn: tokio::sync::Mutex<()>,
    messages: Sender<Message>,
    writer: Mutex<Option<Sender<WriteJob>>>,
    next_reply: AtomicU64,
    pub(crate) accept_bytes: AtomicU64,
    gauges: Arc<Mutex<Gauges>>,
    publish: Arc<AtomicBool>,
    notices: broadcast::Sender<Notice>,
    pub(crate) attempts: Arc<Attempts>,
    started_at: Time,
    draining: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    stop_housekeeping: Mutex<Option<Sender<()>>>,
}

impl Node {
    /// Takes the shards, starts the threads. The first windows are being loaded when it returns;
    /// [`Node::status`] tells when they are in.
    ///
    /// # Errors
    ///
    /// When the store cannot be read, is shared with other nodes (which this version cannot
    /// divide), or threads cannot be started.
    pub async fn start(
        options: NodeOptions,
        store: Arc<dyn Store>,
        queries: Arc<dyn Queries>,
    ) -> Result<Node, NodeError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        Node::start_with_clock(options, store, queries, clock).await
    }

    /// The same, under a given clock.
    ///
    /// # Errors
    ///
    /// As [`Node::start`].
    pub async fn start_with_clock(
        mut options: NodeOptions,
        store: Arc<dyn Store>,
        queries: Arc<dyn Queries>,
        base: Arc<dyn Clock>,
    ) -> Result<Node, NodeError> {
        if !store.info().exclusive {
            return Err(NodeError::Store(format!(
                "the {} store is shared between nodes, which this version cannot divide",
                store.info().name
            )));
        }
        options.engine.node.clone_from(&options.name);
        options.engine.seed = random_seed();
        let clock = Arc::new(StoreClock::new(Arc::clone(&base)));
        clock.observe_wall();
        let now = now_of(&clock);
        let secrets =
            NodeSecrets::new(options.data_dir.as_ref().map(|folder| folder.join("secrets")));
        let limits =
            HttpLimits { allow_private: options.allow_private_targets, ..HttpLimits::default() };
        let http = HttpRunner::new(limits, Arc::new(secrets), base)
            .map_err(|e| NodeError::Store(e.to_string()))?;

        let (held, records, calendars) = {
            let store = Arc::clone(&store);
            let ask = LeaseAsk {
                node: options.name.clone(),
                acquire: Shard::all().collect(),
                renew: Vec::new(),
                release: Vec::new(),
                now: now.store,
                period: 3_600 * SECOND,
            };
            blocking(move || Ok((store.leases(&ask)?, store.queues()?, store.all_calendars()?)))
                .await?
        };
        let mut known = Calendars::default();
        for record in &calendars {
            match Calendar::of(record) {
                Ok(calendar) => {
                    known.put(calendar);
                }
                Err(error) => {
                    let (namespace, name) = (&record.namespace_name, &record.name);
                    tracing::error!(%error, namespace, name, "a stored calendar cannot be read");
                }
            }
        }

        let (messages, inbox) = channel();
        let names: Arc<RwLock<HashMap<QueueId, (String, String)>>> = Arc::default();
        let lookup = Arc::clone(&names);
        let attempts = Arc::new(Attempts::new(
            http,
            tokio::runtime::Handle::current(),
            messages.clone(),
            Arc::new(move |id| read(&lookup).get(&id).cloned()),
        ));
        let io = |e: std::io::Error| NodeError::Store(format!("cannot start a thread: {e}"));
        let mut threads = Vec::new();
        let (writer, thread) = start_writer(Arc::clone(&store), messages.clone()).map_err(io)?;
        threads.push(thread);
        let mut readers = Vec::new();
        for _ in 0..LOADERS {
            let (reader, thread) =
                start_reader("store-loader", Arc::clone(&store), messages.clone()).map_err(io)?;
            readers.push(reader);
            threads.push(thread);
        }
        let (fetcher, thread) =
            start_reader("store-fetcher", Arc::clone(&store), messages.clone()).map_err(io)?;
        threads.push(thread);

        let (notices, _) = broadcast::channel(options.max_notices.max(1));
        let gauges = Arc::new(Mutex::new(Gauges::default()));
        let publish = Arc::new(AtomicBool::new(false));
        let mut engine = Engine::new(options.engine.clone(), now);
        // Schedules come with their shards and are planned by the calendars.
        let all = calendars.iter().filter_map(|c| known.get(c.namespace, &c.name).cloned());
        let mut first = vec![Event::Queues(records.clone()), Event::Calendars(all.collect())];
        // Nobody else can take the shards of an exclusive store, so its leases never end.
        first.extend(held.iter().map(|lease| Event::LeaseGained {
            shard: lease.shard,
            epoch: lease.epoch,
            until: Time::MAX,
        }));
        let effects = engine.step_all(now, first);
        let runner = Runner {
            engine,
            clock: Arc::clone(&clock),
            inbox,
            hands: Hands {
                writer: writer.clone(),
                readers,
                fetcher,
                attempts: Arc::clone(&attempts),
                notices: notices.clone(),
            },
            gauges: Arc::clone(&gauges),
            publish: Arc::clone(&publish),
            waiting: rustc_hash::FxHashMap::default(),
            next_reader: 0,
            viewed_at: 0,
        };
        let thread = std::thread::Builder::new()
            .name("engine".into())
            .spawn(move || runner.run_after(effects))
            .map_err(io)?;
        threads.push(thread);

        let (stop_housekeeping, stop) = channel();
        let keeper = Housekeeper {
            options: options.clone(),
            clock: Arc::clone(&clock),
            writer: writer.clone(),
            stop,
        };
        let thread = std::thread::Builder::new()
            .name("housekeeper".into())
            .spawn(move || keeper.run())
            .map_err(io)?;
        threads.push(thread);

        let node = Node {
            inner: Arc::new(Inner {
                options,
                store,
                queries,
                clock,
                ids: Ids::new(),
                queues: RwLock::default(),
                names,
                namespaces: RwLock::default(),
                calendars: RwLock::new(Arc::new(known)),
                calendar_turn: tokio::sync::Mutex::default(),
                messages,
                writer: Mutex::new(Some(writer)),
                next_reply: AtomicU64::new(1),
                accept_bytes: AtomicU64::new(0),
                gauges,
                publish,
                notices,
                attempts,
                started_at: now.store,
                draining: AtomicBool::new(false),
                threads: Mutex::new(threads),
                stop_housekeeping: Mutex::new(Some(stop_housekeeping)),
            }),
        };
        records.into_iter().for_each(|record| node.remember_queue(record));
        for calendar in &calendars {
            node.remember_namespace(&calendar.namespace_name, calendar.namespace);
        }
        Ok(node)
    }

    /// Store time.
    pub fn now(&self) -> Time {
        now_of(&self.inner.clock).store
    }

    /// The node's settings.
    pub fn options(&self) -> &NodeOptions {
        &self.inner.options
    }

    /// The store's read-only side.
    pub fn queries(&self) -> &Arc<dyn Queries> {
        &self.inner.queries
    }

    /// Runs a blocking read on a thread that may block.
    ///
    /// # Errors
    ///
    /// What the read says.
    pub async fn query<T, F>(&self, read: F) -> Result<T, NodeError>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Queries) -> Result<T, StoreError> + Send + 'static,
    {
        let queries = Arc::clone(&self.inner.queries);
        blocking(move || read(queries.as_ref())).await
    }

    /// Health and numbers, at most a fraction of a second old.
    pub fn status(&self) -> Status {
        let inner = &self.inner;
        let gauges = inner.gauges.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ready = if inner.draining.load(Ordering::SeqCst) {
            Err("the node is shutting down".to_owned())
        } else if gauges.shards_active < tourbillon_store::SHARDS {
            Err(format!(
                "{} of {} shards are loaded",
                gauges.shards_active,
                tourbillon_store::SHARDS
            ))
        } else {
            Ok(())
        };
        Status {
            node: inner.options.name.clone(),
            started_at: inner.started_at,
            ready,
            shards: gauges.shards_active,
            epoch: gauges.epoch,
            resident: gauges.resident,
            running: gauges.running,
            backlog: gauges.backlog,
            ready_tasks: gauges.ready,
            waiting_claims: gauges.waiting_claims,
            store: inner.store.info(),
            gauges: inner.store.gauges(),
        }
    }

    pub(crate) fn ready_in(&self, queue: QueueId) -> u64 {
        let gauges = self.inner.gauges.lock().unwrap_or_else(PoisonError::into_inner);
        let found = gauges.ready_by_queue.iter().find(|(id, _)| *id == queue);
        found.map_or(0, |(_, n)| *n as u64)
    }

    /// The wheel as it is now.
    ///
    /// # Errors
    ///
    /// When the node has stopped.
    pub async fn wheel(&self) -> Result<EngineView, NodeError> {
        let (to, answer) = oneshot::channel();
        self.inner.messages.send(Message::View(to)).map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())
    }

    /// Everything that happens to tasks from now on. A watcher that falls behind loses the
    /// oldest messages, which the receiver tells.
    pub fn subscribe(&self) -> broadcast::Receiver<Notice> {
        let receiver = self.inner.notices.subscribe();
        self.inner.publish.store(true, Ordering::SeqCst);
        receiver
    }

    /// All leases.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn leases(&self) -> Result<Vec<LeaseRow>, NodeError> {
        let store = Arc::clone(&self.inner.store);
        blocking(move || store.lease_table()).await
    }

    /// What an attempt under way on this node has printed so far.
    pub fn live_output(&self, seq: Seq, attempt: u32) -> Option<LiveOutput> {
        let buffer = self.inner.attempts.output(seq, attempt)?;
        let finished = buffer.is_closed();
        let output = buffer.snapshot();
        Some(LiveOutput {
            head: output.head,
            tail: output.tail,
            total: output.total_bytes,
            finished,
        })
    }

    /// Waits until an attempt under way has printed more than `seen` bytes or has ended.
    pub async fn output_changed(&self, seq: Seq, attempt: u32, seen: u64) {
        if let Some(buffer) = self.inner.attempts.output(seq, attempt) {
            let _ = buffer.subscribe_at(seen).next().await;
        }
    }

    // ---- asking the engine ----------------------------------------------------------------

    pub(crate) fn reply_id(&self) -> ReplyId {
        ReplyId(self.inner.next_reply.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn tell(&self, event: Event) {
        let _ = self.inner.messages.send(Message::Event(event));
    }

    pub(crate) async fn ask(
        &self,
        event: impl FnOnce(ReplyId) -> Event,
    ) -> Result<Answer, NodeError> {
        self.ask_as(self.reply_id(), event).await
    }

    pub(crate) async fn ask_as(
        &self,
        reply: ReplyId,
        event: impl FnOnce(ReplyId) -> Event,
    ) -> Result<Answer, NodeError> {
        let (to, answer) = oneshot::channel();
        let message = Message::Ask { reply, to, event: event(reply) };
        self.inner.messages.send(message).map_err(|_| stopped())?;
        match answer.await.map_err(|_| stopped())? {
            Answer::Unavailable(why) => Err(unavailable(why)),
            answer => Ok(answer),
        }
    }

    /// Writes what needs no owner.
    pub(crate) async fn write_aside(&self, write: Write) -> Result<Done, NodeError> {
        self.write_or_refusal(write).await?.map_err(|_| NodeError::Changed)
    }

    /// The same, telling why the store refused it.
    pub(crate) async fn write_or_refusal(
        &self,
        write: Write,
    ) -> Result<Result<Done, Refusal>, NodeError> {
        let units = vec![Unit { fences: Vec::new(), writes: vec![write] }];
        let (reply, answer) = oneshot::channel();
        {
            let writer = self.inner.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let writer = writer.as_ref().ok_or_else(stopped)?;
            writer.send(WriteJob::Aside { units, reply }).map_err(|_| stopped())?;
        }
        let results = answer.await.map_err(|_| stopped())?.map_err(store_error)?;
        match results.into_iter().next() {
            Some(Ok(done)) => done.into_iter().next().map(Ok).ok_or(NodeError::Changed),
            Some(Err(refused)) => Ok(Err(refused.why)),
            None => Err(NodeError::Changed),
        }
    }

    // ---- names ------------------------------------------------------------------------------

    pub(crate) fn remember_queue(&self, record: QueueRecord) {
        let key = (record.namespace_name.clone(), record.name.clone());
        self.remember_namespace(&record.namespace_name, record.namespace);
        write(&self.inner.names).insert(record.id, key.clone());
        let mut queues = write(&self.inner.queues);
        if queues.get(&key).is_none_or(|known| known.version <= record.version) {
            queues.insert(key, Arc::new(record));
        }
    }

    pub(crate) fn remember_namespace(&self, name: &str, id: NamespaceId) {
        write(&self.inner.namespaces).insert(name.to_owned(), id);
    }

    /// A queue that exists.
    pub(crate) fn known_queue(&self, namespace: &str, name: &str) -> Option<Arc<QueueRecord>> {
        // Looked up by pairs of owned strings, so the common case of one lookup per request
        // costs two short copies.
        read(&self.inner.queues).get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    pub(crate) fn known_queues(&self, namespace: &str) -> Vec<Arc<QueueRecord>> {
        let queues = read(&self.inner.queues);
        let mut found: Vec<_> =
            queues.values().filter(|q| q.namespace_name == namespace).cloned().collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// The queue, created with the defaults when it is first used.
    pub(crate) async fn ensure_queue(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<QueueRecord>, NodeError> {
        if let Some(queue) = self.known_queue(namespace, name) {
            return Ok(queue);
        }
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let write = Write::EnsureQueue { namespace: namespace.clone(), name: name.clone() };
        match self.write_aside(write).await? {
            Done::Queue(record) => {
                self.tell(Event::Queues(vec![(*record).clone()]));
                self.remember_queue(*record);
            }
            _ => return Err(NodeError::Changed),
        }
        self.known_queue(&namespace, &name).ok_or(NodeError::Changed)
    }

    /// Names of a queue: namespace and queue.
    pub fn queue_name(&self, id: QueueId) -> Option<(String, String)> {
        read(&self.inner.names).get(&id).cloned()
    }

    /// The id of a namespace in which something was ever created.
    pub fn namespace_id(&self, name: &str) -> Option<NamespaceId> {
        read(&self.inner.namespaces).get(name).copied()
    }

    // ---- stopping -----------------------------------------------------------------------------

    /// Takes nothing in any more, lets attempts end within `grace`, stops the rest, writes what
    /// is left and stops the threads. Calling it again is fine.
    pub async fn shutdown(&self, grace: Duration) {
        let inner = &self.inner;
        inner.draining.store(true, Ordering::SeqCst);
        self.tell(Event::Drain);
        let end = tokio::time::Instant::now() + grace;
        while inner.attempts.count() > 0 && tokio::time::Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        inner.attempts.stop_all();
        let end = tokio::time::Instant::now() + Duration::from_secs(15);
        while tokio::time::Instant::now() < end {
            let (to, quiet) = oneshot::channel();
            if inner.messages.send(Message::Quiet(to)).is_err() {
                break;
            }
            // A worker's attempt is not this node's to end.
            match quiet.await {
                Ok(false) => tokio::time::sleep(Duration::from_millis(5)).await,
                _ => break,
            }
        }
        let _ = inner.messages.send(Message::Stop);
        inner.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        inner.stop_housekeeping.lock().unwrap_or_else(PoisonError::into_inner).take();
        let threads =
            std::mem::take(&mut *inner.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = tokio::task::spawn_blocking(move || {
            for thread in threads {
                let _ = thread.join();
            }
        })
        .await;
    }
}

/// Runs a blocking call on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, NodeError> {
    match tokio::task::spawn_blocking(call).await {
        Ok(result) => result.map_err(store_error),
        Err(error) => Err(NodeError::Store(error.to_string())),
    }
}

pub(crate) fn store_error(error: StoreError) -> NodeError {
    if error.is_full() { NodeError::Full } else { NodeError::Store(error.to_string()) }
}

pub(crate) fn unavailable(why: Unavailable) -> NodeError {
    let busy = |retry_after_ms, why: &str| NodeError::Busy { retry_after_ms, why: why.to_owned() };
    match why {
        Unavailable::NotOwner => busy(200, "the shard is being loaded"),
        Unavailable::Overloaded => busy(1_000, "too many writes are waiting"),
        Unavailable::Draining => busy(1_000, "the node is shutting down"),
        Unavailable::Full => NodeError::Full,
        Unavailable::Store(why) => {
            NodeError::Busy { retry_after_ms: 1_000, why: format!("the store failed: {why}") }
        }
    }
}

fn stopped() -> NodeError {
    NodeError::Busy { retry_after_ms: 1_000, why: "the node has stopped".to_owned() }
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
