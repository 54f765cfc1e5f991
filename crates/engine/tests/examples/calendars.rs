//! Calendar rules and exclusion calendars: what runs when, and what a change of a calendar does to
//! the occurrence that waits.

use tourbillon_engine::api::{Answer, Event, Request, StartOrder};
use tourbillon_engine::timing::compile;
use tourbillon_store::schedule::{CalendarRule, Misfire, Overlap, Rule};
use tourbillon_store::time::{DAY, HOUR, MINUTE, SECOND};
use tourbillon_store::{
    AttemptOutcome, Queries, Refusal, ScheduleDoc, ScheduleRecord, State, Store, Time, Unit, Write,
};

use crate::bench::{Bench, START, every};

/// Every day at 09:00 but for what the calendars leave out.
fn daily(exclude: &[&str]) -> ScheduleDoc {
    ScheduleDoc {
        rule: calendar("day", None, "09:00", "clamp"),
        exclude: exclude.iter().map(|name| (*name).to_owned()).collect(),
        ..every(60, Misfire::Once, Overlap::Skip)
    }
}

fn calendar(every: &str, on: Option<&str>, at: &str, month_end: &str) -> Rule {
    Rule::Calendar(CalendarRule {
        every: every.into(),
        on: on.map(str::to_owned),
        at: at.into(),
        month_end: month_end.into(),
    })
}

/// 09:00 of a day, counted from the first.
fn nine(day: i64) -> Time {
    START.plus(day * DAY + 9 * HOUR)
}

fn logical(run: &StartOrder) -> Time {
    run.task.schedule.as_ref().expect("it is of a schedule").logical
}

/// Lets time pass and ends every run within an hour; the logical times of the runs.
fn runs_until(bench: &mut Bench, end: Time) -> Vec<Time> {
    runs_by(bench, end, HOUR)
}

fn runs_by(bench: &mut Bench, end: Time, step: i64) -> Vec<Time> {
    let mut runs = Vec::new();
    while bench.now() < end {
        bench.pass_until(end.min(bench.now().plus(step)));
        for run in bench.starts() {
            assert!(run.open.started_at.since(run.task.due) < SECOND, "it starts on time");
            runs.push(logical(&run));
            bench.end(&run, AttemptOutcome::Succeeded);
        }
    }
    runs
}

fn next(bench: &Bench, name: &str) -> Option<Time> {
    let record = bench.store.schedule(bench.queue.namespace, name).expect("reads work");
    record.expect("it exists").cursor.next.map(|next| next.logical)
}

/// Every planned occurrence is of its own logical time, and none waits beside the schedule's.
fn each_once(bench: &Bench) {
    let mut seen = Vec::new();
    for state in State::ALL {
        seen.extend(bench.all(state).iter().filter_map(|t| Some(t.schedule.as_ref()?.logical)));
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all, "an occurrence is doubled");
    assert!(bench.all(State::Scheduled).len() <= 1);
}

#[test]
fn a_day_that_a_calendar_leaves_out_has_no_run() {
    let mut bench = Bench::new();
    bench.calendar("weekends", &["sat", "sun"]);
    bench.calendar("holidays", &["2026-03-04"]);
    bench.schedule("s", daily(&["holidays", "weekends"]));
    // Monday to Sunday, but Wednesday and the weekend.
    let expected: Vec<Time> = [0, 1, 3, 4, 7, 8].map(nine).to_vec();
    assert_eq!(runs_until(&mut bench, nine(8).plus(HOUR)), expected);
    assert_eq!(bench.all(State::Skipped), [], "what is left out is not skipped, it never was");
    each_once(&bench);
}

