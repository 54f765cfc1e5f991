//! Wheels as shown.

use tourbillon_node::EngineView;
use tourbillon_wire::{Duration, SlotCount, Timestamp, WheelLevel, WheelSnapshot, Wheels};

/// Slots of an empty level: one digit of eight bits.
const SLOTS: u64 = 256;
/// Levels shown at least: with ticks of a millisecond, up to four hours.
const LEVELS_MIN: usize = 3;

/// The wheel of a node called `node`, which holds at most `resident_max` tasks.
pub(crate) fn wheels(view: &EngineView, resident_max: usize, node: &str) -> Wheels {
    let snapshot = &view.wheel;
    let tick = u64::try_from(view.tick).unwrap_or(1).max(1);
    let passed = i64::try_from(snapshot.now).unwrap_or(i64::MAX).saturating_mul(view.tick);
    // The snapshot leaves out what is empty; for people the levels below are part of the picture.
    let highest = snapshot.levels.last().map_or(0, |level| level.level).max(LEVELS_MIN - 1);
    let levels = (0..=highest).map(|n| {
        let held = snapshot.levels.iter().find(|level| level.level == n);
        let slots = held.map_or(SLOTS, |level| level.slots as u64).max(1);
        let slot_ticks = held.map_or_else(|| SLOTS.saturating_pow(n as u32), |l| l.slot_ticks);
        let occupied = held.map(|level| &level.occupied[..]).unwrap_or_default().iter();
        WheelLevel {
            level: n as u32,
            slots: slots as u32,
            slot_span: Duration::from_micros(slot_ticks.saturating_mul(tick)),
            current_slot: (snapshot.now / slot_ticks.max(1) % slots) as u32,
            len: held.map_or(0, |level| level.len as u64),
            occupied: occupied
                .map(|slot| SlotCount { slot: slot.slot as u32, count: slot.len as u64 })
                .collect(),
        }
    });
    Wheels {
        node: node.to_owned(),
        wheels: vec![WheelSnapshot {
            now: Timestamp::from_micros(view.base.saturating_add(passed)),
            tick: Duration::from_micros(tick),
            current_tick: snapshot.now,
            len: snapshot.len as u64,
            resident_max: resident_max as u64,
            bytes: view.numbers.payload_bytes,
            window_until: None,
            cascades: snapshot.totals.moved,
            levels: levels.collect(),
        }],
    }
}
