//! What the timing wheels hold at a moment, for people to look at.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Duration, Timestamp};

/// The wheels of the node that answers, one per engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wheels {
    /// The node.
    pub node: String,
    /// One per engine.
    pub wheels: Vec<WheelSnapshot>,
}

/// One wheel at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WheelSnapshot {
    /// When it was taken, in store time.
    pub now: Timestamp,
    /// One tick.
    pub tick: Duration,
    /// How many ticks the wheel has advanced.
    pub current_tick: u64,
    /// How many tasks it holds.
    pub len: u64,
    /// How many tasks it may hold.
    #[serde(default)]
    pub resident_max: u64,
    /// About how many bytes it takes.
    #[serde(default)]
    pub bytes: u64,
    /// The edge of the window: tasks due later are in the store only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_until: Option<Timestamp>,
    /// How many times a slot's tasks moved down a level.
    #[serde(default)]
    pub cascades: u64,
    /// The levels, finest first.
    pub levels: Vec<WheelLevel>,
}

/// One ring of slots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WheelLevel {
    /// Its number, 0 the finest.
    pub level: u32,
    /// How many slots the ring has.
    pub slots: u32,
    /// How much time one slot spans.
    pub slot_span: Duration,
    /// The slot that the wheel's hand is at.
    pub current_slot: u32,
    /// How many tasks the level holds.
    pub len: u64,
    /// The slots that hold something.
    pub occupied: Vec<SlotCount>,
}

/// How much one slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotCount {
    /// The slot.
    pub slot: u32,
    /// How many tasks are in it.
    pub count: u64,
}