/// Each rule of the document's forms is stored, survives a restart a day, and runs exactly when the
/// schedule library has it (a weekly schedule on a server that was restarted every day never ran:
/// river#791).
#[test]
fn every_calendar_rule_runs_through_restarts() {
    let rules = [
        calendar("1 day", None, "00:00", "clamp"),
        calendar("3 days", None, "23:59:59", "clamp"),
        calendar("week", None, "06:30", "clamp"),
        calendar("2 weeks", Some("5"), "12:00", "clamp"),
        calendar("1 month", Some("31"), "02:00", "clamp"),
        calendar("1 month", Some("31"), "02:00", "skip"),
        calendar("2 months", None, "10:00", "clamp"),
        calendar("1 month", Some("last_business_day"), "18:30", "clamp"),
        calendar("quarter", Some("last_business_day"), "18:30", "clamp"),
        calendar("2 quarters", Some("15"), "08:00", "skip"),
        calendar("1 year", Some("last_business_day"), "00:00", "clamp"),
        calendar("1 year", None, "04:00", "skip"),
    ];
    for rule in rules {
        let mut bench = Bench::new();
        bench.unchecked = true;
        bench.calendar("mondays", &["mon"]);
        let start = Some(START.plus(3 * DAY));
        let doc = ScheduleDoc {
            rule: rule.clone(),
            tz: "America/New_York".into(),
            start,
            ..daily(&["mondays"])
        };
        let stored = bench.schedule("s", doc.clone());
        assert_eq!(stored.doc, doc);
        let days = bench.engine_days(&doc.exclude);
        let timing = compile(&doc, "s").expect("it was accepted").with_exclusions(days);
        let end = START.plus(400 * DAY);
        let expected: Vec<Time> = timing
            .occurrences_after(START.0)
            .map(|o| Time(o.logical))
            .take_while(|at| *at < end)
            .collect();
        assert!(!expected.is_empty(), "{rule:?}");
        let mut runs = Vec::new();
        while bench.now() < end {
            let until = bench.now().plus(DAY - MINUTE).min(end);
            bench.pass_until(until);
            let starts = bench.starts();
            for run in starts {
                runs.push(logical(&run));
                bench.end(&run, AttemptOutcome::Succeeded);
            }
            bench.restart(MINUTE);
        }
        // What was due in the last minute of a day ran after the restart.
        let known = |at: &&Time| **at < end.plus(-DAY);
        assert_eq!(
            runs.iter().filter(known).collect::<Vec<_>>(),
            expected.iter().filter(known).collect::<Vec<_>>(),
            "{rule:?}"
        );
        each_once(&bench);
        let record = bench.store.schedule(bench.queue.namespace, "s").unwrap().unwrap();
        assert_eq!(record.doc, doc, "it is stored as it was given");
    }
}

#[test]
fn the_waiting_occurrence_follows_its_calendars() {
    let mut bench = Bench::new();
    bench.calendar("c", &["sun"]);
    bench.schedule("s", daily(&["c"]));
    bench.schedule("other", daily(&[]));
    assert_eq!((next(&bench, "s"), next(&bench, "other")), (Some(nine(0)), Some(nine(0))));
    let version = |bench: &Bench| {
        bench.store.schedule(bench.queue.namespace, "other").unwrap().unwrap().version
    };
    let before = version(&bench);
    // Its day is taken away, and so are the next ones; then an earlier one is given back.
    for (days, day) in [
        (&["2026-03-02"][..], 1),
        (&["2026-03-02", "2026-03-03", "2026-03-04"], 3),
        (&["2026-03-02", "2026-03-05"], 1),
        (&[], 0),
        (&["sun"], 0),
    ] {
        let reply = bench.calendar("c", days);
        assert_eq!(bench.answers.get(&reply), Some(&Answer::Done));
        assert_eq!(next(&bench, "s"), Some(nine(day)), "{days:?}");
        each_once_of(&bench, "s");
    }
    assert_eq!(version(&bench), before, "it names no calendar");
    assert_eq!(next(&bench, "other"), Some(nine(0)));
    // It runs as planned last, once, and goes on.
    bench.calendar("c", &["2026-03-03"]);
    bench.pass_until(nine(0));
    for run in bench.starts() {
        assert_eq!(logical(&run), nine(0));
        bench.end(&run, AttemptOutcome::Succeeded);
    }
    assert_eq!((next(&bench, "s"), next(&bench, "other")), (Some(nine(2)), Some(nine(1))));
    assert_eq!(bench.all(State::Cancelled), [], "what is planned anew leaves no trace");
}

fn each_once_of(bench: &Bench, name: &str) {
    let of = |t: &tourbillon_store::Task| t.schedule.as_ref().is_some_and(|s| s.name == name);
    assert_eq!(bench.all(State::Scheduled).iter().filter(|t| of(t)).count(), 1);
}

