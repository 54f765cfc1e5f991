//! Two nodes at once. A third connection holds what they wait for, so that each race goes as told.

use std::thread;

use crate::conformance::fixture::{T0, acquire, close, end};
use crate::time::MINUTE;
use crate::{
    AttemptOutcome, Done, NewTask, Output, Queries, Refusal, Refused, Seq, Shard, State, Store,
    Task, TaskId, Then, Unit, UnitResult, Write,
};

use super::super::server::fresh_schema;
use super::{Rival, open, world};

const WRITER: &str = "tourbillon writer";
const LEASES: &str = "tourbillon leases";

/// The end of a task, with an output, which is written after the task.
fn end_with_output(task: &Task, epoch: crate::Epoch) -> Write {
    let then = Then::Finish { to: State::Succeeded, reason: None };
    let mut write = end(task, epoch, AttemptOutcome::Succeeded, then);
    if let Write::End { output, .. } = &mut write {
        *output = Some(Box::new(Output { head: vec![1], tail: Vec::new(), total: 1 }));
    }
    write
}

fn fenced() -> UnitResult {
    Err(Refused { index: 0, why: Refusal::Fenced })
}

#[test]
fn a_takeover_waits_for_the_batch_under_way_and_fences_the_next() {
    let schema = fresh_schema();
    let (a, b) = (open(&schema), open(&schema));
    let w = world(&a);
    let (task, other) = (w.insert_due(T0), w.insert_due(T0));
    let mut rival = Rival::new(&schema);
    rival.run("BEGIN; LOCK TABLE outputs IN ACCESS EXCLUSIVE MODE");
    let batch = [w.unit(vec![end_with_output(&task, w.epoch)])];
    thread::scope(|scope| {
        let committing = scope.spawn(|| a.commit(&batch));
        rival.until_waiting(WRITER, 1);
        let taking = scope.spawn(|| b.leases(&acquire("n2", &[w.shard], T0.plus(MINUTE))));
        rival.until_waiting(LEASES, 1);
        assert!(!committing.is_finished() && !taking.is_finished());
        rival.run("COMMIT");
        let results = committing.join().unwrap().unwrap();
        assert_eq!(results, [Ok(vec![Done::Ok])], "the batch is wholly before the takeover");
        let taken = taking.join().unwrap().unwrap();
        assert!(taken.len() == 1 && taken[0].epoch > w.epoch);
    });
    assert_eq!(w.task(task.id).state, State::Succeeded);
    let late = [w.unit(vec![end_with_output(&other, w.epoch)])];
    assert_eq!(a.commit(&late).unwrap(), [fenced()]);
    assert_eq!(w.task(other.id), other);
}

#[test]
fn what_a_takeover_came_before_is_fenced_and_the_rest_of_the_batch_commits() {
    let schema = fresh_schema();
    let a = open(&schema);
    let w = world(&a);
    let kept = a.leases(&acquire("n1", &[Shard(9)], T0)).unwrap()[0];
    let (lost, mine) = (w.insert_due(T0), w.insert_due(T0));
    let mut rival = Rival::new(&schema);
    rival.run("BEGIN; UPDATE leases SET epoch = epoch + 1, owner = 'n2' WHERE shard = 7");
    let batch = [
        w.unit(vec![close(&lost, State::Cancelled)]),
        Unit::one(kept.shard, kept.epoch, close(&mine, State::Cancelled)),
    ];
    thread::scope(|scope| {
        let committing = scope.spawn(|| a.commit(&batch));
        rival.until_waiting(WRITER, 1);
        rival.run("COMMIT");
        let results = committing.join().unwrap().unwrap();
        assert_eq!(results, [fenced(), Ok(vec![Done::Ok])]);
    });
    assert_eq!(w.task(lost.id), lost);
    assert_eq!(w.task(mine.id).state, State::Cancelled);
}

#[test]
fn of_two_takeovers_of_one_lease_one_wins() {
    let schema = fresh_schema();
    let (a, b) = (open(&schema), open(&schema));
    let w = world(&a);
    let mut rival = Rival::new(&schema);
    rival.run("BEGIN; SELECT 1 FROM leases WHERE shard = 7 FOR UPDATE");
    let late = T0.plus(MINUTE);
    thread::scope(|scope| {
        let first = scope.spawn(|| a.leases(&acquire("n2", &[w.shard], late)));
        let second = scope.spawn(|| b.leases(&acquire("n3", &[w.shard], late)));
        rival.until_waiting(LEASES, 2);
        rival.run("COMMIT");
        let held = [first.join().unwrap().unwrap(), second.join().unwrap().unwrap()];
        let winners: Vec<usize> = (0..2).filter(|n| !held[*n].is_empty()).collect();
        let [winner] = winners[..] else { panic!("{held:?}") };
        let row = &a.lease_table().unwrap()[0];
        assert_eq!(row.owner.as_deref(), Some(["n2", "n3"][winner]));
        assert_eq!(row.epoch, held[winner][0].epoch);
    });
}

