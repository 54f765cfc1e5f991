//! A lock per lane against one owner with an inbox per thread: pairs of cancelling and arming per
//! second, with a million timers pending, by one thread and by two.
//!
//! `lanes` is what the crate has; `inbox` is a prototype of the other design, complete enough to be
//! compared: bounded inboxes that the owner drains into its wheel, and a state in each timer that
//! decides cancel against fire. `wheel` is one thread and a wheel without any lock: what is left to
//! lose. Time stands still meanwhile, so nobody fires.
//!
//! Prints one JSON object a line. Arguments: pending timers, rounds, milliseconds a round; and
//! a subject, to run only that one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};
use tourbillon::lanes::{Handle, Lanes};
use tourbillon::wheel::{HierarchicalWheel, Key, TimerQueue};

/// Deadlines are spread over this many ticks.
const HORIZON: u64 = 60_000;

/// What each thread that arms and cancels does to a design.
trait Side {
    type Handle;
    fn arm(&mut self, deadline: u64) -> Self::Handle;
    fn cancel(&mut self, handle: Self::Handle) -> bool;
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| {
        args.get(at).map_or(default, |arg| arg.parse().expect("a number"))
    };
    let (n, rounds, round) = (number(0, 1_000_000) as usize, number(1, 5), number(2, 1_000));
    let round = Duration::from_millis(round);
    let wanted = |subject: &str| args.get(3).is_none_or(|only| only == subject);
    for threads in [1, 2] {
        if wanted("wheel") && threads == 1 {
            report("wheel", n, threads, &measure(vec![HierarchicalWheel::new()], n, rounds, round));
        }
        if wanted("lanes") {
            let (lanes, _driver) = Lanes::builder().build(|| {});
            report("lanes", n, threads, &measure(vec![lanes; threads], n, rounds, round));
        }
        if wanted("inbox") {
            let stop = Arc::new(AtomicBool::new(false));
            let (senders, receivers): (Vec<_>, Vec<_>) =
                (0..threads).map(|_| sync_channel(INBOX_MAX)).unzip();
            let owner = thread::spawn({
                let stop = stop.clone();
                move || own(&receivers, &stop)
            });
            report("inbox", n, threads, &measure(senders, n, rounds, round));
            stop.store(true, Ordering::Relaxed);
            owner.join().expect("the owner does not panic");
        }
    }
}

