//! `schedule preview` and `import crontab --dry-run`: what needs no server.

mod common;

use common::{run, run_with, tourbillon};

/// Every case of the vixie dialect, through the binary.
#[test]
fn every_vixie_case_comes_out_of_the_binary() {
    let cases = include_str!("../../schedule/tests/cron.tsv");
    let mut seen = 0;
    for case in cases.lines().filter(|line| line.starts_with("vixie\t")) {
        let fields: Vec<&str> = case.split('\t').collect();
        let [dialect, expr, zone, gap, fold, after, n, expected] = fields[..] else {
            panic!("not a case: {case}");
        };
        let got = run(&[
            "schedule",
            "preview",
            "--cron",
            expr,
            "--tz",
            zone,
            "--dialect",
            dialect,
            "--gap",
            gap,
            "--fold",
            fold,
            "--after",
            after,
            "-n",
            n,
            "--json",
        ]);
        if expected == "ERROR" {
            assert_eq!(got.status, 2, "{case}: {}", got.err);
            assert!(got.err.contains(" at column "), "{case}: {}", got.err);
            assert_eq!(got.out, "");
        } else {
            let at: Vec<String> =
                got.json().iter().map(|o| o["at"].as_str().unwrap().to_owned()).collect();
            let ends = expected.ends_with("END");
            let expected: Vec<&str> = expected.split(',').filter(|e| *e != "END").collect();
            assert_eq!(at, expected, "{case}: {}", got.err);
            assert_eq!(got.status, i32::from(at.is_empty()), "{case}");
            assert!(!ends || at.len() < n.parse().unwrap(), "{case}");
        }
        seen += 1;
    }
    assert!(seen >= 33, "{seen} cases");
}

#[test]
fn each_occurrence_says_where_and_why() {
    let got = run(&[
        "schedule",
        "preview",
        "--cron",
        "30 2 * * *",
        "--tz",
        "America/New_York",
        "--after",
        "2026-03-07T00:00:00Z",
        "-n",
        "2",
        "--json",
    ]);
    assert_eq!(
        got.json(),
        [
            serde_json::json!({"at": "2026-03-07T07:30:00Z",
                "local": "2026-03-07T02:30:00-05:00[America/New_York]", "why": "normal"}),
            serde_json::json!({"at": "2026-03-08T07:00:00Z",
                "local": "2026-03-08T03:00:00-04:00[America/New_York]", "why": "shifted by a DST gap"}),
        ]
    );
    assert_eq!((got.status, got.err.as_str()), (0, ""));
}

#[test]
fn a_table_is_the_default_and_has_no_colours_in_a_pipe() {
    let got = run(&[
        "schedule",
        "preview",
        "--every",
        "1h",
        "--after",
        "2026-01-01T00:00:00Z",
        "-n",
        "1",
    ]);
    assert_eq!(
        got.out,
        "AT                    LOCAL                           WHY\n\
         2026-01-01T01:00:00Z  2026-01-01T01:00:00+00:00[UTC]  normal\n"
    );
}