fn foreign(new: &NewTask) -> Unit {
    let new = NewTask { inbox: true, ..new.clone() };
    Unit { fences: Vec::new(), writes: vec![Write::Insert(Box::new(new))] }
}

/// A foreign insert saw that the key is free, then the owner's insert of it came first.
#[test]
fn of_two_inserts_of_one_key_one_is_told_of_the_other() {
    for keep in [false, true] {
        let schema = fresh_schema();
        let (a, b) = (open(&schema), open(&schema));
        let w = world(&a);
        let (mine, mut theirs) = (w.new_keyed("k"), w.new_keyed("k"));
        theirs.keep_existing = keep;
        let mut rival = Rival::new(&schema);
        rival.run("BEGIN; LOCK TABLE counters IN ACCESS EXCLUSIVE MODE");
        let unit = [w.unit(vec![Write::Insert(Box::new(mine.clone()))])];
        thread::scope(|scope| {
            let first = scope.spawn(|| a.commit(&unit));
            rival.until_waiting(WRITER, 1);
            let second = scope.spawn(|| b.commit(&[foreign(&theirs)]));
            rival.until_waiting(WRITER, 2);
            rival.run("COMMIT");
            let first = first.join().unwrap().unwrap();
            assert!(matches!(first[0].as_deref(), Ok([Done::Inserted(_)])), "{first:?}");
            let wanted = if keep {
                Ok(vec![Done::Kept(mine.id)])
            } else {
                Err(Refused { index: 0, why: Refusal::KeyTaken(mine.id) })
            };
            assert_eq!(second.join().unwrap().unwrap(), [wanted]);
        });
        assert_eq!(b.locate_key(w.queue.id, "k").unwrap().map(|l| l.id), Some(mine.id));
        assert_eq!(w.find(theirs.id), None);
        assert_eq!(b.inbox(&[w.shard]).unwrap(), []);
    }
}

/// The owner replaces a task while another node inserts under the same key: whenever the insert
/// looks, somebody holds the key.
#[test]
fn an_insert_never_comes_between_the_halves_of_a_replace() {
    let schema = fresh_schema();
    let (a, b) = (open(&schema), open(&schema));
    let w = world(&a);
    let old = w.new_keyed("k");
    w.insert(&old);
    let new = w.new_keyed("k");
    let replace = [w.unit(vec![
        close(&w.task(old.id), State::Cancelled),
        Write::Insert(Box::new(new.clone())),
    ])];
    let mut rival = Rival::new(&schema);
    rival.run("BEGIN; LOCK TABLE counters IN ACCESS EXCLUSIVE MODE");
    let told = |results: Vec<UnitResult>| match &results[..] {
        [Err(Refused { why: Refusal::KeyTaken(id), .. })] => *id,
        _ => panic!("{results:?}"),
    };
    thread::scope(|scope| {
        let replacing = scope.spawn(|| a.commit(&replace));
        rival.until_waiting(WRITER, 1);
        assert_eq!(told(b.commit(&[foreign(&w.new_keyed("k"))]).unwrap()), old.id, "before");
        rival.run("COMMIT");
        assert!(replacing.join().unwrap().unwrap()[0].is_ok());
    });
    assert_eq!(told(b.commit(&[foreign(&w.new_keyed("k"))]).unwrap()), new.id, "after");
    assert_eq!(w.task(old.id).state, State::Cancelled);
    assert_eq!(w.queries.counts().unwrap().iter().map(|c| c.count).sum::<u64>(), 2);
}

/// Somebody changes a row between its being read and its being written: what is written is judged by
/// what is there then.
#[test]
fn a_row_that_changes_meanwhile_is_looked_at_again() {
    let schema = fresh_schema();
    let a = open(&schema);
    let w = world(&a);
    let (moved, gone, kept) = (w.insert_due(T0), w.insert_due(T0), w.insert_due(T0));
    let mut rival = Rival::new(&schema);
    rival.run(&format!(
        "BEGIN; UPDATE tasks SET version = 9 WHERE seq = {}; DELETE FROM tasks WHERE seq = {}",
        moved.seq.0, gone.seq.0
    ));
    let batch = [&moved, &gone, &kept].map(|task| w.unit(vec![close(task, State::Cancelled)]));
    thread::scope(|scope| {
        let committing = scope.spawn(|| a.commit(&batch));
        rival.until_waiting(WRITER, 1);
        rival.run("COMMIT");
        let conflict = Err(Refused { index: 0, why: Refusal::Conflict });
        let results = committing.join().unwrap().unwrap();
        assert_eq!(results, [conflict.clone(), conflict, Ok(vec![Done::Ok])]);
    });
    assert_eq!((w.task(moved.id).version, w.find(gone.id)), (9, None));
    assert_eq!(w.task(kept.id).state, State::Cancelled);
}

