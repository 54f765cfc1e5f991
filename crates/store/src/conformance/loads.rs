//! What memory is filled from: spans, overdue rows, reloads, the inbox.

use crate::task::StubFlags;
use crate::time::{MILLI, MINUTE};
use crate::{
    AttemptOutcome, Edge, Partition, Rank, Seq, Shard, State, Stub, Then, Time, Unit, Write,
};

use super::fixture::{T0, http, link};
use super::{Rng, World};

/// Loads everything of one shard before `until` in pages of `limit`, checking each edge.
pub(super) fn load_all(w: &World, shard: Shard, until: Time, limit: usize) -> Vec<Stub> {
    let all = load_from(w, &[(shard, Edge::START)], until, limit);
    all.into_iter().map(|(_, stub)| stub).collect()
}

/// Loads everything of some shards before `until` in pages of `limit`, checking each edge.
pub(super) fn load_from(
    w: &World,
    from: &[(Shard, Edge)],
    until: Time,
    limit: usize,
) -> Vec<(Shard, Stub)> {
    let mut from = from.to_vec();
    let mut all = Vec::new();
    loop {
        let span = w.store.load(&from, until, limit).unwrap();
        assert!(span.stubs.len() <= limit);
        let places: Vec<_> = span.stubs.iter().map(|(_, stub)| (stub.due, stub.seq)).collect();
        assert!(places.is_sorted(), "in order over all the shards");
        for (shard, stub) in &span.stubs {
            let after = from.iter().find(|f| f.0 == *shard).expect("a shard that was asked").1;
            assert!(span.edge.covers(stub.due, stub.seq) && !after.covers(stub.due, stub.seq));
            assert!(stub.due < until);
        }
        from.iter_mut().for_each(|f| f.1 = f.1.max(span.edge));
        let last = span.stubs.last().map(|(_, s)| Edge { due: s.due, seq: s.seq });
        all.extend(span.stubs);
        if span.edge == Edge::before(until) {
            return all;
        }
        assert_eq!(last, Some(span.edge), "a cut span ends with its last task");
    }
}

