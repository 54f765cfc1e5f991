//! Nodes as shown.

use std::collections::BTreeMap;

use tourbillon_node::api::Status;
use tourbillon_store::{LeaseRow, SHARDS, Time};
use tourbillon_wire::{Node, Timestamp};

use super::at;

/// The nodes that hold leases, and the one that answers.
///
/// Of another node only its leases are known. An epoch is at least the second in which its
/// process took the shard, so the lowest epoch stands for its start.
pub(crate) fn nodes(
    status: &Status,
    leases: &[LeaseRow],
    advertise: Option<&str>,
    now: Time,
) -> Vec<Node> {
    let mut others: BTreeMap<&str, Vec<&LeaseRow>> = BTreeMap::new();
    for lease in leases.iter().filter(|l| l.until > now) {
        if let Some(owner) = &lease.owner
            && *owner != status.node
        {
            others.entry(owner).or_default().push(lease);
        }
    }
    let shards_total = SHARDS as u32;
    let me = Node {
        id: status.node.clone(),
        address: advertise.map(str::to_owned),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: at(status.started_at),
        last_seen_at: at(now),
        this: true,
        draining: status.ready.is_err(),
        shards: status.shards as u32,
        shards_total,
        epoch: status.epoch.into(),
        running: status.running as u64,
        store: status.store.name.to_owned(),
    };
    let others = others.into_iter().map(|(id, leases)| {
        let epochs = leases.iter().map(|l| l.epoch.0);
        let until = leases.iter().map(|l| l.until).max().unwrap_or(now);
        Node {
            id: id.to_owned(),
            address: None,
            version: String::new(),
            started_at: Timestamp::from_micros(
                i64::from(epochs.clone().min().unwrap_or(0)).saturating_mul(1_000_000),
            ),
            last_seen_at: at(until.min(now)),
            this: false,
            draining: false,
            shards: leases.len() as u32,
            shards_total,
            epoch: epochs.max().unwrap_or(0).into(),
            running: 0,
            store: status.store.name.to_owned(),
        }
    });
    std::iter::once(me).chain(others).collect()
}
