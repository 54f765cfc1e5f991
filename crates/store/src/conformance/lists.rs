//! What people read: lists, counts, outputs, statistics; and retention, which takes it away.

use crate::queries::{Count, Cursor, TaskFilter};
use crate::stats::{StatsDelta, StatsRow};
use crate::time::{MINUTE, SECOND};
use crate::{Done, Output, Seq, Shard, State, Task, Time, Write};

use super::World;
use super::fixture::{T0, close, end, link};

/// All pages of a list, `limit` at a time.
pub(super) fn all_pages(w: &World, filter: &TaskFilter, limit: usize) -> Vec<Task> {
    let mut cursor: Option<Cursor> = None;
    let mut all = Vec::new();
    loop {
        let page = w.queries.list(filter, cursor, limit).unwrap();
        assert!(page.tasks.len() <= limit);
        assert!(page.tasks.iter().all(|t| t.spec.payload.is_none() && filter.matches(t)));
        assert!(page.cut || page.next.is_none() || page.tasks.len() == limit, "a short page");
        all.extend(page.tasks);
        assert!(page.next.is_none() || page.next != cursor, "no progress");
        cursor = page.next;
        if cursor.is_none() {
            return all;
        }
    }
}

fn filter(w: &World) -> TaskFilter {
    TaskFilter { namespace: w.namespace(), ..TaskFilter::default() }
}

pub(super) fn pages_go_newest_first_over_live_and_history(w: &World) {
    let mut wanted: Vec<Seq> =
        State::ALL.iter().cycle().take(20).map(|&state| w.in_state(state).seq).collect();
    wanted.reverse();
    for limit in [1, 3, 20, 100] {
        let got: Vec<Seq> = all_pages(w, &filter(w), limit).iter().map(|t| t.seq).collect();
        assert_eq!(got, wanted, "pages of {limit}");
    }
    let page = w.queries.list(&filter(w), None, 20).unwrap();
    assert_eq!((page.next, page.cut), (None, false));
    let page = w.queries.list(&filter(w), Some(Cursor::Seq(wanted[4])), 3).unwrap();
    assert_eq!(page.tasks.iter().map(|t| t.seq).collect::<Vec<_>>(), wanted[5..8]);
    assert_eq!(page.next, Some(Cursor::Seq(wanted[7])));
    let mut newest = w.task(page.tasks[0].id);
    newest.spec.payload = None;
    assert_eq!(page.tasks[0], newest, "a listed task is whole but for its payload");
}

pub(super) fn filters_hold_together(w: &World) {
    let queue = w.ensure_queue("default", "other");
    let elsewhere = w.ensure_queue("there", "default");
    for n in 0..40u32 {
        let mut new = w.new_task(T0);
        if n % 2 == 0 {
            new.partition.queue = queue.id;
        }
        if n % 5 == 0 {
            (new.namespace, new.partition.queue) = (elsewhere.namespace, elsewhere.id);
        }
        new.spec.kind = format!("kind-{}", n % 3);
        if n % 4 == 0 {
            new.spec.key = Some(format!("key-{}", n % 8));
            new.keep_existing = true;
        }
        if n % 6 == 0 {
            new.schedule = Some(link(u128::from(n % 12), "plan", T0.plus(i64::from(n))));
        }
        w.must(Write::Insert(Box::new(new.clone())));
        let Some(task) = w.queries.task(new.namespace, new.id).unwrap() else { continue };
        let state = State::ALL[(n % 7) as usize];
        let ended = crate::Then::Finish { to: state, reason: None };
        match state {
            State::Scheduled => {}
            State::Running => {
                let open = Box::new(super::fixture::open(&task, w.epoch));
                w.must(Write::Start { seq: task.seq, version: 0, open });
            }
            State::Succeeded | State::Failed => {
                w.must(end(&task, w.epoch, crate::AttemptOutcome::Failed, ended));
            }
            _ => {
                w.must(close(&task, state));
            }
        }
    }
    let everything = {
        let mut all = all_pages(w, &filter(w), 100);
        let there = TaskFilter { namespace: elsewhere.namespace, ..TaskFilter::default() };
        all.extend(all_pages(w, &there, 100));
        all.sort_by_key(|task| std::cmp::Reverse(task.seq));
        all
    };
    assert!(everything.len() > 30);
    let states = [
        vec![],
        vec![State::Running],
        vec![State::Failed],
        vec![State::Succeeded, State::Scheduled],
    ];
    let mut shown = 0;
    for bits in 0..32 {
        for states in &states {
            let filter = TaskFilter {
                namespace: if bits & 16 == 0 { w.namespace() } else { elsewhere.namespace },
                queue: (bits & 1 != 0).then_some(queue.id),
                states: states.clone(),
                kind: (bits & 2 != 0).then(|| "kind-1".to_owned()),
                key: (bits & 4 != 0).then(|| "key-4".to_owned()),
                schedule: (bits & 8 != 0).then_some(6),
                ..TaskFilter::default()
            };
            let wanted: Vec<&Task> = everything.iter().filter(|t| filter.matches(t)).collect();
            for limit in [2, 50] {
                let got = all_pages(w, &filter, limit);
                assert_eq!(got.iter().collect::<Vec<_>>(), wanted, "{filter:?}");
            }
            shown += wanted.len();
        }
    }
    assert!(shown > 100, "the filters show something");
}

