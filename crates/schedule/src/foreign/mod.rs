//! Times as other schedulers write them, for taking them over: systemd's `OnCalendar` and time spans,
//! and the cron expressions of Kubernetes. (Quartz is a dialect of its own; crontabs have a file of theirs.)
//!
//! What always holds: what is taken over fires when the other one does, apart from changes of clocks,
//! or it is refused with the reason. [`Reading`] says how the other one treats those, and finds its
//! times without our search, so that both can be shown side by side. Deliberately absent: documents
//! (unit files, YAML, XML) and what they run.

mod elsewhere;
mod kubernetes;
mod oncalendar;
mod print;
mod timespan;

pub use elsewhere::Reading;
pub use kubernetes::KubernetesCron;
pub use oncalendar::{OnCalendar, OnCalendarRule};
pub use timespan::parse_timespan;
