//! The one table of a task's states and moves, used by the engine and by every store.
//!
//! `ready` is not here: it is a `scheduled` task whose due time has come, and is derived.
//! An illegal move is an error, never a silent write.

use serde::{Deserialize, Serialize};

/// Where a task is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum State {
    /// Waits for its due time, for its queue's limits, or for the end of a backoff.
    Scheduled = 0,
    /// An attempt is under way.
    Running = 1,
    /// An attempt succeeded.
    Succeeded = 2,
    /// The attempts are used up: a dead letter.
    Failed = 3,
    /// Cancelled on request.
    Cancelled = 4,
    /// `expires_at` passed before its first start.
    Expired = 5,
    /// Not run because of a misfire or overlap policy.
    Skipped = 6,
}

impl State {
    /// Every state, in the order of their codes.
    pub const ALL: [State; 7] = [
        State::Scheduled,
        State::Running,
        State::Succeeded,
        State::Failed,
        State::Cancelled,
        State::Expired,
        State::Skipped,
    ];

    /// Whether the task is over and lives in history.
    pub fn is_final(self) -> bool {
        !matches!(self, State::Scheduled | State::Running)
    }

    /// The word that documents, tables and filters use.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Scheduled => "scheduled",
            State::Running => "running",
            State::Succeeded => "succeeded",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
            State::Expired => "expired",
            State::Skipped => "skipped",
        }
    }

    /// The state with that code.
    pub fn from_code(code: u8) -> Option<State> {
        State::ALL.get(usize::from(code)).copied()
    }

    /// The state with that name.
    pub fn from_name(name: &str) -> Option<State> {
        State::ALL.into_iter().find(|s| s.as_str() == name)
    }
}

/// What moves a task from one state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Move {
    /// An attempt starts.
    Start,
    /// An attempt ended and another is to follow.
    Again,
    /// An attempt ended and the task is over, with this final state.
    Finish(State),
    /// The task is over without (another) attempt, with this final state.
    Close(State),
    /// A user asks for another try of a task that is over.
    Redrive,
    /// The task is changed before its first start.
    Edit,
    /// Its attempt is asked to stop; the task is over when that has ended.
    RequestCancel,
}

/// The state after `by`, or `None` when the move is illegal from `from`.
///
/// `Again` and `Finish` are legal from `Scheduled` too: an attempt that starts and ends before
/// its start was written is recorded in one write.
pub fn next_state(from: State, by: Move) -> Option<State> {
    use State::*;
    match (from, by) {
        (Scheduled, Move::Start) => Some(Running),
        (Scheduled | Running, Move::Again) => Some(Scheduled),
        (Scheduled | Running, Move::Finish(to @ (Succeeded | Failed | Cancelled))) => Some(to),
        (Scheduled, Move::Close(to @ (Cancelled | Expired | Skipped | Failed))) => Some(to),
        (Scheduled, Move::Edit) => Some(Scheduled),
        (Running, Move::RequestCancel) => Some(Running),
        (Succeeded | Failed | Cancelled | Expired | Skipped, Move::Redrive) => Some(Scheduled),
        _ => None,
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// It did what it was to do.
    Succeeded,
    /// It did not.
    Failed,
    /// It took longer than its timeout.
    TimedOut,
    /// Its node or worker died: for a worker, its claim ran out.
    Lost,
    /// It was stopped on request.
    Cancelled,
    /// Its worker gave it back unstarted.
    Released,
}

impl AttemptOutcome {
    /// The word that documents use.
    pub fn as_str(self) -> &'static str {
        match self {
            AttemptOutcome::Succeeded => "succeeded",
            AttemptOutcome::Failed => "failed",
            AttemptOutcome::TimedOut => "timed_out",
            AttemptOutcome::Lost => "lost",
            AttemptOutcome::Cancelled => "cancelled",
            AttemptOutcome::Released => "released",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_a_final_state_but_a_redrive() {
        for from in State::ALL.into_iter().filter(|s| s.is_final()) {
            for by in [Move::Start, Move::Again, Move::Edit, Move::RequestCancel] {
                assert_eq!(next_state(from, by), None);
            }
            for to in State::ALL {
                assert_eq!(next_state(from, Move::Finish(to)), None);
                assert_eq!(next_state(from, Move::Close(to)), None);
            }
            assert_eq!(next_state(from, Move::Redrive), Some(State::Scheduled));
        }
    }

    #[test]
    fn finish_and_close_only_reach_final_states() {
        for from in State::ALL {
            for to in [State::Scheduled, State::Running] {
                assert_eq!(next_state(from, Move::Finish(to)), None);
                assert_eq!(next_state(from, Move::Close(to)), None);
            }
        }
        assert_eq!(next_state(State::Running, Move::Close(State::Skipped)), None);
        assert_eq!(next_state(State::Scheduled, Move::RequestCancel), None);
    }

    #[test]
    fn codes_and_names_round_trip() {
        for s in State::ALL {
            assert_eq!(State::from_code(s as u8), Some(s));
            assert_eq!(State::from_name(s.as_str()), Some(s));
        }
        assert_eq!(State::from_code(7), None);
        assert_eq!(State::from_name("ready"), None);
    }
}
