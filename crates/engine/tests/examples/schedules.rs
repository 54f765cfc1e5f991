//! Faults of schedules.

use tourbillon_engine::api::{Answer, Event, Request};
use tourbillon_store::schedule::{Misfire, Overlap, Rule};
use tourbillon_store::time::{DAY, HOUR, MINUTE, SECOND};
use tourbillon_store::{AttemptOutcome, ScheduleDoc, State};

use crate::bench::{Bench, START, command, every};

/// The server was down at 10:00:00 exactly, or the shard changed owner then: the run was lost or
/// happened twice (sidekiq#6804, dkron#1210).
#[test]
fn a_run_at_the_moment_of_a_restart_happens_once() {
    for lose in [false, true] {
        let mut bench = Bench::new();
        bench.schedule("s", every(3600, Misfire::Once, Overlap::Skip));
        bench.pass_until(START.plus(HOUR - SECOND));
        if lose {
            let shard = bench.shard;
            bench.tell(Event::LeaseLost { shard });
            bench.pass(2 * SECOND);
            assert!(bench.starts().is_empty(), "not without the lease");
            bench.gain();
        } else {
            bench.restart(2 * SECOND);
        }
        let run = bench.start();
        assert_eq!(run.task.schedule.as_ref().map(|s| s.logical), Some(START.plus(HOUR)));
        bench.end(&run, AttemptOutcome::Succeeded);
        bench.pass(30 * MINUTE);
        assert!(bench.starts().is_empty());
    }
}

/// A timer whose next time equalled now spun (systemd#32039).
#[test]
fn the_next_occurrence_is_strictly_after_the_last() {
    let mut bench = Bench::new();
    bench.schedule("s", every(60, Misfire::Once, Overlap::Allow));
    for n in 1..=10 {
        bench.pass_until(START.plus(n * MINUTE));
        let run = bench.start();
        assert_eq!(run.task.due, START.plus(n * MINUTE));
        bench.end(&run, AttemptOutcome::Succeeded);
        assert!(bench.starts().is_empty());
        assert!(bench.engine.next_wake().is_none_or(|at| at > bench.now()));
    }
}

/// The zone of the host that stored a schedule was used instead of the schedule's
/// (medusa#13393).
#[test]
fn the_zone_is_the_schedules() {
    let mut bench = Bench::new();
    let rule = Rule::Cron { expr: "0 9 * * *".into(), dialect: "vixie".into() };
    let doc = every(60, Misfire::Once, Overlap::Skip);
    bench.schedule("s", ScheduleDoc { rule, tz: "Asia/Shanghai".into(), ..doc });
    bench.pass_until(START.plus(HOUR - 1));
    assert!(bench.starts().is_empty());
    bench.pass(1);
    assert_eq!(bench.start().task.due, START.plus(HOUR));
}

/// A schedule was deleted and created again under its name, and the old one's run fired
/// (jobrunr#899). A pause while a run was being created was undone by the write-back
/// (xxl-job#1577).
#[test]
fn a_schedule_of_the_same_name_is_another_and_a_pause_stays() {
    let mut bench = Bench::new();
    let old = bench.schedule("s", every(60, Misfire::Once, Overlap::Skip));
    let (shard, uid) = (old.shard, old.uid);
    bench.ask(Request::DeleteSchedule { shard, uid });
    let new = bench.schedule("s", every(90, Misfire::Once, Overlap::Skip));
    bench.pass(100 * SECOND);
    let run = bench.start();
    assert_eq!(run.task.schedule.as_ref().map(|s| s.uid), Some(new.uid));

    // The next run is being written when the pause comes.
    let mut bench = Bench::new();
    let s = bench.schedule("s", every(60, Misfire::Once, Overlap::Skip));
    bench.hold_commits = true;
    bench.pass(60 * SECOND);
    let run = bench.start();
    let (shard, uid) = (s.shard, s.uid);
    let reply = bench.ask(Request::PauseSchedule { shard, uid, paused: true });
    assert!(!bench.answers.contains_key(&reply), "it waits for the write");
    bench.release();
    assert!(matches!(&bench.answers[&reply], Answer::Schedule(s) if s.paused));
    bench.end(&run, AttemptOutcome::Succeeded);
    bench.pass(10 * MINUTE);
    assert!(bench.starts().is_empty());
}

/// The run of a dead node stayed "running" and, under overlap `skip`, blocked its schedule for
/// ever (dkron#1939).
#[test]
fn the_run_of_a_dead_node_does_not_block_its_schedule() {
    let mut bench = Bench::new();
    let mut doc = every(60, Misfire::Once, Overlap::Skip);
    doc.task.retry.max_lost = Some(1);
    bench.schedule("s", doc);
    bench.pass(60 * SECOND);
    let ghost = bench.start();
    bench.restart(SECOND);
    bench.pass(2 * MINUTE);
    assert_eq!(bench.task(ghost.task.id).state, State::Failed);
    let runs = bench.starts();
    assert!(!runs.is_empty(), "it goes on");
}

