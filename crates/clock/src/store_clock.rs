//! Store time, kept as an offset from the monotonic clock.
//!
//! Store time is the wall clock on one node and the database's clock in a cluster. It is measured
//! now and then ([`StoreClock::observe`]) and carried in between by the monotonic clock:
//! `store = mono + offset`.
//!
//! What always holds:
//! - [`StoreClock::now`] never goes back, nor jumps forward by a step's size, except by a [`Step`]
//!   that [`StoreClock::poll`] has handed out. A measured step waits until it is polled.
//! - The offset is the lower edge of what the measurements allow, so store time is judged late by
//!   the measurement error and never early.
//! - A backward difference below [`StoreClockLimits::hold_back`] is not a step: `now` stands still
//!   until the store has caught up. A forward one below [`StoreClockLimits::jump_forward`] is
//!   simply taken.
//! - Small differences that add up to `jump_forward` since the last step are reported as a step,
//!   so a consumer that laid out timers by the old offset is never further off than that.
//!
//! A suspended machine: a clock that stands still meanwhile ([`crate::SystemClock`]) sees the
//! store far ahead afterwards, which is a forward step. A clock that counts suspend
//! ([`crate::BootClock`]) moves by itself together with the store, and there is no step.
//!
//! What is deliberately absent: a thread that measures, smoothing over many measurements.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Mono, Now, micros_up, signed};

/// The store clock was stepped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The monotonic reading at which the step was handed out.
    pub mono: Mono,
    /// Store time at `mono` by the offset of the step before, in microseconds. It equals `to` when
    /// small differences were taken since and this step takes them back: then [`StoreClock::now`]
    /// goes back, and what was laid out by that step is right again.
    pub from: i64,
    /// Store time at `mono` from now on, in microseconds.
    pub to: i64,
}

impl Step {
    /// Whether the store went back.
    pub const fn is_backward(&self) -> bool {
        self.to < self.from
    }
}

/// Which differences are steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreClockLimits {
    /// Backward differences below this are held, others are steps. Default 2 ms.
    pub hold_back: Duration,
    /// Forward differences below this are taken as they are, others are steps; also the bound of
    /// what small differences may add up to. Default 50 ms.
    pub jump_forward: Duration,
    /// How fast the two clocks may drift apart, in parts per million: between measurements the
    /// possible error grows by this. Default 200.
    pub drift_ppm: u32,
}

impl Default for StoreClockLimits {
    fn default() -> Self {
        Self {
            hold_back: Duration::from_millis(2),
            jump_forward: Duration::from_millis(50),
            drift_ppm: 200,
        }
    }
}

/// Differences up to this are below what reading two clocks one after the other can tell, and
/// leave the offset alone.
const INDISTINCT_US: i64 = 20;

/// Attempts of [`StoreClock::observe_wall`] to read both clocks without being interrupted.
const READS_MAX: u32 = 4;

/// Answers store time from measurements. Shared by reference between threads.
pub struct StoreClock {
    clock: Arc<dyn Clock>,
    limits: StoreClockLimits,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
struct State {
    /// The latest measurement, narrowed by earlier ones; `None` before the first.
    measured: Option<Measured>,
    /// `store − mono` that `now` uses.
    offset_us: i64,
    /// The offset of the last step.
    anchor_us: i64,
    /// The offset that the step waiting to be polled leads to.
    pending_us: Option<i64>,
    /// The latest answer since the last step.
    answered: Option<Now>,
}

/// The offset was between `low_us` and `high_us` at `mono`.
#[derive(Clone, Copy)]
struct Measured {
    mono: Mono,
    low_us: i64,
    high_us: i64,
}

impl StoreClock {
    /// A store clock that is carried by `clock`, with the default limits. Until the first
    /// measurement store time equals the monotonic reading.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_limits(clock, StoreClockLimits::default())
    }

    /// As [`Self::new`], with other limits.
    pub fn with_limits(clock: Arc<dyn Clock>, limits: StoreClockLimits) -> Self {
        Self {
            clock,
            limits,
            state: Mutex::new(State {
                measured: None,
                offset_us: 0,
                anchor_us: 0,
                pending_us: None,
                answered: None,
            }),
        }
    }

    /// Takes in a measurement: the store's clock read `store` microseconds at some moment no
    /// further than `error` from the monotonic reading `mono`. For a query to a database `mono` is
    /// the middle between sending and receiving, `error` half of the time between.
    ///
    /// The first measurement is taken as it is; a later one may lead to a step, see [`Self::poll`].
    pub fn observe(&self, mono: Mono, store: i64, error: Duration) {
        let offset_us = store.saturating_sub(signed(mono.as_micros()));
        let error_us = signed(micros_up(error));
        let new = Measured {
            mono,
            low_us: offset_us.saturating_sub(error_us),
            high_us: offset_us.saturating_add(error_us),
        };
        let mut state = self.lock();
        let Some(old) = state.measured else {
            state.measured = Some(new);
            state.offset_us = snapped(new.low_us);
            state.anchor_us = state.offset_us;
            return;
        };
        let measured = old.narrowed_by(new, self.limits.drift_ppm);
        state.measured = Some(measured);
        state.judge(measured, &self.limits);
    }

