//! Buckets in which much is due: what is found does not depend on where it was put.

use super::super::bucket::DENSE;
use super::{Folder, world};
use crate::conformance::{Rng, World, fixture::T0};
use crate::queries::{Cursor, TaskFilter};
use crate::time::SECOND;
use crate::{Edge, NewTask, Seq, Shard, Store, Time, Write};

const SHARDS: [Shard; 3] = [Shard(0), Shard(3), Shard(255)];

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Planted {
    due: Time,
    seq: Seq,
    shard: Shard,
    overdue: bool,
    rare: bool,
}

/// Tasks of a few minutes, in order: half of them within two seconds, many at two instants. All
/// kinds of slots are in use, some tasks are marked overdue, and some are of a rare kind.
fn plant(w: &World, rng: &mut Rng) -> Vec<Planted> {
    let sharp = [T0.plus(20 * SECOND), T0.plus(21 * SECOND + 250_000)];
    let mut planted: Vec<Planted> = Vec::new();
    for n in 0..1_500 {
        let due = match n % 4 {
            0 => sharp[rng.below(2) as usize],
            1 => sharp[0].plus(rng.below(2_000_000) as i64),
            _ => T0.plus(rng.below(150) as i64 * SECOND + rng.below(1_000) as i64 * 1_000),
        };
        let (shard, rare) = (SHARDS[rng.below(3) as usize], rng.one_in(10));
        let mut new = NewTask { shard, ..w.new_task(due) };
        new.spec.kind = if rare { "rare" } else { "usual" }.to_owned();
        let seq = w.insert(&new);
        planted.push(Planted { due, seq, shard, overdue: rng.one_in(10), rare });
    }
    assert!(planted.len() as u32 > 10 * DENSE);
    let overdue = planted.iter().filter(|task| task.overdue).map(|task| task.seq).collect();
    w.must(Write::Spill { seqs: overdue });
    planted.sort();
    planted
}

/// Ten million tasks due at noon are one bucket: it is read a few at a time, in order.
#[test]
fn a_dense_minute_is_loaded_in_order() {
    for seed in 0..3 {
        let folder = Folder::new();
        let store = folder.open();
        let w = world(&store);
        let mut rng = Rng::new(seed);
        let planted = plant(&w, &mut rng);
        for limit in [1, 13, 400, 9_999] {
            let mut from: Vec<(Shard, Edge)> = SHARDS
                .iter()
                .map(|shard| {
                    let at = &planted[rng.below(planted.len() as u64) as usize];
                    let edge = Edge { due: at.due, seq: at.seq };
                    (*shard, if rng.one_in(2) { edge } else { Edge::START })
                })
                .collect();
            let until = T0.plus(rng.below(150 * 1_000_000) as i64);
            let wanted: Vec<(Shard, Seq)> = planted
                .iter()
                .filter(|t| !t.overdue && t.due < until)
                .filter(|t| from.iter().any(|f| f.0 == t.shard && !f.1.covers(t.due, t.seq)))
                .map(|t| (t.shard, t.seq))
                .collect();
            let mut got = Vec::new();
            loop {
                let span = store.load(&from, until, limit).unwrap();
                assert!(span.stubs.len() <= limit);
                got.extend(span.stubs.iter().map(|(shard, stub)| (*shard, stub.seq)));
                from.iter_mut().for_each(|f| f.1 = f.1.max(span.edge));
                if span.edge == Edge::before(until) {
                    break;
                }
                assert_eq!(span.stubs.len(), limit, "it is cut by the limit alone");
            }
            assert_eq!(got, wanted, "seed {seed}, limit {limit}");
        }
    }
}

/// A list by due time over a bucket of a million tasks read all of it, and was ended by the bound
/// on questions instead of being cut.
#[test]
fn a_list_by_due_of_a_dense_minute_goes_on_within_it() {
    for seed in 0..3 {
        let folder = Folder::new();
        let store = folder.open();
        let w = world(&store);
        let mut rng = Rng::new(seed);
        let planted = plant(&w, &mut rng);
        for (rare, limit, scan_max) in
            [(false, 5, 1), (false, 100, 100), (true, 100, 150), (true, 3, 150), (true, 99, 9_999)]
        {
            let (after, before) =
                (T0.plus(rng.below(19 * 1_000_000) as i64), T0.plus(100 * SECOND));
            let filter = TaskFilter {
                namespace: w.namespace(),
                kind: rare.then(|| "rare".to_owned()),
                due_after: Some(after),
                due_before: Some(before),
                ..TaskFilter::default()
            };
            let wanted: Vec<Seq> = planted
                .iter()
                .filter(|t| t.due >= after && t.due < before && (t.rare || !rare))
                .map(|t| t.seq)
                .collect();
            let (mut cursor, mut got, mut cuts) = (None, Vec::new(), 0);
            let mut place = (Time::MIN, Seq(i64::MIN));
            loop {
                let mut question = store.readers.question().unwrap();
                let page = question.list(&filter, cursor, limit, scan_max).unwrap();
                assert!(page.tasks.len() <= limit);
                got.extend(page.tasks.iter().map(|task| task.seq));
                cuts += u32::from(page.cut);
                let Some(next) = page.next else { break };
                let Cursor::Due(due, seq) = next else { panic!("{next:?}") };
                assert!((due, seq) > place, "every page makes progress");
                (cursor, place) = (Some(next), (due, seq));
            }
            assert_eq!(got, wanted, "seed {seed}, limit {limit}, scan_max {scan_max}");
            // The dense minute alone is about eight times as much as may be looked at.
            assert!(scan_max != 150 || cuts > 3, "it is cut within the minute: {cuts}");
        }
    }
}
