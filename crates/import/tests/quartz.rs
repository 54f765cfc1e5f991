//! Quartz job scheduling data: each kind of trigger, what is told, what is refused.

use proptest::prelude::*;
use tourbillon_import::{Import, Options, quartz};
use tourbillon_schedule::{Zone, format_instant, parse_instant};
use tourbillon_wire::{MisfirePolicy, Target, Timestamp};

fn read(triggers: &str) -> Import {
    let xml = format!(
        r#"<?xml version="1.0"?>
<job-scheduling-data xmlns="http://www.quartz-scheduler.org/xml/JobSchedulingData" version="2.0">
<schedule>
<job><name>report</name><group>g</group><description>Makes it</description>
  <job-class>com.example.Report</job-class><durability>true</durability>
  <job-data-map><entry><key>to</key><value>a@example.org</value></entry>
    <entry><key>n</key><value>1</value></entry></job-data-map></job>
<job><name>tidy</name><job-class>org.quartz.jobs.NativeJob</job-class>
  <job-data-map><entry><key>command</key><value>find /tmp</value></entry>
    <entry><key>parameters</key><value>-mtime +7</value></entry></job-data-map></job>
{triggers}
</schedule></job-scheduling-data>"#
    );
    quartz(&xml, &Options { zone: &Zone::get("America/New_York").unwrap(), queue: Some("q") })
}

fn instant(text: &str) -> Timestamp {
    Timestamp::from_micros(parse_instant(text, None).unwrap())
}