    /// Measures the wall clock of the carrying clock, for a node whose store time is its own wall.
    pub fn observe_wall(&self) {
        // A thread that is interrupted between the readings would measure its own pause, so the
        // narrowest of a few tries counts.
        let mut best: Option<(Duration, Mono, i64)> = None;
        for _ in 0..READS_MAX {
            let before = self.clock.mono();
            let wall = self.clock.wall();
            let width = self.clock.mono().saturating_since(before);
            if best.is_none_or(|(narrowest, ..)| width < narrowest) {
                best = Some((width, before, wall));
            }
            if width <= Duration::from_micros(INDISTINCT_US.unsigned_abs() / 4) {
                break;
            }
        }
        if let Some((width, before, wall)) = best {
            // One microsecond more, since both readings drop their fraction.
            let error = width / 2 + Duration::from_micros(1);
            self.observe(before.saturating_add(width / 2), wall, error);
        }
    }

    /// The present moment. `store` never goes back between steps.
    pub fn now(&self) -> Now {
        let mut state = self.lock();
        // Read under the lock, so that answers to several threads are in one order.
        let mono = self.clock.mono();
        let store = signed(mono.as_micros()).saturating_add(state.offset_us);
        let store = state.answered.map_or(store, |last| last.store.max(store));
        let now = Now { mono, store };
        state.answered = Some(now);
        now
    }

    /// The step that a measurement has shown, if there is one. It takes effect here: answers of
    /// [`Self::now`] follow the old offset before this call and the new one after it. Several
    /// steps measured since the last call are one; steps that undid each other are none.
    pub fn poll(&self) -> Option<Step> {
        let mut state = self.lock();
        let to_us = state.pending_us.take()?;
        let mono = self.clock.mono();
        let at = signed(mono.as_micros());
        let step =
            Step { mono, from: at.saturating_add(state.anchor_us), to: at.saturating_add(to_us) };
        state.offset_us = to_us;
        state.anchor_us = to_us;
        state.answered = Some(Now { mono, store: step.to });
        Some(step)
    }

    /// `store − mono` in microseconds, as [`Self::now`] uses it.
    pub fn offset_us(&self) -> i64 {
        self.lock().offset_us
    }

    /// How far above [`Self::offset_us`] the true offset may have been at the last measurement;
    /// zero before the first.
    pub fn error(&self) -> Duration {
        self.lock().measured.map_or(Duration::ZERO, |m| {
            let width = m.high_us.saturating_sub(m.low_us);
            Duration::from_micros(width.try_into().unwrap_or(0))
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is plain numbers, whole after every statement, so a poisoned lock is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn judge(&mut self, measured: Measured, limits: &StoreClockLimits) {
        let jump_us = signed(micros_up(limits.jump_forward)).max(1);
        let hold_us = signed(micros_up(limits.hold_back)).max(1);
        let target_us = snapped(measured.low_us);
        // Only what is surely a difference counts: the whole measured range is on one side.
        let back_us = self.held_us(measured.mono).saturating_sub(measured.high_us);
        let forward_us = target_us.saturating_sub(self.offset_us);
        let drifted_us = target_us.saturating_sub(self.anchor_us);
        if back_us >= hold_us || forward_us >= jump_us || drifted_us.saturating_abs() >= jump_us {
            self.pending_us = Some(target_us);
            return;
        }
        self.pending_us = None;
        if forward_us.saturating_abs() > INDISTINCT_US {
            self.offset_us = target_us;
        }
    }

    /// The offset at `mono` that answers have shown: that of the last answer while it is held.
    fn held_us(&self, mono: Mono) -> i64 {
        self.answered.map_or(self.offset_us, |last| {
            let at = signed(mono.max(last.mono).as_micros());
            self.offset_us.max(last.store.saturating_sub(at))
        })
    }
}

impl Measured {
    /// What this older measurement and `new` allow together; `new` alone when they contradict each
    /// other, which is what a step looks like.
    fn narrowed_by(self, new: Self, drift_ppm: u32) -> Self {
        let elapsed_us = signed(micros_up(new.mono.saturating_since(self.mono)));
        let drift_us = elapsed_us / 1_000_000 * i64::from(drift_ppm)
            + elapsed_us % 1_000_000 * i64::from(drift_ppm) / 1_000_000;
        let low_us = self.low_us.saturating_sub(drift_us).max(new.low_us);
        let high_us = self.high_us.saturating_add(drift_us).min(new.high_us);
        if low_us > high_us {
            return new;
        }
        Self { mono: new.mono.max(self.mono), low_us, high_us }
    }
}

/// `offset_us`, moved to a whole millisecond when it is indistinct from one, so that whole
/// milliseconds of both clocks coincide.
fn snapped(offset_us: i64) -> i64 {
    let over_us = offset_us.rem_euclid(1_000);
    if over_us <= INDISTINCT_US {
        offset_us - over_us
    } else if over_us >= 1_000 - INDISTINCT_US {
        offset_us.saturating_add(1_000 - over_us)
    } else {
        offset_us
    }
}

impl fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("StoreClock")
            .field("offset_us", &state.offset_us)
            .field("pending_us", &state.pending_us)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
