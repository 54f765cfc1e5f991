//! The search against brute force: random expressions in zones with odd transitions.
//!
//! The oracle lists every real minute (or second) of a window with its civil time as jiff tells
//! it, and matches civil fields one by one; gaps and folds fall out of which civil times
//! occur never or twice. It shares no code with the crate. A failure prints the seed; run it again with
//! `TOURBILLON_SEED=… cargo test -p tourbillon-schedule --test oracle`. `ORACLE_CASES` is how many
//! (expression, zone, instant) are compared; each expression is asked from four instants and walked from a fifth.

mod common;

use std::collections::BTreeMap;

use common::Random;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use tourbillon_schedule::{CronExpr, Dialect, Fold, Gap, Rule, Timing, Zone, format_instant};

const ZONES: [&str; 11] = [
    "America/New_York",
    "Europe/Berlin",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Australia/Lord_Howe",
    "Asia/Beirut",
    "Asia/Shanghai",
    "Pacific/Apia",
    "America/Santiago",
    "Asia/Kolkata",
    "UTC",
];

const DAY: i64 = 86_400;

/// A field as text, and for each value whether it is named.
struct Field {
    text: String,
    named: [bool; 64],
}

impl Field {
    fn begins_with_star(&self) -> bool {
        self.text.starts_with('*')
    }
}

fn field(random: &mut Random, low: i64, high: i64, star_once_in: u64) -> Field {
    let mut named = [false; 64];
    let mut items = Vec::new();
    let star = random.once_in(star_once_in);
    for index in 0..random.within(1, 3) {
        let shape = if star && index == 0 { 0 } else { random.within(1, 3) };
        let (first, last) = match shape {
            0 => (low, high),
            1 => {
                let value = random.within(low, high);
                (value, value)
            }
            _ => {
                let first = random.within(low, high);
                (first, random.within(first, high))
            }
        };
        let mut step = 1;
        let mut item = match shape {
            0 => "*".to_owned(),
            1 => first.to_string(),
            _ => format!("{first}-{last}"),
        };
        if shape == 3 || (shape == 0 && random.once_in(2)) {
            step = random.within(1, (high - low).max(2));
            item.push_str(&format!("/{step}"));
        }
        for value in (first..=last).step_by(step as usize) {
            named[value as usize] = true;
        }
        items.push(item);
        if star {
            break;
        }
    }
    Field { text: items.join(","), named }
}

struct Rules {
    second: Field,
    minute: Field,
    hour: Field,
    month_day: Field,
    month: Field,
    week_day: Field,
    /// With seconds: Spring's dialect; else Vixie's.
    seconds: bool,
}

impl Rules {
    fn random(random: &mut Random, seconds: bool) -> Self {
        Self {
            second: field(random, 0, 59, if seconds { 8 } else { 1 }),
            minute: field(random, 0, 59, 4),
            hour: field(random, 0, 23, 4),
            month_day: field(random, 1, 31, 2),
            month: field(random, 1, 12, 1),
            week_day: field(random, 0, 6, 2),
            seconds,
        }
    }

    fn text(&self) -> String {
        let fields =
            [&self.second, &self.minute, &self.hour, &self.month_day, &self.month, &self.week_day];
        let skipped = usize::from(!self.seconds);
        let texts: Vec<&str> = fields[skipped..].iter().map(|f| f.text.as_str()).collect();
        texts.join(" ")
    }

    fn elapsed(&self) -> bool {
        (self.seconds && self.second.begins_with_star())
            || self.minute.begins_with_star()
            || self.hour.begins_with_star()
    }

    fn matches(&self, civil: &Civil) -> bool {
        let second = if self.seconds { self.second.named[civil.second] } else { civil.second == 0 };
        if !(second
            && self.minute.named[civil.minute]
            && self.hour.named[civil.hour]
            && self.month.named[civil.month])
        {
            return false;
        }
        let month_day = self.month_day.named[civil.month_day];
        let week_day = self.week_day.named[civil.week_day];
        let and =
            self.seconds || self.month_day.begins_with_star() || self.week_day.begins_with_star();
        if and { month_day && week_day } else { month_day || week_day }
    }
}

/// The fields of a civil time, taken apart once.
#[derive(Clone, Copy)]
struct Civil {
    second: usize,
    minute: usize,
    hour: usize,
    month_day: usize,
    month: usize,
    week_day: usize,
}

