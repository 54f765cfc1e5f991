//! Retries, backoff and limits, as tables.

use tourbillon_engine::api::{Completion, Ended, Event, WorkerOutcome};
use tourbillon_store::task::{Backoff, BackoffShape, Retry};
use tourbillon_store::time::{MINUTE, SECOND};
use tourbillon_store::{AttemptOutcome, State, TaskSpec};

use crate::bench::{Bench, START, command, worker};

/// Seconds after the start at which each attempt of an always failing task starts.
fn attempts(retry: Retry) -> (Vec<i64>, State) {
    let mut bench = Bench::new();
    let id = bench.create(START, TaskSpec { retry, ..command() });
    let mut at = Vec::new();
    for _ in 0..2_000 {
        for order in bench.starts() {
            at.push(order.open.started_at.since(START) / SECOND);
            bench.end(&order, AttemptOutcome::Failed);
        }
        bench.pass(SECOND);
    }
    (at, bench.task(id).state)
}

fn backoff(shape: BackoffShape, factor: f64, max: i64) -> Option<Backoff> {
    Some(Backoff { shape, initial: 2 * SECOND, factor, max: max * SECOND, full_jitter: false })
}

#[test]
fn retries_follow_the_backoff_until_attempts_or_time_are_used_up() {
    let of = |max_attempts, backoff, give_up_after| Retry {
        max_attempts,
        max_lost: None,
        give_up_after,
        backoff,
    };
    use BackoffShape::{Exponential, Fixed, Linear};
    let table = [
        // The defaults: five attempts, 1 s doubled.
        (Retry::default(), vec![0, 1, 3, 7, 15]),
        (of(Some(1), None, None), vec![0]),
        (of(Some(4), backoff(Fixed, 1.0, 100), None), vec![0, 2, 4, 6]),
        (of(Some(4), backoff(Linear, 1.0, 100), None), vec![0, 2, 6, 12]),
        (of(Some(5), backoff(Exponential, 3.0, 10), None), vec![0, 2, 8, 18, 28]),
        // The next attempt would come after the time to give up.
        (of(Some(9), backoff(Fixed, 1.0, 100), Some(5 * SECOND)), vec![0, 2, 4]),
    ];
    for (retry, expected) in table {
        assert_eq!(attempts(retry.clone()), (expected, State::Failed), "{retry:?}");
    }
}

#[test]
fn full_jitter_draws_from_zero_to_the_wait() {
    let shape = BackoffShape::Fixed;
    let backoff =
        Backoff { shape, initial: 64 * SECOND, factor: 1.0, max: MINUTE, full_jitter: true };
    let (at, _) =
        attempts(Retry { max_attempts: Some(20), backoff: Some(backoff), ..Retry::default() });
    let waits: Vec<i64> = at.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(waits.iter().all(|w| (0..=61).contains(w)), "{waits:?}");
    let (low, high) = (waits.iter().min(), waits.iter().max());
    assert!(low < Some(&20) && high > Some(&40), "{waits:?}");
}

#[test]
fn a_target_may_say_never_again_or_again_after() {
    let mut bench = Bench::new();
    let id = bench.create(START, command());
    let order = bench.start();
    let mut ended = Ended::new(order.task.seq, order.open.nonce, AttemptOutcome::Failed);
    ended.retry_in = Some(30 * SECOND);
    bench.tell(Event::Ended(ended));
    bench.pass(30 * SECOND - 1);
    assert!(bench.starts().is_empty());
    bench.pass(1);
    let order = bench.start();
    let mut ended = Ended::new(order.task.seq, order.open.nonce, AttemptOutcome::Failed);
    ended.reject = true;
    bench.tell(Event::Ended(ended));
    bench.pass(10 * MINUTE);
    assert!(bench.starts().is_empty());
    let task = bench.task(id);
    assert_eq!((task.state, task.attempts.len()), (State::Failed, 2));
}

