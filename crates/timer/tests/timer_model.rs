//! Everything that may be done with a timer, against a model: an ordered map of deadlines.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::{Log, SOON, manual, pass};
use proptest::prelude::*;
use tourbillon::{JobHandle, Refused, Timer};

#[derive(Clone, Debug)]
enum Op {
    After(u64),
    Cancel(usize),
    Reset(usize, u64),
    Pass(u64),
    Deadline(usize),
}

fn micros() -> impl Strategy<Value = u64> {
    prop_oneof![0..50_u64, 0..5_000_u64, 0..100_000_000_u64]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => micros().prop_map(Op::After),
        2 => any::<usize>().prop_map(Op::Cancel),
        2 => (any::<usize>(), micros()).prop_map(|(at, delay)| Op::Reset(at, delay)),
        2 => micros().prop_map(Op::Pass),
        1 => any::<usize>().prop_map(Op::Deadline),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_timer_does_what_an_ordered_map_says(ops in prop::collection::vec(op(), 1..80)) {
        let (timer, clock) = manual();
        let fired = Log::default();
        let mut now = 0;
        let mut order = 0;
        // Deadline and order of arming; what is pending.
        let mut model: BTreeMap<(u64, u64), usize> = BTreeMap::new();
        let mut handles: Vec<(JobHandle<()>, (u64, u64))> = Vec::new();
        for op in ops {
            match op {
                Op::After(delay) => {
                    let (id, log) = (handles.len(), fired.clone());
                    let handle = timer.after(Duration::from_micros(delay), move || log.add(id));
                    // What is due at once fires on the timer's own thread before anything that is
                    // asked here.
                    prop_assert!(delay > 0 || timer.wait_idle(SOON));
                    if delay == 0 {
                        prop_assert_eq!(fired.take(), vec![id]);
                    } else {
                        model.insert((now + delay, order), id);
                    }
                    handles.push((handle.expect("not full"), (now + delay, order)));
                    order += 1;
                }
                Op::Cancel(at) if !handles.is_empty() => {
                    let (handle, key) = &handles[at % handles.len()];
                    prop_assert_eq!(handle.cancel(), model.remove(key).is_some());
                    prop_assert!(handle.is_finished());
                }
                Op::Reset(at, delay) if !handles.is_empty() => {
                    let at = at % handles.len();
                    let (handle, key) = &mut handles[at];
                    let was_pending = model.remove(key).is_some();
                    prop_assert_eq!(handle.reset(Duration::from_micros(delay)), was_pending);
                    if was_pending {
                        *key = (now + delay, order);
                        order += 1;
                        if delay == 0 {
                            prop_assert!(timer.wait_idle(SOON));
                            prop_assert_eq!(fired.take(), vec![at]);
                        } else {
                            model.insert(*key, at);
                        }
                    }
                }
                Op::Pass(by) => {
                    now += by;
                    pass(&timer, &clock, Duration::from_micros(by));
                    let later = model.split_off(&(now + 1, 0));
                    let due: Vec<usize> = std::mem::replace(&mut model, later).into_values().collect();
                    prop_assert_eq!(fired.take(), due);
                }
                Op::Deadline(at) if !handles.is_empty() => {
                    let (handle, key) = &handles[at % handles.len()];
                    let left = handle.deadline().map(|at| at - timer.now());
                    let expected = model.get(key).map(|_| Duration::from_micros(key.0 - now));
                    prop_assert_eq!(left, expected);
                }
                _ => {}
            }
            prop_assert_eq!(timer.len(), model.len());
        }
        // What is left comes back from a shutdown, in the order of deadlines, and nothing else runs.
        let unrun = timer.shutdown_now();
        let left: Vec<Duration> = unrun.iter().map(|due| due.deadline() - timer.now()).collect();
        let expected = model.keys().map(|(deadline, _)| Duration::from_micros(deadline - now));
        prop_assert_eq!(left, expected.collect::<Vec<_>>());
        prop_assert!(model.values().all(|id| !handles[*id].0.is_finished()));
        drop(unrun);
        prop_assert!(model.values().all(|id| handles[*id].0.is_finished()));
        prop_assert!(timer.wait_terminated(SOON));
        prop_assert_eq!(fired.take(), Vec::<usize>::new());
        prop_assert_eq!(timer.after(Duration::ZERO, || ()).map(drop), Err(Refused::ShutDown));
    }

    /// A fixed rate: planned times are exactly a period apart, and each is run, skipped or caught up
    /// with as its policy says, however the clock moves on.
    #[test]
    fn a_rate_keeps_to_its_plan(
        period in 100..5_000_u64,
        steps in prop::collection::vec(0..20_000_u64, 1..30),
        policy in 0..3_usize,
    ) {
        use tourbillon::{Missed, Plan};
        let missed = [Missed::Skip, Missed::Burst, Missed::Delay][policy];
        let (timer, clock) = manual();
        let start = timer.now();
        let runs = Log::default();
        let (log, own) = (runs.clone(), timer.clone());
        let plan = Plan::every(Duration::from_micros(period)).missed(missed);
        let job = timer.repeat(plan, move |run| {
            let planned = (run.planned - start).as_micros() as u64;
            let at = (own.now() - start).as_micros() as u64;
            log.add((run.number, planned, at, run.skipped));
        }).expect("not full");
        let mut now = 0;
        let mut next = period;
        let mut number = 0;
        for step in steps {
            now += step;
            pass(&timer, &clock, Duration::from_micros(step));
            let mut expected = Vec::new();
            let mut skipped = 0;
            while next <= now {
                number += 1;
                expected.push((number, next, now, 0));
                if let Some(last) = expected.last_mut() {
                    last.3 = skipped;
                }
                let plain = next + period;
                (next, skipped) = match missed {
                    Missed::Burst => (plain, 0),
                    _ if plain >= now => (plain, 0),
                    Missed::Delay => (now + period, 0),
                    Missed::Skip => {
                        let left_out = (now - plain).div_ceil(period);
                        (plain + left_out * period, left_out)
                    }
                };
            }
            // How many were left out is told with the run after.
            let mut seen = runs.take();
            let told: u64 = seen.iter().map(|run| run.3).sum();
            let model: u64 = expected.iter().map(|run| run.3).sum();
            if missed != Missed::Skip {
                prop_assert_eq!((told, model), (0, 0));
            }
            for run in seen.iter_mut().chain(&mut expected) {
                run.3 = 0;
            }
            prop_assert_eq!(seen, expected);
        }
        prop_assert!(job.cancel());
        pass(&timer, &clock, Duration::from_secs(1));
        prop_assert_eq!(runs.len(), 0);
    }
}

#[test]
fn an_hour_of_every_timer_that_can_be_made() {
    // Deadlines at every power of two and beside it, also those that never come.
    let (timer, clock) = manual();
    let fired = Log::default();
    let mut expected = 0;
    for bit in 0..64 {
        for beside in [-1_i64, 0, 1] {
            let micros = (1_u64 << bit).saturating_add_signed(beside);
            let log = fired.clone();
            drop(timer.after(Duration::from_micros(micros), move || log.add(micros)));
            expected += u64::from(micros <= 3_600_000_000);
        }
    }
    drop(timer.after(Duration::MAX, || panic!("the end of time does not come")));
    pass(&timer, &clock, Duration::ZERO);
    pass(&timer, &clock, Duration::from_secs(3_600));
    let fired = fired.take();
    assert_eq!(fired.len() as u64, expected);
    assert!(fired.is_sorted());
    assert_eq!(Timer::len(&timer), 64 * 3 + 1 - fired.len());
}
