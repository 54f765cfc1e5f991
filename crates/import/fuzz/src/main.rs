//! Fuzzing of everything that reads what people wrote about times: `cargo xtask fuzz --target parsers`.
//!
//! The first byte says which parser gets the rest as text. None may panic or run on, and what a parser
//! accepts has to make sense: times come in strict order, and what is printed is read back as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tourbillon_import::{Options, Service, kubernetes, quartz, service_of, systemd, yaml};
use tourbillon_schedule::{
    CronExpr, Crontab, CrontabFormat, Dialect, Exclusion, OnCalendar, Rule, Timing, Zone,
    format_duration, format_instant, parse_duration, parse_instant, parse_timespan,
};

/// 2026-01-31T23:59:59Z, in microseconds.
const NOW: i64 = 1_769_903_999_000_000;

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let zone =
        Zone::get(["UTC", "America/New_York", "Australia/Lord_Howe"][usize::from(which) % 3]);
    let zone = zone.expect("a zone that is there");
    match which / 3 % 12 {
        dialect @ 0..=2 => cron(dialect, &text, &zone),
        3 => crontab(&text, CrontabFormat::User, &zone),
        4 => crontab(&text, CrontabFormat::System, &zone),
        5 => {
            if let Ok(duration) = parse_duration(&text) {
                assert_eq!(parse_duration(&format_duration(duration)).ok(), Some(duration));
            }
            let _ = parse_timespan(&text);
        }
        6 => {
            if let Ok(instant) = parse_instant(&text, Some(&zone)) {
                assert_eq!(parse_instant(&format_instant(instant), None).ok(), Some(instant));
            }
        }
        7 => drop(OnCalendar::parse(&text)),
        8 => drop(Exclusion::of([], [], [], Some(&text))),
        9 => imported(&quartz(&text, &options(&zone))),
        10 => imported(&kubernetes(&text, &options(&zone))),
        _ => {
            let _ = yaml::read(&text);
            let _ = service_of("backup.timer", &text);
            imported(&systemd(
                "backup.timer",
                &text,
                Service { name: "backup.service", text: None },
                &options(&zone),
            ));
        }
    }
});

fn options(zone: &Zone) -> Options<'_> {
    Options { zone, queue: None }
}

fn imported(import: &tourbillon_import::Import) {
    for entry in &import.entries {
        let _ = entry.times_before(NOW, 3);
    }
}

fn cron(dialect: u8, text: &str, zone: &Zone) {
    let dialect = [Dialect::Vixie, Dialect::Quartz, Dialect::Spring][usize::from(dialect)];
    if let Ok(expr) = CronExpr::parse(dialect, text, "fuzz") {
        in_order(&Timing::new(Rule::cron(expr), zone.clone()));
    }
}

fn crontab(text: &str, format: CrontabFormat, zone: &Zone) {
    for entry in &Crontab::parse(text, format, zone).entries {
        in_order(&entry.timing());
    }
}

/// The next times are strictly after what was asked, and so on.
fn in_order(timing: &Timing) {
    let mut after = NOW;
    for _ in 0..4 {
        let Some(next) = timing.next_after(after) else { return };
        assert!(next.logical > after, "{} is not after {after}", next.logical);
        after = next.logical;
    }
}