/// What was planned for a time that has come is not taken back: it waits for its queue, or for the run
/// before it, and runs.
#[test]
fn an_occurrence_whose_time_has_come_stays() {
    let mut bench = Bench::new();
    bench.calendar("c", &[]);
    bench.schedule("s", ScheduleDoc { overlap: Overlap::Wait, ..daily(&["c"]) });
    bench.pass_until(nine(0));
    let first = bench.start();
    // The next one's time comes while the first runs.
    bench.pass_until(nine(1).plus(HOUR));
    assert!(bench.starts().is_empty());
    let reply = bench.calendar("c", &["2026-03-03", "2026-03-04"]);
    assert_eq!(bench.answers.get(&reply), Some(&Answer::Done));
    assert_eq!(next(&bench, "s"), Some(nine(1)), "it stays");
    bench.end(&first, AttemptOutcome::Succeeded);
    let second = bench.start();
    assert_eq!(logical(&second), nine(1));
    // The one after it is by the calendar as it is now.
    assert_eq!(next(&bench, "s"), Some(nine(3)));
    bench.end(&second, AttemptOutcome::Succeeded);
    each_once(&bench);
}

/// The change is written after what was under way before, and the answer after that.
#[test]
fn an_answer_waits_until_the_plans_are_durable() {
    let mut bench = Bench::new();
    bench.calendar("c", &[]);
    bench.schedule("s", daily(&["c"]));
    bench.pass_until(nine(0).plus(-1));
    bench.hold_commits = true;
    // The start of the first run, and with it the plan for the next day, is being written.
    bench.pass(SECOND);
    let first = bench.start();
    let reply = bench.calendar("c", &["2026-03-03"]);
    assert!(!bench.answers.contains_key(&reply), "its plan is under way");
    let effect = bench.held.remove(0);
    let committed = bench.do_now(effect).expect("a commit answers");
    bench.tell(committed);
    assert_eq!(next(&bench, "s"), Some(nine(1)), "planned before the change");
    assert!(!bench.answers.contains_key(&reply), "the new plan is not written yet");
    bench.release();
    assert_eq!(bench.answers.get(&reply), Some(&Answer::Done));
    assert_eq!(next(&bench, "s"), Some(nine(2)));
    bench.end(&first, AttemptOutcome::Succeeded);
    each_once(&bench);
}

/// The node died when the calendar was written and before its schedules were planned anew.
#[test]
fn a_restart_makes_up_for_what_a_crash_left_behind() {
    for (days, day) in [(&["2026-03-03"][..], 2), (&["2026-03-03", "2026-03-04"], 3), (&[], 1)] {
        let mut bench = Bench::new();
        bench.calendar("c", &["2026-03-03"]);
        bench.schedule("s", daily(&["c"]));
        assert_eq!(runs_until(&mut bench, nine(0).plus(HOUR)), [nine(0)]);
        assert_eq!(next(&bench, "s"), Some(nine(2)));
        bench.store_calendar("c", days);
        bench.restart(MINUTE);
        assert_eq!(next(&bench, "s"), Some(nine(day)), "{days:?}");
        each_once(&bench);
        // A write that fails is made up for as well: the shard is read again.
        let calendar = bench.store_calendar("c", &["2026-03-03", "2026-03-04", "2026-03-05"]);
        bench.store.inject(tourbillon_store::memory::Fault::UnknownNotCommitted);
        bench.tell(Event::Calendars(vec![calendar]));
        let reply = bench.ask(Request::AwaitCalendars);
        bench.pass(10 * SECOND);
        assert_eq!(bench.answers.get(&reply), Some(&Answer::Done));
        assert_eq!(next(&bench, "s"), Some(nine(4)), "{days:?}");
        each_once(&bench);
    }
}

