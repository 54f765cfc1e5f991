//! Futures and streams, polled by hand under a manual clock: who is woken, for what, and what becomes
//! of a turn when a future is dropped in each of its states.

use super::support::{Task, block_on, manual, ms, next_of, us, value};
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tourbillon::DelayQueue;

#[test]
fn a_task_is_woken_when_the_item_is_due_and_not_before() {
    let (queue, clock) = manual();
    let mut task = Task::new(queue.next());
    assert!(task.poll().is_pending());
    queue.insert(1, us(10)).unwrap();
    clock.advance(us(9));
    assert_eq!(task.wakes(), 0);
    assert!(task.poll().is_pending());
    clock.advance(us(1));
    assert_eq!(task.wakes(), 1);
    assert_eq!(value(task.poll()), Some(1));
    assert_eq!(queue.waiting(), 0);
}

#[test]
fn one_task_is_woken_for_one_item() {
    let (queue, clock) = manual();
    let mut tasks: Vec<_> = (0..5).map(|_| Task::new(queue.next())).collect();
    for task in &mut tasks {
        assert!(task.poll().is_pending());
    }
    assert_eq!(queue.waiting(), 5);
    queue.insert(1, us(10)).unwrap();
    queue.insert(2, us(20)).unwrap();
    clock.advance(us(10));
    let wakes: Vec<_> = tasks.iter().map(Task::wakes).collect();
    assert_eq!(wakes, [1, 0, 0, 0, 0]);
    assert_eq!(value(tasks[0].poll()), Some(1));
    assert_eq!(tasks[1].wakes(), 0); // it leads, and the second item is not due
    clock.advance(us(10));
    let wakes: Vec<_> = tasks.iter().map(Task::wakes).collect();
    assert_eq!(wakes, [1, 1, 0, 0, 0]);
    assert_eq!(queue.signals(), 2);
}

#[test]
fn several_due_items_wake_one_task_after_the_other() {
    let (queue, clock) = manual();
    let mut tasks: Vec<_> = (0..3).map(|_| Task::new(queue.next())).collect();
    for task in &mut tasks {
        assert!(task.poll().is_pending());
    }
    for number in 0..3 {
        queue.insert(number, us(10)).unwrap();
    }
    clock.advance(us(10));
    for number in 0..3 {
        let wakes: Vec<_> = tasks.iter().map(Task::wakes).collect();
        assert_eq!(wakes.iter().sum::<usize>(), number + 1, "{wakes:?}");
        assert_eq!(value(tasks[number].poll()), Some(number as i32));
    }
}

#[test]
fn an_earlier_item_wakes_the_leader_in_time() {
    let (queue, clock) = manual();
    let mut task = Task::new(queue.next());
    queue.insert(2, us(100)).unwrap();
    assert!(task.poll().is_pending());
    queue.insert(1, us(10)).unwrap();
    clock.advance(us(10));
    assert_eq!(task.wakes(), 1);
    assert_eq!(value(task.poll()), Some(1));
    assert!(task.poll().is_pending()); // done once, it waits for a further item
    let key = queue.insert(3, us(500)).unwrap();
    assert!(queue.reset(key, us(5)));
    clock.advance(us(5));
    assert_eq!(value(task.poll()), Some(3));
}

#[test]
fn a_task_that_moves_is_reached_where_it_is() {
    let (queue, clock) = manual();
    let mut task = Task::new(queue.next());
    assert!(task.poll().is_pending());
    assert!(task.poll_elsewhere().is_pending());
    assert_eq!(queue.waiting(), 1);
    queue.insert(1, us(10)).unwrap();
    clock.advance(us(10));
    assert_eq!(task.wakes(), 1);
    // Woken, polled by yet another waker while the item has gone to somebody else.
    assert_eq!(queue.try_poll().map(|it| it.into_inner()), Some(1));
    assert!(task.poll_elsewhere().is_pending());
    queue.insert(2, us(0)).unwrap();
    assert_eq!(task.wakes(), 1);
    assert_eq!(value(task.poll()), Some(2));
}

/// Brings a future into a state, drops it, and sees the next one get the item.
fn dropped_in(state: &str, bring: impl Fn(&DelayQueue<u32>, &mut dyn FnMut())) {
    let (queue, clock) = manual();
    let mut first = Task::new(queue.next());
    let mut next = Task::new(queue.next());
    bring(&queue, &mut || assert!(first.poll().is_pending(), "{state}"));
    assert!(next.poll().is_pending(), "{state}");
    drop(first);
    if queue.is_empty() {
        queue.insert(1, us(10)).unwrap();
    }
    clock.advance(us(10));
    assert_eq!(value(next.poll()), Some(1), "{state}");
    assert_eq!((queue.len(), queue.waiting()), (0, 0), "{state}");
}

#[test]
fn a_future_dropped_in_any_state_takes_nothing_with_it() {
    dropped_in("never polled", |_, _| {});
    dropped_in("waits, leads, nothing there", |_, poll| poll());
    dropped_in("waits, leads, an item there", |queue, poll| {
        poll();
        queue.insert(1, us(10)).unwrap();
        poll();
    });
}

#[test]
fn a_turn_is_handed_on_when_a_woken_future_is_dropped() {
    let (queue, clock) = manual();
    let mut woken = Task::new(queue.next());
    let mut next = Task::new(queue.next());
    let mut last = Task::new(queue.next());
    for task in [&mut woken, &mut next, &mut last] {
        assert!(task.poll().is_pending());
    }
    queue.insert(1, us(10)).unwrap();
    clock.advance(us(10));
    assert_eq!((woken.wakes(), next.wakes(), last.wakes()), (1, 0, 0));
    drop(woken);
    assert_eq!((next.wakes(), last.wakes()), (1, 0));
    assert_eq!(value(next.poll()), Some(1));
    assert_eq!(last.wakes(), 0);
}

