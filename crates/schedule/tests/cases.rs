//! Every line of `cron.tsv`: expressions with exact expected instants, refusals and ends.

use std::str::FromStr;

use tourbillon_schedule::{
    CronExpr, Dialect, Fold, Gap, Rule, Timing, Zone, format_instant, parse_instant,
};

#[test]
fn every_case_gives_exactly_the_expected_instants() {
    let mut failures = Vec::new();
    let mut checked = 0;
    for line in include_str!("cron.tsv").lines() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let actual = run(line);
        let expected = line.rsplit('\t').next().unwrap();
        if actual != expected {
            failures.push(format!("{line}\n    got {actual}"));
        }
        checked += 1;
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(checked > 50, "only {checked} cases were read");
}

fn run(line: &str) -> String {
    let columns: Vec<&str> = line.split('\t').collect();
    let [dialect, text, zone, gap, fold, after, count, _] = columns[..] else {
        panic!("a line has eight columns: {line}");
    };
    let expr = match CronExpr::parse(Dialect::from_str(dialect).unwrap(), text, "seed") {
        Ok(expr) => expr,
        Err(error) => {
            assert!(error.is_cron());
            assert!(error.column().is_some(), "{line}: {error}");
            assert!(!error.field().is_empty() && !error.expected().is_empty());
            return "ERROR".to_owned();
        }
    };
    let timing = Timing::new(Rule::cron(expr), Zone::get(zone).unwrap())
        .with_gap(match gap {
            "shift" => Gap::Shift,
            _ => Gap::Skip,
        })
        .with_fold(match fold {
            "first" => Fold::First,
            "last" => Fold::Last,
            _ => Fold::Both,
        });
    let count: usize = count.parse().unwrap();
    let mut instants: Vec<String> = timing
        .occurrences_after(parse_instant(after, None).unwrap())
        .take(count)
        .map(|occurrence| format_instant(occurrence.logical))
        .collect();
    if instants.len() < count {
        instants.push("END".to_owned());
    }
    instants.join(",")
}
