//! Faults to inject: how a commit fails, in the order they were asked for.

use std::collections::VecDeque;

use crate::error::{StoreError, StoreErrorKind};

/// How one commit fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing was committed, and that is known.
    NotCommitted,
    /// Everything was committed, but the answer was lost.
    UnknownCommitted,
    /// Nothing was committed, and that is not known.
    UnknownNotCommitted,
    /// The store is locked or overloaded; nothing was committed.
    Busy,
    /// No room; nothing was committed.
    Full,
}

impl Fault {
    pub(super) fn error(self) -> StoreError {
        match self {
            Fault::NotCommitted => injected(StoreErrorKind::Io),
            Fault::UnknownCommitted | Fault::UnknownNotCommitted => {
                injected(StoreErrorKind::Io).outcome_unknown()
            }
            Fault::Busy => injected(StoreErrorKind::Busy),
            Fault::Full => injected(StoreErrorKind::Full),
        }
    }
}

/// The faults that wait.
#[derive(Debug, Default)]
pub(super) struct Faults {
    next: VecDeque<Fault>,
    pub(super) unavailable: bool,
}

impl Faults {
    pub(super) fn push(&mut self, fault: Fault) {
        self.next.push_back(fault);
    }

    pub(super) fn take(&mut self) -> Option<Fault> {
        self.next.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.next.len()
    }

    pub(super) fn available(&self) -> Result<(), StoreError> {
        if self.unavailable { Err(injected(StoreErrorKind::Unavailable)) } else { Ok(()) }
    }
}

fn injected(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, format!("injected fault: {kind:?}"))
}
