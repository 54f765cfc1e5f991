//! The threads that talk to the store: one writer and a few readers.
//!
//! All of them end when the sender of their jobs is dropped, after the jobs already sent.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::oneshot;
use tourbillon_engine::api::{CallId, Event};
use tourbillon_store::{
    Edge, Partition, Rank, Seq, Shard, Store, StoreError, Time, Unit, UnitResult,
};

use crate::runner::Message;

/// Something to write.
pub(crate) enum WriteJob {
    /// The engine's batch; answered by an event.
    Batch { call: CallId, units: Vec<Unit> },
    /// Units that need no owner; answered to whoever waits.
    Aside { units: Vec<Unit>, reply: oneshot::Sender<Result<Vec<UnitResult>, StoreError>> },
}

/// Something to read; answered by an event.
pub(crate) enum ReadJob {
    Load { call: CallId, from: Vec<(Shard, Edge)>, until: Time, limit: usize },
    LoadOverdue { call: CallId, partition: Partition, after: Option<Rank>, limit: usize },
    Reload { call: CallId, shard: Shard, probe: Vec<Seq> },
    Fetch { call: CallId, seqs: Vec<Seq> },
}

/// Starts the writer: batches in the order they are sent, each durable before it is answered.
pub(crate) fn start_writer(
    store: Arc<dyn Store>,
    events: Sender<Message>,
) -> std::io::Result<(Sender<WriteJob>, JoinHandle<()>)> {
    let (jobs, inbox) = channel();
    let thread = std::thread::Builder::new().name("store-writer".into()).spawn(move || {
        while let Ok(job) = inbox.recv() {
            match job {
                WriteJob::Batch { call, units } => {
                    let result = store.commit(&units);
                    if let Err(error) = &result {
                        tracing::warn!(%error, units = units.len(), "a batch was not committed");
                    }
                    let event = Event::Committed { call, units, result };
                    if events.send(Message::Event(event)).is_err() {
                        return;
                    }
                }
                WriteJob::Aside { units, reply } => {
                    // Nobody may wait any more; the write is done all the same.
                    let _ = reply.send(store.commit(&units));
                }
            }
        }
    })?;
    Ok((jobs, thread))
}

/// Starts a reader.
pub(crate) fn start_reader(
    name: &str,
    store: Arc<dyn Store>,
    events: Sender<Message>,
) -> std::io::Result<(Sender<ReadJob>, JoinHandle<()>)> {
    let (jobs, inbox): (Sender<ReadJob>, Receiver<ReadJob>) = channel();
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        while let Ok(job) = inbox.recv() {
            let event = read(store.as_ref(), job);
            if events.send(Message::Event(event)).is_err() {
                return;
            }
        }
    })?;
    Ok((jobs, thread))
}

fn read(store: &dyn Store, job: ReadJob) -> Event {
    let event = match job {
        ReadJob::Load { call, from, until, limit } => {
            let result = store.load(&from, until, limit);
            Event::Loaded { call, shards: from.into_iter().map(|f| f.0).collect(), result }
        }
        ReadJob::LoadOverdue { call, partition, after, limit } => Event::LoadedOverdue {
            call,
            partition,
            result: store.load_overdue(partition, after, limit),
        },
        ReadJob::Reload { call, shard, probe } => {
            let result = store.reload(shard, &probe);
            Event::Reloaded { call, shard, probe, result }
        }
        ReadJob::Fetch { call, seqs } => {
            let result = store.fetch(&seqs);
            Event::Fetched { call, seqs, result }
        }
    };
    let failed = match &event {
        Event::Loaded { result: Err(e), .. } => Some(e),
        Event::LoadedOverdue { result: Err(e), .. } => Some(e),
        Event::Reloaded { result: Err(e), .. } => Some(e),
        Event::Fetched { result: Err(e), .. } => Some(e),
        _ => None,
    };
    if let Some(error) = failed {
        tracing::warn!(%error, "a read failed; it is tried again");
    }
    event
}
