//! Store time: properties under arbitrary histories, then the steps that machines really make.

use super::*;
use crate::{ManualClock, SystemClock};
use proptest::prelude::*;

const START: i64 = 1_700_000_000_000_000;
const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;

fn pair() -> (ManualClock, StoreClock) {
    let clock = ManualClock::new(START);
    let store = StoreClock::new(Arc::new(clock.clone()));
    store.observe_wall();
    (clock, store)
}

#[derive(Clone, Debug)]
enum Act {
    Advance(u64),
    StepWall(i64),
    /// A measurement that is off by less than its stated error.
    Observe {
        error: u64,
        off: i64,
    },
    Poll,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0u64..3_000_000).prop_map(Act::Advance),
        2 => (-5_000i64..5_000).prop_map(Act::StepWall),
        1 => (-DAY..DAY).prop_map(Act::StepWall),
        4 => (0u64..30_000).prop_flat_map(|error| {
            let e = error as i64;
            (-e..=e).prop_map(move |off| Act::Observe { error, off })
        }),
        2 => Just(Act::Poll),
    ];
    prop::collection::vec(act, 1..200)
}

proptest! {
    #[test]
    fn never_back_and_never_a_jump_without_a_step(acts in acts()) {
        let (clock, store) = pair();
        let mut last = store.now();
        for act in acts {
            match act {
                Act::Advance(us) => clock.advance(Duration::from_micros(us)),
                Act::StepWall(us) => clock.step_wall(us),
                Act::Observe { error, off } => {
                    store.observe(clock.mono(), clock.wall() + off, Duration::from_micros(error));
                }
                Act::Poll => {
                    let before = store.now();
                    if let Some(step) = store.poll() {
                        // Either what was laid out since the last step moves, or `now` does: small
                        // differences that were taken and then taken back end where they began.
                        prop_assert!(step.from != step.to || before.store > step.to);
                        last = store.now();
                        prop_assert_eq!(last.store, step.to);
                    }
                }
            }
            let now = store.now();
            prop_assert!(now.store >= last.store, "went back: {last:?} then {now:?}");
            let elapsed = (now.mono.as_micros() - last.mono.as_micros()) as i64;
            prop_assert!(now.store - last.store < elapsed + 50_000 + 4_000);
            last = now;
        }
        // After one exact measurement and a poll it is right, whatever happened before.
        store.observe(clock.mono(), clock.wall(), Duration::ZERO);
        store.poll();
        let behind = clock.wall() - store.now().store;
        prop_assert!((-2_000..=INDISTINCT_US + 1).contains(&behind), "behind by {behind}");
        prop_assert!(store.poll().is_none());
    }

    #[test]
    fn nothing_panics_at_the_edges(mono: u64, store: i64, error: u64, later: u64, other: i64) {
        let clock = ManualClock::new(0);
        clock.advance_to(Mono::from_micros(mono));
        let sut = StoreClock::new(Arc::new(clock.clone()));
        sut.observe(Mono::from_micros(mono), store, Duration::from_micros(error));
        sut.observe(Mono::from_micros(later), other, Duration::MAX);
        sut.observe(Mono::from_micros(later), other, Duration::ZERO);
        clock.advance(Duration::MAX);
        sut.poll();
        sut.now();
        sut.error();
        sut.observe_wall();
        sut.poll();
        sut.now();
    }
}

#[test]
fn whole_milliseconds_coincide() {
    let (clock, store) = pair();
    assert_eq!(store.offset_us(), 0);
    clock.step_wall(7_000);
    store.observe_wall();
    assert_eq!(store.offset_us(), 7_000);
    assert_eq!(store.poll(), None);
}

/// A random history found it: a small difference forward is taken without a step, and the same
/// back is one. It leads to where the step before led, yet `now` goes back, so it is handed out.
#[test]
fn a_difference_that_is_taken_back_is_a_step_to_the_same_offset() {
    let (clock, store) = pair();
    clock.step_wall(4_000);
    store.observe_wall();
    assert_eq!((store.poll(), store.now().store), (None, START + 4_000));
    clock.step_wall(-4_000);
    store.observe_wall();
    let step = store.poll().unwrap();
    assert_eq!((step.from, step.to, store.now().store), (START, START, START));
}

#[test]
fn a_slew_is_followed_without_a_step() {
    let (clock, store) = pair();
    // 100 ppm fast and then slow, measured every second, within what may add up.
    for ppm in [100i64, -100] {
        for _ in 0..400 {
            clock.advance(Duration::from_secs(1));
            clock.step_wall(ppm);
            let before = store.now().store;
            store.observe_wall();
            assert!(store.now().store >= before);
            assert_eq!(store.poll(), None);
        }
        let behind = clock.wall() - store.now().store;
        assert!((-200..=200).contains(&behind), "{behind} µs behind at {ppm} ppm");
    }
}

