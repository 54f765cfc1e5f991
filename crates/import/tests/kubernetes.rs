//! CronJob manifests: what is carried over, what is told, what is refused.

use proptest::prelude::*;
use tourbillon_import::{Import, Options, kubernetes};
use tourbillon_schedule::{Zone, format_instant, parse_instant};
use tourbillon_wire::{Fold, Gap, MisfirePolicy, Overlap, Target};

fn read(text: &str) -> Import {
    kubernetes(text, &Options { zone: &Zone::utc(), queue: Some("q") })
}

const FULL: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: dump
  namespace: db
spec:
  schedule: "30 2 */2 * 1"
  timeZone: America/New_York
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 200
  suspend: true
  successfulJobsHistoryLimit: 3
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 900
      template:
        spec:
          restartPolicy: Never
          serviceAccountName: dumper
          containers:
          - name: dump
            image: postgres:18
            command: ["/bin/sh", "-c"]
            args: ["pg_dump -h $(HOST) > /backup/$$(date)"]
            workingDir: /backup
            env:
            - {name: HOST, value: db.example}
            - {name: URL, value: "pg://$(HOST)/x"}
            - name: PASSWORD
              valueFrom: {secretKeyRef: {name: s, key: k}}
            volumeMounts: [{name: v, mountPath: /backup}]
"#;

#[test]
fn a_cron_job_is_a_schedule_with_its_policies_and_its_command() {
    let import = read(FULL);
    assert_eq!(import.errors, []);
    assert!(import.notes[0].to_string().contains("ConfigMap"), "{:?}", import.notes);
    let entry = &import.entries[0];
    let schedule = &entry.schedule;
    assert_eq!((entry.place.as_str(), entry.name()), ("line 6", "db.dump"));
    // Days that begin with a star are joined by OR there, and by AND in the vixie dialect.
    assert_eq!(schedule.cron.as_deref(), Some("30 2 1-31/2 * 1"));
    assert_eq!(schedule.tz.as_deref(), Some("America/New_York"));
    assert_eq!((schedule.gap, schedule.fold), (Some(Gap::Skip), Some(Fold::Both)));
    assert_eq!((schedule.overlap, schedule.paused), (Some(Overlap::Skip), Some(true)));
    let misfire = schedule.misfire.unwrap();
    assert_eq!(misfire.policy, MisfirePolicy::Once);
    assert_eq!(misfire.grace.unwrap().to_string(), "3m20s");
    let task = &schedule.task;
    assert_eq!(task.timeout.unwrap().to_string(), "15m");
    assert_eq!(task.retry.as_ref().unwrap().max_attempts, Some(3));
    let Target::Command(command) = &task.target else { panic!("{task:?}") };
    assert_eq!(command.argv, ["/bin/sh", "-c", "pg_dump -h db.example > /backup/$(date)"]);
    assert_eq!(command.env.get("URL"), Some("pg://db.example/x"));
    assert_eq!((command.env.len(), command.cwd.as_deref()), (2, Some("/backup")));
    let notes = entry.notes.join("\n");
    for word in [
        "PASSWORD",
        "postgres:18",
        "successfulJobsHistoryLimit",
        "serviceAccountName",
        "volumeMounts",
    ] {
        assert!(notes.contains(word), "{word}: {notes}");
    }
    let after = parse_instant("2026-03-07T00:00:00Z", None).unwrap();
    let times: Vec<String> =
        entry.times_before(after, 3).unwrap().into_iter().map(format_instant).collect();
    // 8 March has no 02:30; 9 March is a Monday, and odd besides.
    assert_eq!(times, ["2026-03-07T07:30:00Z", "2026-03-09T06:30:00Z", "2026-03-11T06:30:00Z"]);
}

#[test]
fn a_container_without_a_command_makes_tasks_for_a_worker() {
    let import = read(
        "kind: CronJob
metadata: {name: a}
spec:
  schedule: '@daily'
  jobTemplate: {spec: {template: {spec: {containers: [{name: c, image: x:1, args: [go]}]}}}}
",
    );
    let entry = &import.entries[0];
    assert_eq!(entry.schedule.task.target, Target::worker());
    assert_eq!(
        entry.schedule.task.payload.as_ref().unwrap().get(),
        r#"{"args":["go"],"env":{},"image":"x:1"}"#
    );
    assert_eq!(entry.schedule.overlap, Some(Overlap::Allow));
    assert_eq!(entry.schedule.task.retry.as_ref().unwrap().max_attempts, Some(7));
    assert_eq!(entry.times_before(0, 1), Some(vec![86_400_000_000]));
}

#[test]
fn lists_are_looked_into_and_faults_name_their_field() {
    let import = read(
        "kind: List
items:
- kind: CronJob
  metadata: {name: a}
  spec: {schedule: '0 25 * * *'}
- kind: CronJob
  metadata: {name: b}
  spec: {schedule: '0 2 * * *', concurrencyPolicy: Never}
- kind: CronJob
  metadata: {name: c}
  spec: {schedule: '0 2 * * *'}
- kind: CronJob
  metadata: {name: d}
  spec: {schedule: '0 2 * * *', suspend: [1]}
- kind: CronJob
  metadata: {}
- kind: CronJob
  metadata: {name: e}
  spec: {schedule: '0 2 * * *', timeZone: Mars, jobTemplate: {spec: {template: {spec: {containers: []}}}}}
- {}
",
    );
    let wanted = [
        "a: spec.schedule: hour at column 3",
        "b: spec.concurrencyPolicy",
        "c: spec.jobTemplate.spec.template.spec.containers: missing",
        "d: spec.jobTemplate",
        "metadata.name: missing",
        "e: spec.timeZone",
        "kind: missing",
    ];
    assert_eq!(import.errors.len(), wanted.len(), "{:?}", import.errors);
    for (error, wanted) in import.errors.iter().zip(wanted) {
        assert!(error.text.contains(wanted), "{error}");
    }
    assert!(import.errors[1].place.ends_with("items[1]"));
}

#[test]
fn a_text_that_is_not_yaml_is_refused_with_its_place() {
    let import = read("kind: [CronJob\n");
    assert!(import.errors[0].place.starts_with("line "), "{import:?}");
    assert_eq!(read("").errors.len(), 1);
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,80}", field in "[a-zA-Z]{0,12}", value in "\\PC{0,20}") {
        let _ = read(&text);
        let _ = read(&format!("{FULL}\n{field}: {value}"));
        let _ = read(&FULL.replace("30 2 */2 * 1", &value.replace(['"', '\\'], "")));
    }
}