/// All overdue rows of a partition, `limit` at a time.
pub(super) fn overdue_pages(w: &World, partition: Partition, limit: usize) -> Vec<Stub> {
    let mut all: Vec<Stub> = Vec::new();
    loop {
        let after = all.last().map(Stub::rank);
        let page = w.store.load_overdue(partition, after, limit).unwrap();
        assert!(page.len() <= limit);
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

pub(super) fn a_span_is_in_order_and_complete_to_its_edge(w: &World) {
    let mut rng = Rng::new(1);
    let mut wanted: Vec<(Time, Seq)> = Vec::new();
    let mut writes = Vec::new();
    let mut dues = Vec::new();
    for _ in 0..300 {
        let due = T0.plus((rng.below(5 * 60_000) as i64 - 90_000) * MILLI);
        dues.push(due);
        writes.push(Write::Insert(Box::new(w.new_task(due))));
    }
    let done = w.commit(&[w.unit(writes)]).remove(0).unwrap();
    for (done, due) in done.iter().zip(dues) {
        let crate::Done::Inserted(seq) = done else { panic!("{done:?}") };
        wanted.push((due, *seq));
    }
    wanted.sort();
    for (until, limit) in [(Time::MAX, 1000), (Time::MAX, 7), (T0.plus(MINUTE), 11)] {
        let got: Vec<_> =
            load_all(w, w.shard, until, limit).iter().map(|stub| (stub.due, stub.seq)).collect();
        let wanted: Vec<_> = wanted.iter().copied().filter(|t| t.0 < until).collect();
        assert_eq!(got, wanted);
    }
    let until = wanted[10].0;
    let got = load_all(w, w.shard, until, 1000);
    assert_eq!(got.len(), wanted.iter().filter(|t| t.0 < until).count(), "`until` is excluded");
}

pub(super) fn a_cut_span_ends_between_equals(w: &World) {
    let seqs: Vec<Seq> = (0..10).map(|_| w.insert(&w.new_task(T0))).collect();
    let span = w.store.load(&[(w.shard, Edge::START)], Time::MAX, 4).unwrap();
    assert_eq!(span.stubs.iter().map(|s| s.1.seq).collect::<Vec<_>>(), seqs[..4]);
    assert_eq!(span.edge, Edge { due: T0, seq: seqs[3] });
    let span = w.store.load(&[(w.shard, span.edge)], T0.plus(1), 6).unwrap();
    assert_eq!(span.stubs.iter().map(|s| s.1.seq).collect::<Vec<_>>(), seqs[4..]);
    assert_eq!(span.edge, Edge::before(T0.plus(1)), "the limit was met, not cut");
}

pub(super) fn a_span_leaves_out_what_does_not_wait(w: &World) {
    let waiting = w.insert_due(T0);
    w.in_state(State::Running);
    w.in_state(State::Failed);
    let spilled = w.insert_due(T0);
    w.must(Write::Spill { seqs: vec![spilled.seq] });
    let mut elsewhere = w.new_task(T0);
    elsewhere.shard = Shard(8);
    let seq = w.insert(&elsewhere);
    let seqs = |shard| {
        let span = w.store.load(&[(shard, Edge::START)], Time::MAX, 100).unwrap();
        span.stubs.iter().map(|s| s.1.seq).collect::<Vec<_>>()
    };
    assert_eq!(seqs(w.shard), [waiting.seq]);
    assert_eq!(seqs(Shard(8)), [seq]);
    assert_eq!(seqs(Shard(9)), []);
}

pub(super) fn a_span_of_an_empty_range_is_empty(w: &World) {
    w.insert_due(T0);
    let late = Edge { due: T0.plus(MINUTE), seq: Seq(3) };
    for edge in [late, Edge::before(T0)] {
        let span = w.store.load(&[(w.shard, edge)], T0, 10).unwrap();
        assert_eq!((span.stubs.len(), span.edge), (0, Edge::before(T0)));
    }
    let none = w.store.load(&[], Time::MAX, 10).unwrap();
    assert_eq!((none.stubs.len(), none.edge), (0, Edge::before(Time::MAX)));
}

/// Shards that were loaded to different edges are loaded on together: of each what is after its
/// own edge, nothing of shards that were not asked for, and the limit counts them all.
pub(super) fn shards_are_loaded_together_each_from_its_edge(w: &World) {
    let mut rng = Rng::new(3);
    let mut tasks: Vec<(Time, Seq, Shard)> = Vec::new();
    for _ in 0..200 {
        let mut new = w.new_task(T0.plus(rng.below(40) as i64 * 5_000 * MILLI));
        new.shard = Shard(rng.below(4) as u8 * 85);
        tasks.push((new.due, w.insert(&new), new.shard));
    }
    tasks.sort();
    for round in 0..20 {
        let mut from = Vec::new();
        for shard in [0, 85, 170, 3].map(Shard) {
            let (due, seq, _) = tasks[rng.below(200) as usize];
            let edges = [Edge { due, seq }, Edge::before(due), Edge::START];
            from.push((shard, edges[rng.below(3) as usize]));
        }
        let until = [T0.plus(100_000 * MILLI), Time::MAX][round % 2];
        let wanted: Vec<(Shard, Seq)> = tasks
            .iter()
            .filter(|t| t.0 < until && from.iter().any(|f| f.0 == t.2 && !f.1.covers(t.0, t.1)))
            .map(|t| (t.2, t.1))
            .collect();
        for limit in [1, 7, 64, 1_000] {
            let got = load_from(w, &from, until, limit);
            let got: Vec<(Shard, Seq)> = got.iter().map(|(s, stub)| (*s, stub.seq)).collect();
            assert_eq!(got, wanted, "{from:?} until {until:?}");
        }
    }
}

pub(super) fn spilled_rows_come_in_rank_order(w: &World) {
    let mut rng = Rng::new(2);
    let mut wanted: Vec<Rank> = Vec::new();
    for _ in 0..60 {
        let mut new = w.new_task(T0.plus(rng.below(5) as i64 * MILLI));
        new.spec.priority = rng.below(16) as i8 - 8;
        wanted.push(new.stub(w.insert(&new)).rank());
    }
    w.must(Write::Spill { seqs: wanted.iter().map(|r| r.seq).collect() });
    wanted.sort();
    let load = |after, limit| -> Vec<Rank> {
        let stubs = w.store.load_overdue(w.partition(), after, limit).unwrap();
        stubs.iter().map(Stub::rank).collect()
    };
    assert_eq!(load(None, 100), wanted);
    let got: Vec<Rank> = overdue_pages(w, w.partition(), 7).iter().map(Stub::rank).collect();
    assert_eq!(got, wanted);
    let other = Partition { index: 1, ..w.partition() };
    assert_eq!(w.store.load_overdue(other, None, 9).unwrap(), []);
}

pub(super) fn a_spill_passes_over_what_is_not_scheduled(w: &World) {
    let running = w.in_state(State::Running);
    let over = w.in_state(State::Succeeded);
    let waiting = w.insert_due(T0);
    let seqs = vec![running.seq, over.seq, Seq(1_000_000), waiting.seq];
    w.must(Write::Spill { seqs: seqs.clone() });
    w.must(Write::Spill { seqs });
    let stubs = w.store.load_overdue(w.partition(), None, 9).unwrap();
    assert_eq!(stubs, [waiting.stub()], "marked once, its version unchanged");
    assert_eq!(w.task(running.id), running);
    assert_eq!(w.queries.counts().unwrap()[0].count, 1, "marking changes no count");
}

pub(super) fn a_change_takes_the_overdue_mark_away(w: &World) {
    let spilled = || {
        let task = w.insert_due(T0);
        w.must(Write::Spill { seqs: vec![task.seq] });
        task
    };
    let overdue = || w.store.load_overdue(w.partition(), None, 9).unwrap().len();
    let edited = spilled();
    let spec = Box::new(edited.spec.clone());
    w.must(Write::Edit { seq: edited.seq, version: 0, due: T0, spec });
    assert_eq!(overdue(), 0);
    let started = w.start(&spilled());
    assert_eq!(overdue(), 0);
    w.end(&started, AttemptOutcome::Failed, Then::Again { due: T0 });
    w.end(&spilled(), AttemptOutcome::Failed, Then::Again { due: T0 });
    w.finish(&spilled(), State::Failed);
    assert_eq!(overdue(), 0);
    assert_eq!(load_all(w, w.shard, Time::MAX, 10).len(), 3);
}

pub(super) fn a_reload_finds_running_probed_schedules_and_spilled(w: &World) {
    let running = w.in_state(State::Running);
    let waiting = w.insert_due(T0);
    let over = w.in_state(State::Succeeded);
    let mut low = w.new_task(T0);
    low.spec.priority = -3;
    let mut high = w.new_task(T0.plus(MILLI));
    high.spec.priority = 5;
    let spilled = [w.insert(&low), w.insert(&high)];
    w.must(Write::Spill { seqs: spilled.to_vec() });
    let record = super::schedules::record(w, 77, "daily");
    w.must(Write::PutSchedule(Box::new(record)));
    let mut occurrence = w.new_task(T0);
    occurrence.schedule = Some(link(77, "plan", T0.plus(-MILLI)));
    let seq = w.insert(&occurrence);
    let other = w.store.reload(Shard(8), &[]).unwrap();
    assert_eq!(other, crate::Reloaded::default());

    let stripped = |mut task: crate::Task| {
        task.spec.payload = None;
        task
    };
    let probe = [over.seq, waiting.seq, Seq(999_999), running.seq];
    let reloaded = w.store.reload(w.shard, &probe).unwrap();
    let (running, waiting) = (stripped(running), stripped(waiting));
    assert_eq!(reloaded.running, std::slice::from_ref(&running));
    assert_eq!(reloaded.probed, [None, Some(waiting), None, Some(running)]);
    let first = high.stub(spilled[1]).rank();
    assert_eq!(reloaded.spilled, [(w.partition(), first)]);
    let [(schedule, live)] = &reloaded.schedules[..] else { panic!("{reloaded:?}") };
    assert_eq!((schedule.uid, schedule.version), (77, 1));
    let [live] = &live[..] else { panic!("{live:?}") };
    assert_eq!((live.seq, live.id, live.version), (seq, occurrence.id, 0));
    assert_eq!((live.state, live.attempt, live.due), (State::Scheduled, 0, T0));
    assert_eq!((live.origin.as_str(), live.logical), ("plan", T0.plus(-MILLI)));
}

pub(super) fn a_fetch_answers_in_the_order_asked(w: &World) {
    let (a, b) = (w.insert_due(T0), w.insert_due(T0));
    let over = w.in_state(State::Failed);
    let got = w.store.fetch(&[b.seq, over.seq, a.seq, b.seq]).unwrap();
    assert_eq!(got, [Some(b.clone()), None, Some(a), Some(b)]);
    assert_eq!(w.store.fetch(&[]).unwrap(), []);
}

pub(super) fn stubs_carry_what_decides_a_start(w: &World) {
    let mut new = w.new_task(T0);
    new.spec.concurrency_key = Some("c".into());
    new.spec.kind = "mail".into();
    new.spec.priority = 4;
    new.spec.expires_at = Some(T0.plus(MINUTE));
    new.schedule = Some(link(1, "plan", T0));
    let seq = w.insert(&new);
    let stub = || load_all(w, w.shard, Time::MAX, 10).remove(0);
    assert_eq!(stub(), new.stub(seq));
    assert_eq!(stub(), w.task(new.id).stub());
    assert!(!stub().flags.has(StubFlags::DURABLE_START));
    let lost = w.end(&w.task(new.id), AttemptOutcome::Lost, Then::Again { due: T0 });
    assert_eq!(stub(), lost.stub());
    assert!(stub().flags.has(StubFlags::DURABLE_START));
    assert_eq!((stub().attempt, stub().expires), (1, Time::MAX));
    let mut spec = lost.spec.clone();
    spec.target = http();
    spec.at_most_once = true;
    spec.payload = Some("x".repeat(3_000));
    let spec = Box::new(spec);
    w.must(Write::Edit { seq, version: lost.version, due: T0, spec });
    assert_eq!(stub(), w.task(new.id).stub());
    assert!(!stub().flags.has(StubFlags::WORKER));
    w.must(Write::Spill { seqs: vec![seq] });
    let overdue = w.store.load_overdue(w.partition(), None, 1).unwrap();
    assert_eq!(overdue, [w.task(new.id).stub()]);
}

pub(super) fn inbox_rows_stay_until_taken_in(w: &World) {
    let mut new = w.new_task(T0);
    new.inbox = true;
    let insert = Write::Insert(Box::new(new.clone()));
    let done = w.commit(&[Unit { fences: Vec::new(), writes: vec![insert] }]);
    let Ok([crate::Done::Inserted(seq)]) = done[0].as_deref() else { panic!("{done:?}") };
    let inbox = || w.store.inbox(&[Shard(1), w.shard]).unwrap();
    assert_eq!(inbox(), [(w.shard, new.stub(*seq))]);
    assert_eq!(w.store.inbox(&[Shard(1)]).unwrap(), []);
    w.must(Write::TakeIn { shard: Shard(1), seqs: vec![*seq] });
    assert_eq!(inbox().len(), 1);
    w.must(Write::TakeIn { shard: w.shard, seqs: vec![*seq, Seq(77)] });
    assert_eq!(inbox(), []);
    assert_eq!(w.task(new.id).version, 0);
}

pub(super) fn inbox_rows_go_with_their_task(w: &World) {
    let insert = || {
        let mut new = w.new_task(T0);
        new.inbox = true;
        w.insert(&new);
        w.task(new.id)
    };
    let inbox = || w.store.inbox(&[w.shard]).unwrap().len();
    w.start(&insert());
    w.finish(&insert(), State::Succeeded);
    w.end(&insert(), AttemptOutcome::Failed, Then::Again { due: T0 });
    w.must(super::fixture::close(&insert(), State::Cancelled));
    w.must(Write::Discard { seq: insert().seq, version: 0 });
    assert_eq!(inbox(), 0);
    let edited = insert();
    let spec = Box::new(edited.spec.clone());
    w.must(Write::Edit { seq: edited.seq, version: 0, due: T0.plus(1000), spec });
    let stubs = w.store.inbox(&[w.shard]).unwrap();
    assert_eq!(stubs, [(w.shard, w.task(edited.id).stub())], "an edit does not take it in");
}
