//! Crontabs as they are found on hosts: what is read, what is noted, what is refused and where.

use proptest::prelude::*;
use tourbillon_schedule::{Crontab, CrontabFormat, Fold, Gap, Zone, format_instant, parse_instant};

fn user(text: &str) -> Crontab {
    Crontab::parse(text, CrontabFormat::User, &Zone::utc())
}

fn env<'a>(entry: &'a tourbillon_schedule::CrontabEntry, name: &str) -> Option<&'a str> {
    let found = entry.env.iter().find(|(known, _)| **known == *name);
    found.map(|(_, value)| &**value)
}

#[test]
fn a_users_crontab() {
    let crontab = user(
        "# a comment\n\
         \n\
         SHELL=/bin/bash\n\
         MAILTO=ops@example.org\n\
         PATH = \"/usr/local/bin:/usr/bin\"\n\
         30 2 * * *  /opt/app/bin/backup.sh --full # not a comment\r\n\
         \t@daily\t true\n\
         HOME=/srv\n\
         @every 5m date +\\%F%one%two\n\
         @reboot /opt/app/bin/start\n\
         -0 4 * * mon-fri logrotate /etc/logrotate.conf",
    );
    assert_eq!(crontab.errors, []);
    let notes: Vec<_> = crontab.notes.iter().map(|n| (n.line, n.text.as_str())).collect();
    assert_eq!(
        notes,
        [(4, "MAILTO is not carried over"), (10, "@reboot is not carried over: it is no time")]
    );
    let [backup, daily, every, rotate] = &crontab.entries[..] else {
        panic!("{:?}", crontab.entries);
    };
    assert_eq!((backup.line, backup.expr.as_str()), (6, "30 2 * * *"));
    assert_eq!(backup.command, "/opt/app/bin/backup.sh --full # not a comment");
    assert_eq!((backup.shell.as_str(), backup.home.as_deref()), ("/bin/bash", None));
    assert_eq!(env(backup, "PATH"), Some("/usr/local/bin:/usr/bin"));
    assert_eq!(env(backup, "MAILTO"), None);
    assert!(backup.user.is_none() && backup.stdin.is_none());
    assert!(backup.name.starts_with("cron-backup-sh-full-"), "{}", backup.name);
    assert_eq!((daily.expr.as_str(), daily.command.as_str()), ("@daily", "true"));
    assert_eq!((every.expr.as_str(), every.command.as_str()), ("@every 5m", "date +%F"));
    assert_eq!(every.stdin.as_deref(), Some("one\ntwo\n"));
    assert_eq!(every.home.as_deref(), Some("/srv"));
    assert_eq!((rotate.line, rotate.expr.as_str()), (11, "0 4 * * mon-fri"));
    let timing = backup.timing();
    assert_eq!((timing.gap(), timing.fold()), (Gap::Shift, Fold::First));
}

#[test]
fn the_systems_crontab_names_users() {
    let text = "17 * * * *\troot\tcd / && run-parts --report /etc/cron.hourly\n\
                @weekly www-data  php /srv/clean.php\n\
                0 0 * * * root\n\
                0 0 * * *\n";
    let crontab = Crontab::parse(text, CrontabFormat::System, &Zone::utc());
    let [hourly, weekly] = &crontab.entries[..] else {
        panic!("{:?}", crontab.entries);
    };
    assert_eq!(hourly.user.as_deref(), Some("root"));
    assert_eq!(hourly.command, "cd / && run-parts --report /etc/cron.hourly");
    assert_eq!(weekly.user.as_deref(), Some("www-data"));
    assert_eq!(weekly.command, "php /srv/clean.php");
    assert_eq!(weekly.shell, "/bin/sh");
    let errors: Vec<_> =
        crontab.errors.iter().map(|e| (e.line, e.error.field(), e.error.column())).collect();
    assert_eq!(errors, [(3, "command", Some(15)), (4, "user", Some(10))]);
}

