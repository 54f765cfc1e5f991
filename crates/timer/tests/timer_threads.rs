//! The timer among real threads and under the real clock.

mod common;

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::{Log, SOON, ms};
use tourbillon::{Due, Precision, Refused, Timer};

/// Whatever threads arm, cancel and reset at the same time: each job runs once or is cancelled once,
/// none is early, and nothing is left.
#[test]
fn each_job_runs_or_is_cancelled() {
    for builder in [Timer::builder(), Timer::builder().inline(), Timer::builder().workers(1)] {
        let timer = builder.build().expect("a thread");
        let (ran, cancelled) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let (threads, each) = (4, 2_000);
        thread::scope(|scope| {
            for seed in 0..threads {
                let (timer, ran, cancelled) = (&timer, &ran, &cancelled);
                scope.spawn(move || {
                    let mut held = Vec::new();
                    for n in 0..each {
                        let delay = Duration::from_micros((n * 7_919 + seed * 31) % 3_000);
                        let deadline = Instant::now() + delay;
                        let ran = Arc::clone(ran);
                        let job = timer.at(deadline, move || {
                            assert!(Instant::now() >= deadline, "early");
                            ran.fetch_add(1, Ordering::Relaxed);
                        });
                        held.push(job.expect("not full"));
                        if n % 3 == 0 {
                            let job = held.swap_remove((n / 2) as usize % held.len());
                            if job.cancel() {
                                cancelled.fetch_add(1, Ordering::Relaxed);
                                assert!(job.join().expect_err("it never runs").is_cancelled());
                            } else {
                                job.join().expect("it has begun, and does not panic");
                            }
                        }
                    }
                    for job in held {
                        job.join().expect("it runs");
                    }
                });
            }
        });
        let (ran, cancelled) = (ran.load(Ordering::Relaxed), cancelled.into_inner());
        assert_eq!(ran + cancelled, (threads * each) as usize);
        assert!(timer.is_empty());
        timer.shutdown();
        assert!(timer.wait_terminated(SOON));
    }
}

/// Every precision is never early, and a sleep that is too long by hours is cut short by an earlier
/// deadline.
#[test]
fn no_precision_is_early() {
    for precision in [Precision::Fine, Precision::ECONOMY, Precision::PRECISE] {
        let timer = Timer::builder().precision(precision).build().expect("a thread");
        let hour = timer.after(Duration::from_secs(3_600), || ()).expect("not full");
        let jobs: Vec<_> = (0..300)
            .map(|n| {
                let deadline = Instant::now() + Duration::from_micros(n * 37 % 9_000);
                timer.at(deadline, move || Instant::now() >= deadline).expect("not full")
            })
            .collect();
        for job in jobs {
            assert!(job.join().expect("it runs"), "early under {precision:?}");
        }
        assert!(hour.cancel());
    }
}

/// netty#11724: a callback that blocked for ten seconds held up every other timer. Here it takes one
/// worker.
#[test]
fn a_job_that_blocks_delays_no_other_while_a_worker_is_free() {
    let timer = Timer::builder().workers(4).build().expect("a thread");
    let barrier = Arc::new(Barrier::new(4));
    let blocked: Vec<_> = (0..3)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            timer
                .after(Duration::ZERO, move || {
                    barrier.wait();
                })
                .expect("not full")
        })
        .collect();
    // Three of four workers are taken; these all run on the fourth.
    for n in 0..100 {
        assert_eq!(
            timer.after(Duration::ZERO, move || n).expect("not full").join().expect("runs"),
            n
        );
    }
    assert!(blocked.iter().all(|job| !job.is_finished()));
    assert_eq!(timer.workers(), 4);
    barrier.wait();
    for job in blocked {
        job.join().expect("runs");
    }
}

