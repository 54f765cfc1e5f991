//! A second opinion: the crate `croner`, where its rules and ours are the same. That is in UTC, without
//! `*/n` as a day and with weekdays from 0 to 6.

mod common;

use std::str::FromStr;

use chrono::{DateTime, TimeZone, Utc};
use common::Random;
use tourbillon_schedule::{CronExpr, Dialect, Rule, Timing, Zone};

fn field(random: &mut Random, low: i64, high: i64, star_once_in: u64) -> String {
    if random.once_in(star_once_in) {
        return "*".to_owned();
    }
    let items = (0..random.within(1, 3)).map(|_| {
        let first = random.within(low, high);
        match random.within(0, 2) {
            0 => first.to_string(),
            1 => format!("{first}-{}", random.within(first, high)),
            _ => format!("{first}-{}/{}", random.within(first, high), random.within(1, 9)),
        }
    });
    items.collect::<Vec<_>>().join(",")
}

#[test]
fn the_next_time_is_croners() {
    let (seed, mut random) = Random::seeded();
    for _ in 0..3_000 {
        let text = [
            field(&mut random, 0, 59, 4),
            field(&mut random, 0, 23, 3),
            field(&mut random, 1, 28, 2),
            field(&mut random, 1, 12, 2),
            field(&mut random, 0, 6, 2),
        ]
        .join(" ");
        let theirs = croner::Cron::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let expr = CronExpr::parse(Dialect::Vixie, &text, "").unwrap();
        let ours = Timing::new(Rule::cron(expr), Zone::utc());
        let mut second = random.within(0, 4_000_000_000);
        for _ in 0..4 {
            let after: DateTime<Utc> = Utc.timestamp_opt(second, 0).unwrap();
            let wanted = theirs.find_next_occurrence(&after, false).unwrap().timestamp();
            let next = ours.next_after(second * 1_000_000).unwrap().logical;
            assert_eq!(next, wanted * 1_000_000, "seed {seed}: {text} after {second}");
            second = wanted;
        }
    }
}
