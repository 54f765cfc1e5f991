//! The thread that sleeps until the next deadline and hands out what is due.
//!
//! There are no idle ticks: without a timer it sleeps until it is woken, and with one an hour away
//! for an hour. It is woken early only by a deadline before the one it sleeps for, and by a
//! shutdown.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::core::Core;
use super::settings::Precision;
use crate::time::NEVER;

/// How often it looks at a clock that may jump while it sleeps.
const LOOK: Duration = Duration::from_secs(1);

/// The body of the driver's thread.
pub(crate) fn drive(core: &Arc<Core>) {
    core.driven_by(thread::current());
    let precision = core.settings.precision;
    if !matches!(precision, Precision::Economy { .. }) {
        exact_wakes();
    }
    loop {
        while !core.turn() {}
        if core.terminate_if_done() {
            return;
        }
        if let Some(wait) = wait_for(core, precision, core.prepare_sleep()) {
            thread::park_timeout(wait);
        }
    }
}

/// For how long to park until this tick; nothing when it has come. Watches the clock itself for the
/// last stretch where that was asked for.
fn wait_for(core: &Core, precision: Precision, until: Option<u64>) -> Option<Duration> {
    let Some(until) = until.filter(|&tick| tick != NEVER) else { return Some(Duration::MAX) };
    if core.time.manual().is_some() {
        // It is woken when the clock is moved.
        return (core.time.now() < until).then_some(Duration::MAX);
    }
    let mut left = core.time.until(until)?;
    match precision {
        Precision::Fine => {}
        Precision::Economy { slack } => left = left.saturating_add(slack),
        Precision::Precise { spin } if left > spin => left -= spin,
        Precision::Precise { .. } => {
            while core.time.now() < until && core.driver_sleeps() {
                std::hint::spin_loop();
            }
            return None;
        }
    }
    Some(if core.time.may_jump() { left.min(LOOK) } else { left })
}

/// Asks the system not to let this thread sleep for longer than it asked. By default Linux adds up to
/// 50 µs, to merge wake-ups. Elsewhere, and where it is refused, nothing changes.
fn exact_wakes() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
