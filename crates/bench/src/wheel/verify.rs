//! Whether a structure does what is measured: each timer that lives fires once, no dead one does.
//!
//! In virtual time: connection timeouts through steps of a millisecond, and an hour's deadlines
//! through jumps of up to a second. A third of each is cancelled. A timer must come out of the very
//! step or jump that reaches its deadline, neither before nor after. Deadlines are whole
//! milliseconds, so how a crate rounds others is not looked at.

use std::mem::take;

use anyhow::{Result, ensure};

use super::subject::Subject;
use super::workload::{HOUR_MS, Spread, TIMEOUTS_END_MS, mix, shuffle};

const TIMERS: usize = 20_000;
/// Longest jump, and time after the last deadline.
const JUMP_MS_MAX: u64 = 1_000;

/// Checks both ways of passing time, and gives the number of timers that fired.
pub(crate) fn verify<S: Subject>() -> Result<usize> {
    let mut trial = Trial::<S>::start(Spread::Timeouts);
    trial.step(TIMEOUTS_END_MS);
    let stepped = trial.finish()?;

    let mut trial = Trial::<S>::start(Spread::Hour);
    let mut jumps = 0;
    while trial.now < HOUR_MS + 2 * JUMP_MS_MAX {
        trial.jump(trial.now + 1 + mix(jumps) % JUMP_MS_MAX);
        jumps += 1;
    }
    Ok(stepped + trial.finish()?)
}

/// A structure with timers, and what became of each.
struct Trial<S: Subject> {
    subject: S,
    now: u64,
    handles: Vec<S::Handle>,
    timers: Vec<Timer>,
    early: usize,
    late: usize,
    unknown: usize,
}

#[derive(Clone, Copy)]
struct Timer {
    deadline: u64,
    alive: bool,
    fired: u32,
}

impl<S: Subject> Trial<S> {
    fn start(spread: Spread) -> Trial<S> {
        let mut subject = S::new();
        let mut numbered = Vec::new();
        let mut timers = Vec::new();
        for (value, deadline) in spread.deadlines(TIMERS).into_iter().enumerate() {
            let deadline = u64::from(deadline);
            timers.push(Timer { deadline, alive: true, fired: 0 });
            numbered.push((value, subject.insert(deadline, value as u64)));
        }
        shuffle(&mut numbered);
        for (value, handle) in numbered.iter_mut().take(TIMERS / 3) {
            timers[*value].alive = subject.cancel(take(handle)).is_none();
        }
        let handles = numbered.into_iter().skip(TIMERS / 3).map(|(_, handle)| handle).collect();
        Trial { subject, now: 0, handles, timers, early: 0, late: 0, unknown: 0 }
    }

    fn step(&mut self, to: u64) {
        let from = self.now;
        self.pass(to, |subject, fired| {
            subject.step(from, to, &mut |now, v| fired(now - 1, now, v))
        });
    }

    fn jump(&mut self, to: u64) {
        let from = self.now;
        self.pass(to, |subject, fired| subject.advance(to, &mut |_, v| fired(from, to, v)));
    }

    /// Lets time pass; `act` says of each timer between which two ticks it came out.
    fn pass(&mut self, to: u64, act: impl FnOnce(&mut S, &mut dyn FnMut(u64, u64, u64))) {
        let Trial { subject, timers, early, late, unknown, .. } = self;
        act(subject, &mut |before, now, value| {
            let Some(timer) = timers.get_mut(value as usize) else {
                *unknown += 1;
                return;
            };
            timer.fired += 1;
            *early += usize::from(now < timer.deadline);
            *late += usize::from(before >= timer.deadline);
        });
        self.now = to;
    }

    fn finish(mut self) -> Result<usize> {
        for handle in take(&mut self.handles) {
            self.subject.release(handle);
        }
        let count = |wrong: fn(&Timer) -> bool| self.timers.iter().filter(|t| wrong(t)).count();
        let (dead, alive) = (count(|t| !t.alive), count(|t| t.alive));
        let name = S::NAME;
        ensure!(dead == TIMERS / 3, "{name}: {dead} of {} could be cancelled", TIMERS / 3);
        let ghosts = count(|t| !t.alive && t.fired > 0);
        ensure!(ghosts == 0, "{name}: {ghosts} cancelled timers fired");
        let lost = count(|t| t.alive && t.fired == 0);
        ensure!(lost == 0, "{name}: {lost} of {alive} timers did not fire");
        let twice = count(|t| t.fired > 1);
        ensure!(twice == 0, "{name}: {twice} timers fired more than once");
        ensure!(self.unknown == 0, "{name}: {} values were never inserted", self.unknown);
        ensure!(self.early == 0, "{name}: {} timers fired early", self.early);
        ensure!(self.late == 0, "{name}: {} timers fired late", self.late);
        Ok(alive)
    }
}

#[cfg(test)]
mod tests {
    use super::super::subjects;
    use super::*;

    #[test]
    fn every_subject_fires_what_it_should_and_when() {
        for entry in subjects::ALL {
            let fired = (entry.verify)().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(fired, 2 * (TIMERS - TIMERS / 3), "{}", entry.name);
        }
    }

    /// Does one thing wrong.
    struct Faulty<const FAULT: u8> {
        timers: Vec<(u64, u64)>,
    }

    const EARLY: u8 = 0;
    const TWICE: u8 = 1;
    const LOSES: u8 = 2;
    const GHOST: u8 = 3;
    const LATE: u8 = 4;

    impl<const FAULT: u8> Subject for Faulty<FAULT> {
        type Handle = u64;
        const NAME: &'static str = "Faulty";

        fn new() -> Self {
            Faulty { timers: Vec::new() }
        }

        fn insert(&mut self, deadline: u64, value: u64) -> u64 {
            let deadline = match FAULT {
                EARLY => deadline - 1,
                LATE => deadline + 1,
                _ => deadline,
            };
            self.timers.push((deadline, value));
            value
        }

        fn cancel(&mut self, value: u64) -> Option<u64> {
            if FAULT != GHOST {
                self.timers[value as usize].0 = u64::MAX;
            }
            Some(value)
        }

        fn advance(&mut self, to: u64, fired: &mut impl FnMut(u64, u64)) {
            for (deadline, value) in &mut self.timers {
                let odd = value.is_multiple_of(100);
                if *deadline <= to && !(FAULT == LOSES && odd) {
                    *deadline = if FAULT == TWICE && odd { to + 1 } else { u64::MAX };
                    fired(to, *value);
                }
            }
        }
    }

    fn fault<const FAULT: u8>() -> String {
        // Jumps alone, for each looks at every timer.
        let mut trial = Trial::<Faulty<FAULT>>::start(Spread::Timeouts);
        while trial.now < TIMEOUTS_END_MS + 2 * JUMP_MS_MAX {
            trial.jump(trial.now + 400);
        }
        match trial.finish() {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn each_fault_is_found() {
        assert!(fault::<EARLY>().contains("early"), "{}", fault::<EARLY>());
        assert!(fault::<TWICE>().contains("more than once"), "{}", fault::<TWICE>());
        assert!(fault::<LOSES>().contains("did not fire"), "{}", fault::<LOSES>());
        assert!(fault::<GHOST>().contains("cancelled timers fired"), "{}", fault::<GHOST>());
        assert!(fault::<LATE>().contains("late"), "{}", fault::<LATE>());
    }
}
