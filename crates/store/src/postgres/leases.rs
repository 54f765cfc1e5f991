//! Who holds which shard, by the database's clock.
//!
//! The rules are `crate::lease`'s; here is how they are kept between nodes. Whoever changes leases
//! locks their rows first, in order of shard. A batch holds the rows of its shards `FOR SHARE` until it
//! is committed, so a taken shard has no batch of its old owner under way, and one that comes later
//! finds another epoch. The time is read after the locks are there, since waiting for them takes time.

use crate::error::StoreError;
use crate::id::{Epoch, Shard};
use crate::lease::Leases;
use crate::store::{Lease, LeaseAsk, LeaseRow};
use crate::time::Time;

use super::connection::{Connection, call};
use super::error::{Failure, corrupt};
use super::options::TimeSource;
use super::row::{get, get_shard, get_time};
use super::text::{Text, get_maybe_text, maybe};
use tokio_postgres::Row;

/// The database's clock, in microseconds.
pub(super) const NOW: &str =
    "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

const LOCK: &str = "SELECT shard, epoch, owner, until FROM leases WHERE shard = ANY($1)
     ORDER BY shard FOR UPDATE";

const TABLE: &str = "SELECT shard, epoch, owner, until FROM leases WHERE epoch > 0 ORDER BY shard";

const UPDATE: &str = "UPDATE leases l SET epoch = u.epoch, owner = u.owner, until = u.until
     FROM unnest($1::smallint[], $2::bigint[], $3::text[], $4::bigint[]) AS u(shard, epoch, owner, until)
     WHERE l.shard = u.shard";

fn lease_row(row: &Row) -> Result<LeaseRow, StoreError> {
    let epoch: i64 = get(row, 1)?;
    let epoch = u32::try_from(epoch).map_err(|_| corrupt(format_args!("an epoch {epoch}")))?;
    Ok(LeaseRow {
        shard: get_shard(row, 0)?,
        epoch: Epoch(epoch),
        owner: get_maybe_text(row, 2)?,
        until: get_time(row, 3)?,
    })
}

/// See [`crate::Store::lease_table`].
pub(super) fn table(conn: &mut Connection) -> Result<Vec<LeaseRow>, Failure> {
    Ok(conn.rows(TABLE, &[])?.iter().map(lease_row).collect::<Result<_, _>>()?)
}

/// See [`crate::Store::leases`]. Leaves the connection inside a transaction when it fails.
pub(super) fn ask(
    conn: &mut Connection,
    ask: &LeaseAsk,
    time: TimeSource,
) -> Result<Vec<Lease>, Failure> {
    let named = ask.acquire.iter().copied();
    let named = named.chain(ask.renew.iter().chain(&ask.release).map(|lease| lease.0));
    let mut shards: Vec<i16> = named.map(|shard| i16::from(shard.0)).collect();
    shards.sort_unstable();
    shards.dedup();
    if shards.is_empty() {
        return Ok(Vec::new());
    }
    let answers = conn.all(&[call("BEGIN", &[]), call(LOCK, &[&shards]), call(NOW, &[])])?;
    let mut ask = ask.clone();
    if time == TimeSource::Database {
        ask.now = Time(get(&answers[2].rows[0], 0)?);
    }
    let mut leases = Leases::default();
    let mut before = Vec::with_capacity(shards.len());
    for row in &answers[1].rows {
        let row = lease_row(row)?;
        before.push(row.clone());
        if row.epoch > Epoch(0) {
            leases.put(row);
        }
    }
    let answer = leases.ask(&ask);
    let rows = leases.table();
    let mut change: (Vec<i16>, Vec<i64>, Vec<Option<Text<'_>>>, Vec<i64>) = Default::default();
    for row in rows.iter().filter(|row| !before.contains(*row)) {
        change.0.push(i16::from(row.shard.0));
        change.1.push(i64::from(row.epoch.0));
        change.2.push(maybe(&row.owner));
        change.3.push(row.until.0);
    }
    let update = call(UPDATE, &[&change.0, &change.1, &change.2, &change.3]);
    conn.all(&[update, call("COMMIT", &[])])?;
    Ok(answer.held)
}

/// Locks the leases of a batch's shards.
pub(super) const SHARE: &str = "SELECT shard, epoch FROM leases
     WHERE shard = ANY($1) AND owner IS NOT NULL ORDER BY shard FOR SHARE";

/// What [`SHARE`] answered.
pub(super) fn shared(rows: &[Row]) -> Result<Vec<(Shard, Epoch)>, StoreError> {
    let held = |row: &Row| {
        let epoch: i64 = get(row, 1)?;
        // An epoch that fits no u32 is nobody's.
        Ok((get_shard(row, 0)?, Epoch(u32::try_from(epoch).unwrap_or(0))))
    };
    rows.iter().map(held).collect()
}