#[test]
fn zones_hold_for_the_lines_below() {
    let crontab = Crontab::parse(
        "0 9 * * * a\n\
         TZ=Asia/Shanghai\n\
         0 9 * * * b\n\
         CRON_TZ=America/New_York\n\
         0 9 * * * c\n\
         CRON_TZ=\n\
         0 9 * * * d\n\
         CRON_TZ='Mars/Base'\n\
         0 9 * * * e\n\
         CRON_TZ=:UTC\n\
         0 9 * * * f\n",
        CrontabFormat::User,
        &Zone::get("Europe/Berlin").unwrap(),
    );
    let zones: Vec<_> =
        crontab.entries.iter().map(|e| (e.command.as_str(), e.zone.name())).collect();
    assert_eq!(
        zones,
        [
            ("a", "Europe/Berlin"),
            ("b", "Asia/Shanghai"),
            ("c", "America/New_York"),
            ("d", "Asia/Shanghai"),
            ("f", "UTC"),
        ]
    );
    assert_eq!(env(&crontab.entries[1], "TZ"), Some("Asia/Shanghai"));
    assert_eq!(env(&crontab.entries[2], "CRON_TZ"), None);
    let errors: Vec<_> =
        crontab.errors.iter().map(|e| (e.line, e.error.field(), e.error.column())).collect();
    assert_eq!(errors, [(8, "zone", Some(10)), (9, "zone", Some(1))]);
    assert_eq!(crontab.notes.len(), 1);
    let next = crontab.entries[1]
        .timing()
        .next_after(parse_instant("2026-06-01T00:00:00Z", None).unwrap());
    assert_eq!(format_instant(next.unwrap().logical), "2026-06-01T01:00:00Z");
}

#[test]
fn a_fault_says_line_and_column_and_stops_nothing() {
    let crontab = user(
        "  61 * * * * a\n\
         0 0 * * mon,xyz b\n\
         0 0 * *\n\
         A='open\n\
         0 0 * * * %in\n\
         @fortnightly c\n\
         @every 5x c\n\
         hello\n\
         0 0 * * * \0\n\
         0 0 * * * fine\n",
    );
    assert_eq!(crontab.entries.len(), 1);
    let errors: Vec<_> =
        crontab.errors.iter().map(|e| (e.line, e.error.field(), e.error.column())).collect();
    assert_eq!(
        errors,
        [
            (1, "minute", Some(3)),
            (2, "day of week", Some(13)),
            (3, "expression", Some(8)),
            (4, "variable", Some(3)),
            (5, "command", Some(11)),
            (6, "expression", Some(1)),
            (7, "duration", Some(9)),
            (8, "expression", Some(6)),
            (9, "line", Some(11)),
        ]
    );
    assert!(crontab.errors.iter().all(|e| e.error.is_crontab()));
    assert_eq!(
        crontab.errors[0].to_string(),
        "line 1: minute at column 3: given \"61\"; expected 0-59"
    );
}

#[test]
fn names_stay_when_times_and_lines_move() {
    let before = user("0 1 * * * backup /home\n0 2 * * * report\n0 3 * * * report\n~ 4 * * * x");
    let after =
        user("A=b\n0 2 * * * report\n0 3 * * * report\n\n5 5 * * * backup /home\n~ 4 * * * x");
    let names = |crontab: &Crontab| {
        let mut names: Vec<_> = crontab.entries.iter().map(|e| e.name.clone()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&before), names(&after));
    assert_eq!(names(&before).len(), 4);
    assert!(before.entries[2].name.ends_with("-2"));
    assert_eq!(before.entries[3].expr, after.entries[3].expr);
    let as_root =
        Crontab::parse("0 1 * * * root backup /home", CrontabFormat::System, &Zone::utc());
    assert_ne!(as_root.entries[0].name, before.entries[0].name);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_text_panics_and_each_line_counts_once(
        text in "([ \t]?(#|@daily|@reboot|@every 5m|[0-9*]{1,2} [0-9*]{1,2} \\* \\* (\\*|mon)|[A-Z]{1,3}|CRON_TZ|\\PC{0,6})[ =\t'\"%\\\\-]{0,3}[a-zé\0%\\\\]{0,5}[\r\n]{0,2}){0,12}",
        system in any::<bool>(),
    ) {
        let format = if system { CrontabFormat::System } else { CrontabFormat::User };
        let crontab = Crontab::parse(&text, format, &Zone::utc());
        let mut seen = std::collections::BTreeSet::new();
        let lines = text.split('\n').count();
        for line in crontab.entries.iter().map(|e| e.line).chain(crontab.errors.iter().map(|e| e.line)) {
            prop_assert!((1..=lines).contains(&line));
            prop_assert!(seen.insert(line));
        }
        for entry in &crontab.entries {
            prop_assert!(entry.name.len() <= 200 && !entry.name.contains('/'));
            prop_assert!(!entry.command.trim().is_empty());
        }
    }
}