pub(super) fn due_lists_go_by_due_time(w: &World) {
    let mut wanted = Vec::new();
    for n in 0..60i64 {
        let mut new = w.new_task(T0.plus((n * 37 % 20) * 20 * SECOND));
        new.shard = Shard((n % 3) as u8);
        let seq = w.insert(&new);
        if n % 10 == 0 {
            let open = Box::new(super::fixture::open(&w.task(new.id), w.epoch));
            w.must(Write::Start { seq, version: 0, open });
        } else {
            wanted.push((new.due, seq));
        }
        if n % 10 == 1 {
            w.must(Write::Spill { seqs: vec![seq] });
        }
    }
    wanted.sort();
    let (from, to) = (T0.plus(MINUTE), T0.plus(5 * MINUTE));
    for (after, before) in [(Some(from), Some(to)), (Some(from), None), (None, Some(to))] {
        let filter = TaskFilter {
            states: vec![State::Scheduled],
            due_after: after,
            due_before: before,
            ..filter(w)
        };
        let wanted: Vec<_> = wanted
            .iter()
            .copied()
            .filter(|t| after.is_none_or(|a| t.0 >= a) && before.is_none_or(|b| t.0 < b))
            .collect();
        for limit in [1, 4, 100] {
            let got = all_pages(w, &filter, limit);
            let got: Vec<(Time, Seq)> = got.iter().map(|t| (t.due, t.seq)).collect();
            assert_eq!(got, wanted);
        }
    }
}

pub(super) fn counts_are_kept_by_queue_and_state(w: &World) {
    let queue = w.ensure_queue("default", "other");
    for state in State::ALL {
        w.in_state(state);
    }
    let mut new = w.new_task(T0);
    new.partition.queue = queue.id;
    w.insert(&new);
    let count = |queue, state, count| Count { queue, state, count };
    let mut wanted: Vec<Count> =
        State::ALL.into_iter().map(|state| count(w.queue.id, state, 1)).collect();
    wanted.push(count(queue.id, State::Scheduled, 1));
    assert_eq!(w.queries.counts().unwrap(), wanted);
    let prune = Write::Prune { succeeded: false, before: Time::MAX, limit: 100 };
    assert_eq!(w.must(prune), Done::Pruned(4));
    for count in w.queries.counts().unwrap() {
        let kept = !count.state.is_final() || count.state == State::Succeeded;
        assert_eq!(count.count, u64::from(kept), "{count:?}");
    }
}

pub(super) fn outputs_are_kept_with_their_attempts(w: &World) {
    let output =
        |text: &str| Output { head: text.as_bytes().to_vec(), tail: vec![0, 255], total: 1 << 40 };
    let with = |task: &Task, text: &str, then| {
        let mut write = end(task, w.epoch, crate::AttemptOutcome::Failed, then);
        if let Write::End { output: slot, .. } = &mut write {
            *slot = Some(Box::new(output(text)));
        }
        write
    };
    let task = w.insert_due(T0);
    w.must(with(&task, "one", crate::Then::Again { due: T0 }));
    let task = w.task(task.id);
    let then = crate::Then::Finish { to: State::Failed, reason: None };
    w.must(with(&task, "two", then));
    let read = |n| w.queries.output(task.seq, n).unwrap();
    assert_eq!(read(1), Some(output("one")));
    assert_eq!(read(2), Some(output("two")));
    assert_eq!(read(3), None);
    w.must(Write::Redrive { namespace: w.namespace(), id: task.id, due: T0 });
    assert_eq!(read(1), Some(output("one")));
    w.finish(&w.task(task.id), State::Failed);
    assert_eq!(
        w.must(Write::Prune { succeeded: false, before: Time::MAX, limit: 9 }),
        Done::Pruned(1)
    );
    assert_eq!((read(1), read(2)), (None, None));
}