#[test]
fn differences_that_add_up_are_told_once_they_matter() {
    let (clock, store) = pair();
    let mut steps = Vec::new();
    for _ in 0..100 {
        clock.advance(Duration::from_secs(1));
        clock.step_wall(1_000);
        store.observe_wall();
        steps.extend(store.poll());
    }
    // 100 ms in all, told at every 50.
    assert_eq!(steps.len(), 2);
    assert!(steps.iter().all(|s| s.to - s.from == 50_000), "{steps:?}");
}

#[test]
fn a_millisecond_back_is_held() {
    let (clock, store) = pair();
    let before = store.now();
    clock.step_wall(-1_000);
    store.observe_wall();
    assert_eq!(store.poll(), None);
    assert_eq!(store.now(), before);
    clock.advance_mono(Duration::from_micros(500));
    assert_eq!(store.now().store, before.store, "still catching up");
    clock.advance_mono(Duration::from_micros(1_000));
    assert_eq!(store.now().store, before.store + 500);
}

#[test]
fn an_hour_back_is_a_step_and_takes_effect_when_polled() {
    let (clock, store) = pair();
    clock.step_wall(-HOUR);
    store.observe_wall();
    clock.advance(Duration::from_secs(1));
    assert_eq!(store.now().store, START + 1_000_000, "not told yet");
    let step = store.poll().expect("a step");
    assert!(step.is_backward());
    assert_eq!(step.from, START + 1_000_000);
    assert_eq!(step.to, START + 1_000_000 - HOUR);
    assert_eq!(store.now().store, step.to);
    assert_eq!(store.poll(), None);
    store.observe_wall();
    assert_eq!(store.poll(), None, "told once");
}

#[test]
fn a_day_forward_is_a_step() {
    let (clock, store) = pair();
    clock.step_wall(DAY);
    store.observe_wall();
    assert_eq!(store.now().store, START, "not told yet");
    let step = store.poll().expect("a step");
    assert!(!step.is_backward());
    assert_eq!((step.from, step.to), (START, START + DAY));
    assert_eq!(store.now().store, START + DAY);
    assert_eq!(store.poll(), None);
}

#[test]
fn a_step_that_is_undone_before_the_poll_is_none() {
    let (clock, store) = pair();
    clock.step_wall(DAY);
    store.observe_wall();
    clock.step_wall(-DAY);
    store.observe_wall();
    assert_eq!(store.poll(), None);
    assert_eq!(store.now().store, START);
}

#[test]
fn a_suspended_machine() {
    // The monotonic clock stood still for eight hours: a step.
    let (clock, store) = pair();
    clock.step_wall(8 * HOUR);
    store.observe_wall();
    assert_eq!(store.poll().map(|s| s.to - s.from), Some(8 * HOUR));

    // A clock that counts suspend: both went on, nothing to tell.
    let (clock, store) = pair();
    clock.advance(Duration::from_secs(8 * 3_600));
    store.observe_wall();
    assert_eq!(store.poll(), None);
    assert_eq!(store.now().store, START + 8 * HOUR);
}

#[test]
fn a_slow_answer_of_the_database_is_no_step() {
    let (clock, store) = pair();
    for round in 0..100i64 {
        clock.advance(Duration::from_secs(1));
        // A round trip of up to 2 s of which all was on the way out, or all on the way back.
        let error = Duration::from_millis(10 * round.unsigned_abs());
        let off = signed(micros_up(error)) * if round % 2 == 0 { 1 } else { -1 };
        store.observe(clock.mono(), clock.wall() + off, error);
        assert_eq!(store.poll(), None);
        let behind = clock.wall() - store.now().store;
        assert!((0..20_000).contains(&behind), "{behind} µs behind");
    }
}

#[test]
fn the_error_is_rounded_towards_late() {
    let clock = ManualClock::new(START);
    let store = StoreClock::new(Arc::new(clock.clone()));
    store.observe(clock.mono(), clock.wall(), Duration::from_millis(10));
    assert_eq!(store.now().store, START - 10_000);
    assert_eq!(store.error(), Duration::from_millis(20));
    // A better measurement lifts it.
    store.observe(clock.mono(), clock.wall(), Duration::from_millis(1));
    assert_eq!(store.now().store, START - 1_000);
    assert_eq!(store.poll(), None);
}

#[test]
fn real_clocks_give_no_steps() {
    let clock = Arc::new(SystemClock::new());
    let store = StoreClock::new(clock.clone());
    for _ in 0..10_000 {
        store.observe_wall();
        let _ = store.now();
    }
    let step = store.poll();
    assert!(step.is_none(), "{step:?}");
}