#[test]
fn a_cron_trigger_keeps_its_expression_and_hands_the_data_to_a_worker() {
    let import = read(
        "<trigger><cron><name>t</name><group>g</group><job-name>report</job-name><job-group>g</job-group>
          <priority>9</priority>
          <job-data-map><entry><key>n</key><value>2</value></entry></job-data-map>
          <misfire-instruction>MISFIRE_INSTRUCTION_DO_NOTHING</misfire-instruction>
          <cron-expression>0 30 2 ? * MON-FRI</cron-expression>
          <time-zone>Europe/Berlin</time-zone></cron></trigger>",
    );
    assert_eq!(import.errors, []);
    let entry = &import.entries[0];
    let schedule = &entry.schedule;
    assert_eq!((entry.name(), entry.rule.as_str()), ("g.t", "0 30 2 ? * MON-FRI"));
    assert_eq!(schedule.tz.as_deref(), Some("Europe/Berlin"));
    let misfire = schedule.misfire.unwrap();
    assert_eq!(misfire.policy, MisfirePolicy::Skip);
    assert_eq!(misfire.grace.unwrap().to_string(), "1m");
    let task = &schedule.task;
    assert_eq!(task.target, Target::worker());
    assert_eq!((task.kind.as_deref(), task.priority), (Some("com.example.Report"), 4));
    assert_eq!(task.payload.as_ref().unwrap().get(), r#"{"n":"2","to":"a@example.org"}"#);
    assert_eq!(task.queue.as_deref(), Some("q"));
    assert!(entry.notes.iter().any(|n| n.contains("com.example.Report")), "{:?}", entry.notes);
    // Java moves 02:30 by the gap; the search takes the first instant after it.
    let after = parse_instant("2026-03-27T12:00:00Z", None).unwrap();
    let times = entry.times_before(after, 2).unwrap();
    let times: Vec<String> = times.into_iter().map(format_instant).collect();
    assert_eq!(times, ["2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"]);
}

#[test]
fn a_native_job_is_a_command() {
    let import = read(
        "<trigger><cron><name>t</name><job-name>tidy</job-name>
          <cron-expression>0 0 3 * * ?</cron-expression></cron></trigger>",
    );
    let task = &import.entries[0].schedule.task;
    let Target::Command(command) = &task.target else { panic!("{task:?}") };
    assert_eq!(command.argv, ["/bin/sh", "-c", "find /tmp -mtime +7"]);
    assert_eq!(import.entries[0].schedule.tz.as_deref(), Some("America/New_York"));
}

#[test]
fn simple_triggers_are_grids() {
    let import = read(
        "<trigger><simple><name>a</name><job-name>tidy</job-name>
          <start-time>2026-01-01T10:00:00Z</start-time>
          <repeat-count>3</repeat-count><repeat-interval>60000</repeat-interval></simple></trigger>
        <trigger><simple><name>b</name><job-name>tidy</job-name>
          <repeat-count>-1</repeat-count><repeat-interval>5000</repeat-interval></simple></trigger>
        <trigger><simple><name>c</name><job-name>tidy</job-name>
          <start-time>2030-01-01T10:00:00</start-time></simple></trigger>
        <trigger><simple><name>d</name><job-name>tidy</job-name></simple></trigger>",
    );
    let [a, b, c] = &import.entries[..] else { panic!("{import:?}") };
    assert_eq!(a.schedule.every.unwrap().to_string(), "1m");
    assert_eq!(a.schedule.start, Some(instant("2026-01-01T10:00:00Z")));
    assert_eq!(a.schedule.end, Some(instant("2026-01-01T10:03:00Z")), "four times in all");
    assert_eq!(a.times_before(0, 9).unwrap().len(), 4);
    assert_eq!(b.schedule.misfire.unwrap().policy, MisfirePolicy::Skip, "Quartz's own choice");
    assert!(b.times_before(0, 1).is_none() && b.notes.iter().any(|n| n.contains("epoch")));
    assert_eq!(c.schedule.start, Some(instant("2030-01-01T15:00:00Z")), "in the zone given");
    assert_eq!((c.schedule.end, c.times_before(0, 9).unwrap().len()), (c.schedule.start, 1));
    assert!(import.errors[0].text.contains("start-time"), "{:?}", import.errors);
}

#[test]
fn calendar_intervals_are_calendar_rules() {
    let import = read(
        "<trigger><calendar-interval><name>a</name><job-name>tidy</job-name>
          <start-time>2026-01-31T10:00:00</start-time>
          <repeat-interval>1</repeat-interval><repeat-interval-unit>MONTH</repeat-interval-unit>
        </calendar-interval></trigger>
        <trigger><calendar-interval><name>b</name><job-name>tidy</job-name>
          <start-time>2026-01-31T10:00:00Z</start-time>
          <repeat-interval>90</repeat-interval><repeat-interval-unit>MINUTE</repeat-interval-unit>
        </calendar-interval></trigger>",
    );
    let rule = import.entries[0].schedule.calendar.clone().unwrap();
    assert_eq!((rule.every.as_str(), rule.at.as_deref()), ("1 month", Some("10:00:00")));
    assert_eq!(import.entries[1].schedule.every.unwrap().to_string(), "1h30m");
}

#[test]
fn what_is_wrong_is_told_by_its_line_and_the_rest_is_read() {
    let import = read(
        "<trigger><cron><name>a</name><job-name>nobody</job-name>
          <cron-expression>0 0 3 * * ?</cron-expression></cron></trigger>
        <trigger><cron><name>b</name><job-name>tidy</job-name>
          <cron-expression>0 0 25 * * ?</cron-expression></cron></trigger>
        <trigger><cron><name>c</name><job-name>tidy</job-name>
          <misfire-instruction>FIRE_NOW</misfire-instruction>
          <cron-expression>0 0 3 * * ?</cron-expression></cron></trigger>
        <trigger><simple><name>d</name><job-name>tidy</job-name>
          <start-time>yesterday</start-time></simple></trigger>
        <trigger><weekly><name>e</name><job-name>tidy</job-name></weekly></trigger>
        <trigger/>
        <trigger><cron><name>f</name><job-name>tidy</job-name>
          <cron-expression>0 0 3 * * ?</cron-expression></cron></trigger>",
    );
    assert_eq!(import.entries.len(), 1);
    let wanted =
        ["no job \"nobody\"", "hour at column 5", "FIRE_NOW", "start-time", "<weekly>", "empty"];
    assert_eq!(import.errors.len(), wanted.len(), "{:?}", import.errors);
    for (error, wanted) in import.errors.iter().zip(wanted) {
        assert!(error.text.contains(wanted) && error.place.starts_with("line "), "{error}");
    }
}

#[test]
fn other_documents_are_refused() {
    let options = Options { zone: &Zone::utc(), queue: None };
    for (xml, word) in [
        ("", ""),
        ("<a/>", "<job-scheduling-data>"),
        ("<a>", ""),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "DTD"),
        ("<job-scheduling-data><job/></job-scheduling-data>", "<schedule>"),
    ] {
        let import = quartz(xml, &options);
        assert_eq!(import.errors.len(), 1, "{xml}: {import:?}");
        assert!(import.errors[0].text.contains(word), "{xml}: {import:?}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(
        text in "\\PC{0,60}",
        name in "<?/?(job|trigger|cron|simple|name|job-name|repeat-count|repeat-interval|start-time|priority)>?",
        value in "[0-9:TZ.+-]{0,25}",
    ) {
        let options = Options { zone: &Zone::utc(), queue: None };
        let _ = quartz(&text, &options);
        let _ = read(&format!("{name}{value}{text}"));
        let _ = read(&format!(
            "<trigger><simple><name>a</name><job-name>tidy</job-name><start-time>{value}</start-time>
             <repeat-count>{value}</repeat-count><repeat-interval>{value}</repeat-interval></simple></trigger>"
        ));
    }
}