/// A calendar that is told late, when a newer one is known, changes nothing; nor does one that was
/// removed before it was made anew.
#[test]
fn the_newest_calendar_counts_in_whatever_order_it_is_told() {
    let mut bench = Bench::new();
    let old = bench.store_calendar("c", &["2026-03-02"]);
    bench.calendar("c", &["2026-03-03"]);
    bench.schedule("s", daily(&["c"]));
    let (namespace, version) = (old.namespace, old.version);
    bench.tell(Event::Calendars(vec![old]));
    bench.tell(Event::CalendarRemoved { namespace, name: "c".into(), version });
    assert_eq!(runs_until(&mut bench, nine(2).plus(HOUR)), [nine(0), nine(2)]);

    // Of two calendars the one that changed last is told first; the plan by the other then fails to
    // be written, and what was planned by the first is not taken for a plan by both.
    let mut bench = Bench::new();
    bench.calendar("a", &[]);
    bench.calendar("b", &[]);
    bench.schedule("s", daily(&["a", "b"]));
    let a = bench.store_calendar("a", &["2026-03-02"]);
    bench.calendar("b", &["2026-03-04"]);
    assert_eq!(next(&bench, "s"), Some(nine(0)));
    let paused = bench.store.schedule(bench.queue.namespace, "s").unwrap().unwrap();
    bench.ask(Request::PutSchedule(Box::new(ScheduleRecord {
        doc: ScheduleDoc { misfire: Misfire::All, ..paused.doc.clone() },
        ..paused
    })));
    bench.store.inject(tourbillon_store::memory::Fault::NotCommitted);
    bench.tell(Event::Calendars(vec![a]));
    bench.pass(10 * SECOND);
    assert_eq!(next(&bench, "s"), Some(nine(1)));
}

/// A calendar was removed and made anew under its name while a schedule that names it was being
/// written: the schedule was accepted by the store, and the engine, which knew only of the removal
/// then, had forgotten it.
#[test]
fn a_schedule_comes_back_with_its_calendar() {
    let mut bench = Bench::new();
    let old = bench.store_calendar("c", &["2026-03-03"]);
    bench.tell(Event::Calendars(vec![old.clone()]));
    bench.hold_commits = true;
    let record = ScheduleRecord { doc: daily(&["c"]), ..bench.unstored("s") };
    bench.ask(Request::PutSchedule(Box::new(record)));
    let (namespace, name, version) = (old.namespace, old.name, old.version);
    let delete = Write::DeleteCalendar { namespace, name: name.clone(), version };
    let done = bench.store.commit(&[Unit { fences: vec![], writes: vec![delete] }]).unwrap();
    assert!(done[0].is_ok());
    bench.tell(Event::CalendarRemoved { namespace, name, version });
    let new = bench.store_calendar("c", &["2026-03-02"]);
    bench.release();
    assert_eq!(next(&bench, "s"), Some(nine(0)), "as it was planned");
    bench.tell(Event::Calendars(vec![new]));
    let reply = bench.ask(Request::AwaitCalendars);
    assert_eq!(bench.answers.get(&reply), Some(&Answer::Done));
    assert_eq!(runs_until(&mut bench, nine(2).plus(HOUR)), [nine(1), nine(2)]);
    each_once(&bench);
}

/// What was cancelled ahead of its time is not planned again, and does not close the time before it.
#[test]
fn a_cancelled_occurrence_is_passed_over_by_later_plans() {
    let mut bench = Bench::new();
    bench.calendar("c", &["2026-03-02", "2026-03-03"]);
    bench.schedule("s", daily(&["c"]));
    let waiting = bench.all(State::Scheduled).remove(0);
    let reply = bench.cancel(waiting.id);
    assert_eq!(bench.answers.get(&reply), Some(&Answer::Cancelled));
    assert_eq!(next(&bench, "s"), Some(nine(3)), "the one of the third day was cancelled");
    bench.calendar("c", &["2026-03-02"]);
    bench.pass(SECOND);
    assert_eq!(next(&bench, "s"), Some(nine(1)));
    bench.calendar("c", &["2026-03-02", "2026-03-03"]);
    bench.pass(SECOND);
    assert_eq!(next(&bench, "s"), Some(nine(3)), "the cancelled one does not come back");
    bench.calendar("c", &[]);
    bench.pass(SECOND);
    assert_eq!(runs_until(&mut bench, nine(4).plus(HOUR)), [nine(0), nine(1), nine(3), nine(4)]);
    each_once(&bench);
}

/// A fixed delay has no grid: its one time moves on to a day that is left, and stays when an earlier
/// one is given back.
#[test]
fn a_fixed_delay_moves_on_with_its_calendar() {
    let mut bench = Bench::new();
    bench.calendar("c", &[]);
    let doc = ScheduleDoc { rule: Rule::After(20 * HOUR), ..daily(&["c"]) };
    bench.schedule("s", doc);
    let planned = START.plus(20 * HOUR);
    bench.pass(6 * HOUR);
    bench.calendar("c", &["2026-03-05"]);
    assert_eq!(next(&bench, "s"), Some(planned), "it is not counted from the change");
    bench.calendar("c", &["2026-03-02", "2026-03-03"]);
    assert_eq!(next(&bench, "s"), Some(START.plus(2 * DAY)), "the beginning of the next day left");
    bench.calendar("c", &["2026-03-02"]);
    assert!(next(&bench, "s") >= Some(planned) && next(&bench, "s") <= Some(START.plus(2 * DAY)));
    each_once(&bench);
}