#[test]
fn the_other_rules_are_previewed_too() {
    let at = |args: &[&str]| {
        let fixed = ["schedule", "preview", "--after", "2026-01-15T00:00:00Z", "-n", "2", "--json"];
        let got = run(&[&fixed[..], args].concat());
        got.json().iter().map(|o| o["at"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        at(&["--calendar", "1 month", "--on", "31", "--at-time", "02:00"]),
        ["2026-01-31T02:00:00Z", "2026-02-28T02:00:00Z"]
    );
    assert_eq!(at(&["--fixed-delay", "5m"]), ["2026-01-15T00:05:00Z"], "what follows is not known");
    assert_eq!(at(&["--every", "12h", "--max-runs", "1"]), ["2026-01-15T12:00:00Z"]);
    assert_eq!(
        at(&["--every", "1d", "--end", "2026-01-16 08:00", "--tz", "Asia/Shanghai"]),
        ["2026-01-16T00:00:00Z"]
    );
    let jittered = ["--cron", "@daily", "--jitter", "1h", "--seed"];
    let one = at(&[&jittered[..], &["a"]].concat());
    assert_eq!(one, at(&[&jittered[..], &["a"]].concat()));
    assert_ne!(one, at(&[&jittered[..], &["b"]].concat()));
}

#[test]
fn a_rule_that_never_fires_is_nothing_to_show() {
    let got = run(&["schedule", "preview", "--cron", "0 0 30 2 *", "--json"]);
    assert_eq!((got.status, got.out.as_str()), (1, ""));
    assert!(got.err.contains("never fires"), "{}", got.err);
}

#[test]
fn a_wrong_rule_names_field_and_position() {
    for (args, part) in [
        (["--cron", "0 25 * * *"], "hour at column 3"),
        (["--cron", "0 0 * * foo"], "column 9"),
        (["--cron", ""], "expected"),
        (["--tz", "Mars/Olympus"], "Mars/Olympus"),
        (["--after", "tomorrow"], "--after"),
        (["--calendar", "1 fortnight"], "every"),
        (["--every", "0s"], "expected"),
        (["--every", "5"], "no unit"),
        (["--gap", "leap"], "shift"),
    ] {
        let rule = if args[0].ends_with("cron")
            || args[0].ends_with("calendar")
            || args[0].ends_with("every")
        {
            vec![]
        } else {
            vec!["--cron", "* * * * *"]
        };
        let got = run(&[&["schedule", "preview"][..], &rule, &args].concat());
        assert_eq!(got.status, 2, "{args:?}: {}", got.err);
        assert!(got.err.contains(part), "{args:?}: {}", got.err);
        assert_eq!(got.out, "");
    }
    let neither = run(&["schedule", "preview"]);
    assert_eq!(neither.status, 2, "{}", neither.err);
    let both = run(&["schedule", "preview", "--cron", "* * * * *", "--every", "5m"]);
    assert_eq!(both.status, 2, "{}", both.err);
}

/// A file in a folder that goes with the test.
fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn calendars_from_files_leave_days_out_and_it_is_said_why() {
    let folder = tempfile::tempdir().unwrap();
    let weekend = file(&folder, "weekend.json", r#"{"weekdays": ["sat", "sun"]}"#);
    let ics = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:National Day\r\nDTSTART;VALUE=DATE:20261001\r\n\
               DTEND;VALUE=DATE:20261008\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    let holidays = file(&folder, "holidays.ics", ics);
    let rule =
        ["schedule", "preview", "--calendar", "day", "--at-time", "09:00", "--tz", "Asia/Shanghai"];
    let span = ["--after", "2026-09-30T02:00:00Z", "-n", "3"];
    let files = ["--exclude-file", &holidays, "--exclude-file", &weekend];
    let got = run(&[&rule[..], &span, &files].concat());
    assert_eq!(
        got.out,
        "AT                    LOCAL                                     WHY\n\
         2026-10-01T01:00:00Z  2026-10-01T09:00:00+08:00[Asia/Shanghai]  left out by holidays: 2026-10-01 to 2026-10-07 (7 times until 2026-10-07T01:00:00Z)\n\
         2026-10-08T01:00:00Z  2026-10-08T09:00:00+08:00[Asia/Shanghai]  normal\n\
         2026-10-09T01:00:00Z  2026-10-09T09:00:00+08:00[Asia/Shanghai]  normal\n\
         2026-10-10T01:00:00Z  2026-10-10T09:00:00+08:00[Asia/Shanghai]  left out by weekend: every sat\n\
         2026-10-11T01:00:00Z  2026-10-11T09:00:00+08:00[Asia/Shanghai]  left out by weekend: every sun\n\
         2026-10-12T01:00:00Z  2026-10-12T09:00:00+08:00[Asia/Shanghai]  normal\n",
        "{}",
        got.err
    );
    // Machine-readable lines are occurrences, each with what was left out before it.
    let got = run(&[&rule[..], &span, &files, &["--json"]].concat());
    let lines = got.json();
    let at: Vec<&str> = lines.iter().map(|o| o["at"].as_str().unwrap()).collect();
    assert_eq!(at, ["2026-10-08T01:00:00Z", "2026-10-09T01:00:00Z", "2026-10-12T01:00:00Z"]);
    assert_eq!(lines[0]["left_out"][0]["calendar"], "holidays");
    assert_eq!(
        (lines[0]["left_out"][0]["count"].as_u64(), lines[1].get("left_out")),
        (Some(7), None)
    );
    assert_eq!((got.status, got.err.as_str()), (0, ""));
    // A rule without a day left is nothing to show, and why.
    let never = ["schedule", "preview", "--cron", "0 9 * * sun", "--exclude-file", &weekend];
    for json in [&[][..], &["--json"]] {
        let got = run(&[&never[..], json].concat());
        assert_eq!((got.status, got.out.as_str()), (1, ""));
        assert!(got.err.contains("left out by weekend: every sun"), "{}", got.err);
    }
    // What is wrong is wrong use, with the file and the field.
    let wrong = file(&folder, "wrong.json", r#"{"dates": ["2026-13-01"]}"#);
    let twin = file(&folder, "twin.json", r#"{"name": "weekend"}"#);
    for (files, part) in [
        (vec![wrong.as_str()], "dates[0]"),
        (vec![weekend.as_str(), twin.as_str()], "another calendar is called weekend"),
    ] {
        let files: Vec<&str> = files.iter().flat_map(|file| ["--exclude-file", *file]).collect();
        let got = run(&[&rule[..], &files].concat());
        assert_eq!((got.status, got.out.as_str()), (2, ""), "{}", got.err);
        assert!(got.err.contains(part), "{}", got.err);
    }
    let unknown = file(&folder, "unknown.json", r#"{"days": []}"#);
    let got = run(&[&rule[..], &["--exclude-file", &unknown]].concat());
    assert!(got.status == 1 && got.err.contains("days"), "{}", got.err);
    let got = run(&[&rule[..], &["--exclude-file", "/nonexistent"]].concat());
    assert!(got.status == 1 && got.err.contains("cannot read /nonexistent"), "{}", got.err);
}

const CRONTAB: &str = "\
MAILTO=ops@example.com
CRON_TZ=America/New_York
PATH=/usr/bin:/bin
30 2 * * * backup --all > /dev/null
@reboot warm-up
*/15 * * * * date +\\%F%in
61 * * * * broken
";

#[test]
fn a_crontab_shows_its_next_times_and_what_is_not_carried_over() {
    let got = run_with(tourbillon(&["import", "crontab", "-", "--dry-run", "--json"]), CRONTAB);
    assert_eq!(got.status, 1, "one line could not be read: {}", got.err);
    let lines = got.json();
    assert_eq!(lines.len(), 2, "{}", got.out);
    assert_eq!(lines[0]["command"], "backup --all > /dev/null");
    assert_eq!(lines[0]["tz"], "America/New_York");
    assert_eq!(lines[0]["next"].as_array().unwrap().len(), 3);
    assert_eq!(lines[1]["command"], "date +%F");
    for part in
        ["Asia/Shanghai", "-:1: note: ", "MAILTO", "-:5: note: ", "-:7: error: minute at column 1"]
    {
        assert!(got.err.contains(part), "{part} is not in {}", got.err);
    }
    let table = run_with(tourbillon(&["import", "crontab", "-", "--dry-run", "-n", "2"]), CRONTAB);
    assert!(table.out.starts_with("LINE  SCHEDULE"), "{}", table.out);
    let empty = run_with(tourbillon(&["import", "crontab", "-", "--dry-run"]), "# nothing\n");
    assert_eq!((empty.status, empty.out.as_str()), (1, ""));
}

const QUARTZ: &str = r#"<job-scheduling-data version="2.0"><schedule>
<job><name>report</name><job-class>com.example.Report</job-class></job>
<trigger><cron><name>nightly</name><job-name>report</job-name>
  <cron-expression>0 30 2 * * ?</cron-expression></cron></trigger>
<trigger><cron><name>bad</name><job-name>report</job-name>
  <cron-expression>0 30 25 * * ?</cron-expression></cron></trigger>
</schedule></job-scheduling-data>"#;

const CRON_JOB: &str = "
kind: CronJob
metadata: {name: dump}
spec:
  schedule: '30 2 * * 1'
  jobTemplate: {spec: {template: {spec: {containers: [{name: c, image: pg:18, command: [date]}]}}}}
";

#[test]
fn other_schedulers_show_their_times_before_and_after() {
    let words = ["import", "quartz", "-", "--dry-run", "--json", "--tz", "America/New_York"];
    let got = run_with(tourbillon(&words), QUARTZ);
    assert_eq!(got.status, 1, "one trigger could not be read: {}", got.err);
    let lines = got.json();
    assert_eq!((lines.len(), &lines[0]["name"]), (1, &"nightly".into()), "{}", got.out);
    assert_eq!(lines[0]["old"].as_array().unwrap().len(), 3);
    assert_eq!(lines[0]["old"], lines[0]["new"]);
    // Java moves the 02:30 that a night lacks by an hour, and we to the first instant after the gap.
    let differs = lines[0]["differs"].as_array().unwrap();
    assert!(differs[0].as_str().unwrap().contains("T03:30:00-04:00"), "{differs:?}");
    assert!(differs[1].as_str().unwrap().contains("T03:00:00-04:00"), "{differs:?}");
    for part in [
        "-: line 5: error: trigger bad: cron-expression: hour at column 6",
        "com.example.Report",
        "differ first",
    ] {
        assert!(got.err.contains(part), "{part} is not in {}", got.err);
    }
    let got = run_with(tourbillon(&["import", "k8s", "-", "--dry-run"]), CRON_JOB);
    assert_eq!(got.status, 0, "{}", got.err);
    assert!(got.out.starts_with("SCHEDULE") && got.out.contains("BEFORE"), "{}", got.out);
    assert!(got.err.contains("pg:18") && got.err.contains("Asia/Shanghai"), "{}", got.err);
    let none = run_with(tourbillon(&["import", "k8s", "-", "--dry-run"]), "kind: Pod\n");
    assert_eq!((none.status, none.out.as_str()), (1, ""));
}

#[test]
fn a_timer_takes_the_command_of_the_service_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let timer = folder.path().join("backup.timer");
    std::fs::write(&timer, "[Timer]\nOnCalendar=Mon..Fri 22:30\n").unwrap();
    let words = ["import", "systemd", timer.to_str().unwrap(), "--dry-run", "--json"];
    let got = run(&words);
    assert_eq!(got.status, 0, "{}", got.err);
    assert!(got.err.contains("systemctl"), "{}", got.err);
    std::fs::write(folder.path().join("backup.service"), "[Service]\nUser=b\nExecStart=/bin/b\n")
        .unwrap();
    let got = run(&words);
    assert!(got.err.contains("not carried over: User"), "{}", got.err);
    assert_eq!(got.json()[0]["tz"], "Asia/Shanghai");
    let got = run(&[&words[..], &["--systemctl"]].concat());
    assert!(got.err.contains("systemctl"), "{}", got.err);
}
