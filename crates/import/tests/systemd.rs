//! systemd timers: rules, policies, what the service runs, what is told, what is refused.

use proptest::prelude::*;
use tourbillon_import::{Import, Options, Service, service_of, systemd};
use tourbillon_schedule::{Zone, format_instant, parse_instant};
use tourbillon_wire::{Dialect, Fold, Gap, MisfirePolicy, Overlap, Target};

fn read(timer: &str, service: Option<&str>) -> Import {
    let zone = Zone::get("Europe/Berlin").unwrap();
    let service = Service { name: "backup.service", text: service };
    systemd("backup.timer", timer, service, &Options { zone: &zone, queue: None })
}

#[test]
fn a_timer_is_a_schedule_for_each_of_its_events() {
    let import = read(
        "[Unit]\nDescription=x\n[Timer]\nOnCalendar=*-*-* 02:30\nOnCalendar=Fri *-*-13 09:00 UTC\n
        RandomizedDelaySec=5min\nPersistent=true\nOnBootSec=10min\nAccuracySec=1s\nWakeSystem=yes\n",
        None,
    );
    assert_eq!(import.errors, []);
    assert!(import.notes[0].to_string().contains("OnBootSec"), "{:?}", import.notes);
    let [night, friday] = &import.entries[..] else { panic!("{import:?}") };
    assert_eq!((night.name(), friday.name()), ("backup", "backup-2"));
    let schedule = &night.schedule;
    assert_eq!(schedule.cron.as_deref(), Some("0 30 2 * * *"));
    assert_eq!(
        (schedule.dialect, schedule.tz.as_deref()),
        (Some(Dialect::Spring), Some("Europe/Berlin"))
    );
    assert_eq!((schedule.gap, schedule.fold), (Some(Gap::Skip), Some(Fold::First)));
    assert_eq!(schedule.jitter.unwrap().to_string(), "5m");
    assert_eq!(schedule.misfire.unwrap().policy, MisfirePolicy::Once);
    assert_eq!(schedule.overlap, Some(Overlap::Skip));
    assert_eq!(friday.schedule.tz.as_deref(), Some("UTC"));
    let Target::Command(command) = &schedule.task.target else { panic!() };
    assert_eq!(command.argv, ["systemctl", "start", "--", "backup.service"]);
    let notes = night.notes.join("\n");
    assert!(notes.contains("systemctl") && notes.contains("WakeSystem"), "{notes}");
    let after = parse_instant("2026-03-28T12:00:00Z", None).unwrap();
    let times: Vec<String> =
        night.times_before(after, 2).unwrap().into_iter().map(format_instant).collect();
    // The night without a 02:30 is left out, as systemd does.
    assert_eq!(times, ["2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"]);
}

#[test]
fn monotonic_timers_are_intervals() {
    let import = read("[Timer]\nOnUnitActiveSec=15min\nOnUnitInactiveSec=1h\n", None);
    let [active, inactive] = &import.entries[..] else { panic!("{import:?}") };
    assert_eq!(active.schedule.every.unwrap().to_string(), "15m");
    assert_eq!(inactive.schedule.after.unwrap().to_string(), "1h");
    let misfire = active.schedule.misfire.unwrap();
    assert_eq!(misfire.policy, MisfirePolicy::Skip);
    assert_eq!(misfire.grace.unwrap().to_string(), "1m", "the accuracy unless it is given");
    assert!(active.times_before(0, 1).is_none());
}

#[test]
fn the_service_says_what_runs() {
    let import = read(
        "[Timer]\nOnCalendar=daily\n",
        Some(
            "[Service]\nType=oneshot\nUser=backup\nEnvironment=A=1 \"B=2 3\"\nWorkingDirectory=/srv
            TimeoutStartSec=10min\nExecStart=/usr/bin/backup --unit %n 'a b'\nNice=5\n",
        ),
    );
    let entry = &import.entries[0];
    let task = &entry.schedule.task;
    let Target::Command(command) = &task.target else { panic!() };
    assert_eq!(command.argv, ["/usr/bin/backup", "--unit", "backup.service", "a b"]);
    assert_eq!((command.env.get("B"), command.cwd.as_deref()), (Some("2 3"), Some("/srv")));
    assert_eq!(task.timeout.unwrap().to_string(), "10m");
    assert_eq!(task.retry.as_ref().unwrap().max_attempts, Some(1));
    assert!(entry.notes.iter().any(|n| n.contains("User, Nice")), "{:?}", entry.notes);
    let several = read(
        "[Timer]\nOnCalendar=daily\n",
        Some("[Service]\nExecStart=/bin/a 'x y'\nExecStart=/bin/b\n"),
    );
    let Target::Command(command) = &several.entries[0].schedule.task.target else { panic!() };
    assert_eq!(command.argv, ["/bin/sh", "-c", "/bin/a 'x y' && /bin/b"]);
}

#[test]
fn the_service_is_found_by_name() {
    assert_eq!(service_of("backup.timer", "[Timer]\nOnCalendar=daily\n"), "backup.service");
    assert_eq!(service_of("backup.timer", "[Timer]\nUnit=other.service\n"), "other.service");
    assert_eq!(service_of("backup.timer", "not a unit"), "backup.service");
}

#[test]
fn what_is_wrong_is_told_by_its_line_and_the_rest_is_read() {
    let import = read(
        "[Timer]\nOnCalendar=25:00\nOnUnitActiveSec=soon\nOnCalendar=Fri 2026,2028-*-13\nOnCalendar=daily\n",
        None,
    );
    assert_eq!(import.entries.len(), 1);
    let wanted = ["hour at column 1", "time span", "year"];
    assert_eq!(import.errors.len(), wanted.len(), "{:?}", import.errors);
    for ((error, wanted), line) in import.errors.iter().zip(wanted).zip(2..) {
        assert!(error.text.contains(wanted), "{error}");
        assert_eq!(error.place, format!("line {line}"));
    }
    for (timer, service) in [
        ("[Timer]\n", None),
        ("", None),
        ("[Timer]\nOnCalendar", None),
        ("[Timer]\nOnCalendar=daily\nPersistent=perhaps", None),
        ("[Timer]\nOnCalendar=daily\nRandomizedDelaySec=x", None),
        ("[Timer]\nOnCalendar=daily", Some("[Service]\n")),
        ("[Timer]\nOnCalendar=daily", Some("[Service]\nExecStart=/bin/a %h\n")),
        ("[Timer]\nOnCalendar=daily", Some("[Service]\nExecStart=/bin/a\nEnvironment=x\n")),
    ] {
        let import = read(timer, service);
        assert_eq!((import.entries.len(), import.errors.len()), (0, 1), "{timer}: {import:?}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(
        text in "\\PC{0,60}|[A-Za-z=\\[\\]\\\\\n;# %\"'-]{0,60}",
        value in "\\PC{0,30}|[A-Za-z0-9:*/.,~ -]{0,30}",
    ) {
        let _ = read(&text, Some(&text));
        let _ = read(&format!("[Timer]\nOnCalendar={value}\nOnUnitActiveSec={value}\n"), None);
        let _ = read("[Timer]\nOnCalendar=daily\n", Some(&format!("[Service]\nExecStart={value}\n")));
    }
}
