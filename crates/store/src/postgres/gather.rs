//! Reading what a run of units names, together, before they are applied in memory.
//!
//! In one round trip, with the batch's first part also the locks on its leases. Nothing here is locked:
//! what is written later is compared with what was read, and a batch that lost such a race is done
//! again from its beginning.
//!
//! A task whose id nobody chose is taken to be new. That is checked when it is written, and a batch in
//! which it was wrong is done again with `careful` set, which asks for every id.

use std::collections::HashSet;

use tokio_postgres::Row;
use uuid::Uuid;

use crate::encoding::parse;
use crate::error::StoreError;
use crate::id::{NamespaceId, QueueId, Seq};
use crate::state::State;
use crate::task::{ScheduleLink, Target, Task, TaskSpec};
use crate::time::Time;
use crate::write::{Unit, Write};

use super::connection::{Answer, Call, Connection, Param, call};
use super::error::Failure;
use super::leases;
use super::row::{self, get, get_id, get_partition, get_shard, get_state, get_time, get_u32};
use super::text::{Text, get_maybe_text, get_text};
use super::work::{Base, Entry, Moved, Past, Place, Work};

const HEADS: &str = "SELECT seq, id, namespace, queue, part, shard, state, version, attempt, lost,
         released, cancel_requested, overdue, large, inbox, due, first_due, task_key,
         concurrency_key, schedule_uid, origin, logical, open
     FROM tasks WHERE seq = ANY($1)";

const IDS: &str = "SELECT t.namespace, t.id, t.fingerprint
     FROM unnest($1::integer[], $2::uuid[]) AS u(namespace, id)
     JOIN tasks t ON t.id = u.id AND t.namespace = u.namespace
     UNION ALL SELECT t.namespace, t.id, t.fingerprint
     FROM unnest($1::integer[], $2::uuid[]) AS u(namespace, id)
     JOIN history_succeeded t ON t.id = u.id AND t.namespace = u.namespace
     UNION ALL SELECT t.namespace, t.id, t.fingerprint
     FROM unnest($1::integer[], $2::uuid[]) AS u(namespace, id)
     JOIN history_other t ON t.id = u.id AND t.namespace = u.namespace";

const KEYS: &str = "SELECT t.queue, t.task_key, t.id
     FROM unnest($1::integer[], $2::text[]) AS u(queue, task_key)
     JOIN tasks t ON t.task_key = u.task_key AND t.queue = u.queue";

const OCCURRENCES: &str = "SELECT t.schedule_uid, t.origin, t.logical
     FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS u(uid, origin, logical)
     JOIN tasks t ON t.schedule_uid = u.uid AND t.origin = u.origin AND t.logical = u.logical
     UNION ALL SELECT t.schedule_uid, t.origin, t.logical
     FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS u(uid, origin, logical)
     JOIN history_succeeded t
         ON t.schedule_uid = u.uid AND t.origin = u.origin AND t.logical = u.logical
     UNION ALL SELECT t.schedule_uid, t.origin, t.logical
     FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS u(uid, origin, logical)
     JOIN history_other t
         ON t.schedule_uid = u.uid AND t.origin = u.origin AND t.logical = u.logical";

const SCHEDULES: &str = "SELECT uid, version FROM schedules WHERE uid = ANY($1)";

const PAST: [&str; 2] = [
    concat!(
        "SELECT ",
        row::history_columns!("coalesce(t.payload, p.payload)"),
        ", t.fin FROM unnest($1::integer[], $2::uuid[]) AS u(namespace, id)
         JOIN history_succeeded t ON t.id = u.id AND t.namespace = u.namespace
         LEFT JOIN payloads p ON p.seq = t.seq AND t.large"
    ),
    concat!(
        "SELECT ",
        row::history_columns!("coalesce(t.payload, p.payload)"),
        ", t.fin FROM unnest($1::integer[], $2::uuid[]) AS u(namespace, id)
         JOIN history_other t ON t.id = u.id AND t.namespace = u.namespace
         LEFT JOIN payloads p ON p.seq = t.seq AND t.large"
    ),
];

const QUEUES: &str = "SELECT id, namespace FROM queues";

/// Sequences in a block, which the first schema fixes.
const BLOCK: i64 = 1_024;

const SEQS: &str = "SELECT nextval('task_seq') FROM generate_series(1, $1::bigint)";

