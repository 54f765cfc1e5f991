//! Reading for people, by looking at everything: plain, not fast.

use std::collections::BTreeMap;

use crate::calendar::CalendarRecord;
use crate::error::StoreError;
use crate::id::{NamespaceId, QueueId, Seq, TaskId};
use crate::queries::{Count, Cursor, Located, Page, Queries, SCAN_MAX, TaskFilter};
use crate::schedule::ScheduleRecord;
use crate::stats::{StatsRow, merge_rows};
use crate::task::{Output, Task};
use crate::time::Time;

use super::MemoryStore;
use super::inner::Inner;
use super::stripped;
use super::writes::namespace_id;

fn located(task: &Task) -> Located {
    Located {
        seq: task.seq,
        id: task.id,
        shard: task.shard,
        partition: task.partition,
        version: task.version,
        state: task.state,
        concurrency_key: task.spec.concurrency_key.clone(),
    }
}

impl Inner {
    fn find(&self, namespace: NamespaceId, id: TaskId) -> Option<&Task> {
        self.at(*self.places.get(&(namespace, id))?)
    }

    fn everything(&self) -> impl Iterator<Item = &Task> {
        let live = self.live.values().map(|row| &row.task);
        live.chain(self.succeeded.values()).chain(self.other.values())
    }
}

impl Queries for MemoryStore {
    fn namespace(&self, name: &str) -> Result<Option<NamespaceId>, StoreError> {
        Ok(self.read()?.namespaces.iter().position(|n| n == name).map(namespace_id))
    }

    fn namespaces(&self) -> Result<Vec<(NamespaceId, String)>, StoreError> {
        let inner = self.read()?;
        let names = inner.namespaces.iter().enumerate();
        Ok(names.map(|(i, name)| (namespace_id(i), name.clone())).collect())
    }

    fn task(&self, namespace: NamespaceId, id: TaskId) -> Result<Option<Task>, StoreError> {
        Ok(self.read()?.find(namespace, id).cloned())
    }

    fn output(&self, seq: Seq, attempt: u32) -> Result<Option<Output>, StoreError> {
        Ok(self.read()?.outputs.get(&(seq, attempt)).cloned())
    }

    fn locate(&self, namespace: NamespaceId, id: TaskId) -> Result<Option<Located>, StoreError> {
        Ok(self.read()?.find(namespace, id).map(located))
    }

    fn locate_key(&self, queue: QueueId, key: &str) -> Result<Option<Located>, StoreError> {
        let inner = self.read()?;
        let seq = inner.keys.get(&(queue, key.to_owned()));
        Ok(seq.and_then(|seq| inner.live.get(seq)).map(|row| located(&row.task)))
    }

    fn list(
        &self,
        filter: &TaskFilter,
        cursor: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let inner = self.read()?;
        let by_due = filter.by_due();
        let place = |task: &Task| {
            if by_due { Cursor::Due(task.due, task.seq) } else { Cursor::Seq(task.seq) }
        };
        let mut tasks: Vec<&Task> = inner
            .everything()
            .filter(|task| filter.matches(task))
            .filter(|task| match cursor {
                None => true,
                Some(Cursor::Seq(seq)) => task.seq < seq,
                Some(Cursor::Due(due, seq)) => (task.due, task.seq) > (due, seq),
            })
            .collect();
        if by_due {
            tasks.sort_by_key(|task| (task.due, task.seq));
        } else {
            tasks.sort_by_key(|task| std::cmp::Reverse(task.seq));
        }
        let limit = limit.clamp(1, SCAN_MAX);
        let more = tasks.len() > limit;
        tasks.truncate(limit);
        let next = tasks.last().filter(|_| more).map(|task| place(task));
        Ok(Page { tasks: tasks.into_iter().map(stripped).collect(), next, cut: false })
    }

    fn counts(&self) -> Result<Vec<Count>, StoreError> {
        let inner = self.read()?;
        let counts = inner.counts.iter();
        Ok(counts.map(|(&(queue, state), &count)| Count { queue, state, count }).collect())
    }

    fn schedules(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ScheduleRecord>, StoreError> {
        let inner = self.read()?;
        let by_name: BTreeMap<&str, &ScheduleRecord> = inner
            .schedules
            .values()
            .filter(|s| s.namespace == namespace && after.is_none_or(|after| *s.name > *after))
            .map(|s| (s.name.as_str(), s))
            .collect();
        Ok(by_name.into_values().take(limit).cloned().collect())
    }

    fn schedule(
        &self,
        namespace: NamespaceId,
        name: &str,
    ) -> Result<Option<ScheduleRecord>, StoreError> {
        let inner = self.read()?;
        let mut all = inner.schedules.values();
        Ok(all.find(|s| s.namespace == namespace && s.name == name).cloned())
    }

    fn calendars(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<CalendarRecord>, StoreError> {
        let inner = self.read()?;
        let of = inner.calendars.values().filter(|c| c.namespace == namespace);
        let later = of.filter(|c| after.is_none_or(|after| *c.name > *after));
        Ok(later.take(limit).cloned().collect())
    }

    fn calendar(
        &self,
        namespace: NamespaceId,
        name: &str,
    ) -> Result<Option<CalendarRecord>, StoreError> {
        Ok(self.read()?.calendars.get(&(namespace, name.to_owned())).cloned())
    }

    fn calendar_users(
        &self,
        namespace: NamespaceId,
        calendar: &str,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let inner = self.read()?;
        let mut names: Vec<String> =
            inner.users(namespace, calendar).map(|s| s.name.clone()).collect();
        names.sort();
        names.truncate(limit);
        Ok(names)
    }

    fn last_runs(&self, uid: u128, limit: usize) -> Result<Vec<Task>, StoreError> {
        let inner = self.read()?;
        let mut runs: Vec<&Task> = inner
            .everything()
            .filter(|task| task.state.is_final())
            .filter(|task| task.schedule.as_ref().is_some_and(|link| link.uid == uid))
            .collect();
        runs.sort_by_key(|task| std::cmp::Reverse(task.seq));
        Ok(runs.into_iter().take(limit).map(stripped).collect())
    }

    fn series(
        &self,
        from_minute: i64,
        to_minute: i64,
    ) -> Result<Vec<(i64, Vec<StatsRow>)>, StoreError> {
        let inner = self.read()?;
        let mut minutes: BTreeMap<i64, Vec<StatsRow>> = BTreeMap::new();
        for (&(minute, _), rows) in &inner.stats {
            if (from_minute..to_minute).contains(&minute) {
                merge_rows(minutes.entry(minute).or_default(), rows);
            }
        }
        Ok(minutes.into_iter().collect())
    }

    fn prunable(&self, succeeded: bool, before: Time, limit: u64) -> Result<u64, StoreError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(self.read()?.prunable(succeeded, before).take(limit).count() as u64)
    }
}
