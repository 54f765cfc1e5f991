//! Units are atomic, in order, and fenced.

use crate::{Done, Epoch, Refusal, Refused, Shard, State, Unit, Write};

use super::World;
use super::fixture::{T0, acquire, close};

pub(super) fn a_refused_write_undoes_its_unit_and_no_other(w: &World) {
    let waiting = w.insert_due(T0);
    let finished = w.in_state(State::Succeeded);
    let counts = w.queries.counts().unwrap();
    let insert = |new: &crate::NewTask| Write::Insert(Box::new(new.clone()));
    let (a, b, c) = (w.new_keyed("k"), w.new_keyed("k"), w.new_task(T0));
    let output = Box::new(crate::Output { head: b"x".to_vec(), tail: Vec::new(), total: 1 });
    let mut end = super::fixture::end(
        &waiting,
        w.epoch,
        crate::AttemptOutcome::Succeeded,
        crate::Then::Finish { to: State::Succeeded, reason: None },
    );
    if let Write::End { output: slot, .. } = &mut end {
        *slot = Some(output);
    }
    let refused = w.unit(vec![
        insert(&a),
        end,
        Write::Redrive { namespace: w.namespace(), id: finished.id, due: T0 },
        insert(&b),
    ]);
    let results = w.commit(&[w.unit(vec![insert(&c)]), refused, w.unit(vec![insert(&b)])]);
    assert!(matches!(results[0].as_deref(), Ok([Done::Inserted(_)])));
    assert_eq!(results[1], Err(Refused { index: 3, why: Refusal::KeyTaken(a.id) }));
    assert!(matches!(results[2].as_deref(), Ok([Done::Inserted(_)])));
    assert_eq!(w.find(a.id), None);
    assert_eq!(w.task(waiting.id), waiting);
    assert_eq!(w.task(finished.id), finished);
    assert_eq!(w.queries.output(waiting.seq, 1).unwrap(), None);
    let seqs = [w.task(c.id).seq, w.task(b.id).seq];
    assert!(seqs[0] < seqs[1] && waiting.seq < seqs[0]);
    let after = w.queries.counts().unwrap();
    for count in counts {
        let now = after.iter().find(|c| (c.queue, c.state) == (count.queue, count.state));
        let more = if count.state == State::Scheduled { 2 } else { 0 };
        assert_eq!(now.map(|c| c.count), Some(count.count + more));
    }
}

pub(super) fn units_see_what_earlier_ones_did(w: &World) {
    let new = w.new_keyed("k");
    let task = w.insert_due(T0);
    let insert = || w.unit(vec![Write::Insert(Box::new(new.clone()))]);
    let results = w.commit(&[
        insert(),
        w.unit(vec![close(&task, State::Cancelled)]),
        w.unit(vec![close(&task, State::Cancelled)]),
        w.unit(vec![Write::Insert(Box::new(w.new_keyed("k")))]),
    ]);
    assert!(results[0].is_ok() && results[1].is_ok());
    assert_eq!(results[2], Err(Refused { index: 0, why: Refusal::Conflict }));
    assert_eq!(results[3], Err(Refused { index: 0, why: Refusal::KeyTaken(new.id) }));
}

pub(super) fn an_empty_commit_is_fine(w: &World) {
    assert_eq!(w.commit(&[]), Vec::new());
    assert_eq!(w.commit(&[w.unit(Vec::new())]), vec![Ok(Vec::new())]);
}

pub(super) fn fences_must_be_current_for_every_shard(w: &World) {
    let other = Shard(9);
    let held = w.store.leases(&acquire("n1", &[other], T0)).unwrap();
    let current = [(w.shard, w.epoch), (other, held[0].epoch)];
    let insert = |fences: &[(Shard, Epoch)]| {
        let writes = vec![Write::Insert(Box::new(w.new_task(T0)))];
        w.commit(&[Unit { fences: fences.to_vec(), writes }]).remove(0)
    };
    assert!(insert(&current).is_ok());
    assert!(insert(&[]).is_ok());
    let fenced = Err(Refused { index: 0, why: Refusal::Fenced });
    assert_eq!(insert(&[current[0], (other, Epoch(held[0].epoch.0 - 1))]), fenced);
    assert_eq!(insert(&[current[0], (other, Epoch(held[0].epoch.0 + 1))]), fenced);
    assert_eq!(insert(&[(Shard(200), Epoch(1))]), fenced);
    assert_eq!(w.queries.counts().unwrap()[0].count, 2);
}

pub(super) fn fences_survive_neither_takeover_nor_release(w: &World) {
    let write = || Write::Insert(Box::new(w.new_task(T0)));
    let taken = w.store.leases(&acquire("n1", &[w.shard], T0)).unwrap();
    assert!(taken[0].epoch > w.epoch);
    assert_eq!(w.write(write()), Err(Refusal::Fenced));
    let fences = vec![(w.shard, taken[0].epoch)];
    let unit = Unit { fences: fences.clone(), writes: vec![write()] };
    assert!(w.commit(&[unit])[0].is_ok());
    let mut ask = acquire("n1", &[], T0);
    ask.release.clone_from(&fences);
    assert_eq!(w.store.leases(&ask).unwrap(), Vec::new());
    let unit = Unit { fences, writes: vec![write()] };
    assert_eq!(w.commit(&[unit])[0], Err(Refused { index: 0, why: Refusal::Fenced }));
}

pub(super) fn a_refused_unit_leaves_no_catalogue_entry(w: &World) {
    let ensure = |name: &str| Write::EnsureQueue { namespace: "other".into(), name: name.into() };
    let task = w.in_state(State::Running);
    let refused = w.unit(vec![ensure("q"), close(&task, State::Cancelled)]);
    let results = w.commit(&[refused, w.unit(vec![ensure("r")])]);
    assert_eq!(results[0], Err(Refused { index: 1, why: Refusal::Illegal }));
    let names: Vec<String> = w.store.queues().unwrap().into_iter().map(|q| q.name).collect();
    assert_eq!(names, ["default", "r"]);
    let queue = w.ensure_queue("other", "r");
    let Ok(done) = &results[1] else { panic!("{results:?}") };
    assert_eq!(done[0], Done::Queue(Box::new(queue.clone())));
    assert_eq!(w.queries.namespace("other").unwrap(), Some(queue.namespace));
    assert_ne!(queue.id, w.queue.id);
    assert_ne!(queue.namespace, w.namespace());
}