#[test]
fn workers_stay_within_their_bound_and_go_when_idle() {
    let timer =
        Timer::builder().workers(2).keep_alive(Duration::from_millis(1)).build().expect("a thread");
    let running = Arc::new(AtomicUsize::new(0));
    let jobs: Vec<_> = (0..200)
        .map(|_| {
            let running = Arc::clone(&running);
            let job = timer.after(Duration::ZERO, move || {
                let at_once = running.fetch_add(1, Ordering::SeqCst) + 1;
                thread::yield_now();
                running.fetch_sub(1, Ordering::SeqCst);
                at_once
            });
            job.expect("not full")
        })
        .collect();
    for job in jobs {
        assert!(job.join().expect("runs") <= 2);
    }
    let end = Instant::now() + SOON;
    while timer.workers() > 0 {
        assert!(Instant::now() < end, "idle workers stay: {}", timer.workers());
        thread::yield_now();
    }
}

/// java.util.Timer: an exception in one task killed the thread, and with it every other task.
#[test]
fn a_panic_is_reported_and_touches_nothing_else() {
    panic::set_hook(Box::new(|_| {}));
    for inline in [false, true] {
        let reported = Log::default();
        let log = reported.clone();
        let builder = Timer::builder()
            .on_panic(move |panic| log.add((panic.message().to_owned(), panic.is_periodic())));
        let builder = if inline { builder.inline() } else { builder.workers(1) };
        let timer = builder.build().expect("a thread");
        let job = timer.after(Duration::ZERO, || panic!("one of many")).expect("not full");
        let after = timer.after(ms(1), || 5).expect("not full");
        assert!(job.join().expect_err("it panicked").is_panic());
        assert_eq!(after.join().expect("runs"), 5);
        assert_eq!(reported.take(), [("one of many".to_owned(), false)]);
        // A hook that panics itself harms nobody either.
        let timer =
            Timer::builder().on_panic(|_| panic!("the hook too")).build().expect("a thread");
        drop(timer.after(Duration::ZERO, || panic!("a job")));
        assert_eq!(timer.after(ms(1), || 5).expect("not full").join().expect("runs"), 5);
    }
}

#[test]
fn the_bound_on_pending_is_kept_and_told() {
    let timer = Timer::builder().max_pending(10).workers(1).build().expect("a thread");
    let hour = Duration::from_secs(3_600);
    let jobs: Vec<_> = (0..10).map(|_| timer.after(hour, || ()).expect("room for ten")).collect();
    assert_eq!(timer.after(hour, || ()).map(drop), Err(Refused::Full { max_pending: 10 }));
    assert!(jobs[0].cancel());
    let one = timer.after(hour, || ()).expect("room for one again");
    drop((jobs, one));
    // Of what is due and waits for the only worker there are at most as many.
    let timer = Timer::builder().max_pending(10).workers(1).build().expect("a thread");
    let (block, blocked) = mpsc::channel::<()>();
    let blocking = timer.after(Duration::ZERO, move || blocked.recv()).expect("room");
    let end = Instant::now() + SOON;
    let mut taken = 0;
    while timer.after(Duration::ZERO, || ()).is_ok() || timer.in_progress() < 11 {
        taken += 1;
        assert!(Instant::now() < end, "no bound: {timer:?}");
    }
    assert!(taken >= 10, "{taken}");
    drop(block);
    assert!(blocking.join().expect("it runs").is_err());
}

/// Idle for long with one timer an hour away: no CPU (netty#9710, pulsar#6414).
#[cfg(target_os = "linux")]
#[test]
fn an_idle_timer_does_not_wake_up() {
    let timer = Timer::builder().name("idle-one").build().expect("a thread");
    let hour = timer.after(Duration::from_secs(3_600), || ()).expect("not full");
    let find = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("proc");
        let path = tasks.flatten().map(|task| task.path()).find(|path| {
            std::fs::read_to_string(path.join("comm")).is_ok_and(|n| n.trim() == "idle-one")
        })?;
        let status = std::fs::read_to_string(path.join("status")).ok()?;
        let sleeps = status.contains("State:\tS");
        let woken = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))?;
        Some((sleeps, woken.trim().parse::<u64>().ok()?))
    };
    let end = Instant::now() + SOON;
    let before = loop {
        assert!(Instant::now() < end, "the timer's thread never sleeps");
        if let Some((true, woken)) = find() {
            break woken;
        }
        thread::yield_now();
    };
    // sleeps: what is tested is that nothing happens meanwhile
    thread::sleep(ms(1_500));
    let (_, after) = find().expect("it is there");
    // Once, when the wake-up that armed it came after the first look.
    assert!(after <= before + 1, "{} wake-ups in a second and a half", after - before);
    assert!(hour.cancel());
}

