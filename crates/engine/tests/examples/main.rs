//! Examples: known faults of schedulers, each with its story, and what the policies say, told
//! around the real engine and the memory store by a node that does at once what it is asked,
//! unless a test holds it back.

mod backfills;
mod bench;
mod calendars;
mod faults;
mod ownership;
mod policies;
mod schedules;
