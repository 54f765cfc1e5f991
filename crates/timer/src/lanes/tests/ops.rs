//! Random operations for the model: what they aim at, and how often each comes.
//!
//! Ticks are relative to the state in which they are used, so that a sequence stays meaningful
//! however it is shrunk. Nothing here knows lanes.

use proptest::prelude::*;

/// A tick that a test aims at, relative to the driver's when it is used.
#[derive(Clone, Debug)]
pub(super) enum Tick {
    After(u64),
    Before(u64),
    /// The deadline of some pending timer, so that equal deadlines are frequent.
    Pending(usize),
    Next,
    Absolute(u64),
}

/// What may also be done from a callback.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Insert(usize, Tick),
    Cancel(usize),
    Reset(usize, Tick),
    Stale(usize),
    Nothing,
}

#[derive(Clone, Debug)]
pub(super) enum Op {
    Act(Act),
    /// Target, budget, and what the callbacks do, one after the other.
    Advance(Tick, usize, Vec<Act>),
    Sleep,
    Compact,
    Drain,
    Clear,
}

fn tick() -> impl Strategy<Value = Tick> {
    prop_oneof![
        4 => (0u64..8).prop_map(Tick::After),
        4 => (0u64..700).prop_map(Tick::After),
        2 => (0u64..100).prop_map(Tick::Before),
        3 => any::<usize>().prop_map(Tick::Pending),
        1 => (any::<u64>(), 0u32..64).prop_map(|(delay, shift)| Tick::After(delay >> shift)),
        1 => prop::sample::select(vec![0, 1, u64::MAX - 1, u64::MAX]).prop_map(Tick::Absolute),
    ]
}

fn target() -> impl Strategy<Value = Tick> {
    prop_oneof![
        10 => (0u64..8).prop_map(Tick::After),
        10 => (0u64..700).prop_map(Tick::After),
        15 => Just(Tick::Next),
        10 => any::<usize>().prop_map(Tick::Pending),
        3 => (0u64..100).prop_map(Tick::Before),
        3 => (any::<u64>(), 8u32..64).prop_map(|(delay, shift)| Tick::After(delay >> shift)),
        1 => Just(Tick::Absolute(u64::MAX)),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0usize..8, tick()).prop_map(|(lane, tick)| Act::Insert(lane, tick)),
        3 => any::<usize>().prop_map(Act::Cancel),
        2 => (any::<usize>(), tick()).prop_map(|(n, tick)| Act::Reset(n, tick)),
        1 => any::<usize>().prop_map(Act::Stale),
        1 => Just(Act::Nothing),
    ]
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    let budget = prop_oneof![2 => 0usize..6, 1 => 6usize..60, 3 => Just(10_000)];
    let acts = proptest::collection::vec(act(), 0..6);
    prop_oneof![
        16 => act().prop_map(Op::Act),
        8 => (target(), budget, acts)
            .prop_map(|(tick, budget, acts)| Op::Advance(tick, budget, acts)),
        4 => Just(Op::Sleep),
        1 => prop_oneof![4 => Just(Op::Compact), 1 => Just(Op::Drain), 1 => Just(Op::Clear)],
    ]
}