/// The one time of a fixed delay that a calendar (or its start) had moved was cancelled, and the one
/// after it was moved to the same time: it existed already, and the cancellation was refused for ever.
#[test]
fn a_moved_occurrence_of_a_fixed_delay_is_cancelled_like_any_other() {
    for start in [None, Some(START.plus(DAY))] {
        let mut bench = Bench::new();
        bench.calendar("c", if start.is_none() { &["2026-03-02"] } else { &[] });
        let rule = Rule::After(2 * HOUR);
        bench.schedule("s", ScheduleDoc { rule, start, ..daily(&["c"]) });
        let mut expected = START.plus(DAY);
        for _ in 0..3 {
            assert_eq!(next(&bench, "s"), Some(expected));
            let waiting = bench.all(State::Scheduled).remove(0);
            let reply = bench.cancel(waiting.id);
            assert_eq!(bench.answers.get(&reply), Some(&Answer::Cancelled));
            expected = expected.plus(2 * HOUR);
        }
        each_once(&bench);
    }
}

/// A plan that is made anew counts once against `max_runs`.
#[test]
fn a_change_of_a_calendar_counts_no_run() {
    let mut bench = Bench::new();
    bench.calendar("c", &[]);
    bench.schedule("s", ScheduleDoc { max_runs: Some(3), ..daily(&["c"]) });
    for days in [&["2026-03-02"][..], &[], &["2026-03-02", "2026-03-03"], &["2026-03-03"]] {
        bench.calendar("c", days);
    }
    assert_eq!(runs_until(&mut bench, nine(6)), [nine(0), nine(2), nine(3)]);
    assert_eq!(next(&bench, "s"), None);
    bench.calendar("c", &[]);
    assert_eq!(next(&bench, "s"), None, "it has run often enough");
}

/// A calendar that leaves no day out of a rule's makes an end of it, and gives it back.
#[test]
fn a_rule_without_a_day_left_waits_for_its_calendar() {
    let mut bench = Bench::new();
    bench.calendar("c", &["mon"]);
    bench.schedule(
        "s",
        ScheduleDoc { rule: calendar("week", Some("1"), "09:00", "clamp"), ..daily(&["c"]) },
    );
    assert_eq!(next(&bench, "s"), None);
    assert_eq!(runs_until(&mut bench, START.plus(8 * DAY)), []);
    bench.restart(MINUTE);
    bench.calendar("c", &["tue"]);
    assert_eq!(next(&bench, "s"), Some(nine(14)));
    bench.calendar("c", &["mon"]);
    assert_eq!(next(&bench, "s"), None);
    assert_eq!(bench.all(State::Scheduled), []);
}

/// What a paused schedule would run is by the calendars as they are when it is resumed.
#[test]
fn a_pause_and_a_change_do_not_disturb_each_other() {
    let mut bench = Bench::new();
    bench.calendar("c", &[]);
    let record = bench.schedule("s", daily(&["c"]));
    let (shard, uid) = (record.shard, record.uid);
    bench.ask(Request::PauseSchedule { shard, uid, paused: true });
    let reply = bench.calendar("c", &["2026-03-02"]);
    assert_eq!(bench.answers.get(&reply), Some(&Answer::Done));
    assert_eq!(next(&bench, "s"), None);
    bench.ask(Request::PauseSchedule { shard, uid, paused: false });
    assert_eq!(next(&bench, "s"), Some(nine(1)));
}

/// Missed days that are left out are no misfires: the catch-up run carries the latest that was to be,
/// and the record counts the others (river#1035 was a flood after a long downtime).
#[test]
fn days_left_out_are_not_missed() {
    let mut bench = Bench::new();
    bench.calendar("c", &["sat", "sun"]);
    bench.schedule("s", daily(&["c"]));
    // Down from Monday morning until the Sunday after.
    bench.restart(6 * DAY + 12 * HOUR);
    let run = bench.start();
    assert_eq!(logical(&run), nine(4), "Friday's");
    bench.end(&run, AttemptOutcome::Succeeded);
    let skipped = bench.all(State::Skipped);
    let record = skipped[0].skipped.as_ref().expect("it says what it stands for");
    assert_eq!((skipped.len(), record.from, record.to, record.count), (1, nine(0), nine(3), 4));
    assert_eq!(next(&bench, "s"), Some(nine(7)));
}

