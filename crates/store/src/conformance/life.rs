//! What becomes of a task: the transition table and what each move leaves behind.

use crate::task::{AttemptRecord, SkippedRun};
use crate::time::{MINUTE, SECOND};
use crate::{
    AttemptOutcome, Done, Edge, Move, Refusal, State, Task, Then, Time, Write, next_state,
};

use super::World;
use super::fixture::{T0, close, end, http, open, spec};

/// A write that makes this move.
fn write_of(w: &World, task: &Task, by: Move) -> Write {
    let (seq, version) = (task.seq, task.version);
    let ended = |then| end(task, w.epoch, AttemptOutcome::Failed, then);
    match by {
        Move::Start => Write::Start { seq, version, open: Box::new(open(task, w.epoch)) },
        Move::Again => ended(Then::Again { due: T0.plus(MINUTE) }),
        Move::Finish(to) => ended(Then::Finish { to, reason: None }),
        Move::Close(to) => close(task, to),
        Move::Redrive => Write::Redrive { namespace: task.namespace, id: task.id, due: T0 },
        Move::Edit => Write::Edit { seq, version, due: T0, spec: Box::new(spec("other")) },
        Move::RequestCancel => Write::RequestCancel { seq, version },
    }
}

pub(super) fn every_legal_move_is_made_and_every_illegal_one_refused(w: &World) {
    let mut moves = vec![Move::Start, Move::Again, Move::Redrive, Move::Edit, Move::RequestCancel];
    moves.extend(State::ALL.map(Move::Finish));
    moves.extend(State::ALL.map(Move::Close));
    for from in State::ALL {
        for &by in &moves {
            let task = w.in_state(from);
            assert_eq!(task.state, from);
            let result = w.write(write_of(w, &task, by));
            let now = w.task(task.id);
            match next_state(from, by) {
                Some(to) => {
                    assert!(result.is_ok(), "{from:?} {by:?}: {result:?}");
                    assert_eq!(now.state, to, "{from:?} {by:?}");
                    assert_eq!(now.version, task.version + 1, "{from:?} {by:?}");
                    assert_eq!(now.finished_at.is_some(), to.is_final(), "{from:?} {by:?}");
                    assert_eq!(now.open.is_some(), to == State::Running, "{from:?} {by:?}");
                }
                // What is over is no longer among the live rows, which writes name.
                None => {
                    let why = if from.is_final() || by == Move::Redrive {
                        Refusal::Conflict
                    } else {
                        Refusal::Illegal
                    };
                    assert_eq!(result, Err(why), "{from:?} {by:?}");
                    assert_eq!(now, task, "{from:?} {by:?}");
                }
            }
        }
    }
}

pub(super) fn a_stale_version_or_missing_row_is_a_conflict(w: &World) {
    let writes = |task: &Task| {
        let (seq, version) = (task.seq, task.version);
        [
            write_of(w, task, Move::Start),
            write_of(w, task, Move::Again),
            write_of(w, task, Move::Finish(State::Failed)),
            write_of(w, task, Move::Close(State::Expired)),
            write_of(w, task, Move::Edit),
            write_of(w, task, Move::RequestCancel),
            Write::Discard { seq, version },
            Write::Progress { seq, version, claim_until: None, progress: None },
        ]
    };
    for state in [State::Scheduled, State::Running] {
        let task = w.in_state(state);
        let later = Task { version: task.version + 1, ..task.clone() };
        for write in writes(&later) {
            assert_eq!(w.write(write), Err(Refusal::Conflict));
        }
        assert_eq!(w.task(task.id), task);
    }
    let mut gone = w.in_state(State::Scheduled);
    gone.seq.0 += 1000;
    for write in writes(&gone) {
        assert_eq!(w.write(write), Err(Refusal::Conflict));
    }
}

pub(super) fn an_attempt_that_was_started_and_ended_is_recorded(w: &World) {
    let task = w.insert_due(T0);
    let running = w.start(&task);
    let wanted = open(&task, w.epoch);
    assert_eq!(running.open, Some(wanted.clone()));
    assert_eq!((running.attempt, running.version), (1, 1));
    let then = Then::Finish { to: State::Failed, reason: Some("attempts used up".into()) };
    let over = w.end(&running, AttemptOutcome::Failed, then);
    assert_eq!(over.open, None);
    assert_eq!((over.state, over.attempt, over.version), (State::Failed, 1, 2));
    assert_eq!(over.outcome_reason.as_deref(), Some("attempts used up"));
    assert_eq!(over.finished_at, Some(wanted.started_at.plus(SECOND)));
    let [AttemptRecord { n: 1, error, result, exit_code: Some(-1), .. }] = &over.attempts[..]
    else {
        panic!("{:?}", over.attempts)
    };
    assert_eq!(error.as_deref(), Some("it \"broke\""));
    assert_eq!(result.as_deref(), Some("[1,2]"));
    assert_eq!(over.seq, task.seq);
    assert_eq!(over.spec, task.spec);
}

