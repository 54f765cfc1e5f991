//! Numbers what happens on this node and hands it to whoever watches.
//!
//! The node's own feed has no numbers, and each of its readers would see its own gaps. So one
//! task reads it and passes it on with a number that grows by one with every notice; those that
//! were missed are counted too, and show as a jump. The task runs from the first watcher on.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};
use tourbillon_engine::api::Notice;

use crate::Node;

/// Events kept for a watcher that falls behind.
const BACKLOG: usize = 4_096;

/// A notice with its number.
pub(crate) type Numbered = (u64, Arc<Notice>);

/// See the module.
pub(crate) struct Events {
    feed: Mutex<Option<Sender<Numbered>>>,
}

impl Events {
    pub(crate) fn new() -> Events {
        Events { feed: Mutex::new(None) }
    }

    /// What happens from now on.
    pub(crate) fn watch(&self, node: &Node) -> Receiver<Numbered> {
        let mut feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*feed {
            return sender.subscribe();
        }
        let (sender, receiver) = broadcast::channel(BACKLOG);
        tokio::spawn(number(node.subscribe(), sender.clone()));
        *feed = Some(sender);
        receiver
    }
}

async fn number(mut from: Receiver<Notice>, to: Sender<Numbered>) {
    let mut seq = 0u64;
    loop {
        match from.recv().await {
            Ok(notice) => {
                seq += 1;
                // Nobody watching is fine.
                let _ = to.send((seq, Arc::new(notice)));
            }
            Err(RecvError::Lagged(missed)) => seq += missed,
            Err(RecvError::Closed) => return,
        }
    }
}
