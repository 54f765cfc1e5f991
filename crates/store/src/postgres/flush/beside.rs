//! What is not a task: schedules that move on, outputs, the inbox and its nudges, statistics, counters.

use std::collections::HashSet;

use uuid::Uuid;

use crate::encoding::json;
use crate::error::StoreError;

use super::super::connection::Param;
use super::super::work::{Place, Work};
use super::{Must, Own, Plan};

const ADVANCE: &str = "UPDATE schedules s SET cursor = u.cursor, version = u.version
     FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::text[])
         AS u(uid, base, version, cursor)
     WHERE s.uid = u.uid AND s.version = u.base";

const OUTPUTS: &str = "INSERT INTO outputs (seq, attempt, total, head, tail)
     SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bytea[], $5::bytea[])
     ON CONFLICT (seq, attempt) DO UPDATE SET total = excluded.total, head = excluded.head,
         tail = excluded.tail";

const INBOX_OUT: &str = "DELETE FROM inbox i
     USING unnest($1::smallint[], $2::bigint[]) AS u(shard, seq)
     WHERE i.shard = u.shard AND i.seq = u.seq";

const INBOX_IN: &str =
    "INSERT INTO inbox (shard, seq) SELECT * FROM unnest($1::smallint[], $2::bigint[])";

const STATS: &str = "INSERT INTO stats (minute, shard, rows)
     SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::text[])";

/// Counters of one store; in order, so that two of one place do not wait for each other crosswise.
pub(in super::super) const COUNT: &str = "INSERT INTO counters (queue, state, slot, n)
     SELECT u.queue, u.state, $3::smallint, u.n
     FROM unnest($1::integer[], $2::smallint[], $4::bigint[]) AS u(queue, state, n)
     ON CONFLICT (queue, state, slot) DO UPDATE SET n = counters.n + excluded.n";

const NOTIFY: &str = "SELECT pg_notify($1, $2)";

/// Schedules that move on.
#[derive(Default)]
pub(super) struct Advance {
    uids: Vec<Uuid>,
    bases: Vec<i32>,
    versions: Vec<i32>,
    cursors: Vec<String>,
}

impl Advance {
    pub(super) fn of(work: &Work<'_>) -> Result<Advance, StoreError> {
        let mut advance = Advance::default();
        for (uid, moved) in &work.schedules {
            let Some(cursor) = &moved.cursor else { continue };
            advance.uids.push(Uuid::from_u128(*uid));
            advance.bases.push(moved.stored.cast_signed());
            advance.versions.push(moved.version.cast_signed());
            advance.cursors.push(json(cursor)?);
        }
        Ok(advance)
    }

    pub(super) fn plan<'a>(&'a self, plan: &mut Plan<'a>) {
        if !self.uids.is_empty() {
            let params: [Param<'a>; 4] = [&self.uids, &self.bases, &self.versions, &self.cursors];
            plan.add(Must::Change(self.uids.len()), ADVANCE, &params);
        }
    }
}

/// What is not a task.
#[derive(Default)]
pub(super) struct Beside<'a> {
    output_seqs: Vec<i64>,
    output_attempts: Vec<i32>,
    totals: Vec<i64>,
    heads: Vec<&'a [u8]>,
    tails: Vec<&'a [u8]>,
    out_shards: Vec<i16>,
    out_seqs: Vec<i64>,
    in_shards: Vec<i16>,
    in_seqs: Vec<i64>,
    minutes: Vec<i64>,
    stat_shards: Vec<i16>,
    stats: Vec<String>,
    queues: Vec<i32>,
    states: Vec<i16>,
    counts: Vec<i64>,
    slot: i16,
    channel: &'a str,
    nudge: String,
}

impl<'a> Beside<'a> {
    pub(super) fn of(work: &Work<'a>, own: &Own<'a>) -> Result<Beside<'a>, StoreError> {
        let mut beside = Beside { slot: own.slot, channel: own.channel, ..Beside::default() };
        // The last of an attempt counts; one statement may not write it twice.
        let outputs = work.effects.outputs.iter().map(|(seq, n, output)| ((seq.0, *n), *output));
        for ((seq, n), output) in outputs.collect::<std::collections::BTreeMap<_, _>>() {
            beside.output_seqs.push(seq);
            beside.output_attempts.push(n.cast_signed());
            beside.totals.push(i64::try_from(output.total).unwrap_or(i64::MAX));
            beside.heads.push(&output.head);
            beside.tails.push(&output.tail);
        }
        for (shard, seq) in &work.effects.inbox_out {
            beside.out_shards.push(i16::from(shard.0));
            beside.out_seqs.push(seq.0);
        }
        let gone: HashSet<_> = work.effects.inbox_out.iter().collect();
        let mut nudged = std::collections::BTreeSet::new();
        for (shard, seq) in &work.effects.inbox_in {
            if !gone.contains(&(*shard, *seq))
                && work.entries.get(seq).is_some_and(|e| e.place == Place::Live)
            {
                beside.in_shards.push(i16::from(shard.0));
                beside.in_seqs.push(seq.0);
                nudged.insert(shard.0.to_string());
            }
        }
        beside.nudge = nudged.into_iter().collect::<Vec<_>>().join(",");
        for delta in &work.effects.stats {
            beside.minutes.push(delta.minute);
            beside.stat_shards.push(i16::from(delta.shard.0));
            beside.stats.push(json(&delta.rows)?);
        }
        for ((queue, state), n) in work.counts() {
            beside.queues.push(queue.0.cast_signed());
            beside.states.push(state as i16);
            beside.counts.push(n);
        }
        Ok(beside)
    }

    pub(super) fn plan<'p>(&'p self, plan: &mut Plan<'p>) {
        if !self.output_seqs.is_empty() {
            let params: [Param<'p>; 5] =
                [&self.output_seqs, &self.output_attempts, &self.totals, &self.heads, &self.tails];
            plan.add(Must::Nothing, OUTPUTS, &params);
        }
        if !self.out_seqs.is_empty() {
            plan.add(Must::Nothing, INBOX_OUT, &[&self.out_shards, &self.out_seqs]);
        }
        if !self.in_seqs.is_empty() {
            plan.add(Must::Nothing, INBOX_IN, &[&self.in_shards, &self.in_seqs]);
            plan.add(Must::Nothing, NOTIFY, &[&self.channel, &self.nudge]);
        }
        if !self.stats.is_empty() {
            plan.add(Must::Nothing, STATS, &[&self.minutes, &self.stat_shards, &self.stats]);
        }
        if !self.queues.is_empty() {
            let params: [Param<'p>; 4] = [&self.queues, &self.states, &self.slot, &self.counts];
            plan.add(Must::Nothing, COUNT, &params);
        }
    }
}