/// What the writes of some units name.
#[derive(Default)]
struct Named<'a> {
    seqs: Vec<i64>,
    id_namespaces: Vec<i32>,
    ids: Vec<Uuid>,
    key_queues: Vec<i32>,
    keys: Vec<Text<'a>>,
    uids: Vec<Uuid>,
    origins: Vec<Text<'a>>,
    logicals: Vec<i64>,
    advanced: Vec<Uuid>,
    past_namespaces: Vec<i32>,
    past: Vec<Uuid>,
    inserts: i64,
    queues: HashSet<QueueId>,
}

impl<'a> Named<'a> {
    fn add(&mut self, write: &'a Write, careful: bool) {
        match write {
            Write::Insert(new) => {
                self.inserts += 1;
                self.queues.insert(new.partition.queue);
                if careful || new.fingerprint.is_some() {
                    self.id_namespaces.push(new.namespace.0.cast_signed());
                    self.ids.push(Uuid::from_u128(new.id.0));
                }
                if let Some(key) = new.spec.key.as_ref() {
                    self.key_queues.push(new.partition.queue.0.cast_signed());
                    self.keys.push(Text(key));
                }
                if let Some(link) = new.schedule.as_ref() {
                    self.uids.push(Uuid::from_u128(link.uid));
                    self.origins.push(Text(&link.origin));
                    self.logicals.push(link.logical.0);
                }
            }
            Write::Start { seq, .. }
            | Write::End { seq, .. }
            | Write::Close { seq, .. }
            | Write::RequestCancel { seq, .. }
            | Write::Edit { seq, .. }
            | Write::Discard { seq, .. }
            | Write::Progress { seq, .. } => self.seqs.push(seq.0),
            Write::Spill { seqs } => self.seqs.extend(seqs.iter().map(|seq| seq.0)),
            Write::Redrive { namespace, id, .. } => {
                self.past_namespaces.push(namespace.0.cast_signed());
                self.past.push(Uuid::from_u128(id.0));
            }
            Write::Advance { uid, .. } => self.advanced.push(Uuid::from_u128(*uid)),
            _ => {}
        }
    }
}

/// What a question is about, to tell its answer by.
enum About {
    Nothing,
    Leases,
    Queues,
    Seqs,
    Heads,
    Ids,
    Keys,
    Occurrences,
    Schedules,
    Past(bool),
}