#[test]
fn a_callers_executor_runs_what_it_is_handed() {
    let (sender, due) = mpsc::channel::<Due>();
    let timer =
        Timer::builder().executor(move |job| drop(sender.send(job))).build().expect("a thread");
    let job = timer.after(Duration::ZERO, || thread::current().id()).expect("not full");
    due.recv_timeout(SOON).expect("it is handed out").run();
    assert_eq!(job.join().expect("runs"), thread::current().id());
    // One that is dropped is cancelled.
    let job = timer.after(Duration::ZERO, || ()).expect("not full");
    drop(due.recv_timeout(SOON).expect("it is handed out"));
    assert!(job.join().expect_err("dropped").is_cancelled());
    // One that is cancelled while it is with the executor does not run.
    let job = timer.after(Duration::ZERO, || panic!("cancelled")).expect("not full");
    let due = due.recv_timeout(SOON).expect("it is handed out");
    assert!(job.cancel());
    due.run();
    timer.shutdown();
    assert!(timer.wait_terminated(SOON));
}

#[test]
fn the_last_way_to_a_timer_ends_it() {
    let timer = Timer::new();
    let clone = timer.clone();
    let job = timer.after(Duration::from_secs(3_600), || ()).expect("not full");
    drop(timer);
    assert!(!job.is_finished());
    drop(clone);
    assert!(job.join().expect_err("nobody is left to run it").is_cancelled());
    // Also when that is a job of its own, which holds the last clone.
    for builder in [Timer::builder(), Timer::builder().inline()] {
        let timer = builder.build().expect("a thread");
        let own = timer.clone();
        let (tell, told) = mpsc::channel();
        let job = timer.after(ms(1), move || {
            told.recv_timeout(SOON).expect("the other clone is gone");
            drop(own);
        });
        let job = job.expect("not full");
        drop(timer);
        tell.send(()).expect("it waits");
        job.join().expect("it ends");
    }
}

#[test]
fn shutting_down_from_a_job() {
    for builder in [Timer::builder(), Timer::builder().inline(), Timer::builder().workers(1)] {
        let timer = builder.build().expect("a thread");
        let waiting = timer.after(Duration::from_secs(3_600), || 9).expect("not full");
        let own = timer.clone();
        let unrun = timer.after(ms(1), move || own.shutdown_now()).expect("not full");
        let unrun = unrun.join().expect("it ends");
        assert_eq!(unrun.len(), 1);
        assert!(timer.wait_terminated(SOON));
        for due in unrun {
            due.run();
        }
        assert_eq!(waiting.join().expect("run by hand"), 9);
    }
}

/// While threads arm, shutting down loses nothing: each job runs, is handed back, or was refused.
#[test]
fn a_shutdown_among_those_who_arm_loses_nothing() {
    for round in 0..20 {
        let timer = Timer::builder().workers(2).build().expect("a thread");
        let ran = Arc::new(AtomicUsize::new(0));
        let armed = AtomicUsize::new(0);
        let mut back = 0;
        thread::scope(|scope| {
            for seed in 0..2 {
                let (timer, ran, armed) = (&timer, &ran, &armed);
                scope.spawn(move || {
                    for n in 0_u64.. {
                        let ran = Arc::clone(ran);
                        let delay = Duration::from_micros((n * 131 + seed) % 900);
                        let job = timer.after(delay, move || ran.fetch_add(1, Ordering::SeqCst));
                        match job {
                            Ok(_) => armed.fetch_add(1, Ordering::SeqCst),
                            Err(refused) => {
                                assert_eq!(refused, Refused::ShutDown);
                                return;
                            }
                        };
                    }
                });
            }
            while armed.load(Ordering::SeqCst) < 500 + 100 * round {
                thread::yield_now();
            }
            if round % 2 == 0 {
                timer.shutdown();
            } else {
                for due in timer.shutdown_now() {
                    back += 1;
                    drop(due);
                }
            }
        });
        assert!(timer.wait_terminated(SOON));
        assert_eq!(ran.load(Ordering::SeqCst) + back, armed.into_inner(), "round {round}");
    }
}
