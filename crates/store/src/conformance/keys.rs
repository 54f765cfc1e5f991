//! Ids, keys and occurrences: what may be created, and what is there already.

use crate::task::{Backoff, BackoffShape, CommandTarget, Retry, Target};
use crate::time::{HOUR, MINUTE, SECOND};
use crate::{Done, NewTask, Refusal, State, Time, Write};

use super::World;
use super::fixture::{T0, close, link};

fn insert(w: &World, new: &NewTask) -> Result<Done, Refusal> {
    w.write(Write::Insert(Box::new(new.clone())))
}

pub(super) fn an_insert_is_found_by_id_key_and_sequence(w: &World) {
    let new = w.new_keyed("order-42");
    let seq = w.insert(&new);
    let task = w.task(new.id);
    assert_eq!((task.seq, task.state, task.version), (seq, State::Scheduled, 0));
    assert_eq!(task.stub(), new.stub(seq));
    let located = w.queries.locate(w.namespace(), new.id).unwrap();
    assert_eq!(w.queries.locate_key(w.queue.id, "order-42").unwrap(), located);
    let located = located.unwrap();
    assert_eq!((located.seq, located.version, located.shard), (seq, 0, w.shard));
    assert_eq!(w.store.fetch(&[seq]).unwrap(), [Some(task)]);
    assert_eq!(w.queries.locate(w.namespace(), w.new_task(T0).id).unwrap(), None);
    assert_eq!(w.queries.locate_key(w.queue.id, "order-4").unwrap(), None);
}

pub(super) fn sequences_grow(w: &World) {
    let mut last = w.insert(&w.new_task(T0));
    for _ in 0..3 {
        let units: Vec<_> = (0..3)
            .map(|_| w.unit(vec![Write::Insert(Box::new(w.new_task(T0.plus(-HOUR)))); 1]))
            .collect();
        for result in w.commit(&units) {
            let Ok([Done::Inserted(seq)]) = result.as_deref() else { panic!("{result:?}") };
            assert!(*seq > last);
            last = *seq;
        }
    }
}

pub(super) fn an_unknown_or_foreign_queue_is_a_conflict(w: &World) {
    let mut new = w.new_task(T0);
    new.partition.queue.0 += 100;
    assert_eq!(insert(w, &new), Err(Refusal::Conflict));
    let mut new = w.new_task(T0);
    new.namespace = w.ensure_queue("other", "default").namespace;
    assert_eq!(insert(w, &new), Err(Refusal::Conflict));
}

pub(super) fn the_same_again_is_the_same_live_or_in_history(w: &World) {
    let mut new = w.new_keyed("k");
    new.fingerprint = Some(u64::MAX);
    w.insert(&new);
    assert_eq!(insert(w, &new), Ok(Done::Same(new.id)));
    let task = w.finish(&w.task(new.id), State::Succeeded);
    assert_eq!(insert(w, &new), Ok(Done::Same(new.id)));
    assert_eq!(w.task(new.id), task);
}

pub(super) fn another_body_under_an_id_is_refused_live_or_in_history(w: &World) {
    let mut new = w.new_task(T0);
    new.fingerprint = Some(1);
    w.insert(&new);
    let other = NewTask { fingerprint: Some(2), ..new.clone() };
    let unasked = NewTask { fingerprint: None, ..new.clone() };
    assert_eq!(insert(w, &other), Err(Refusal::IdReused));
    assert_eq!(insert(w, &unasked), Err(Refusal::IdReused));
    w.finish(&w.task(new.id), State::Failed);
    assert_eq!(insert(w, &other), Err(Refusal::IdReused));
    let plain = w.new_task(T0);
    w.insert(&plain);
    let asked = NewTask { fingerprint: Some(3), ..plain };
    assert_eq!(insert(w, &asked), Err(Refusal::IdReused));
}

pub(super) fn an_id_lives_in_its_namespace(w: &World) {
    let queue = w.ensure_queue("other", "default");
    let new = w.new_task(T0);
    w.insert(&new);
    let mut there = NewTask { namespace: queue.namespace, ..new.clone() };
    there.partition.queue = queue.id;
    let seq = w.insert(&there);
    assert_eq!(w.queries.task(queue.namespace, new.id).unwrap().map(|t| t.seq), Some(seq));
    assert_ne!(w.task(new.id).seq, seq);
}

pub(super) fn a_taken_key_refuses_or_keeps(w: &World) {
    let (first, second) = (w.new_keyed("k"), w.new_keyed("k"));
    w.insert(&first);
    assert_eq!(insert(w, &second), Err(Refusal::KeyTaken(first.id)));
    let keep = NewTask { keep_existing: true, ..second.clone() };
    assert_eq!(insert(w, &keep), Ok(Done::Kept(first.id)));
    assert_eq!(w.find(second.id), None);
    w.start(&w.task(first.id));
    assert_eq!(insert(w, &keep), Ok(Done::Kept(first.id)), "a running task holds its key");
}