/// Reads what `units` name into `work`. With `lease` the transaction is begun and these shards' leases
/// are locked first.
pub(super) fn gather(
    conn: &mut Connection,
    work: &mut Work<'_>,
    units: &[Unit],
    lease: Option<&[i16]>,
    careful: bool,
) -> Result<(), Failure> {
    let mut named = Named::default();
    units.iter().flat_map(|unit| &unit.writes).for_each(|write| named.add(write, careful));
    let mut asked: Vec<(About, Call<'_>)> = Vec::new();
    if let Some(shards) = &lease {
        asked.push((About::Nothing, call("BEGIN", &[])));
        if !shards.is_empty() {
            asked.push((About::Leases, call(leases::SHARE, &[shards])));
        }
    }
    let blocks = (named.inserts + BLOCK - 1) / BLOCK;
    if !named.queues.iter().all(|queue| work.queues.contains_key(queue)) {
        asked.push((About::Queues, call(QUEUES, &[])));
    }
    if blocks > 0 {
        asked.push((About::Seqs, call(SEQS, &[&blocks])));
    }
    if !named.seqs.is_empty() {
        asked.push((About::Heads, call(HEADS, &[&named.seqs])));
    }
    if !named.ids.is_empty() {
        asked.push((About::Ids, call(IDS, &[&named.id_namespaces, &named.ids])));
    }
    if !named.keys.is_empty() {
        asked.push((About::Keys, call(KEYS, &[&named.key_queues, &named.keys])));
    }
    if !named.uids.is_empty() {
        let params: [Param<'_>; 3] = [&named.uids, &named.origins, &named.logicals];
        asked.push((About::Occurrences, call(OCCURRENCES, &params)));
    }
    if !named.advanced.is_empty() {
        asked.push((About::Schedules, call(SCHEDULES, &[&named.advanced])));
    }
    if !named.past.is_empty() {
        for (sql, succeeded) in PAST.into_iter().zip([true, false]) {
            let params: [Param<'_>; 2] = [&named.past_namespaces, &named.past];
            asked.push((About::Past(succeeded), call(sql, &params)));
        }
    }
    let (about, calls): (Vec<About>, Vec<Call<'_>>) = asked.into_iter().unzip();
    for (about, answer) in about.into_iter().zip(conn.all(&calls)?) {
        learn(work, &about, &answer)?;
    }
    keys_of_past(conn, work)
}

fn learn(work: &mut Work<'_>, about: &About, answer: &Answer) -> Result<(), Failure> {
    if let About::Leases = about {
        work.held.extend(leases::shared(&answer.rows)?);
        return Ok(());
    }
    for row in &answer.rows {
        match about {
            About::Nothing | About::Leases => {}
            About::Queues => {
                work.queues.insert(QueueId(get_u32(row, 0)?), NamespaceId(get_u32(row, 1)?));
            }
            About::Seqs => {
                let first: i64 = get(row, 0)?;
                work.seqs.push(first..first.saturating_add(BLOCK));
            }
            About::Heads => {
                let entry = head(row)?;
                work.entries.insert(entry.task.seq, entry);
            }
            About::Ids => {
                let id = (NamespaceId(get_u32(row, 0)?), get_id(row, 1)?);
                work.ids.insert(id, get::<Option<i64>>(row, 2)?.map(i64::cast_unsigned));
            }
            About::Keys => {
                let key = (QueueId(get_u32(row, 0)?), get_text(row, 1)?);
                work.keys.insert(key, get_id(row, 2)?);
            }
            About::Occurrences => {
                let uid = get::<Uuid>(row, 0)?.as_u128();
                work.occurrences.insert((uid, get_text(row, 1)?, get_time(row, 2)?));
            }
            About::Schedules => {
                let version = get_u32(row, 1)?;
                let moved = Moved { stored: version, version, cursor: None };
                work.schedules.insert(get::<Uuid>(row, 0)?.as_u128(), moved);
            }
            About::Past(succeeded) => {
                let task = row::task(row)?;
                let (large, fin) = (get(row, 27)?, get(row, 34)?);
                let past = Past { task, succeeded: *succeeded, fin, large };
                work.past.insert((past.task.namespace, past.task.id), past);
            }
        }
    }
    if let About::Seqs = about {
        work.seqs.sort_by_key(|range| std::cmp::Reverse(range.start));
    }
    Ok(())
}

/// Who holds the keys of tasks that are wanted back from history.
fn keys_of_past(conn: &mut Connection, work: &mut Work<'_>) -> Result<(), Failure> {
    let tasks = work.past.values().map(|past| &past.task);
    let (queues, keys): (Vec<i32>, Vec<String>) = tasks
        .filter_map(|task| Some((task.queue().0.cast_signed(), task.spec.key.clone()?)))
        .unzip();
    if keys.is_empty() {
        return Ok(());
    }
    let keys: Vec<Text<'_>> = keys.iter().map(|key| Text(key)).collect();
    let answer = conn.run(KEYS, &[&queues, &keys])?;
    learn(work, &About::Keys, &answer)
}

/// A light task: see [`super::work`].
fn head(row: &Row) -> Result<Entry, StoreError> {
    let version = get_u32(row, 7)?;
    let state: State = get_state(row, 6)?;
    let schedule: Option<ScheduleLink> = row::link(row, [19, 20, 21], None)?;
    let task = Task {
        seq: Seq(get(row, 0)?),
        id: get_id(row, 1)?,
        namespace: NamespaceId(get_u32(row, 2)?),
        partition: get_partition(row, 3)?,
        shard: get_shard(row, 5)?,
        state,
        version,
        spec: TaskSpec {
            kind: String::new(),
            key: get_maybe_text(row, 17)?,
            target: Target::Worker,
            payload: None,
            priority: 0,
            timeout: None,
            expires_at: None,
            at_most_once: false,
            retry: Default::default(),
            concurrency_key: get_maybe_text(row, 18)?,
            tags: Vec::new(),
        },
        due: get_time(row, 15)?,
        first_due: get_time(row, 16)?,
        created_at: Time(0),
        finished_at: None,
        attempt: get_u32(row, 8)?,
        lost: get_u32(row, 9)?,
        released: get_u32(row, 10)?,
        schedule,
        open: get::<Option<&str>>(row, 22)?.map(parse).transpose()?,
        cancel_requested: get(row, 11)?,
        attempts: Vec::new(),
        progress: None,
        outcome_reason: None,
        skipped: None,
        fingerprint: None,
    };
    Ok(Entry {
        task,
        base: Base::Stored(version),
        place: Place::Live,
        overdue: get(row, 12)?,
        large: get(row, 13)?,
        inbox: get(row, 14)?,
        edited: false,
        changed: false,
    })
}
