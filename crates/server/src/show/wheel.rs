//! Wheels as shown.

use tourbillon_node::EngineView;
use tourbillon_wire::{Duration, SlotCount, Timestamp, WheelLevel, WheelSnapshot, Wheels};

/// The wheel of a node called `node`, which holds at most `resident_max` tasks.
pub(crate) fn wheels(view: &EngineView, resident_max: usize, node: &str) -> Wheels {
    let snapshot = &view.wheel;
    let tick = u64::try_from(view.tick).unwrap_or(1).max(1);
    let passed = i64::try_from(snapshot.now).unwrap_or(i64::MAX).saturating_mul(view.tick);
    let levels = snapshot.levels.iter().map(|level| WheelLevel {
        level: level.level as u32,
        slots: level.slots as u32,
        slot_span: Duration::from_micros(level.slot_ticks.saturating_mul(tick)),
        current_slot: (snapshot.now / level.slot_ticks.max(1) % level.slots.max(1) as u64) as u32,
        len: level.len as u64,
        occupied: level
            .occupied
            .iter()
            .map(|slot| SlotCount { slot: slot.slot as u32, count: slot.len as u64 })
            .collect(),
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
