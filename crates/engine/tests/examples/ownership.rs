//! Faults of ownership: nodes that die, shards that change hands, workers that come back.

use tourbillon_engine::api::{Answer, Completion, Event, TokenState, Unavailable, WorkerOutcome};
use tourbillon_store::time::{MINUTE, SECOND};
use tourbillon_store::{AttemptOutcome, State, TaskSpec};

use crate::bench::{Bench, START, command, worker};

fn done(order: &tourbillon_engine::api::StartOrder) -> Vec<Completion> {
    vec![Completion {
        token: order.open.token(order.task.shard, order.task.seq),
        outcome: WorkerOutcome::Succeeded,
        result: None,
        error: None,
        output: None,
    }]
}

/// A task killed its node each time, and was started again each time, for ever.
#[test]
fn a_task_that_kills_its_node_fails_after_max_lost() {
    let mut bench = Bench::new();
    let id = bench.create(START, command());
    let mut fences = Vec::new();
    for _ in 0..3 {
        let order = bench.start();
        fences.push(order.open.fence());
        bench.restart(SECOND);
    }
    bench.pass(MINUTE);
    let task = bench.task(id);
    assert!(bench.starts().is_empty());
    assert_eq!((task.state, task.lost, task.attempts.len()), (State::Failed, 3, 3));
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

/// A start that was not recorded before the node died is made again, under the same number and
/// a higher fence.
#[test]
fn an_unrecorded_start_is_made_again_under_a_higher_fence() {
    let mut bench = Bench::new();
    let id = bench.create(START.plus(SECOND), command());
    bench.hold_commits = true;
    bench.pass(SECOND);
    let first = bench.start();
    bench.hold_commits = false;
    bench.restart(SECOND);
    let second = bench.start();
    assert_eq!((first.open.n, second.open.n), (1, 1));
    assert!(second.open.fence() > first.open.fence());
    bench.end(&second, AttemptOutcome::Succeeded);
    assert_eq!(bench.task(id).lost, 0);
}

/// A worker finished its attempt just after the shard had changed owner, and its result was
/// thrown away.
#[test]
fn a_workers_result_counts_whoever_owns_the_shard() {
    let mut bench = Bench::new();
    let id = bench.create(START, worker());
    let order = bench.claim(1).remove(0);
    let shard = bench.shard;
    bench.tell(Event::LeaseLost { shard });
    let reply = bench.reply();
    bench.tell(Event::Complete { reply, items: done(&order) });
    assert_eq!(bench.answers[&reply], Answer::Unavailable(Unavailable::NotOwner));
    bench.restart(SECOND);
    let reply = bench.reply();
    bench.tell(Event::Complete { reply, items: done(&order) });
    assert_eq!(bench.answers[&reply], Answer::Tokens(vec![TokenState::Yours]));
    assert_eq!(bench.task(id).state, State::Succeeded);
}

/// A worker that vanished was noticed late or never (river#347); one that comes back has nothing
/// to say any more.
#[test]
fn a_vanished_workers_claim_runs_out() {
    let mut bench = Bench::new();
    let id = bench.create(START, worker());
    let order = bench.claim(1).remove(0);
    bench.pass(60 * SECOND);
    let again = bench.claim(1).remove(0);
    assert_eq!((again.task.id, again.open.n), (id, 2));
    let reply = bench.reply();
    bench.tell(Event::Complete { reply, items: done(&order) });
    assert_eq!(bench.answers[&reply], Answer::Tokens(vec![TokenState::Gone]));
    assert_eq!(bench.task(id).lost, 1);
}

/// A new owner gives each running worker attempt one full claim period.
#[test]
fn a_new_owner_gives_a_claim_one_period() {
    let mut bench = Bench::new();
    bench.create(START, worker());
    bench.claim(1);
    bench.pass(50 * SECOND);
    bench.restart(SECOND);
    bench.pass(59 * SECOND);
    assert!(bench.claim(1).is_empty());
    bench.pass(2 * SECOND);
    assert_eq!(bench.claim(1).len(), 1);
}

/// At most once: a lost attempt is final.
#[test]
fn at_most_once_is_not_tried_again() {
    let mut bench = Bench::new();
    let spec = || TaskSpec { at_most_once: true, ..command() };
    let lost = bench.create(START, spec());
    bench.start();
    bench.restart(SECOND);
    let failed = bench.create(bench.now(), spec());
    let order = bench.start();
    assert_eq!(bench.task(failed).state, State::Running, "its start is durable before it begins");
    bench.end(&order, AttemptOutcome::Failed);
    bench.pass(10 * MINUTE);
    assert!(bench.starts().is_empty());
    assert_eq!(bench.task(lost).state, State::Failed);
    assert_eq!(bench.task(failed).state, State::Failed);
}