/// A naming and a removal of one calendar: whichever comes second is refused.
#[test]
fn a_calendar_that_is_being_named_is_not_removed() {
    let schema = fresh_schema();
    let (a, b) = (open(&schema), open(&schema));
    let w = world(&a);
    let put = Write::PutCalendar {
        namespace: "default".into(),
        name: "c".into(),
        version: 0,
        at: T0,
        doc: Box::default(),
    };
    let Done::Calendar(calendar) = w.must(put) else { panic!("no calendar") };
    let mut record = crate::conformance::schedules::record(&w, 1, "daily");
    record.doc.exclude = vec!["c".into()];
    let naming = [w.unit(vec![Write::PutSchedule(Box::new(record))])];
    let removal = Write::DeleteCalendar {
        namespace: w.namespace(),
        name: "c".into(),
        version: calendar.version,
    };
    let removal = [Unit { fences: Vec::new(), writes: vec![removal] }];
    let mut rival = Rival::new(&schema);
    rival.run("BEGIN; LOCK TABLE schedules IN SHARE MODE");
    thread::scope(|scope| {
        let first = scope.spawn(|| a.commit(&naming));
        rival.until_waiting(WRITER, 1);
        let second = scope.spawn(|| b.commit(&removal));
        rival.until_waiting(WRITER, 2);
        rival.run("COMMIT");
        assert_eq!(first.join().unwrap().unwrap(), [Ok(vec![Done::Ok])]);
        let refused = Err(Refused { index: 0, why: Refusal::InUse });
        assert_eq!(second.join().unwrap().unwrap(), [refused]);
    });
}

/// Two nodes insert under the same few keys and ids and close what they find, as fast as they can.
/// Whatever was told is true: what was inserted is there, a taken key was somebody's, every end is one
/// end, and the counters are what the tables hold.
#[test]
fn what_two_nodes_are_told_at_once_is_true() {
    let schema = fresh_schema();
    let stores = [open(&schema), open(&schema)];
    let w = world(&stores[0]);
    let shards = [w.shard, Shard(9)];
    let leases = stores[0].leases(&acquire("n1", &shards, T0)).unwrap();
    let (queue, base) = (w.queue.id, w.new_task(T0));
    let work = |node: usize| -> (Vec<(TaskId, Seq)>, Vec<TaskId>, usize) {
        let store = &stores[node];
        let (mut inserted, mut named, mut closed) = (Vec::new(), Vec::new(), 0);
        for round in 0..60u128 {
            let units: Vec<Unit> = (0..4u128)
                .map(|n| {
                    let mut new = of_node(&base, round * 4 + n, node as u128);
                    new.spec.key = (n < 3).then(|| format!("key-{n}"));
                    new.shard = shards[node];
                    foreign(&new)
                })
                .collect();
            for (unit, result) in units.iter().zip(store.commit(&units).unwrap()) {
                let Write::Insert(new) = &unit.writes[0] else { unreachable!() };
                match result {
                    Ok(done) => match done[0] {
                        Done::Inserted(seq) => inserted.push((new.id, seq)),
                        _ => panic!("{done:?}"),
                    },
                    Err(Refused { why: Refusal::KeyTaken(id), .. }) => named.push(id),
                    Err(Refused { why: Refusal::IdReused, .. }) => {}
                    Err(refused) => panic!("{refused:?}"),
                }
            }
            let key = format!("key-{}", round % 3);
            if let Some(found) = store.locate_key(queue, &key).unwrap() {
                let write = Write::Close {
                    seq: found.seq,
                    version: found.version,
                    to: State::Cancelled,
                    at: T0,
                    reason: None,
                    skipped: None,
                };
                let unit = Unit::one(leases[node].shard, leases[node].epoch, write);
                match &store.commit(&[unit]).unwrap()[0] {
                    Ok(_) => closed += 1,
                    Err(refused) => assert_eq!(refused.why, Refusal::Conflict),
                }
            }
        }
        (inserted, named, closed)
    };
    let (one, two) = thread::scope(|scope| {
        let other = scope.spawn(|| work(1));
        (work(0), other.join().unwrap())
    });
    let mut inserted = [one.0, two.0].concat();
    for (id, seq) in &inserted {
        assert_eq!(w.task(*id).seq, *seq);
    }
    inserted.sort();
    assert!(inserted.windows(2).all(|pair| pair[0].0 != pair[1].0), "an id was inserted twice");
    for id in [one.1, two.1].concat() {
        assert!(inserted.iter().any(|task| task.0 == id), "{id} held a key and was never there");
    }
    let counts = w.queries.counts().unwrap();
    let count = |state| counts.iter().find(|c| c.state == state).map_or(0, |c| c.count);
    assert_eq!(count(State::Cancelled), (one.2 + two.2) as u64);
    assert_eq!(count(State::Scheduled) + count(State::Cancelled), inserted.len() as u64);
}

/// A task whose id two nodes share in every fourth case.
fn of_node(base: &NewTask, n: u128, node: u128) -> NewTask {
    let own = if n % 4 == 3 { 0 } else { node + 1 };
    NewTask { id: TaskId(1 << 120 | n << 80 | 7 << 76 | 0b10 << 62 | own), ..base.clone() }
}
