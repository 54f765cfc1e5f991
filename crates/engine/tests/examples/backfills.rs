//! Backfills: each occurrence of the span runs once, a few at a time, whatever happens on the way.

use tourbillon_engine::api::{Answer, BackfillChange, Request};
use tourbillon_store::schedule::{Backfill, Misfire, Overlap};
use tourbillon_store::time::{DAY, HOUR, MINUTE, SECOND};
use tourbillon_store::{AttemptOutcome, ScheduleRecord, State, Task, Time};

use crate::bench::{Bench, START, every};

fn backfill(id: &str, from: Time, until: Time, in_flight: u32) -> Backfill {
    Backfill { id: id.into(), from, until, next: from, in_flight, created: 0, occurrences: 0 }
}

fn begin(bench: &mut Bench, s: &ScheduleRecord, backfill: Backfill) -> Answer {
    let change = BackfillChange::Begin(Box::new(backfill));
    let reply = bench.ask(Request::Backfill { shard: s.shard, uid: s.uid, change });
    bench.answers.remove(&reply).expect("it is answered at once")
}

/// The tasks of a backfill, by logical time.
fn tasks_of(bench: &Bench, id: &str) -> Vec<Task> {
    let origin = format!("backfill:{id}");
    let states =
        [State::Scheduled, State::Running, State::Succeeded, State::Failed, State::Cancelled];
    let all = states.into_iter().flat_map(|state| bench.all(state));
    let of = |t: &Task| t.schedule.as_ref().is_some_and(|s| s.origin == origin);
    let mut tasks: Vec<Task> = all.filter(of).collect();
    tasks.sort_by_key(|t| t.schedule.as_ref().map(|s| s.logical));
    tasks
}

fn logical(tasks: &[Task]) -> Vec<Time> {
    tasks.iter().filter_map(|t| t.schedule.as_ref()).map(|s| s.logical).collect()
}

fn under_way(bench: &Bench, s: &ScheduleRecord) -> usize {
    bench.engine.schedule_view(s.uid).map_or(0, |view| view.cursor.backfills.len())
}

/// Ends what runs until nothing more starts; the most that ran at once.
fn run_all(bench: &mut Bench) -> usize {
    let mut most = 0;
    loop {
        let runs = bench.starts();
        if runs.is_empty() {
            return most;
        }
        most = most.max(runs.len());
        for run in runs {
            bench.end(&run, AttemptOutcome::Succeeded);
        }
    }
}

#[test]
fn every_occurrence_of_the_span_runs_once_and_in_order() {
    for in_flight in [1, 3, 1_000] {
        let mut bench = Bench::new();
        let s = bench.schedule("s", every(3_600, Misfire::Once, Overlap::Skip));
        let answer = begin(&mut bench, &s, backfill("b", START.plus(-DAY), START, in_flight));
        assert!(
            matches!(&answer, Answer::Schedule(r) if r.cursor.backfills.len() == 1),
            "{answer:?}"
        );
        let most = run_all(&mut bench);
        assert_eq!(most, (in_flight as usize).min(24));
        let tasks = tasks_of(&bench, "b");
        let wanted: Vec<Time> = (0..24).map(|h| START.plus(h * HOUR - DAY)).collect();
        assert_eq!(logical(&tasks), wanted, "from the first on, and not the end");
        assert!(tasks.iter().all(|t| t.state == State::Succeeded && t.spec.priority == -8));
        assert_eq!(under_way(&bench, &s), 0, "it is through");
        assert!(bench.engine.next_wake().is_none_or(|at| at > bench.now()));
    }
}

/// A long backfill beside a schedule whose overlap policy skips: the plan went on all the same, and the backfill's
/// tasks came after everything else that was ready.
#[test]
fn the_plan_goes_on_beside_a_backfill() {
    let mut bench = Bench::new();
    let s = bench.schedule("s", every(60, Misfire::Once, Overlap::Skip));
    begin(&mut bench, &s, backfill("b", START.plus(-HOUR), START, 1));
    let old = bench.start();
    bench.pass(MINUTE);
    let planned = bench.start();
    assert_eq!(planned.task.schedule.as_ref().map(|s| s.origin.as_str()), Some("plan"));
    bench.end(&planned, AttemptOutcome::Succeeded);
    bench.end(&old, AttemptOutcome::Succeeded);
    assert_eq!(bench.starts().len(), 1, "one of the backfill after the other");
    assert!(bench.all(State::Skipped).is_empty());
}

