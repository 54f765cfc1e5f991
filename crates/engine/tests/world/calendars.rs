//! Exclusion calendars: who changes them, and what a change promises.
//!
//! A change is written to the store beside the engine, which is told some time later, if it is there
//! then; changes of one calendar may be told in another order than they were made.

use std::collections::BTreeSet;
use std::sync::Arc;

use tourbillon_engine::api::{Event, Request};
use tourbillon_engine::calendars::{Calendar, Calendars};
use tourbillon_engine::timing::{compile_in, occurrence_id};
use tourbillon_schedule::{Exclusion, format_instant};
use tourbillon_store::task::ScheduleLink;
use tourbillon_store::time::DAY;
use tourbillon_store::{
    CalendarDoc, Done, Queries, Refusal, ScheduleRecord, Shard, Store, Time, Unit, UnitResult,
    Write,
};

use crate::clients::Asked;
use crate::plant::Plant;
use crate::world::World;

const NAMES: [&str; 3] = ["c0", "c1", "c2"];

/// From an answer on, nothing of later logical time starts on these days, in the shards that were
/// held then.
pub(crate) struct Promise {
    days: Arc<Exclusion>,
    shards: BTreeSet<Shard>,
    /// Monotonic and store time of the answer.
    since: u64,
    at: Time,
}

fn date(at: Time) -> String {
    format_instant(at.0)[..10].to_owned()
}

impl World {
    pub(crate) fn stored_calendars(&self) -> Vec<Calendar> {
        let records = self.store.all_calendars().expect("reads work");
        records.iter().map(|record| Calendar::of(record).expect("these are days")).collect()
    }

    /// The calendars that a new schedule names: some of those that there are, sometimes one that is not.
    pub(crate) fn some_calendars(&mut self) -> Vec<String> {
        if self.rng.chance(60) {
            return Vec::new();
        }
        let there: Vec<String> = self.stored_calendars().into_iter().map(|c| c.name).collect();
        let unsure = self.rng.chance(10);
        let names = NAMES.iter().map(|name| (*name).to_owned());
        names.filter(|name| (unsure || there.contains(name)) && self.rng.chance(60)).collect()
    }

    fn beside(&mut self, write: Write) -> UnitResult {
        let unit = Unit { fences: vec![], writes: vec![write] };
        self.store.commit(&[unit]).expect("no fault is set").remove(0)
    }

    pub(crate) fn change_calendar(&mut self) {
        let name = (*self.rng.pick(&NAMES)).to_owned();
        let known = self.store.calendar(self.namespace, &name).expect("reads work");
        if let Some(known) = &known
            && self.rng.chance(15)
        {
            return self.remove_calendar(name, known.version);
        }
        let today = self.now();
        let (mut dates, mut weekdays) = (Vec::new(), Vec::new());
        match self.rng.below(6) {
            0 | 1 => {}
            2 => dates.push(date(today)),
            3 => dates.extend([date(today), date(today.plus(DAY))]),
            4 => dates.push(date(today.plus(DAY))),
            _ => {
                weekdays.extend(["mon", "tue", "wed", "thu", "fri", "sat", "sun"].map(String::from))
            }
        }
        let write = Write::PutCalendar {
            namespace: "default".into(),
            name: name.clone(),
            version: known.map_or(0, |known| known.version),
            at: today,
            doc: Box::new(CalendarDoc { dates, weekdays, ..CalendarDoc::default() }),
        };
        let done = self.beside(write);
        let Ok([Done::Calendar(record)]) = done.as_deref() else { panic!("{done:?}") };
        // What an earlier change promised does not hold any more.
        self.model.calendars.remove(&name);
        self.count("calendars changed");
        let calendar = Calendar::of(record).expect("these are days");
        let version = Some(calendar.version);
        self.tell_calendar(name, version, Event::Calendars(vec![calendar]));
    }

    fn remove_calendar(&mut self, name: String, version: u64) {
        let namespace = self.namespace;
        match self.beside(Write::DeleteCalendar { namespace, name: name.clone(), version }) {
            Ok(_) => {
                self.model.calendars.remove(&name);
                self.count("calendars removed");
                let event = Event::CalendarRemoved { namespace, name: name.clone(), version };
                self.tell_calendar(name, None, event);
            }
            Err(refused) => {
                assert_eq!(refused.why, Refusal::InUse);
                self.count("calendars in use");
            }
        }
    }

    /// The engine hears of the change, and then of who waits for it.
    fn tell_calendar(&mut self, name: String, version: Option<u64>, event: Event) {
        let reply = self.reply();
        let request = Event::Request { reply, request: Request::AwaitCalendars };
        let asked = Asked::Calendar { name, version, told: self.now() };
        if self.plant == Some(Plant::UntoldCalendar) {
            return self.send(asked, request);
        }
        let delay = self.some_time();
        self.after(delay, crate::world::Act::Calendar { event, asked: Box::new(asked), request });
    }