#[test]
fn a_follower_that_is_dropped_changes_nothing() {
    let (queue, clock) = manual();
    let mut leader = Task::new(queue.next());
    let mut follower = Task::new(queue.next());
    assert!(leader.poll().is_pending() && follower.poll().is_pending());
    queue.insert(1, us(10)).unwrap();
    drop(follower);
    clock.advance(us(10));
    assert_eq!(leader.wakes(), 1);
    assert_eq!(value(leader.poll()), Some(1));
}

#[test]
fn a_future_that_is_done_may_be_kept_and_dropped() {
    let (queue, _clock) = manual();
    queue.insert(1, us(0)).unwrap();
    let mut done = Task::new(queue.next());
    assert_eq!(value(done.poll()), Some(1));
    let mut next = Task::new(queue.next());
    assert!(next.poll().is_pending());
    drop(done);
    queue.insert(2, us(0)).unwrap();
    assert_eq!(value(next.poll()), Some(2));
}

#[test]
fn the_end_wakes_all_who_wait() {
    for at_once in [false, true] {
        let (queue, clock) = manual::<u32>();
        let mut tasks: Vec<_> = (0..3).map(|_| Task::new(queue.next())).collect();
        for task in &mut tasks {
            assert!(task.poll().is_pending());
        }
        queue.insert(1, us(10)).unwrap();
        if at_once {
            queue.close_now();
        } else {
            queue.close();
            assert_eq!(tasks.iter().map(Task::wakes).sum::<usize>(), 0);
            clock.advance(us(10));
            assert_eq!(value(tasks[0].poll()), Some(1));
            tasks.remove(0);
        }
        for task in &mut tasks {
            assert_eq!(task.wakes(), 1);
            assert!(matches!(task.poll(), Poll::Ready(None)));
        }
        assert_eq!(queue.waiting(), 0);
    }
}

#[test]
fn removing_the_last_item_of_a_closed_queue_is_its_end() {
    let (queue, _clock) = manual();
    let key = queue.insert(1, us(10)).unwrap();
    let mut task = Task::new(queue.next());
    assert!(task.poll().is_pending());
    queue.close();
    assert!(task.poll().is_pending());
    assert_eq!(queue.remove(key), Some(1));
    assert_eq!(task.wakes(), 1);
    assert!(matches!(task.poll(), Poll::Ready(None)));
}

#[test]
fn a_stream_goes_on_while_the_queue_is_empty_and_ends_with_it() {
    let (queue, clock) = manual();
    let mut stream = queue.stream();
    let waker = Waker::noop();
    let mut poll = || {
        use futures_core::Stream;
        std::pin::Pin::new(&mut stream).poll_next(&mut Context::from_waker(waker))
    };
    assert!(poll().is_pending());
    queue.insert(1, us(10)).unwrap();
    assert!(poll().is_pending());
    clock.advance(us(10));
    assert_eq!(value(poll()), Some(1));
    assert!(poll().is_pending());
    queue.close();
    assert!(matches!(poll(), Poll::Ready(None)));
    assert!(matches!(poll(), Poll::Ready(None)));
}

#[test]
fn a_waker_that_panics_costs_nobody_an_item() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker of this test")
        }
    }
    let (queue, clock) = manual();
    let mut broken = Box::pin(queue.next());
    let waker = Waker::from(Arc::new(Panics));
    let mut next = Task::new(queue.next());
    assert!(broken.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(next.poll().is_pending());
    queue.insert(1, us(5)).unwrap();
    queue.insert(2, us(5)).unwrap();
    clock.advance(us(5)); // wakes the one that panics
    assert_eq!(queue.try_poll().map(|it| it.into_inner()), Some(1));
    drop(broken);
    assert_eq!(value(next.poll()), Some(2));
}

/// By the machine's clock, with the process-wide thread that sleeps for tasks.
#[test]
fn tasks_alone_are_woken_in_real_time() {
    let queue = DelayQueue::new();
    let mut stream = queue.stream();
    let begin = std::time::Instant::now();
    for delay in [3, 1, 2] {
        queue.insert(delay, ms(delay)).unwrap();
    }
    queue.insert(4_000, Duration::from_secs(3_600)).unwrap();
    for expected in 1..=3 {
        let expired = block_on(next_of(&mut stream)).unwrap();
        assert!(begin.elapsed() >= ms(expected), "early");
        assert_eq!(expired.into_inner(), expected);
    }
    // The thread sleeps for an hour by now; something earlier wakes it.
    queue.insert(5, ms(5)).unwrap();
    assert_eq!(block_on(queue.next()).map(|it| it.into_inner()), Some(5));
}

/// The leader among tasks has an alarm set for an item that is removed, and again for one that is
/// moved. It sees the item that is left.
#[test]
fn an_alarm_for_nothing_is_set_anew() {
    let queue = DelayQueue::new();
    let mut task = Box::pin(queue.next());
    let first = queue.insert(1, ms(1)).unwrap();
    let second = queue.insert(2, ms(2)).unwrap();
    queue.insert(3, ms(8)).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    if task.as_mut().poll(&mut cx).is_ready() {
        return; // the machine was so slow that the item is due already
    }
    queue.remove(first);
    queue.reset(second, ms(9));
    let taken = block_on(task).unwrap().into_inner();
    assert!(taken == 3 || taken == 2, "{taken}");
}