/// Pairs per microsecond, of all sides together, for each round.
fn measure<S: Side + Send>(sides: Vec<S>, n: usize, rounds: u64, round: Duration) -> Vec<f64> {
    let threads = sides.len();
    let start = Barrier::new(threads);
    let each: Vec<Vec<f64>> = thread::scope(|scope| {
        let workers: Vec<_> = sides
            .into_iter()
            .enumerate()
            .map(|(id, mut side)| {
                let start = &start;
                scope.spawn(move || {
                    let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(id as u64 + 1);
                    let mut below = move |n: u64| {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        ((u128::from(random) * u128::from(n)) >> 64) as u64
                    };
                    let mut held: Vec<Option<S::Handle>> =
                        (0..n / threads).map(|_| Some(side.arm(1 + below(HORIZON)))).collect();
                    // The first round warms up.
                    let speeds = (0..=rounds).map(|_| {
                        start.wait();
                        let (begin, mut pairs) = (Instant::now(), 0_u32);
                        while begin.elapsed() < round {
                            for _ in 0..512 {
                                let at = below(held.len() as u64) as usize;
                                let handle = held[at].take().expect("it was put back");
                                assert!(side.cancel(handle), "nothing fires");
                                held[at] = Some(side.arm(1 + below(HORIZON)));
                            }
                            pairs += 512;
                        }
                        f64::from(pairs) / begin.elapsed().as_micros() as f64
                    });
                    speeds.collect()
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
    });
    (1..=rounds as usize).map(|round| each.iter().map(|speeds| speeds[round]).sum()).collect()
}

fn report(subject: &str, n: usize, threads: usize, speeds: &[f64]) {
    let mut sorted = speeds.to_vec();
    sorted.sort_by(f64::total_cmp);
    println!(
        r#"{{"bench":"lanes_vs_inbox","subject":"{subject}","n":{n},"metric":"cancel_arm_pairs_{threads}_threads","value":{:.2},"unit":"M/s","rounds":{},"min":{:.2},"max":{:.2}}}"#,
        sorted[sorted.len() / 2],
        sorted.len(),
        sorted[0],
        sorted[sorted.len() - 1],
    );
}

impl Side for HierarchicalWheel<u64> {
    type Handle = Key;

    fn arm(&mut self, deadline: u64) -> Key {
        self.insert_at(deadline, deadline)
    }

    fn cancel(&mut self, key: Key) -> bool {
        TimerQueue::cancel(self, key).is_some()
    }
}

impl Side for Lanes<u64> {
    type Handle = Handle;

    fn arm(&mut self, deadline: u64) -> Handle {
        self.insert_at(deadline, deadline).expect("there is room")
    }

    fn cancel(&mut self, handle: Handle) -> bool {
        Lanes::cancel(self, handle).is_some()
    }
}

// The inbox design.

/// Messages that may wait in one inbox.
const INBOX_MAX: usize = 4096;

/// Sent and not yet in the wheel.
const SENT: u64 = 0;
const CANCELLED: u64 = u64::MAX;
const FIRED: u64 = u64::MAX - 1;

/// Shared by the one who armed and the owner. The state is one of the above, or the key that it has
/// in the wheel.
struct Timer {
    state: AtomicU64,
    deadline: u64,
}

enum Message {
    Arm(Arc<Timer>),
    Forget(Key),
}

impl Side for SyncSender<Message> {
    type Handle = Arc<Timer>;

    fn arm(&mut self, deadline: u64) -> Arc<Timer> {
        let timer = Arc::new(Timer { state: AtomicU64::new(SENT), deadline });
        post(self, Message::Arm(timer.clone()));
        timer
    }

    fn cancel(&mut self, timer: Arc<Timer>) -> bool {
        match timer.state.swap(CANCELLED, Ordering::AcqRel) {
            SENT => true,
            CANCELLED | FIRED => false,
            key => {
                // The decision has been made; the owner's wheel is to forget it too.
                post(self, Message::Forget(Key::from_u64(key).expect("the owner wrote a key")));
                true
            }
        }
    }
}

/// Waits while the inbox is full, as a bound has to mean something.
fn post(inbox: &SyncSender<Message>, mut message: Message) {
    while let Err(error) = inbox.try_send(message) {
        message = match error {
            std::sync::mpsc::TrySendError::Full(message) => message,
            std::sync::mpsc::TrySendError::Disconnected(_) => return,
        };
        thread::yield_now();
    }
}

/// The owner of the wheel: takes in what was sent, a few messages an inbox at a time.
fn own(inboxes: &[Receiver<Message>], stop: &AtomicBool) {
    let mut wheel = HierarchicalWheel::<Arc<Timer>>::new();
    let mut taken = VecDeque::new();
    while !stop.load(Ordering::Relaxed) {
        taken.extend(inboxes.iter().flat_map(|inbox| inbox.try_iter().take(256)));
        if taken.is_empty() {
            thread::yield_now();
        }
        for message in taken.drain(..) {
            match message {
                Message::Forget(key) => drop(wheel.cancel(key)),
                Message::Arm(timer) => {
                    if timer.state.load(Ordering::Relaxed) == CANCELLED {
                        continue;
                    }
                    let key = wheel.insert_at(timer.deadline, timer.clone());
                    let swap = timer.state.compare_exchange(
                        SENT,
                        key.to_u64(),
                        Ordering::AcqRel,
                        Ordering::Relaxed,
                    );
                    if swap.is_err() {
                        wheel.cancel(key);
                    }
                }
            }
        }
        wheel.advance(0, usize::MAX, |_, _, timer| {
            timer.state.store(FIRED, Ordering::Release);
        });
    }
}
