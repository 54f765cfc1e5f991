//! What all handlers share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use tokio::sync::{Semaphore, watch};
use tourbillon_store::{NamespaceId, QueueId};
use tourbillon_wire::code;

use crate::ServeOptions;
use crate::convert::Judge;
use crate::convert::name::name;
use crate::convert::task::DEFAULT;
use crate::doors::{Caller, Doors};
use crate::events::Events;
use crate::failure::{Failure, Result};
use crate::workers::Workers;
use crate::{Limits, Node};

/// The state of a server; cheap to clone.
pub(crate) type App = Arc<Shared>;

/// See [`App`].
pub(crate) struct Shared {
    pub(crate) node: Node,
    pub(crate) options: ServeOptions,
    pub(crate) doors: Doors,
    pub(crate) events: Events,
    pub(crate) workers: Workers,
    /// Room for replies that go on until the client leaves.
    pub(crate) streams: Arc<Semaphore>,
    /// Turns true when the server shuts down, so that such replies end.
    pub(crate) closing: watch::Sender<bool>,
    /// Requests answered, by the hundreds of their status.
    pub(crate) answered: [AtomicU64; 6],
    /// The description of the API, once it was asked for.
    pub(crate) openapi: OnceLock<bytes::Bytes>,
    names: RwLock<Arc<HashMap<QueueId, Arc<QueueName>>>>,
}

/// What a queue is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Shared {
    pub(crate) fn new(node: Node, options: ServeOptions) -> App {
        Arc::new(Shared {
            doors: Doors::new(&options),
            events: Events::new(),
            workers: Workers::new(options.limits.workers),
            streams: Arc::new(Semaphore::new(options.limits.streams)),
            closing: watch::Sender::new(false),
            answered: Default::default(),
            openapi: OnceLock::new(),
            names: RwLock::default(),
            node,
            options,
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// What a request of `caller` in `namespace` is judged by.
    pub(crate) fn judge<'a>(&'a self, namespace: &'a str, caller: &Caller) -> Judge<'a> {
        Judge { limits: self.limits(), now: self.node.now(), namespace, commands: caller.trusted }
    }

    pub(crate) fn count(&self, status: http::StatusCode) {
        let class = usize::from(status.as_u16() / 100).min(5);
        self.answered[class].fetch_add(1, Ordering::Relaxed);
    }

    /// The namespace of a request.
    pub(crate) fn namespace(&self, given: Option<String>) -> Result<String> {
        match given {
            None => Ok(DEFAULT.to_owned()),
            Some(given) => {
                name(&given, "namespace", self.limits())?;
                Ok(given)
            }
        }
    }

    /// A namespace's id; `None` when nothing was ever created in it.
    pub(crate) async fn namespace_id(&self, namespace: &str) -> Result<Option<NamespaceId>> {
        let namespace = namespace.to_owned();
        Ok(self.node.query(move |q| q.namespace(&namespace)).await?)
    }

    /// What a queue is called. Asks the store only for queues not seen before.
    pub(crate) async fn queue_name(&self, id: QueueId) -> Result<Arc<QueueName>> {
        let known = || self.names.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(name) = known().get(&id) {
            return Ok(name.clone());
        }
        let mut names = HashMap::new();
        for (_, namespace) in self.node.query(|q| q.namespaces()).await? {
            for queue in self.node.queues(&namespace).await? {
                let name = QueueName { namespace: namespace.clone(), name: queue.record.name };
                names.insert(queue.record.id, Arc::new(name));
            }
        }
        let found = names.get(&id).cloned();
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(names);
        found.ok_or_else(|| Failure::not_found("queue"))
    }

    /// Room for one more reply that goes on until the client leaves.
    pub(crate) fn stream_permit(&self) -> Result<tokio::sync::OwnedSemaphorePermit> {
        self.streams
            .clone()
            .try_acquire_owned()
            .map_err(|_| Failure::busy(code::BUSY, "too many clients are watching already", 5))
    }
}