impl Civil {
    fn of(civil: DateTime) -> Self {
        Self {
            second: civil.second() as usize,
            minute: civil.minute() as usize,
            hour: civil.hour() as usize,
            month_day: civil.day() as usize,
            month: civil.month() as usize,
            week_day: civil.weekday().to_sunday_zero_offset() as usize,
        }
    }
}

/// Every real instant of a span with its civil time, and the instants of every civil time.
struct Window {
    /// The part in which answers are compared; the rest is there so that gaps and folds at its
    /// edges are seen whole.
    from: i64,
    until: i64,
    reals: Vec<(i64, Civil)>,
    civils: Vec<(Civil, Place)>,
}

/// Where a civil time is.
struct Place {
    /// Its instants: none, one or two.
    seconds: Vec<i64>,
    /// The first instant of the civil time itself, or of the next one that has any.
    after: i64,
}

impl Window {
    fn new(tz: &TimeZone, middle: i64, half: i64, margin: i64, grain: i64) -> Self {
        let floor = |second: i64| second.div_euclid(grain) * grain;
        let mut reals = Vec::new();
        let mut civils: BTreeMap<DateTime, Vec<i64>> = BTreeMap::new();
        let mut second = floor(middle - half - margin);
        while second < middle + half + margin {
            let civil = tz.to_datetime(Timestamp::from_second(second).unwrap());
            reals.push((second, civil));
            civils.entry(civil).or_default().push(second);
            second += grain;
        }
        // Civil times that never occur.
        let (first, last) = (reals[0].1, reals[reals.len() - 1].1);
        let mut civil = first;
        while civil < last {
            civils.entry(civil).or_default();
            civil = civil.checked_add(grain.seconds()).unwrap();
        }
        let mut after = 0;
        let mut places = Vec::new();
        for (civil, seconds) in civils.into_iter().rev() {
            after = seconds.first().copied().unwrap_or(after);
            places.push((Civil::of(civil), Place { seconds, after }));
        }
        Self {
            from: floor(middle - half),
            until: floor(middle + half),
            reals: reals.iter().map(|(s, civil)| (*s, Civil::of(*civil))).collect(),
            civils: places,
        }
    }

    fn answers(&self, rules: &Rules, gap: Gap, fold: Fold) -> Vec<i64> {
        let mut answers = Vec::new();
        if rules.elapsed() {
            answers.extend(
                self.reals
                    .iter()
                    .filter(|(_, civil)| rules.matches(civil))
                    .map(|(second, _)| *second),
            );
        } else {
            for (civil, place) in &self.civils {
                if !rules.matches(civil) {
                    continue;
                }
                match (&place.seconds[..], fold) {
                    ([], _) if gap == Gap::Shift => answers.push(place.after),
                    ([], _) => {}
                    ([first, ..], Fold::First) => answers.push(*first),
                    ([.., last], Fold::Last) => answers.push(*last),
                    (all, Fold::Both) => answers.extend(all),
                }
            }
        }
        answers.retain(|second| (self.from..self.until).contains(second));
        answers.sort_unstable();
        answers.dedup();
        answers
    }
}

/// A moment near a transition, or anywhere when the zone has none.
fn moment(random: &mut Random, tz: &TimeZone, spread: i64) -> i64 {
    // Now and then beyond the years that zones keep in memory.
    let (low, high) =
        *random.pick(&[(1_990, 2_012), (2_000, 2_050), (2_020, 2_040), (2_148, 2_300)]);
    let start = (random.within(low, high) - 1970) * 31_556_952;
    let near = tz
        .following(Timestamp::from_second(start).unwrap())
        .next()
        .map_or(start, |t| t.timestamp().as_second());
    near + random.within(-spread, spread)
}

/// How many expressions make up the wanted number of cases; `usual` of them when nothing is wanted.
fn expressions(usual: u64) -> u64 {
    let cases = std::env::var("ORACLE_CASES").ok().map(|n| n.parse::<u64>().expect("a number"));
    cases.map_or(usual, |cases| cases.div_ceil(CASES))
}

/// Cases of one expression: the instants that it is asked from, besides the walk.
const CASES: u64 = 4;