pub(super) fn a_key_is_free_again_after_the_end(w: &World) {
    for state in State::ALL.into_iter().filter(|s| s.is_final()) {
        let (first, second) = (w.new_keyed("k"), w.new_keyed("k"));
        w.insert(&first);
        let task = w.task(first.id);
        match state {
            State::Succeeded | State::Failed => {
                w.finish(&task, state);
            }
            _ => {
                w.must(close(&task, state));
            }
        }
        assert_eq!(w.queries.locate_key(w.queue.id, "k").unwrap(), None);
        let seq = w.insert(&second);
        w.must(Write::Discard { seq, version: 0 });
    }
}

pub(super) fn a_key_counts_within_its_queue(w: &World) {
    let queue = w.ensure_queue("default", "other");
    let first = w.new_keyed("k");
    w.insert(&first);
    let mut second = w.new_keyed("k");
    second.partition.queue = queue.id;
    w.insert(&second);
    let found = |queue| w.queries.locate_key(queue, "k").unwrap().map(|l| l.id);
    assert_eq!(found(w.queue.id), Some(first.id));
    assert_eq!(found(queue.id), Some(second.id));
}

pub(super) fn an_occurrence_is_created_once_live_or_in_history(w: &World) {
    let occurrence = |uid, origin: &str, logical| {
        let mut new = w.new_task(T0);
        new.schedule = Some(link(uid, origin, logical));
        new
    };
    let first = occurrence(u128::MAX, "plan", T0);
    w.insert(&first);
    assert_eq!(insert(w, &occurrence(u128::MAX, "plan", T0)), Err(Refusal::Exists));
    assert_eq!(insert(w, &first), Err(Refusal::Exists));
    w.insert(&occurrence(u128::MAX, "trigger:1", T0));
    w.insert(&occurrence(u128::MAX, "plan", T0.plus(MINUTE)));
    w.insert(&occurrence(1, "plan", T0));
    let mut task = w.task(first.id);
    for state in [State::Failed, State::Succeeded] {
        task = w.finish(&task, state);
        assert_eq!(insert(w, &occurrence(u128::MAX, "plan", T0)), Err(Refusal::Exists));
        w.must(Write::Redrive { namespace: w.namespace(), id: task.id, due: T0 });
        assert_eq!(insert(w, &occurrence(u128::MAX, "plan", T0)), Err(Refusal::Exists));
        task = w.task(task.id);
    }
}

pub(super) fn every_field_of_a_task_comes_back(w: &World) {
    let mut new = w.new_keyed("clé \u{0}\u{1f600}");
    new.fingerprint = Some(0x8000_0000_0000_0001);
    new.due = Time(-1_000);
    new.created_at = Time(-5);
    new.schedule = Some(link(0xdead << 100, "backfill:7", T0.plus(-HOUR)));
    new.spec.kind = "close-order".into();
    new.spec.payload = Some("{\"x\": [1.0, \"\\u0000\", null]}".into());
    new.spec.priority = -8;
    new.spec.timeout = Some(30 * SECOND);
    new.spec.expires_at = Some(T0.plus(HOUR));
    new.spec.at_most_once = true;
    new.spec.concurrency_key = Some("customer-1".into());
    new.spec.tags = vec![("order".into(), "42".into()), ("b".into(), String::new())];
    new.spec.retry = Retry {
        max_attempts: Some(9),
        max_lost: Some(0),
        give_up_after: Some(HOUR),
        backoff: Some(Backoff {
            shape: BackoffShape::Exponential,
            initial: SECOND,
            factor: 1.5,
            max: HOUR,
            full_jitter: true,
        }),
    };
    new.spec.target = Target::Command(CommandTarget {
        argv: vec!["/bin/true".into(), "a b".into()],
        env: vec![("A".into(), "é".into())],
        cwd: Some("/tmp".into()),
        stdin: Some("in".into()),
    });
    let seq = w.insert(&new);
    let live = w.task(new.id);
    let wanted = crate::apply::created(&new, seq);
    assert_eq!(live, wanted);
    assert_eq!(w.store.fetch(&[seq]).unwrap(), [Some(wanted.clone())]);
    let over = w.finish(&live, State::Failed);
    assert_eq!((&over.spec, &over.schedule), (&wanted.spec, &wanted.schedule));
    assert_eq!((over.due, over.first_due, over.created_at), (new.due, new.due, new.created_at));
    assert_eq!(
        (over.fingerprint, over.shard, over.partition),
        (new.fingerprint, w.shard, w.partition())
    );
}
