//! Who holds which shard.

use crate::time::SECOND;
use crate::{Epoch, Lease, LeaseAsk, LeaseRow, Shard, Time};

use super::World;
use super::fixture::{T0, acquire};

const S: Shard = Shard(100);

fn take(w: &World, node: &str, now: Time) -> Option<Lease> {
    let held = w.store.leases(&acquire(node, &[S], now)).unwrap();
    assert!(held.len() <= 1);
    held.first().copied()
}

fn row(w: &World) -> Option<LeaseRow> {
    w.store.lease_table().unwrap().into_iter().find(|row| row.shard == S)
}

fn ask(node: &str, renew: &[(Shard, Epoch)], release: &[(Shard, Epoch)], now: Time) -> LeaseAsk {
    let mut ask = acquire(node, &[], now);
    ask.renew = renew.to_vec();
    ask.release = release.to_vec();
    ask
}

pub(super) fn a_free_shard_is_taken(w: &World) {
    let lease = take(w, "n2", T0).unwrap();
    assert_eq!((lease.shard, lease.until), (S, T0.plus(10 * SECOND)));
    let row = row(w).unwrap();
    assert_eq!((row.epoch, row.owner.as_deref()), (lease.epoch, Some("n2")));
    assert_eq!(row.until, lease.until);
    let all: Vec<Shard> = Shard::all().filter(|s| *s != S && *s != w.shard).collect();
    assert_eq!(w.store.leases(&acquire("n1", &all, T0)).unwrap().len(), 254);
    let table = w.store.lease_table().unwrap();
    assert!(table.len() == 256 && table.is_sorted_by_key(|row| row.shard));
}

pub(super) fn a_held_shard_is_left_to_its_holder(w: &World) {
    let lease = take(w, "n1", T0).unwrap();
    assert_eq!(take(w, "n2", T0.plus(10 * SECOND - 1)), None);
    let row = row(w).unwrap();
    assert_eq!((row.epoch, row.owner.as_deref()), (lease.epoch, Some("n1")));
}

pub(super) fn a_lease_that_ran_out_is_taken_under_a_higher_epoch(w: &World) {
    let first = take(w, "n1", T0).unwrap();
    let second = take(w, "n2", first.until).unwrap();
    assert!(second.epoch > first.epoch);
    let renewed = ask("n1", &[(S, first.epoch)], &[], first.until);
    assert_eq!(w.store.leases(&renewed).unwrap(), []);
}

pub(super) fn a_lease_that_ran_out_untaken_is_renewed_at_its_epoch(w: &World) {
    let first = take(w, "n1", T0).unwrap();
    let now = first.until.plus(100 * SECOND);
    let held = w.store.leases(&ask("n1", &[(S, first.epoch)], &[], now)).unwrap();
    assert_eq!(held, [Lease { until: now.plus(10 * SECOND), ..first }]);
    assert_eq!(take(w, "n2", now), None);
}

pub(super) fn only_the_holder_renews_and_releases(w: &World) {
    let lease = take(w, "n1", T0).unwrap();
    let mine = [(S, lease.epoch)];
    let stale = [(S, Epoch(lease.epoch.0 - 1))];
    assert_eq!(w.store.leases(&ask("n2", &mine, &[], T0)).unwrap(), []);
    assert_eq!(w.store.leases(&ask("n1", &stale, &[], T0)).unwrap(), []);
    w.store.leases(&ask("n2", &[], &mine, T0)).unwrap();
    w.store.leases(&ask("n1", &[], &stale, T0)).unwrap();
    assert_eq!(row(w).unwrap().owner.as_deref(), Some("n1"));
    assert_eq!(w.store.leases(&ask("n1", &[], &mine, T0)).unwrap(), []);
    let after = row(w).unwrap();
    assert_eq!((after.owner, after.epoch), (None, lease.epoch), "the epoch is remembered");
    assert_eq!(w.store.leases(&ask("n1", &mine, &[], T0)).unwrap(), []);
    assert!(take(w, "n2", T0).unwrap().epoch > lease.epoch);
}

pub(super) fn a_restarted_node_takes_its_own_shards_under_new_epochs(w: &World) {
    let first = take(w, "n1", T0).unwrap();
    let second = take(w, "n1", T0).unwrap();
    assert!(second.epoch > first.epoch);
}

pub(super) fn epochs_follow_unix_seconds_and_never_go_back(w: &World) {
    let seconds = |time: Time| u32::try_from(time.0 / SECOND).unwrap();
    let first = take(w, "n1", T0).unwrap();
    assert_eq!(first.epoch, Epoch(seconds(T0)));
    let later = T0.plus(1000 * SECOND);
    assert_eq!(take(w, "n1", later).unwrap().epoch, Epoch(seconds(later)));
    assert_eq!(take(w, "n1", T0).unwrap().epoch, Epoch(seconds(later) + 1));
    assert_eq!(take(w, "n1", Time::MIN).unwrap().epoch, Epoch(seconds(later) + 2));
}
