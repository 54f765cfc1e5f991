//! Numbers what happens on this node and hands it to whoever watches.
//!
//! Two things happen: what the engine tells (attempts start and end), and what callers ask for
//! (tasks created, queues paused), which carries who asked. Both get one number that grows by one
//! with each; what a watcher missed shows as a jump. Nothing is built while nobody watches.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};
use tourbillon_engine::api::Notice;
use tourbillon_wire::Event;

use crate::Node;

/// Events kept for a watcher that falls behind.
const BACKLOG: usize = 4_096;

/// Something that happened.
#[derive(Debug, Clone)]
pub(crate) enum Happening {
    /// The engine tells.
    Notice(Arc<Notice>),
    /// A caller asked for it; without its number.
    Asked(Arc<Event>),
}

/// Something that happened, with its number.
pub(crate) type Numbered = (u64, Happening);

/// See the module.
pub(crate) struct Events {
    feed: Arc<Mutex<Feed>>,
}

#[derive(Default)]
struct Feed {
    seq: u64,
    /// There once somebody has watched.
    sender: Option<Sender<Numbered>>,
}

impl Feed {
    fn pass(&mut self, happening: Happening) {
        self.seq += 1;
        if let Some(sender) = &self.sender {
            // Nobody watching is fine.
            let _ = sender.send((self.seq, happening));
        }
    }
}

impl Events {
    pub(crate) fn new() -> Events {
        Events { feed: Arc::default() }
    }

    /// What happens from now on.
    pub(crate) fn watch(&self, node: &Node) -> Receiver<Numbered> {
        let mut feed = lock(&self.feed);
        if let Some(sender) = &feed.sender {
            return sender.subscribe();
        }
        let (sender, receiver) = broadcast::channel(BACKLOG);
        feed.sender = Some(sender);
        tokio::spawn(pass_on(node.subscribe(), Arc::clone(&self.feed)));
        receiver
    }

    /// Whether anybody watches.
    pub(crate) fn watched(&self) -> bool {
        lock(&self.feed).sender.as_ref().is_some_and(|s| s.receiver_count() > 0)
    }

    /// Tells what a caller asked for and got.
    pub(crate) fn tell(&self, event: Event) {
        lock(&self.feed).pass(Happening::Asked(Arc::new(event)));
    }
}

async fn pass_on(mut from: Receiver<Notice>, to: Arc<Mutex<Feed>>) {
    loop {
        match from.recv().await {
            Ok(notice) => lock(&to).pass(Happening::Notice(Arc::new(notice))),
            Err(RecvError::Lagged(missed)) => lock(&to).seq += missed,
            Err(RecvError::Closed) => return,
        }
    }
}

fn lock(feed: &Mutex<Feed>) -> std::sync::MutexGuard<'_, Feed> {
    feed.lock().unwrap_or_else(PoisonError::into_inner)
}
