//! Instants on the command line. The only place of the command that reads the clock.

use std::time::SystemTime;

use tourbillon_schedule::{Zone, format_duration, parse_instant};
use tourbillon_wire::Timestamp;

use crate::exit::usage;

/// The wall clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// The zone of that name.
pub(crate) fn zone(name: &str) -> anyhow::Result<Zone> {
    Zone::get(name).map_err(|e| usage(format!("--tz: {e}")))
}

/// RFC 3339, or civil time in `tz`; `option` names what it was given for.
pub(crate) fn instant(option: &str, given: &str, tz: Option<&str>) -> anyhow::Result<Timestamp> {
    let zone = tz.map(zone).transpose()?;
    parse_instant(given, zone.as_ref()).map(Timestamp::from_micros).map_err(|e| {
        let hint = match tz {
            None => " (civil time needs --tz)",
            Some(_) => "",
        };
        usage(format!("{option}: {e}{hint}"))
    })
}

/// How far an instant is from now, in words: `in 29m59s`, `3s ago`, `now`.
pub(crate) fn distance(at: Timestamp) -> String {
    let micros = at.as_micros().saturating_sub(now().as_micros());
    let seconds = (micros.saturating_add(micros.signum() * 500_000)) / 1_000_000;
    let seconds = match seconds.abs() {
        // Nobody reads seconds that far away.
        far @ 86_400.. => seconds.signum() * (far / 3_600 * 3_600),
        _ => seconds,
    };
    match seconds {
        0 => "now".to_owned(),
        ahead @ 1.. => format!("in {}", format_duration(ahead.saturating_mul(1_000_000))),
        behind => {
            format!("{} ago", format_duration(behind.saturating_abs().saturating_mul(1_000_000)))
        }
    }
}
