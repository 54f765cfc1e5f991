//! What all handlers share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

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
        match self.node.namespace_id(namespace) {
            Some(id) => Ok(Some(id)),
            // Another node may have met it first.
            None => {
                let namespace = namespace.to_owned();
                Ok(self.node.query(move |q| q.namespace(&namespace)).await?)
            }
        }
    }

    /// What a queue is called; its number when this node has not met it yet.
    pub(crate) fn queue_name(&self, id: QueueId) -> QueueName {
        let (namespace, name) =
            self.node.queue_name(id).unwrap_or_else(|| (DEFAULT.to_owned(), id.0.to_string()));
        QueueName { namespace, name }
    }

    /// Room for one more reply that goes on until the client leaves.
    pub(crate) fn stream_permit(&self) -> Result<tokio::sync::OwnedSemaphorePermit> {
        self.streams
            .clone()
            .try_acquire_owned()
            .map_err(|_| Failure::busy(code::BUSY, "too many clients are watching already", 5))
    }
}
