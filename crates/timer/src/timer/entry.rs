//! What the lanes hold, by value: to cancel a timer is to touch this one place in memory.
//!
//! A job that runs once is a boxed closure and nothing else while it waits; what its handle needs to
//! know after that is in [`Watches`](super::watches::Watches), and only while there is a handle. Sleeps
//! have lanes of their own, which hold their wakers.

use std::any::Any;
use std::sync::Arc;

use super::core::Core;
use super::error::JoinError;
use crate::lanes::Handle;

/// A job in the lanes. Two words, so that a timer's place in the wheel is half a cache line.
pub(crate) type Entry = Box<dyn Held>;

/// What a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It runs once, and there is a handle that may ask for the result.
    Watched,
    /// It runs once, and nobody wants to know.
    Unwatched,
    /// It runs a closure and arms it again.
    Periodic,
}

/// A job that waits.
pub(crate) trait Held: Send {
    fn kind(&self) -> Kind;

    /// Runs it here and now. Gives the result, whose type only the handle knows.
    fn run(self: Box<Self>, core: &Core) -> Box<dyn Any + Send>;

    /// It will not run. What remains is to drop it.
    fn abandon(&self) {}
}

/// A closure that runs once and is watched by a handle. One that captures nothing takes no memory.
struct Once<F>(F);

impl<F, R> Held for Once<F>
where
    F: FnOnce() -> R + Send,
    R: Send + 'static,
{
    fn kind(&self) -> Kind {
        Kind::Watched
    }

    fn run(self: Box<Self>, _: &Core) -> Box<dyn Any + Send> {
        Box::new((self.0)())
    }
}

/// A job whose handle has gone.
struct Unwatched(Entry);

impl Held for Unwatched {
    fn kind(&self) -> Kind {
        Kind::Unwatched
    }

    fn run(self: Box<Self>, core: &Core) -> Box<dyn Any + Send> {
        self.0.run(core)
    }
}

/// In place of a job for as long as it takes to wrap it.
struct Nothing;

impl Held for Nothing {
    fn kind(&self) -> Kind {
        Kind::Unwatched
    }

    fn run(self: Box<Self>, _: &Core) -> Box<dyn Any + Send> {
        self
    }
}

/// A periodic job's place in the lanes.
struct Turn(Arc<dyn Repeat>);

impl Held for Turn {
    fn kind(&self) -> Kind {
        Kind::Periodic
    }

    fn run(self: Box<Self>, core: &Core) -> Box<dyn Any + Send> {
        self.0.run(core);
        Box::new(())
    }

    fn abandon(&self) {
        Arc::clone(&self.0).abandon(JoinError::Cancelled);
    }
}

/// A closure that is watched by a handle.
#[inline]
pub(crate) fn once<F, R>(f: F) -> Entry
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    Box::new(Once(f))
}

/// A periodic job that waits for its next run.
pub(crate) fn turn(job: Arc<dyn Repeat>) -> Entry {
    Box::new(Turn(job))
}

/// The handle of a job that waits has gone.
pub(crate) fn unwatch(entry: &mut Entry) {
    let job = std::mem::replace(entry, Box::new(Nothing));
    *entry = Box::new(Unwatched(job));
}

/// A periodic job. All methods may be called from any thread at any time; who comes first decides.
pub(crate) trait Repeat: Send + Sync {
    /// Its time has come, and this is the place to run it. Does nothing when it was cancelled.
    fn run(self: Arc<Self>, core: &Core);

    /// It will not run again: its closure is dropped, and whoever waits for it is told why.
    fn abandon(&self, why: JoinError);
}

/// An entry whose time has come.
pub(crate) struct Task {
    pub(crate) handle: Handle,
    pub(crate) tick: u64,
    pub(crate) entry: Entry,
}
