//! Faults of timers, clocks and stores.

use tourbillon_engine::EngineConfig;
use tourbillon_engine::api::{Answer, Event, Request};
use tourbillon_store::memory::Fault;
use tourbillon_store::schedule::{Misfire, Overlap};
use tourbillon_store::time::{DAY, HOUR, MINUTE, SECOND};
use tourbillon_store::{AttemptOutcome, Queries, State, Store, Unit, Write};

use crate::bench::{Bench, START, command, every};

/// A million timers inserted and cancelled, none due: memory came back only at their deadlines
/// (netty#2541, tokio#8252, grpc-java#1307).
#[test]
fn cancelling_many_gives_their_memory_back_at_once() {
    let mut bench = Bench::new();
    bench.unchecked = true;
    let due = START.plus(5 * MINUTE);
    let mut ids = Vec::new();
    for _ in 0..20 {
        let tasks: Vec<_> = (0..1_000).map(|_| bench.new_task(due, command())).collect();
        ids.extend(tasks.iter().map(|t| t.id));
        let reply = bench.reply();
        bench.tell(Event::Accept { reply, tasks, replaces: None });
    }
    let full = bench.engine.view();
    assert_eq!((full.numbers.resident, full.wheel.len), (20_000, 20_000));
    bench.hold_commits = true;
    for id in ids {
        bench.cancel(id);
    }
    bench.release();
    bench.engine.check_invariants();
    let empty = bench.engine.view();
    assert_eq!((empty.numbers.resident, empty.wheel.len), (0, 0));
    assert!(empty.wheel.capacity < full.wheel.capacity / 20, "{}", empty.wheel.capacity);
    assert_eq!(bench.all(State::Cancelled).len(), 20_000);
}

/// A task panicked and took the timer thread with it (java.util.Timer): here it alone fails, and
/// a periodic one goes on.
#[test]
fn a_failure_is_its_own_tasks_alone() {
    let mut bench = Bench::new();
    let schedule = bench.schedule("s", every(60, Misfire::Once, Overlap::Skip));
    let other = bench.create(START.plus(90 * SECOND), command());
    bench.pass(60 * SECOND);
    let run = bench.start();
    bench.end(&run, AttemptOutcome::Failed);
    bench.pass(SECOND);
    for n in 2..=5 {
        let again = bench.start();
        assert_eq!((again.task.id, again.open.n), (run.task.id, n));
        bench.end(&again, AttemptOutcome::Failed);
        bench.pass(SECOND << (n - 1));
    }
    assert_eq!(bench.task(run.task.id).state, State::Failed);
    bench.pass_until(START.plus(2 * MINUTE));
    let starts = bench.starts();
    assert_eq!(starts.len(), 2);
    assert_eq!(starts[0].task.id, other);
    assert_eq!(starts[1].task.schedule.as_ref().map(|s| s.uid), Some(schedule.uid));
}

/// `now` stepped back and timers fired twice or panicked; it stepped forward a day and a
/// one-minute period ran 1,440 times (tokio#3619, node-schedule#214).
#[test]
fn a_step_back_fires_nothing_twice_and_a_step_forward_goes_by_the_policy() {
    for (misfire, runs) in [(Misfire::Skip, 0), (Misfire::Once, 1), (Misfire::All, 100)] {
        let mut bench = Bench::new();
        bench.schedule("s", every(60, misfire, Overlap::Allow));
        bench.pass(60 * SECOND);
        let run = bench.start();
        bench.end(&run, AttemptOutcome::Succeeded);
        bench.step_clock(-HOUR);
        bench.pass(HOUR + 30 * SECOND);
        assert!(bench.starts().is_empty(), "nothing of that hour runs again");
        bench.step_clock(DAY);
        let mut seen = 0;
        loop {
            let starts = bench.starts();
            if starts.is_empty() {
                break;
            }
            seen += starts.len();
            starts.iter().for_each(|order| bench.end(order, AttemptOutcome::Succeeded));
        }
        assert_eq!(seen, runs, "{misfire:?}");
    }
}