#[test]
fn what_a_worker_says_decides() {
    use WorkerOutcome::{Failed, Reject, Release, Retry, Succeeded};
    let table = [
        (Succeeded, State::Succeeded, None),
        (Failed, State::Scheduled, Some(SECOND)),
        (Retry(Some(7 * SECOND)), State::Scheduled, Some(7 * SECOND)),
        (Reject, State::Failed, None),
        (Release, State::Scheduled, Some(0)),
    ];
    for (outcome, state, wait) in table {
        let mut bench = Bench::new();
        let id = bench.create(START, worker());
        let order = bench.claim(1).remove(0);
        let token = order.open.token(order.task.shard, order.task.seq);
        let item = Completion { token, outcome, result: None, error: None, output: None };
        let reply = bench.reply();
        bench.tell(Event::Complete { reply, items: vec![item] });
        let task = bench.task(id);
        assert_eq!(task.state, state, "{outcome:?}");
        if let Some(wait) = wait {
            assert_eq!(task.due, START.plus(wait), "{outcome:?}");
            let counted = u32::from(outcome != Release);
            assert_eq!(task.counted_attempts(), counted, "a released attempt does not count");
        }
    }
}

#[test]
fn priority_then_due_then_sequence() {
    let mut bench = Bench::new();
    let mut queue = bench.queue.clone();
    queue.config.concurrency = 1;
    queue.version += 1;
    bench.tell(Event::Queues(vec![queue]));
    let blocker = bench.create(START, command());
    let order = bench.start();
    assert_eq!(order.task.id, blocker);
    let with = |priority| TaskSpec { priority, ..command() };
    let late = bench.create(START.plus(2 * SECOND), with(0));
    let low = bench.create(START.plus(SECOND), with(-1));
    let first = bench.create(START.plus(SECOND), with(0));
    let second = bench.create(START.plus(SECOND), with(0));
    let high = bench.create(START.plus(3 * SECOND), with(5));
    bench.pass(5 * SECOND);
    let mut seen = Vec::new();
    let mut current = order;
    for _ in 0..5 {
        bench.end(&current, AttemptOutcome::Succeeded);
        current = bench.start();
        seen.push(current.task.id);
    }
    assert_eq!(seen, [high, first, second, late, low]);
}

/// A blocked task of a concurrency key stood still for ever when the one that was to go before it
/// was cancelled instead of started.
#[test]
fn the_next_of_a_key_goes_on_when_the_one_before_is_cancelled() {
    let mut bench = Bench::new();
    let mut queue = bench.queue.clone();
    queue.config.per_key_concurrency = Some(1);
    queue.config.concurrency = 1;
    queue.version += 1;
    bench.tell(Event::Queues(vec![queue.clone()]));
    let keyed = || TaskSpec { concurrency_key: Some("c".into()), ..command() };
    bench.create(START, keyed());
    let running = bench.start();
    queue.config.concurrency = 2;
    queue.version += 1;
    bench.tell(Event::Queues(vec![queue.clone()]));
    let next = bench.create(START, keyed());
    let last = bench.create(START, keyed());
    assert!(bench.starts().is_empty());
    queue.config.paused = true;
    queue.version += 1;
    bench.tell(Event::Queues(vec![queue.clone()]));
    bench.end(&running, AttemptOutcome::Succeeded);
    bench.cancel(next);
    queue.config.paused = false;
    queue.version += 1;
    bench.tell(Event::Queues(vec![queue]));
    assert_eq!(bench.start().task.id, last);
}

/// A rate that was changed, or a clock that was set back, made a queue wait as long as the old
/// rate or the old clock said.
#[test]
fn a_changed_rate_and_a_clock_set_back_hold_from_now() {
    use tourbillon_store::queue::Rate;
    let mut bench = Bench::new();
    let mut queue = bench.queue.clone();
    queue.config.rate = Some(Rate { per: 3_600 * SECOND, count: 1, burst: 1 });
    queue.version += 1;
    bench.tell(Event::Queues(vec![queue.clone()]));
    for _ in 0..4 {
        bench.create(START, command());
    }
    assert_eq!(bench.starts().len(), 1);
    queue.config.rate = Some(Rate { per: SECOND, count: 1, burst: 1 });
    queue.version += 1;
    bench.tell(Event::Queues(vec![queue]));
    bench.pass(SECOND);
    assert_eq!(bench.starts().len(), 1);
    bench.step_clock(-3_600 * SECOND);
    bench.pass(3_600 * SECOND + 2 * SECOND);
    assert_eq!(bench.starts().len(), 2);
}