    pub(crate) fn calendar_answered(&mut self, name: &str, version: Option<u64>, told: Time) {
        let stored = self.store.calendar(self.namespace, name).expect("reads work");
        let Some(stored) = stored.filter(|stored| Some(stored.version) == version) else { return };
        let days = Calendar::of(&stored).expect("these are days").days;
        let shards = self.held.keys().copied().collect();
        // What had come when it was told stays, also when the clock goes back then.
        let at = told.max(self.now());
        let promise = Promise { days, shards, since: self.mono, at };
        self.model.calendars.insert(name.to_owned(), promise);
        // Every plan that lies ahead is by these days already.
        for schedule in self.schedules() {
            if let Some(next) = schedule.cursor.next.filter(|next| next.logical > at)
                && self.held.contains_key(&schedule.shard)
                && schedule.doc.exclude.iter().any(|exclude| exclude == name)
            {
                let days = &self.model.calendars[name].days;
                let left_out = days.excludes(&date(next.logical)).expect("a date");
                // The clock may have gone back over the first attempt of a fixed delay's run.
                let task = self.store.task(self.namespace, next.id).expect("reads work");
                let runs =
                    self.is_being_written(schedule.uid) || task.is_some_and(|t| t.attempt > 0);
                self.check(!left_out || runs, || {
                    format!("{} waits for a day that {name} leaves out", schedule.name)
                });
            }
        }
    }

    /// Whether the engine's run of it is under way: then its next occurrence is planned with that.
    fn is_being_written(&self, uid: u128) -> bool {
        self.model.active.values().any(|active| active.uid == Some(uid))
    }

    /// A planned occurrence starts for the first time.
    pub(crate) fn check_calendars(
        &self,
        link: &ScheduleLink,
        shard: Shard,
        recorded: Option<u64>,
        what: &str,
    ) {
        let exclude = self.clients.excludes.get(&link.uid).map(Vec::as_slice).unwrap_or_default();
        for name in exclude {
            let Some(promise) = self.model.calendars.get(name) else { continue };
            if !promise.shards.contains(&shard) {
                continue;
            }
            let before = recorded.is_some_and(|at| at <= promise.since);
            let left_out = promise.days.excludes(&date(link.logical)).expect("a date");
            self.check(!left_out || before || link.logical <= promise.at, || {
                format!("{what} starts on a day that {name} leaves out: {:?}", link.logical)
            });
        }
    }

    pub(crate) fn count_planned_anew(&mut self, record: &ScheduleRecord) {
        let stored = self.store.schedule(self.namespace, &record.name).expect("reads work");
        if stored.is_some_and(|stored| {
            stored.cursor.calendars < record.cursor.calendars && stored.doc == record.doc
        }) {
            self.count("planned anew by calendars");
        }
    }

    /// Nothing has gone wrong for a minute: what is planned is what documents and calendars say.
    pub(crate) fn check_plans(&self) {
        if self.flight.is_some() || self.counters.contains_key("steps back") {
            return;
        }
        let mut calendars = Calendars::default();
        for calendar in self.stored_calendars() {
            calendars.put(calendar);
        }
        for schedule in self.schedules().iter().filter(|s| !s.paused) {
            let (doc, cursor) = (&schedule.doc, &schedule.cursor);
            let asked =
                |a: &Asked| matches!(a, Asked::Schedule { uid, .. } if *uid == schedule.uid);
            if self.model.outstanding.values().any(asked) || self.is_being_written(schedule.uid) {
                continue;
            }
            let timing = compile_in(doc, &schedule.name, schedule.namespace, &calendars);
            let timing = timing.expect("what is named is there");
            if timing.rule().delay().is_some() {
                continue;
            }
            let spent = doc.max_runs.is_some_and(|max| cursor.created >= max);
            let after = cursor.last.map_or(self.now(), |last| last.max(self.now()));
            // What was cancelled ahead of its time is in the store and is not planned again.
            let is_there = |at: Time| {
                let id = occurrence_id(schedule.uid, "plan", at);
                let waits = cursor.next.is_some_and(|next| next.id == id);
                !waits && self.store.task(self.namespace, id).expect("reads work").is_some()
            };
            let mut times = timing.occurrences_after(after.0).map(|o| Time(o.logical));
            let expected = times.find(|at| !is_there(*at));
            match cursor.next {
                None => {
                    self.check(spent || expected.is_none(), || {
                        format!("{} could go on at {expected:?}", schedule.name)
                    });
                }
                Some(next) if next.logical > self.now() => {
                    self.check(expected == Some(next.logical), || {
                        format!("{} waits for {next:?}, not {expected:?}", schedule.name)
                    });
                }
                // It waits for its queue or for a run.
                Some(_) => {}
            }
        }
    }
}