#[test]
fn a_restart_in_the_middle_neither_loses_nor_doubles_an_occurrence() {
    for ended_before in [0, 1, 5, 23, 24] {
        let mut bench = Bench::new();
        let s = bench.schedule("s", every(3_600, Misfire::Once, Overlap::Skip));
        begin(&mut bench, &s, backfill("b", START.plus(-DAY), START, 2));
        for _ in 0..ended_before {
            let mut runs = bench.starts();
            let run = runs.remove(0);
            bench.end(&run, AttemptOutcome::Succeeded);
            bench.started.extend(runs);
        }
        bench.restart(SECOND);
        // What ran is lost with its node, and tried again.
        for _ in 0..200 {
            run_all(&mut bench);
            bench.pass(10 * SECOND);
        }
        let tasks = tasks_of(&bench, "b");
        let wanted: Vec<Time> = (0..24).map(|h| START.plus(h * HOUR - DAY)).collect();
        assert_eq!(logical(&tasks), wanted, "{ended_before}");
        assert!(tasks.iter().all(|t| t.state == State::Succeeded), "{ended_before}");
        assert_eq!(under_way(&bench, &s), 0);
    }
}

#[test]
fn the_same_id_again_creates_nothing_twice() {
    let mut bench = Bench::new();
    let s = bench.schedule("s", every(3_600, Misfire::Once, Overlap::Skip));
    let span = || backfill("b", START.plus(-5 * HOUR), START, 2);
    begin(&mut bench, &s, span());
    let again = begin(&mut bench, &s, span());
    assert!(matches!(&again, Answer::Schedule(r) if r.cursor.backfills.len() == 1), "{again:?}");
    run_all(&mut bench);
    assert_eq!(tasks_of(&bench, "b").len(), 5);
    begin(&mut bench, &s, span());
    assert_eq!(run_all(&mut bench), 0, "all of them are there");
    assert_eq!(tasks_of(&bench, "b").len(), 5);
    assert_eq!(under_way(&bench, &s), 0, "it is through all the same");
    begin(&mut bench, &s, backfill("c", START.plus(-5 * HOUR), START, 5));
    assert_eq!(run_all(&mut bench), 5, "another id is another backfill");
}

#[test]
fn pause_edit_stop_and_removal_hold_a_backfill_back() {
    let mut bench = Bench::new();
    let mut s = bench.schedule("s", every(3_600, Misfire::Once, Overlap::Skip));
    begin(&mut bench, &s, backfill("b", START.plus(-DAY), START, 1));
    let run = bench.start();
    let (shard, uid) = (s.shard, s.uid);
    bench.ask(Request::PauseSchedule { shard, uid, paused: true });
    bench.end(&run, AttemptOutcome::Succeeded);
    assert!(bench.starts().is_empty(), "none while it is paused");
    bench.restart(SECOND);
    assert!(bench.starts().is_empty());
    bench.ask(Request::PauseSchedule { shard, uid, paused: false });
    let run = bench.start();
    // The rule changes: what is left goes by the new one.
    let reply = {
        s = bench.stored(uid);
        let record =
            ScheduleRecord { doc: every(7_200, Misfire::Once, Overlap::Skip), ..s.clone() };
        bench.ask(Request::PutSchedule(Box::new(record)))
    };
    assert!(matches!(bench.answers[&reply], Answer::Schedule(_)));
    assert_eq!(under_way(&bench, &s), 1, "an edit leaves it");
    bench.end(&run, AttemptOutcome::Succeeded);
    let run = bench.start();
    assert_eq!(run.task.schedule.as_ref().map(|s| s.logical), Some(START.plus(2 * HOUR - DAY)));
    let stop = |id: &str| Request::Backfill { shard, uid, change: BackfillChange::End(id.into()) };
    let reply = bench.ask(stop("b"));
    assert!(matches!(bench.answers[&reply], Answer::Schedule(_)));
    bench.end(&run, AttemptOutcome::Succeeded);
    assert!(bench.starts().is_empty(), "it was ended");
    let reply = bench.ask(stop("b"));
    assert_eq!(bench.answers[&reply], Answer::NoBackfill);
    begin(&mut bench, &s, backfill("c", START.plus(-DAY), START, 1));
    let run = bench.start();
    bench.ask(Request::DeleteSchedule { shard, uid });
    bench.end(&run, AttemptOutcome::Succeeded);
    bench.pass(DAY);
    assert!(bench.starts().is_empty(), "nothing of a schedule that is gone");
}

#[test]
fn what_cannot_be_gone_back_to_is_refused() {
    use tourbillon_store::schedule::Rule;
    let mut bench = Bench::new();
    let delay = tourbillon_store::ScheduleDoc {
        rule: Rule::After(60 * SECOND),
        ..every(60, Misfire::Once, Overlap::Skip)
    };
    let s = bench.schedule("delay", delay);
    let answer = begin(&mut bench, &s, backfill("b", START.plus(-DAY), START, 1));
    assert!(
        matches!(&answer, Answer::BadSchedule(why) if why.contains("fixed delay")),
        "{answer:?}"
    );
    let s = bench.schedule("s", every(60, Misfire::Once, Overlap::Skip));
    for n in 0..16 {
        let answer = begin(&mut bench, &s, backfill(&n.to_string(), START.plus(-DAY), START, 1));
        assert!(matches!(answer, Answer::Schedule(_)), "{n}");
    }
    let answer = begin(&mut bench, &s, backfill("more", START.plus(-DAY), START, 1));
    assert!(matches!(&answer, Answer::BadSchedule(why) if why.starts_with("id:")), "{answer:?}");
}