pub(super) fn an_elided_start_ends_in_one_write(w: &World) {
    let task = w.insert_due(T0);
    let over = w.finish(&task, State::Succeeded);
    assert_eq!((over.state, over.attempt, over.version), (State::Succeeded, 1, 1));
    assert_eq!(over.attempts.len(), 1);
    assert_eq!(w.store.fetch(&[task.seq]).unwrap(), [None]);
}

pub(super) fn a_retry_keeps_its_attempts(w: &World) {
    let mut task = w.insert_due(T0);
    for n in 1..=3 {
        if n == 2 {
            task = w.start(&task);
        }
        let due = T0.plus(n * MINUTE);
        task = w.end(&task, AttemptOutcome::Failed, Then::Again { due });
        assert_eq!((task.state, task.due, task.first_due), (State::Scheduled, due, T0));
        assert_eq!(
            task.attempts.iter().map(|a| i64::from(a.n)).collect::<Vec<_>>(),
            Vec::from_iter(1..=n)
        );
        assert_eq!(i64::from(task.attempt), n);
        let span = w.store.load(&[(w.shard, Edge::START)], Time::MAX, 10).unwrap();
        assert_eq!(span.stubs, [(w.shard, task.stub())]);
    }
    let over = w.finish(&task, State::Succeeded);
    assert_eq!(over.attempts.len(), 4);
    assert_eq!(over.attempts[..3], task.attempts);
}

pub(super) fn lost_and_released_attempts_are_counted_apart(w: &World) {
    use AttemptOutcome::{Failed, Lost, Released, TimedOut};
    let mut task = w.insert_due(T0);
    for outcome in [Lost, Released, TimedOut, Lost, Failed] {
        task = w.start(&task);
        task = w.end(&task, outcome, Then::Again { due: T0 });
    }
    assert_eq!((task.attempt, task.lost, task.released), (5, 2, 1));
    assert_eq!(task.counted_attempts(), 2);
}

pub(super) fn a_skipped_run_is_one_record(w: &World) {
    let task = w.insert_due(T0);
    let run = SkippedRun { from: T0, to: T0.plus(MINUTE), count: 7, reason: "misfire".into() };
    let at = T0.plus(5);
    w.must(Write::Close {
        seq: task.seq,
        version: 0,
        to: State::Skipped,
        at,
        reason: None,
        skipped: Some(run.clone()),
    });
    let over = w.task(task.id);
    assert_eq!((over.skipped, over.finished_at, over.attempt), (Some(run), Some(at), 0));
    assert_eq!(over.outcome_reason, None);
}

pub(super) fn a_cancel_request_ends_with_the_attempt(w: &World) {
    let task = w.in_state(State::Running);
    w.must(Write::RequestCancel { seq: task.seq, version: task.version });
    let asked = w.task(task.id);
    assert!(asked.cancel_requested && asked.state == State::Running);
    let reloaded = w.store.reload(w.shard, &[]).unwrap();
    assert!(reloaded.running[0].cancel_requested);
    let again = w.end(&asked, AttemptOutcome::Lost, Then::Again { due: T0 });
    assert!(!again.cancel_requested);
    let over = w.finish(&w.start(&again), State::Cancelled);
    assert_eq!(over.state, State::Cancelled);
    assert!(!over.cancel_requested);
}

pub(super) fn an_edit_changes_all_but_where_the_task_lives(w: &World) {
    let mut new = w.new_keyed("k");
    new.spec.concurrency_key = Some("c".into());
    w.insert(&new);
    let mut wanted = spec("changed");
    wanted.target = http();
    wanted.payload = None;
    wanted.priority = 7;
    wanted.expires_at = Some(T0.plus(MINUTE));
    wanted.at_most_once = true;
    wanted.tags = vec![("a".into(), "b".into())];
    wanted.key = Some("ignored".into());
    let due = T0.plus(1000);
    let edit = |version, spec: &crate::TaskSpec| Write::Edit {
        seq: w.task(new.id).seq,
        version,
        due,
        spec: Box::new(spec.clone()),
    };
    w.must(edit(0, &wanted));
    let task = w.task(new.id);
    wanted.key = new.spec.key.clone();
    wanted.concurrency_key = new.spec.concurrency_key.clone();
    assert_eq!(task.spec, wanted);
    assert_eq!((task.due, task.first_due, task.version), (due, due, 1));
    assert_eq!(w.queries.locate_key(w.queue.id, "k").unwrap().map(|l| l.id), Some(new.id));
    assert_eq!(w.queries.locate_key(w.queue.id, "ignored").unwrap(), None);
    let retried = w.end(&task, AttemptOutcome::Failed, Then::Again { due: T0 });
    w.must(edit(retried.version, &wanted));
    let task = w.task(new.id);
    assert_eq!((task.due, task.first_due, task.attempts.len()), (due, due, 1));
}

