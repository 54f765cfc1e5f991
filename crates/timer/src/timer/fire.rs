//! What the lanes hold: something that is fired once for each time that it is armed.

use std::sync::Arc;

use super::core::Core;
use super::error::JoinError;

/// What becomes of an entry when it is fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It wakes a task of somebody's runtime, at once and on the driver's thread.
    Wake,
    /// It runs somebody's closure, wherever those are run, and is then over.
    Once,
    /// It runs somebody's closure, and is then armed again.
    Periodic,
}

/// A timer's entry in the lanes. All methods may be called from any thread at any time; who comes
/// first decides.
pub(crate) trait Fire: Send + Sync {
    fn kind(&self) -> Kind;

    /// Its time has come, and this is the place to run it. Does nothing when it was cancelled.
    fn run(self: Arc<Self>, core: &Core);

    /// It will not be fired: its closure is dropped, and whoever waits for it is told why.
    fn abandon(&self, why: JoinError);

    /// It was taken out of the lanes and is to wait on, unless it was cancelled.
    fn arm_again(self: Arc<Self>, core: &Core, tick: u64);
}
