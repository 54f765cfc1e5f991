//! Faults put between the engine and its world, to show that the checkers see them.

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    /// A creation is acknowledged when it is asked for, not when it is committed.
    AckBeforeCommit,
    /// A load answers tasks whose cancellation was committed meanwhile, and the engine takes
    /// them: as if it had remembered no changes beside a load.
    IgnoredTombstone,
    /// Attempts are told a fence without the epoch.
    FenceWithoutEpoch,
    /// Moving a schedule on creates two occurrences.
    DoubleAdvance,
    /// The answer to one fetch is lost.
    LostFetch,
    /// One answer to a client is lost.
    LostReply,
    /// A task is loaded as due ten seconds too soon.
    EarlyLoad,
    /// The end of an attempt is told as soon as it is known, not when it is committed.
    DoneBeforeCommit,
    /// A calendar that changed is not told.
    UntoldCalendar,
}

impl Plant {
    pub(crate) const ALL: [Plant; 9] = [
        Plant::AckBeforeCommit,
        Plant::IgnoredTombstone,
        Plant::FenceWithoutEpoch,
        Plant::DoubleAdvance,
        Plant::LostFetch,
        Plant::LostReply,
        Plant::EarlyLoad,
        Plant::DoneBeforeCommit,
        Plant::UntoldCalendar,
    ];
}