pub(super) fn an_edit_moves_the_task_to_its_new_minute(w: &World) {
    let task = w.insert_due(T0);
    let due = T0.plus(90 * MINUTE);
    let spec = Box::new(task.spec.clone());
    w.must(Write::Edit { seq: task.seq, version: 0, due, spec });
    let load = |from: Time, to: Time| {
        w.store.load(&[(w.shard, Edge::before(from))], to, 10).unwrap().stubs.len()
    };
    assert_eq!(load(T0, T0.plus(MINUTE)), 0);
    assert_eq!(load(due, due.plus(1)), 1);
}

pub(super) fn progress_extends_the_claim_and_keeps_what_was_said(w: &World) {
    let task = w.in_state(State::Running);
    let (seq, later) = (task.seq, T0.plus(90 * SECOND));
    let said = |version, claim_until, progress: Option<&str>| Write::Progress {
        seq,
        version,
        claim_until,
        progress: progress.map(str::to_owned),
    };
    w.must(said(1, Some(later), Some("{\"done\":1}")));
    w.must(said(2, None, None));
    let now = w.task(task.id);
    assert_eq!(now.progress.as_deref(), Some("{\"done\":1}"));
    assert_eq!(now.open.and_then(|o| o.claim_until), Some(later));
    assert_eq!(now.version, 3);
    let waiting = w.insert_due(T0);
    let Write::Progress { claim_until, progress, .. } = said(0, None, None) else { return };
    let write = Write::Progress { seq: waiting.seq, version: 0, claim_until, progress };
    assert_eq!(w.write(write), Err(Refusal::Illegal));
}

pub(super) fn a_discarded_task_never_was(w: &World) {
    let mut new = w.new_keyed("k");
    new.schedule = Some(super::fixture::link(5, "plan", T0));
    let seq = w.insert(&new);
    w.must(Write::Discard { seq, version: 0 });
    assert_eq!(w.find(new.id), None);
    assert_eq!(w.queries.counts().unwrap()[0].count, 0);
    let again = w.insert(&new);
    assert!(again > seq, "a sequence is not used again");
    for state in [State::Running, State::Scheduled] {
        let mut task = w.in_state(State::Running);
        if state == State::Scheduled {
            task = w.end(&task, AttemptOutcome::Released, Then::Again { due: T0 });
        }
        let discard = Write::Discard { seq: task.seq, version: task.version };
        assert_eq!(w.write(discard), Err(Refusal::Illegal), "{state:?}");
    }
}

pub(super) fn a_redrive_makes_history_live_again(w: &World) {
    for state in State::ALL.into_iter().filter(|s| s.is_final()) {
        let mut new = w.new_keyed("k");
        new.spec.expires_at = Some(T0);
        w.insert(&new);
        let mut task = w.task(new.id);
        task = match state {
            State::Succeeded | State::Failed => w.finish(&task, state),
            _ => {
                w.must(close(&task, state));
                w.task(task.id)
            }
        };
        let due = T0.plus(MINUTE);
        let id = task.id;
        let done = w.must(Write::Redrive { namespace: task.namespace, id, due });
        let live = w.task(id);
        assert_eq!(done, Done::Redriven(Box::new(live.clone())));
        assert_eq!((live.state, live.due, live.first_due), (State::Scheduled, due, due));
        assert_eq!((live.seq, live.version), (task.seq, task.version + 1));
        assert_eq!((live.finished_at, live.outcome_reason.clone()), (None, None));
        assert_eq!(live.attempts, task.attempts);
        assert_eq!(live.spec.expires_at, None, "it would expire at once");
        let located = w.queries.locate_key(w.queue.id, "k").unwrap();
        assert_eq!(located.map(|l| l.id), Some(id));
        let over = w.finish(&live, State::Succeeded);
        assert_eq!(over.attempts.len(), task.attempts.len() + 1);
    }
}

pub(super) fn a_redrive_of_a_live_or_unknown_task_is_a_conflict(w: &World) {
    let namespace = w.namespace();
    for state in [State::Scheduled, State::Running] {
        let id = w.in_state(state).id;
        let redrive = Write::Redrive { namespace, id, due: T0 };
        assert_eq!(w.write(redrive), Err(Refusal::Conflict));
    }
    let id = w.new_task(T0).id;
    assert_eq!(w.write(Write::Redrive { namespace, id, due: T0 }), Err(Refusal::Conflict));
}

pub(super) fn a_redrive_is_refused_while_its_key_is_taken(w: &World) {
    let (old, holder) = (w.new_keyed("k"), w.new_keyed("k"));
    w.insert(&old);
    let over = w.finish(&w.task(old.id), State::Failed);
    w.insert(&holder);
    let redrive = Write::Redrive { namespace: w.namespace(), id: old.id, due: T0 };
    assert_eq!(w.write(redrive), Err(Refusal::KeyTaken(holder.id)));
    assert_eq!(w.task(old.id), over);
}