/// A weekly schedule on a server that was restarted every day never ran (river#791); a long
/// downtime was followed by a flood (river#1035).
#[test]
fn restarts_do_not_put_a_run_off_and_a_long_downtime_is_caught_up_once() {
    let mut bench = Bench::new();
    bench.schedule("s", every(7 * 86_400, Misfire::Once, Overlap::Skip));
    let mut runs = 0;
    for _ in 0..15 {
        bench.pass(DAY - MINUTE);
        for run in bench.starts() {
            runs += 1;
            bench.end(&run, AttemptOutcome::Succeeded);
        }
        bench.restart(MINUTE);
    }
    assert_eq!(runs, 2);

    let mut bench = Bench::new();
    bench.schedule("s", every(60, Misfire::Once, Overlap::Skip));
    bench.pass(30 * SECOND);
    bench.restart(DAY);
    let run = bench.start();
    assert_eq!(run.task.schedule.as_ref().map(|s| s.logical), Some(START.plus(DAY)));
    bench.end(&run, AttemptOutcome::Succeeded);
    let skipped = bench.all(State::Skipped);
    assert_eq!(skipped.len(), 1, "one record for all");
    let record = skipped[0].skipped.as_ref().expect("it says what it stands for");
    assert_eq!(record.count, 1_439);
    bench.pass(29 * SECOND);
    assert!(bench.starts().is_empty());
}

/// The policies of overlap, with a run of 150 s every 60 s.
#[test]
fn overlap_by_its_policy() {
    let table = [
        (Overlap::Allow, vec![60, 120, 180], 0),
        (Overlap::Skip, vec![60], 0),
        (Overlap::Wait, vec![60], 0),
        (Overlap::CancelRunning, vec![60], 1),
    ];
    for (overlap, expected, stops) in table {
        let mut bench = Bench::new();
        bench.schedule("s", every(60, Misfire::Once, overlap));
        bench.pass(209 * SECOND);
        let starts = bench.starts();
        let at: Vec<i64> = starts.iter().map(|o| o.open.started_at.since(START) / SECOND).collect();
        assert_eq!(at, expected, "{overlap:?}");
        assert_eq!(bench.stopped.len(), stops, "{overlap:?}");
        // The first ends at 210 s.
        bench.pass(SECOND);
        bench.end(&starts[0], AttemptOutcome::Succeeded);
        let next = bench.starts();
        match overlap {
            Overlap::Allow => assert!(next.is_empty()),
            // What it overlapped is skipped; the next is the next on the grid.
            Overlap::Skip => {
                assert!(next.is_empty());
                assert_eq!(bench.all(State::Skipped).len(), 1);
                bench.pass_until(START.plus(240 * SECOND));
                bench.start();
            }
            Overlap::Wait | Overlap::CancelRunning => assert_eq!(next.len(), 1, "{overlap:?}"),
        }
    }
}

/// A fixed delay counts from the end of the run, whatever became of it.
#[test]
fn a_fixed_delay_counts_from_the_end() {
    let mut bench = Bench::new();
    let doc = every(60, Misfire::Once, Overlap::Skip);
    bench.schedule("s", ScheduleDoc { rule: Rule::After(60 * SECOND), ..doc });
    bench.pass(60 * SECOND);
    let run = bench.start();
    bench.pass(100 * SECOND);
    assert!(bench.starts().is_empty());
    bench.end(&run, AttemptOutcome::Succeeded);
    bench.pass(60 * SECOND - 1);
    assert!(bench.starts().is_empty());
    bench.pass(1);
    let run = bench.start();
    // Cancelled while it runs: the next is one delay after that.
    bench.cancel(run.task.id);
    assert_eq!(bench.stopped.len(), 1);
    bench.end(&run, AttemptOutcome::Cancelled);
    bench.pass(60 * SECOND);
    bench.start();
}

/// A rule changed from a fixed delay to a fixed rate while its run was under way: the end of the
/// run did not move the schedule on, and it stood still for ever.
#[test]
fn a_rule_may_change_while_a_run_is_under_way() {
    let mut bench = Bench::new();
    let doc = every(60, Misfire::Once, Overlap::Skip);
    let delay = ScheduleDoc { rule: Rule::After(60 * SECOND), ..doc.clone() };
    let record = bench.schedule("s", delay);
    bench.pass(60 * SECOND);
    let run = bench.start();
    let reply = bench.ask(Request::PutSchedule(Box::new(tourbillon_store::ScheduleRecord {
        doc: ScheduleDoc { task: command(), ..doc },
        ..record
    })));
    assert!(matches!(bench.answers[&reply], Answer::Schedule(_)));
    bench.end(&run, AttemptOutcome::Succeeded);
    bench.pass(2 * MINUTE);
    assert!(!bench.starts().is_empty());
}