fn compare(seed: u64, random: &mut Random, window: &Window, zone: &Zone, rules: &Rules) {
    let gap = *random.pick(&[Gap::Shift, Gap::Skip]);
    let fold = *random.pick(&[Fold::First, Fold::Last, Fold::Both]);
    let text = rules.text();
    let dialect = if rules.seconds { Dialect::Spring } else { Dialect::Vixie };
    let case = || {
        let from = format_instant(window.from * 1_000_000);
        format!("seed {seed}: {text:?} in {zone} {gap:?} {fold:?} from {from}")
    };
    let expr = CronExpr::parse(dialect, &text, "").unwrap_or_else(|e| panic!("{}: {e}", case()));
    assert_eq!(expr.is_elapsed(), rules.elapsed(), "{}", case());
    let timing = Timing::new(Rule::cron(expr), zone.clone()).with_gap(gap).with_fold(fold);
    let expected = window.answers(rules, gap, fold);
    // Of a dense rule a part, from anywhere, so that the time goes to many rules.
    const COMPARED: usize = 200;
    let skipped = expected.len().saturating_sub(COMPARED);
    let skipped = random.below(skipped as u64 + 1) as usize;
    let start = match skipped {
        0 => window.from * 1_000_000 - 1,
        _ => expected[skipped - 1] * 1_000_000,
    };
    let wanted = &expected[skipped..expected.len().min(skipped + COMPARED)];
    let actual: Vec<i64> = timing
        .occurrences_after(start)
        .map(|o| o.logical)
        .take_while(|logical| *logical < window.until * 1_000_000)
        .take(COMPARED)
        .map(|logical| {
            assert_eq!(logical % 1_000_000, 0);
            logical / 1_000_000
        })
        .collect();
    if actual != wanted {
        let differing = |these: &[i64], those: &[i64]| {
            let only = these.iter().filter(|s| !those.contains(s)).take(8);
            only.map(|s| format_instant(s * 1_000_000)).collect::<Vec<_>>().join(" ")
        };
        let missing = differing(wanted, &actual);
        let extra = differing(&actual, wanted);
        panic!("{}\n missing {missing}\n extra {extra}", case());
    }
    // From anywhere within, to the microsecond.
    let width = (window.until - window.from) as u64 * 1_000_000;
    for index in 0..CASES {
        let mut at = window.from * 1_000_000 + random.below(width) as i64;
        if random.once_in(4) && !expected.is_empty() {
            at = random.pick(&expected) * 1_000_000 + random.within(-1, 1);
        }
        let later = expected.partition_point(|second| second * 1_000_000 <= at);
        let next = expected.get(later).map(|second| second * 1_000_000);
        let latest = later.checked_sub(1).map(|before| expected[before] * 1_000_000);
        if let Some(next) = next {
            assert_eq!(timing.next_after(at).unwrap().logical, next, "{} after {at}", case());
        }
        if let Some(latest) = latest
            && index == 0
        {
            assert_eq!(timing.latest(at).unwrap().logical, latest, "{} up to {at}", case());
        }
    }
}

#[test]
fn minutes_around_transitions_agree_with_brute_force() {
    let (seed, mut random) = Random::seeded();
    let windows = expressions(110 * 180).div_ceil(180);
    for _ in 0..windows {
        let zone = Zone::get(random.pick::<&str>(&ZONES)).unwrap();
        let tz = TimeZone::get(zone.name()).unwrap();
        let middle = moment(&mut random, &tz, DAY / 2);
        // Apia left out a whole day.
        let margin = if zone.name() == "Pacific/Apia" { 5 * DAY / 4 } else { DAY / 8 };
        let window = Window::new(&tz, middle, 3 * DAY / 4, margin, 60);
        for _ in 0..180 {
            let rules = Rules::random(&mut random, false);
            compare(seed, &mut random, &window, &zone, &rules);
        }
    }
}

#[test]
fn seconds_around_transitions_agree_with_brute_force() {
    let (seed, mut random) = Random::seeded();
    let windows = expressions(22 * 40).div_ceil(40 * 20);
    for _ in 0..windows.max(22) {
        // Those with a transition longer than the window's margin are left to the minutes.
        let zone = loop {
            let zone = Zone::get(random.pick::<&str>(&ZONES)).unwrap();
            if zone.name() != "Pacific/Apia" {
                break zone;
            }
        };
        let tz = TimeZone::get(zone.name()).unwrap();
        let middle = moment(&mut random, &tz, 3_600);
        let window = Window::new(&tz, middle, 2 * 3_600, 2 * 3_600, 1);
        for _ in 0..40 {
            let rules = Rules::random(&mut random, true);
            compare(seed, &mut random, &window, &zone, &rules);
        }
    }
}