/// A clock that was set back an hour made new work due "now + 10 min" run at once, by the old
/// offset.
#[test]
fn after_a_step_back_what_is_created_runs_on_time() {
    let mut bench = Bench::new();
    bench.pass(10 * SECOND);
    bench.step_clock(-HOUR);
    let due = bench.now().plus(10 * MINUTE);
    bench.create(due, command());
    bench.pass(10 * MINUTE - 1_000);
    assert!(bench.starts().is_empty());
    bench.pass(1_000);
    assert_eq!(bench.start().open.started_at, due);
}

/// A cancellation was answered and the task ran all the same, because the answer raced with the
/// fire (PowerJob#828).
#[test]
fn what_was_cancelled_paused_or_deleted_does_not_start() {
    // The cancellation is being written when the task becomes due.
    let mut bench = Bench::new();
    let id = bench.create(START.plus(SECOND), command());
    bench.hold_commits = true;
    let reply = bench.cancel(id);
    bench.pass(2 * SECOND);
    assert!(bench.starts().is_empty());
    bench.release();
    assert_eq!(bench.answers[&reply], Answer::Cancelled);
    bench.pass(MINUTE);
    assert!(bench.starts().is_empty());

    // So is a pause; when it fails the queue goes on.
    for fault in [None, Some(Fault::NotCommitted)] {
        let mut bench = Bench::new();
        bench.create(START.plus(SECOND), command());
        let mut queue = bench.queue.clone();
        queue.config.paused = true;
        bench.hold_commits = true;
        let reply = bench.ask(Request::PutQueue(Box::new(queue)));
        bench.pass(2 * SECOND);
        assert!(bench.starts().is_empty());
        fault.into_iter().for_each(|f| bench.store.inject(f));
        bench.release();
        bench.pass(MINUTE);
        let paused = matches!(bench.answers[&reply], Answer::Queue(_));
        assert_eq!(paused, fault.is_none());
        assert_eq!(bench.starts().is_empty(), paused);
    }

    // A schedule's waiting occurrence.
    for delete in [true, false] {
        let mut bench = Bench::new();
        let s = bench.schedule("s", every(60, Misfire::Once, Overlap::Skip));
        bench.pass(59 * SECOND);
        bench.hold_commits = true;
        let (shard, uid) = (s.shard, s.uid);
        let reply = bench.ask(if delete {
            Request::DeleteSchedule { shard, uid }
        } else {
            Request::PauseSchedule { shard, uid, paused: true }
        });
        bench.pass(2 * SECOND);
        bench.release();
        assert!(matches!(bench.answers[&reply], Answer::Done | Answer::Schedule(_)));
        bench.pass(10 * MINUTE);
        assert!(bench.starts().is_empty());
    }
}

/// A span was being loaded, a task of it was cancelled meanwhile, and the load's late answer
/// brought the task back.
#[test]
fn a_late_load_resurrects_nothing() {
    let mut bench = Bench::new();
    let id = bench.create(START.plus(20 * MINUTE), command());
    bench.hold_loads = true;
    bench.pass_until(START.plus(15 * MINUTE));
    let load = bench.held.pop().expect("the window goes on");
    let answer = bench.do_now(load).expect("a load is answered");
    let reply = bench.cancel(id);
    assert_eq!(bench.answers[&reply], Answer::Cancelled);
    bench.tell(answer);
    bench.release();
    bench.pass(HOUR);
    assert!(bench.starts().is_empty());
    assert_eq!(bench.task(id).state, State::Cancelled);
}

/// A commit was sent and its answer lost: some told a success that was none, others did it
/// twice.
#[test]
fn an_unknown_commit_is_neither_a_success_nor_done_twice() {
    for fault in [Fault::UnknownCommitted, Fault::UnknownNotCommitted] {
        let mut bench = Bench::new();
        let task = bench.new_task(START.plus(SECOND), command());
        let (id, reply) = (task.id, bench.reply());
        bench.store.inject(fault);
        bench.tell(Event::Accept { reply, tasks: vec![task], replaces: None });
        assert!(matches!(bench.answers[&reply], Answer::Unavailable(_)));
        bench.pass(MINUTE);
        let starts = bench.starts();
        assert_eq!(starts.len(), usize::from(fault == Fault::UnknownCommitted));
        // The end of the attempt meets the same: it is recorded once.
        for order in starts {
            bench.store.inject(fault);
            bench.end(&order, AttemptOutcome::Succeeded);
            bench.pass(MINUTE);
            assert!(bench.starts().is_empty());
            let task = bench.task(id);
            assert_eq!((task.state, task.attempts.len()), (State::Succeeded, 1));
        }
        assert!(bench.engine.is_quiet());
    }
}