/// The clock goes back over runs that were, and a calendar changes: nothing runs twice, and the shard
/// is not read again for each of them.
#[test]
fn nothing_runs_twice_when_the_clock_went_back_before_a_change() {
    let mut bench = Bench::new();
    bench.calendar("c", &[]);
    let doc = ScheduleDoc { rule: Rule::Every(10 * SECOND), ..daily(&["c"]) };
    bench.schedule("s", doc);
    let step = 5 * SECOND;
    assert_eq!(runs_by(&mut bench, START.plus(2 * HOUR), step).len(), 720);
    bench.step_clock(-HOUR);
    bench.calendar("c", &["2026-03-04"]);
    assert_eq!(next(&bench, "s"), Some(START.plus(2 * HOUR + 10 * SECOND)));
    bench.calendar("c", &["2026-03-02"]);
    assert_eq!(next(&bench, "s"), Some(START.plus(DAY)));
    bench.calendar("c", &[]);
    assert_eq!(next(&bench, "s"), Some(START.plus(2 * HOUR + 10 * SECOND)));
    assert_eq!(runs_by(&mut bench, START.plus(2 * HOUR), step), []);
    assert_eq!(runs_by(&mut bench, START.plus(2 * HOUR + MINUTE), step).len(), 6);
    each_once(&bench);
}

/// A thousand schedules and more follow one calendar, some in each step, and tasks start meanwhile.
#[test]
fn many_schedules_follow_in_bounded_steps() {
    let mut bench = Bench::new();
    bench.unchecked = true;
    bench.calendar("c", &[]);
    for n in 0..2_500 {
        bench.schedule(&format!("s{n}"), daily(&["c"]));
    }
    bench.hold_commits = true;
    let reply = bench.calendar("c", &["2026-03-02"]);
    let planned = |bench: &Bench| bench.held.iter().map(units_of).sum::<usize>();
    assert!((1..=1_000).contains(&planned(&bench)), "a step plans some: {}", planned(&bench));
    bench.release();
    bench.pass(SECOND);
    assert_eq!(bench.answers.get(&reply), Some(&Answer::Done));
    for record in bench.store.schedules(bench.queue.namespace, None, 9_999).expect("reads work") {
        assert_eq!(record.cursor.next.map(|n| n.logical), Some(nine(1)), "{}", record.name);
    }
    assert_eq!(bench.all(State::Scheduled).len(), 2_500);
}

fn units_of(effect: &tourbillon_engine::api::Effect) -> usize {
    match effect {
        tourbillon_engine::api::Effect::Commit { units, .. } => units.len(),
        _ => 0,
    }
}

/// A name that nothing is stored under is refused with those that there are; a calendar that is
/// named is not removed.
#[test]
fn a_schedule_and_its_calendars_hold_on_to_each_other() {
    let mut bench = Bench::new();
    bench.calendar("here", &["sun"]);
    let record = ScheduleRecord { doc: daily(&["here", "gone"]), ..bench.unstored("s") };
    let reply = bench.ask(Request::PutSchedule(Box::new(record)));
    let Answer::BadSchedule(why) = &bench.answers[&reply] else { panic!("it is accepted") };
    let expected = "exclude[1]: there is no calendar \"gone\"; expected one of: here";
    assert_eq!(why, expected);
    bench.schedule("s", daily(&["here"]));
    let known = bench.store.calendar(bench.queue.namespace, "here").unwrap().unwrap();
    let (namespace, name, version) = (known.namespace, known.name, known.version);
    let delete = Write::DeleteCalendar { namespace, name, version };
    let done = bench.store.commit(&[Unit { fences: vec![], writes: vec![delete] }]).unwrap();
    assert_eq!(done[0].as_ref().unwrap_err().why, Refusal::InUse);
    // It goes on as if nothing had been asked.
    bench.restart(MINUTE);
    assert_eq!(runs_until(&mut bench, nine(7).plus(HOUR)).len(), 7, "eight days but Sunday");
}