pub(super) fn retention_deletes_in_finish_order(w: &World) {
    let closed = |at: i64| {
        let task = w.insert_due(T0);
        let mut write = close(&task, State::Cancelled);
        if let Write::Close { at: slot, .. } = &mut write {
            *slot = Time(at);
        }
        w.must(write);
        task.id
    };
    let keep = w.in_state(State::Succeeded).id;
    let waiting = w.insert_due(T0).id;
    let ids: Vec<_> = [10, 20, 30, 40, 5].map(closed).to_vec();
    let before = |t| Time(t);
    let prunable = |t, limit| w.queries.prunable(false, before(t), limit).unwrap();
    assert_eq!((prunable(10, 9), prunable(11, 9), prunable(31, 9), prunable(31, 2)), (0, 1, 3, 2));
    assert_eq!(prunable(100, 9), 5);
    let prune = |t, limit| w.must(Write::Prune { succeeded: false, before: before(t), limit });
    let there = || ids.iter().map(|id| w.find(*id).is_some()).collect::<Vec<_>>();
    assert_eq!(prune(10, 9), Done::Pruned(0));
    assert_eq!(prune(31, 2), Done::Pruned(2));
    assert_eq!(there(), [false, false, true, true, true]);
    assert_eq!(prune(31, 9), Done::Pruned(1), "40 is in the way of 5");
    assert_eq!(there(), [false, false, false, true, true]);
    assert_eq!(prune(100, 9), Done::Pruned(2));
    assert!(w.find(keep).is_some() && w.find(waiting).is_some());
    assert_eq!(all_pages(w, &filter(w), 9).len(), 2);
    let all = Write::Prune { succeeded: true, before: Time::MAX, limit: 9 };
    assert_eq!(w.must(all), Done::Pruned(1));
    let mut again = w.new_task(T0);
    again.id = keep;
    w.insert(&again);
}

pub(super) fn the_latest_runs_of_a_schedule(w: &World) {
    let mut ids = Vec::new();
    for n in 0..6i64 {
        let mut new = w.new_task(T0);
        new.schedule = Some(link(if n == 1 { 4 } else { 3 }, "plan", T0.plus(n)));
        w.insert(&new);
        let task = w.task(new.id);
        match n {
            5 => {
                w.start(&task);
            }
            _ if n % 2 == 0 => {
                w.finish(&task, State::Succeeded);
            }
            _ => {
                w.must(close(&task, State::Skipped));
            }
        }
        ids.push(new.id);
    }
    let runs = |limit| -> Vec<_> {
        w.queries.last_runs(3, limit).unwrap().into_iter().map(|t| t.id).collect()
    };
    assert_eq!(runs(10), [ids[4], ids[3], ids[2], ids[0]]);
    assert_eq!(runs(2), [ids[4], ids[3]]);
    assert_eq!(w.queries.last_runs(99, 2).unwrap(), []);
}

fn stats_row(w: &World, kind: &str, created: u32) -> StatsRow {
    let mut row = StatsRow::new(w.queue.id, kind.into());
    row.created = created;
    row.finish(State::Failed, 2);
    row.finish(State::Succeeded, created);
    row.lateness.record(1_000);
    row.duration.record(i64::from(created) * 1_000);
    row
}

fn add(w: &World, shard: u8, minute: i64, kind: &str, created: u32) {
    let rows = vec![stats_row(w, kind, created)];
    w.must(Write::Stats(Box::new(StatsDelta { shard: Shard(shard), minute, rows })));
}

pub(super) fn statistics_are_summed_by_minute(w: &World) {
    add(w, 1, 100, "b", 1);
    add(w, 1, 100, "a", 2);
    add(w, 2, 100, "b", 3);
    add(w, 1, 102, "a", 4);
    let mut b = stats_row(w, "b", 1);
    b.merge(&stats_row(w, "b", 3));
    let wanted = vec![(100, vec![stats_row(w, "a", 2), b]), (102, vec![stats_row(w, "a", 4)])];
    assert_eq!(w.queries.series(100, 103).unwrap(), wanted);
    assert_eq!(w.queries.series(0, 1000).unwrap(), wanted);
    assert_eq!(w.queries.series(101, 102).unwrap(), []);
    assert_eq!(w.queries.series(100, 102).unwrap(), wanted[..1]);
}

pub(super) fn folding_changes_no_sum(w: &World) {
    for n in 0..20 {
        add(w, (n % 2) as u8, 100 + i64::from(n) / 8, if n % 3 == 0 { "a" } else { "b" }, n);
    }
    let wanted = w.queries.series(0, 1000).unwrap();
    let fold = |shard| Write::FoldStats { shard: Shard(shard), before_minute: 102 };
    for shard in [0, 0, 1] {
        w.must(fold(shard));
        assert_eq!(w.queries.series(0, 1000).unwrap(), wanted);
    }
    add(w, 0, 100, "a", 7);
    w.must(fold(0));
    let sum = |series: &[(i64, Vec<StatsRow>)]| -> u32 {
        series.iter().flat_map(|minute| &minute.1).map(|row| row.created).sum()
    };
    assert_eq!(sum(&w.queries.series(0, 1000).unwrap()), sum(&wanted) + 7);
}

pub(super) fn old_statistics_are_pruned(w: &World) {
    for minute in 100..110 {
        add(w, 1, minute, "a", 1);
    }
    let prune = |before_minute, limit| w.must(Write::PruneStats { before_minute, limit });
    assert_eq!(prune(100, 10), Done::Pruned(0));
    assert_eq!(prune(105, 2), Done::Pruned(2));
    assert_eq!(prune(105, 10), Done::Pruned(3));
    let left: Vec<i64> = w.queries.series(0, 1000).unwrap().into_iter().map(|m| m.0).collect();
    assert_eq!(left, [105, 106, 107, 108, 109]);
}