/// A start of at most one attempt was committed and the answer lost: the attempt was neither
/// made nor given up.
#[test]
fn a_durable_start_whose_answer_was_lost_is_made() {
    let mut bench = Bench::new();
    let spec = tourbillon_store::TaskSpec { at_most_once: true, ..command() };
    let id = bench.create(START.plus(SECOND), spec);
    bench.store.inject(Fault::UnknownCommitted);
    bench.pass(MINUTE);
    let order = bench.start();
    bench.end(&order, AttemptOutcome::Succeeded);
    assert_eq!(bench.task(id).attempts.len(), 1);
}

/// A task was inserted by a node that does not own it, and its commit ended after its due time:
/// it was found at the next restart only.
#[test]
fn a_task_of_the_inbox_starts_when_the_inbox_is_read() {
    let mut bench = Bench::new();
    let mut task = bench.new_task(START.plus(SECOND), command());
    task.inbox = true;
    bench.pass(MINUTE);
    let unit = Unit { fences: vec![], writes: vec![Write::Insert(Box::new(task))] };
    bench.store.commit(&[unit]).expect("it works");
    let rows = bench.store.inbox(&[bench.shard]).expect("reads work");
    bench.tell(Event::Inbox(rows));
    bench.start();
}

/// The last counts waited for the next batch; on an idle server it never came, and the overview
/// showed a finished task as unfinished until somebody created another one.
#[test]
fn statistics_are_written_also_when_nothing_follows_them() {
    let mut bench = Bench::new();
    let due = bench.now();
    bench.create(due, command());
    let run = bench.start();
    bench.end(&run, AttemptOutcome::Succeeded);
    let counted = |bench: &Bench| {
        let rows = bench.store.series(0, i64::MAX).unwrap();
        let rows: Vec<_> = rows.into_iter().flat_map(|(_, rows)| rows).collect();
        let finished = rows.iter().flat_map(|r| &r.finished).map(|(_, n)| n).sum::<u32>();
        (rows.iter().map(|r| r.created).sum::<u32>(), finished)
    };
    assert!(!bench.engine.is_quiet(), "what is not counted yet is not done yet");
    bench.pass(SECOND);
    assert_eq!(counted(&bench), (1, 1));
    assert!(bench.engine.is_quiet());
    assert_eq!(bench.engine.next_wake().filter(|at| *at < bench.now().plus(MINUTE)), None);

    // A node that is told to stop does not wait for it.
    bench.create(due, command());
    let run = bench.start();
    bench.tell(Event::Drain);
    bench.end(&run, AttemptOutcome::Succeeded);
    bench.pass(0);
    assert_eq!(counted(&bench), (2, 2));
}

/// Three million tasks fell due faster than their ends could be written: each ended attempt gave
/// its slot to the next and stayed in memory until its batch, and the server grew to 3.8 GB.
#[test]
fn attempts_do_not_pile_up_before_a_slow_store() {
    let mut bench = Bench::with(EngineConfig { max_unsent_attempts: 10, ..Default::default() });
    let due = bench.now().plus(MINUTE);
    let tasks: Vec<_> = (0..300).map(|_| bench.new_task(due, command())).collect();
    let reply = bench.reply();
    bench.tell(Event::Accept { reply, tasks, replaces: None });
    bench.hold_commits = true;
    bench.pass(MINUTE);
    let mut started = 0;
    loop {
        let runs = bench.starts();
        if runs.is_empty() {
            break;
        }
        started += runs.len();
        runs.iter().for_each(|run| bench.end(run, AttemptOutcome::Succeeded));
        bench.pass(SECOND);
    }
    let at_once = bench.queue.config.concurrency as usize;
    assert!((1..=at_once + 10).contains(&started), "{started} attempts before a commit");
    bench.hold_commits = false;
    bench.release();
    while bench.all(State::Succeeded).len() < 300 {
        let runs = bench.starts();
        runs.iter().for_each(|run| bench.end(run, AttemptOutcome::Succeeded));
        bench.pass(SECOND);
        started += runs.len();
    }
    assert_eq!(started, 300);
}
